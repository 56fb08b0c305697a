// Notebook 03: TokenAndPositionEmbedding: eval, training with a seed, ten optimiser steps.

#include "posenc/positions/nn/token_and_position_embedding.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>

#include "posenc/weights/load.h"
#include "support/parity.h"

namespace posenc::token_and_position_embedding_test {
namespace {

using testing::Fixture;
using testing::fixtures;

TokenAndPositionEmbeddingOptions options_of(const Fixture& fixture) {
  return TokenAndPositionEmbeddingOptions(fixture.option<int64_t>("vocab_size", 0),
                                          fixture.option<int64_t>("d_model", 0),
                                          fixture.option<int64_t>("max_len", 0))
      .dropout(fixture.option("dropout", 0.1));
}

// The live fixtures include train mode, in which the seeded dropout mask must equal Python's.
TEST(TokenAndPositionEmbeddingParity, MatchesNotebook) {
  int64_t trained = 0;
  for (const Fixture& fixture : fixtures("token_and_position_embedding")) {
    if (fixture.has("out.losses")) continue;  // ten steps, tested below
    trained += fixture.option("train", false) && fixture.option("dropout", 0.0) > 0.0 ? 1 : 0;
    TokenAndPositionEmbedding module(options_of(fixture));
    testing::expect_parity(
        fixture, *module,
        [&](const Golden& golden) { return module->forward(golden.input("ids")); },
        {testing::Op::Forward, testing::Op::Gradient, "position_encoding.pe", {}});
  }
  EXPECT_GE(trained, 5);
}

struct TinyModelImpl : torch::nn::Module {
  explicit TinyModelImpl(const TokenAndPositionEmbeddingOptions& options)
      : embed(register_module("embed", TokenAndPositionEmbedding(options))),
        head(register_module("head", torch::nn::Linear(options.d_model(), options.vocab_size()))) {}
  torch::Tensor forward(const torch::Tensor& ids) { return head(embed->forward(ids)); }

  TokenAndPositionEmbedding embed;
  torch::nn::Linear head;
};
TORCH_MODULE(TinyModel);

TEST(TokenAndPositionEmbeddingParity, TenAdamStepsFollowPythons) {
  for (const Fixture& fixture : fixtures("token_and_position_embedding", "adam_ten_steps")) {
    SCOPED_TRACE(fixture.name);
    TinyModel model(options_of(fixture));
    load_state_dict(*model, fixture.under("param."));
    torch::optim::Adam adam(model->parameters(),
                            torch::optim::AdamOptions(fixture.option("lr", 0.0)));
    std::vector<torch::Tensor> losses;
    for (int64_t step = 0; step < fixture["out.losses"].size(0); ++step) {
      adam.zero_grad();
      const auto logits = model->forward(fixture["in.ids"]);  // (B, L, V)
      const auto loss = torch::nn::functional::cross_entropy(logits.flatten(0, 1),
                                                             fixture["in.targets"].flatten());
      loss.backward();
      if (step == 0) {
        EXPECT_TRUE(within(testing::Op::Linear, logits, fixture["out.output"]));
        for (const auto& item : fixture.under("grad.")) {
          EXPECT_TRUE(within(testing::Op::Gradient, model->named_parameters()[item.key()].grad(),
                             item.value()))
              << item.key();
        }
      }
      losses.push_back(loss.detach());
      adam.step();
    }
    EXPECT_TRUE(within(testing::Op::Training, torch::stack(losses), fixture["out.losses"]));
    for (const auto& item : fixture.under("final.")) {
      EXPECT_TRUE(
          within(testing::Op::Training, model->named_parameters()[item.key()], item.value()))
          << item.key();
    }
  }
}

}  // namespace
}  // namespace posenc::token_and_position_embedding_test
