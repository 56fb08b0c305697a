#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <string>

#include "posenc/core/compare_tensors.h"

namespace posenc::testing {

/// compare_tensors() without a tolerance.
::testing::AssertionResult bit_equal(const torch::Tensor& a, const torch::Tensor& b);

/// bit_equal() for sines and cosines that LibTorch has computed in tensors of other sizes or
/// strides. On ARM64, the last bit of LibTorch's sine depends on the neighbours in a vector of
/// four; there, the results may differ by one unit in the last place.
::testing::AssertionResult same_sines(const torch::Tensor& a, const torch::Tensor& b);

/// Why two equivalent results may differ, and by how much. Tolerances are data: they are listed in
/// compare.cpp, one row per operation and dtype, and nowhere else.
enum class Op {
  Forward,            ///< gather, multiply, add: one IEEE operation per element
  Linear,             ///< matrix products: the library chooses the order of summation
  Sums,               ///< the same if terms of size 1 may cancel
  LongSums,           ///< of hundreds to some 2000 such terms
  BFloat16Attention,  ///< with inputs and weights in bfloat16, of values of size 1
  RankSums,           ///< of several processes compared with one
  Scores,             ///< log probabilities of the tokens found by a search
  Layers,             ///< a few layers of attention, norms and matrix products
  Logits,             ///< of a whole Transformer compared with transformers
  Score,              ///< of a sequence: a sum of log probabilities
  Gradient,           ///< sums over tokens in a different order
  Training,           ///< ten optimiser steps of a small model
  FirstLoss,          ///< of a small Transformer, before any optimiser step
  Losses,             ///< of its first twenty steps
  DropoutLosses,      ///< the same with Python's dropout masks
  ForeignTable,       ///< a float32 table from another CPU, row p: 3 p 2^-24 + 1.2e-7
};

/// compare_tensors() with the tolerance of `op` for their dtype.
::testing::AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b);

/// The same for an inexact expected result `b`: a may differ more from it, by a multiple (also in
/// compare.cpp) of the distance between b and `exact`, the same result in float64.
::testing::AssertionResult within(Op op, const torch::Tensor& a, const torch::Tensor& b,
                                  const torch::Tensor& exact);

Tolerance tolerance_of(Op op, torch::Dtype dtype);

/// The largest allowed difference between two numbers of this size.
double allowance(Op op, torch::Dtype dtype, double size);

/// ForeignTable for a table with any positions and scale. `farthest` is the largest magnitude of a
/// position (times the factor before the sine), which is assumed for all rows.
::testing::AssertionResult within_foreign(double farthest, const torch::Tensor& a,
                                          const torch::Tensor& b);

/// The message of the exception that `action` throws, without LibTorch's backtrace; "" if none.
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

/// The statement must throw a c10::Error of `type` whose message contains `text`.
#define EXPECT_ERROR(statement, type, text)                                         \
  do {                                                                              \
    EXPECT_THROW(statement, type);                                                  \
    EXPECT_PRED_FORMAT2(::testing::IsSubstring, text,                               \
                        ::posenc::testing::message_of([&] { (void)(statement); })); \
  } while (false)
