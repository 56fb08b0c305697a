#include "posenc/functional/embed.h"

#include <gtest/gtest.h>
#include <torch/utils.h>

#include "posenc/nn/input_embedding.h"
#include "posenc/nn/token_and_position_embedding.h"
#include "support/compare.h"
#include "support/devices.h"

namespace posenc {
namespace {

using testing::bit_equal;
using testing::OnEachDevice;

class Embed : public OnEachDevice {};
POSENC_ON_EACH_DEVICE(Embed);

// The modules compose their submodules; the function composes functions. They are one.
TEST_P(Embed, IsTheTwinOfTokenAndPositionEmbedding) {
  TokenAndPositionEmbedding module(TokenAndPositionEmbeddingOptions(50, 20, 30).dropout(0.25));
  module->to(device());
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong).to(device());
  for (const bool training : {false, true}) {
    module->train(training);
    const auto how = functional::EmbedFuncOptions()
                         .scale(Scale::SqrtDim)
                         .position(functional::PositionalEncodingFuncOptions().offset(4))
                         .dropout(0.25)
                         .training(training);
    torch::manual_seed(3);
    const auto expected = module->forward(ids, 4);
    torch::manual_seed(3);
    EXPECT_TRUE(bit_equal(
        functional::embed(ids, module->token_embedding->weight, module->position_encoding->pe, how),
        expected));
  }
}

TEST_P(Embed, IsTheTwinOfInputEmbedding) {
  InputEmbedding module(50, 20, 30);
  module->to(device());
  const auto ids = torch::randint(0, 50, {3, 9}, torch::kLong).to(device());
  EXPECT_TRUE(bit_equal(
      functional::embed(ids, module->token_embedding->embedding->weight, module->pos_encoding->pe),
      module->forward(ids)));
}

TEST(EmbedErrors, RejectDropoutOutsideItsRange) {
  const auto weight = torch::randn({5, 4}), table = torch::randn({6, 4});
  const auto ids = torch::tensor({1, 2});
  for (const double p : {-0.1, 1.0, 1.5}) {
    EXPECT_ERROR(functional::embed(ids, weight, table, functional::EmbedFuncOptions().dropout(p)),
                 c10::ValueError, "dropout must lie in [0, 1)");
  }
}

}  // namespace
}  // namespace posenc
