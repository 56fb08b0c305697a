// Encoders whose layers run in another order than they are stored in, or several times, as
// ALBERT's.

#include <gtest/gtest.h>

#include <sstream>

#include "posenc/inference/freeze.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::Op;
using testing::within;

const std::vector<int64_t> kOrder = {0, 1, 0, 1, 1};

TransformerEncoder shared_layers(bool norm_first, std::vector<int64_t> order = kOrder) {
  torch::manual_seed(testing::seed(1));
  const auto layer = TransformerLayerOptions(24, 3).d_ff(40).norm_first(norm_first);
  TransformerEncoder encoder(
      TransformerEncoderOptions(layer, 2).norm(norm_first).order(std::move(order)));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : encoder->parameters()) parameter.add_(torch::randn_like(parameter), 0.1);
  encoder->eval();
  return encoder;
}

// A stack in which each run has its own layer.
TransformerEncoder unrolled(const TransformerEncoder& shared) {
  auto options = shared->options;
  const auto order = options.order();
  TransformerEncoder all(options.num_layers(static_cast<int64_t>(order.size())).order({}));
  const torch::NoGradGuard no_grad;
  const auto copy = [](torch::nn::Module& to, const torch::nn::Module& from) {
    const auto values = from.named_parameters();
    for (auto& parameter : to.named_parameters()) parameter.value().copy_(values[parameter.key()]);
  };
  for (size_t i = 0; i < order.size(); ++i)
    copy(*all->layers->ptr(i), *shared->layers->ptr(static_cast<size_t>(order[i])));
  if (shared->norm) copy(*all->norm, *shared->norm);
  all->eval();
  return all;
}

TEST(SharedLayers, ComputeWhatAnUnrolledStackComputes) {
  for (const bool norm_first : {false, true}) {
    auto shared = shared_layers(norm_first);
    auto all = unrolled(shared);
    const auto x = torch::randn({2, 5, 24}), cotangent = torch::randn({2, 5, 24});
    const auto mask = AttentionMask::causal();
    const auto out = shared->forward(x, mask);
    EXPECT_TRUE(bit_equal(out, all->forward(x, mask)));
    EXPECT_FALSE(bit_equal(out, shared_layers(norm_first, {0, 1})->forward(x, mask)));
    out.backward(cotangent);
    all->forward(x, mask).backward(cotangent);
    for (const auto& parameter : shared->layers->named_parameters()) {
      const std::string name = parameter.key().substr(1);  // without the index
      torch::Tensor sum = torch::zeros_like(parameter.value());
      for (size_t i = 0; i < kOrder.size(); ++i) {
        if (std::to_string(kOrder[i]) != parameter.key().substr(0, 1)) continue;
        sum += all->layers->named_parameters()[std::to_string(i) + name].grad();
      }
      EXPECT_TRUE(within(Op::Training, parameter.value().grad(), sum)) << parameter.key();
    }
  }
}

TEST(SharedLayers, AreStoredOnce) {
  auto shared = shared_layers(false);
  EXPECT_EQ(shared->parameters().size(), shared_layers(false, {})->parameters().size());
  const auto x = torch::randn({2, 5, 24});
  TransformerEncoder copy(std::dynamic_pointer_cast<TransformerEncoderImpl>(shared->clone()));
  EXPECT_TRUE(bit_equal(copy->forward(x), shared->forward(x)));
  EXPECT_EQ(copy->parameters().size(), shared->parameters().size());
  std::ostringstream text;
  text << *shared;
  EXPECT_NE(text.str().find(", order=[0, 1, 0, 1, 1])"), std::string::npos) << text.str();
}

TEST(SharedLayers, AreFrozenWithoutCopies) {
  for (const bool norm_first : {false, true}) {
    auto shared = shared_layers(norm_first);
    const auto frozen = freeze(shared), all = freeze(unrolled(shared));
    const auto x = torch::randn({3, 7, 24});
    const auto mask = AttentionMask::key_padding(torch::ones({3, 7}, torch::kBool).tril(3));
    EXPECT_TRUE(bit_equal(frozen.forward(x, mask), all.forward(x, mask)));
    EXPECT_TRUE(within(Op::Layers, frozen.forward(x), shared->forward(x).detach()));
    int64_t bytes = 0;
    for (const auto& parameter : shared->parameters())
      bytes += static_cast<int64_t>(parameter.nbytes());
    EXPECT_EQ(frozen.bytes().shared, bytes);
    EXPECT_EQ(frozen.bytes().own, 0);
  }
}

}  // namespace
}  // namespace posenc
