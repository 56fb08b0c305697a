#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

namespace posenc::testing {

/// Same shape, dtype and bits (so -0.0 is not 0.0); on failure names the first difference.
::testing::AssertionResult bit_equal(const torch::Tensor& a, const torch::Tensor& b);

/// Why two results that mean the same may differ, and by how much. Tolerances are data: they stand
/// in compare.cpp, a row an operation and type, and nowhere else.
enum class Op {
  Forward,        ///< gather, multiply, add: one IEEE operation an element
  Linear,         ///< matrix products: the order of summation is the library's
  Sums,           ///< the same where terms of size 1 may cancel each other
  Scores,         ///< log probabilities of what a search wrote
  Layers,         ///< a few layers of attention, norms and matrix products
  Logits,         ///< of a whole Transformer against transformers'
  Score,          ///< of a sequence: a sum of log probabilities
  Gradient,       ///< sums over tokens in another order
  Training,       ///< ten optimiser steps of a small model
  FirstLoss,      ///< of a small Transformer, before any optimiser step
  Losses,         ///< of its first twenty steps
  DropoutLosses,  ///< the same with Python's dropout masks
  ForeignTable,   ///< a float32 table made on another CPU, a row a position: 3 p 2^-24 + 1.2e-7
};

/// |a - b| within the tolerance of `op` for their dtype; on failure names the worst element.
::testing::AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b);

/// The same of a result `b` that is itself inexact: a may be farther from it, by a multiple (in
/// compare.cpp, too) of how far b is from `exact`, the same result in float64.
::testing::AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b,
                                  const torch::Tensor& exact);

/// How far two numbers of this size may be apart by the table.
double allowance(Op op, torch::Dtype dtype, double size);

/// ForeignTable for a table with any positions, of which `farthest` is the largest by magnitude
/// (times the factor before the sine), and any scale: as if every row stood there.
::testing::AssertionResult within_foreign(double farthest, const torch::Tensor& a,
                                          const torch::Tensor& b);

/// The text of the exception that `action` throws, without LibTorch's backtrace; "" for none.
template <typename Action>
std::string message_of(Action action) {
  try {
    action();
  } catch (const c10::Error& error) {
    return error.what_without_backtrace();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

}  // namespace posenc::testing

/// The statement must throw c10::Error of `type` whose message contains `text`.
#define EXPECT_ERROR(statement, type, text)                                         \
  do {                                                                              \
    EXPECT_THROW(statement, type);                                                  \
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text,                               \
                        ::posenc::testing::message_of([&] { (void)(statement); })); \
  } while (false)
