// ConvBERT's attention beside a convolution.

#include "posenc/transformer/attention/convolutional_attention.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include <cmath>
#include <utility>

#include "posenc/inference/freeze.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "support/threads.h"

namespace posenc::convolutional_attention_test {
namespace {

using testing::bit_equal;
using testing::Threads;

using Options = ConvolutionalAttentionOptions;

template <typename Module>
Module drawn(Module module) {
  torch::manual_seed(8);
  const torch::NoGradGuard no_grad;
  for (auto& parameter : module->parameters()) parameter.copy_(torch::randn_like(parameter) * 0.3);
  module->eval();
  return module;
}

bool near(const torch::Tensor& a, const torch::Tensor& b) { return a.allclose(b, 1e-5, 1e-5); }

// The definition, token by token.
torch::Tensor convolved(ConvolutionalAttentionImpl& m, const torch::Tensor& x) {
  const int64_t heads = m.options.num_heads(), size = m.options.conv_kernel_size();
  const int64_t width = m.options.embed_dim() / 2, head_dim = width / heads, length = x.size(1);
  const auto rows = m.conv_out->forward(x);
  const auto queries =
      torch::linear(x, m.in_proj_weight.narrow(0, 0, width), m.in_proj_bias.narrow(0, 0, width));
  auto out = torch::zeros({x.size(0), length, width});
  for (int64_t i = 0; i < length; ++i) {
    auto separable = torch::zeros({x.size(0), x.size(2)});
    for (int64_t k = 0; k < size; ++k) {
      const int64_t at = i + k - size / 2;
      if (at >= 0 && at < length) {
        separable = separable + x.select(1, at) * m.depthwise_weight.select(1, k);
      }
    }
    const auto weights = m.kernel->forward(m.pointwise->forward(separable) * queries.select(1, i))
                             .view({-1, heads, size})
                             .softmax(-1);
    for (int64_t k = 0; k < size; ++k) {
      const int64_t at = i + k - size / 2;
      if (at < 0 || at >= length) continue;
      const auto own = rows.select(1, at).view({-1, heads, head_dim}) * weights.narrow(2, k, 1);
      out.select(1, i).add_(own.flatten(1));
    }
  }
  return out;
}

torch::Tensor attended(ConvolutionalAttentionImpl& m, const torch::Tensor& x,
                       const torch::Tensor& keys) {
  const int64_t heads = m.options.num_heads();
  const auto all = torch::linear(x, m.in_proj_weight, m.in_proj_bias).chunk(3, -1);
  const auto in_heads = [&](const torch::Tensor& y) {
    return y.unflatten(-1, {heads, -1}).transpose(1, 2);
  };
  const auto q = in_heads(all[0]), k = in_heads(all[1]), v = in_heads(all[2]);
  auto scores = q.matmul(k.transpose(2, 3)) / std::sqrt(static_cast<double>(q.size(3)));
  scores = scores.masked_fill(keys.logical_not().unsqueeze(1).unsqueeze(1), -INFINITY);
  return scores.softmax(-1).matmul(v).transpose(1, 2).flatten(2);
}

TEST(ConvolutionalAttention, IsHalfAttentionAndHalfConvolution) {
  const torch::NoGradGuard no_grad;
  for (const int64_t size : {1, 3, 9}) {
    for (const int64_t length : {1, 2, 7}) {
      SCOPED_TRACE(std::to_string(size) + " tokens of " + std::to_string(length));
      auto module = drawn(ConvolutionalAttention(Options(12, 2).conv_kernel_size(size)));
      const auto x = torch::randn({2, length, 12});
      auto keys = torch::ones({2, length}, torch::kBool);
      if (length > 1) keys[1][length - 1] = false;
      const auto both = torch::cat({attended(*module, x, keys), convolved(*module, x)}, -1);
      const auto mask = AttentionMask::key_padding(keys);
      EXPECT_TRUE(near(module->forward(x, mask), module->out_proj->forward(both)));
      const auto [out, shares] = module->forward_with_weights(x, mask);
      EXPECT_TRUE(near(out, module->forward(x, mask)));
      EXPECT_EQ(shares.sizes(), torch::IntArrayRef({2, 2, length, length}));
    }
  }
}

// Padding is seen by the convolution, so that all rows are computed; each layer has a size.
TEST(ConvolutionalAttention, FrozenLayersComputeTheSame) {
  const torch::NoGradGuard no_grad;
  for (int number = 0; number < 16; ++number) {
    SCOPED_TRACE(number);
    const auto plain = TransformerLayerOptions(24, 3)
                           .d_ff(7)
                           .norm_first(number % 2 == 0)
                           .batch_first(number % 3 != 0)
                           .mixing(Mixing::Convolution);
    const auto wide = TransformerLayerOptions(plain).conv_kernel_size(2 * (number % 5) + 1);
    auto encoder =
        drawn(TransformerEncoder(TransformerEncoderOptions(plain, 2).layers({plain, wide})));
    const auto frozen = freeze(encoder);
    const int64_t length = 1 + 5 * (number / 2);
    auto x = torch::randn({3, length, 24});
    const auto tokens = torch::ones({3, length}, torch::kBool).tril(length / 2);
    const auto mask = AttentionMask::key_padding(tokens);
    if (!plain.batch_first()) x = x.transpose(0, 1).contiguous();
    torch::Tensor first;
    for (const int threads : {1, 3}) {
      const Threads set(threads);
      const auto got = frozen.forward(x, mask);
      if (!first.defined()) first = got;
      EXPECT_TRUE(bit_equal(got, first)) << threads;
    }
    EXPECT_TRUE(first.allclose(encoder->forward(x, mask), 1e-4, 1e-5));
    TransformerEncoderRecord expected, record;
    expected.output_hidden_states = record.output_hidden_states = true;
    encoder->forward_with(x, mask, expected);
    EXPECT_TRUE(bit_equal(frozen.forward_with(x, mask, record), first));
    ASSERT_EQ(record.hidden_states.size(), 3U);
    for (size_t i = 0; i < 3; ++i)
      EXPECT_TRUE(record.hidden_states[i].allclose(expected.hidden_states[i], 1e-4, 1e-5)) << i;
  }
}

TEST(ConvolutionalAttention, RefusesOptionsAndSequencesThatDoNotFit) {
  const std::pair<Options, const char*> cases[] = {
      {Options(0, 2), "embed_dim must be positive. Got 0"},
      {Options(6, 2), "embed_dim must be a multiple of twice num_heads 2. Got 6"},
      {Options(8, 2).conv_kernel_size(4), "conv_kernel_size must be odd and positive. Got 4"},
      {Options(8, 2).conv_kernel_size(-1), "conv_kernel_size must be odd and positive. Got -1"},
      {Options(8, 2).dropout(1.0), "dropout must lie in [0, 1). Got 1"}};
  for (const auto& [options, message] : cases) {
    EXPECT_ERROR(ConvolutionalAttention{options}, c10::ValueError, message);
  }
  ConvolutionalAttention module(Options(8, 2));
  EXPECT_ERROR(module->forward(torch::ones({2, 8})), c10::ValueError, "x must be (B, L, 8). Got");
  const auto layer = TransformerLayerOptions(8, 2).mixing(Mixing::Convolution).window(1);
  EXPECT_ERROR(TransformerEncoderLayer{layer}, c10::ValueError,
               "window must be its default with Mixing::Convolution");
  const auto unbiased = TransformerLayerOptions(8, 2).mixing(Mixing::Convolution).bias(false);
  EXPECT_ERROR(TransformerEncoderLayer{unbiased}, c10::ValueError,
               "bias must be its default with Mixing::Convolution");
}

}  // namespace
}  // namespace posenc::convolutional_attention_test
