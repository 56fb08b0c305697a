#pragma once

#include <ATen/Version.h>
#include <gtest/gtest.h>
#include <torch/types.h>

#include <vector>

#include "kernels/dispatch.h"
#include "posenc/positions/functional/encoder_embeddings.h"
#include "positions/functional/embed/norm_rounding.h"

namespace posenc::functional {

/// The arguments of encoder_embeddings().
struct EmbeddingsCase {
  torch::Tensor ids;
  EncoderEmbeddingsWeights weights;
  EncoderEmbeddingsFuncOptions how;
};

inline std::vector<torch::Tensor*> tensors_of(EncoderEmbeddingsWeights& w) {
  return {&w.tokens,      &w.positions,   &w.token_types,       &w.task_types,
          &w.norm_weight, &w.norm_bias,   &w.projection_weight, &w.projection_bias,
          &w.x_positions, &w.y_positions, &w.h_positions,       &w.w_positions};
}

/// A small BERT.
inline EmbeddingsCase bert() {
  EmbeddingsCase c;
  c.ids = torch::tensor({{1, 4, 1}, {0, 6, 1}});
  c.weights.tokens = torch::randn({7, 5});
  c.weights.positions = torch::randn({4, 5});
  c.weights.token_types = torch::randn({2, 5});
  c.weights.norm_weight = torch::randn({5});
  c.weights.norm_bias = torch::randn({5});
  return c;
}

inline EmbeddingsCase trained_bert() {
  EmbeddingsCase c = bert();
  for (torch::Tensor* t : tensors_of(c.weights))
    if (t->defined()) t->requires_grad_();
  return c;
}

/// Skipped if the chosen kernels have no fused multiply-add but ATen's norm does: POSENC_ISA=sse2
/// or generic on a processor with AVX2.
class EmbeddingsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto fused = static_cast<int>(kernels::embed::NormRounding::Fused);
    const bool aten_fuses = at::get_cpu_capability() != "DEFAULT";
    if (aten_fuses && kernels::chosen().embeddings.embeddings[fused] == nullptr)
      GTEST_SKIP() << "these kernels cannot round as ATen's norm does";
#if !defined(__x86_64__)
    if (!norm_rounding()) GTEST_SKIP() << "ATen's norm adds in an order that the kernels lack";
#endif
    ASSERT_TRUE(norm_rounding().has_value());
  }
};

}  // namespace posenc::functional
