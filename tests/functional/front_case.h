#pragma once

#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "functional/embedding_front/norm_rounding.h"
#include "posenc/functional/embedding_front.h"

namespace posenc::functional {

/// The arguments of embedding_front().
struct FrontCase {
  torch::Tensor ids;
  EmbeddingFrontWeights weights;
  EmbeddingFrontFuncOptions how;
};

inline std::vector<torch::Tensor*> tensors_of(EmbeddingFrontWeights& w) {
  return {&w.tokens,      &w.positions, &w.token_types,       &w.task_types,
          &w.norm_weight, &w.norm_bias, &w.projection_weight, &w.projection_bias};
}

/// A small BERT.
inline FrontCase bert() {
  FrontCase c;
  c.ids = torch::tensor({{1, 4, 1}, {0, 6, 1}});
  c.weights.tokens = torch::randn({7, 5});
  c.weights.positions = torch::randn({4, 5});
  c.weights.token_types = torch::randn({2, 5});
  c.weights.norm_weight = torch::randn({5});
  c.weights.norm_bias = torch::randn({5});
  return c;
}

inline FrontCase trained_bert() {
  FrontCase c = bert();
  for (torch::Tensor* t : tensors_of(c.weights))
    if (t->defined()) t->requires_grad_();
  return c;
}

/// Processors without an instruction that ATen uses cannot have its bits: POSENC_ISA=sse2.
class FrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!norm_rounding()) GTEST_SKIP() << "these kernels cannot round as ATen's norm does";
  }
};

}  // namespace posenc::functional
