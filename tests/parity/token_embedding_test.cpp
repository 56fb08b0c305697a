// Notebooks 00, 01 and 03: TokenEmbedding, a bare nn.Embedding, TransformerEmbedding.

#include "posenc/positions/nn/token_embedding.h"

#include <torch/utils.h>

#include "support/parity.h"

namespace posenc::token_embedding_test {
namespace {

using testing::Fixture;
using testing::fixtures;

TokenEmbeddingOptions options_of(const Fixture& fixture) {
  auto options = TokenEmbeddingOptions(fixture.option<int64_t>("vocab_size", 0),
                                       fixture.option<int64_t>("d_model", 0));
  if (fixture.option<std::string>("scale", "none") == "sqrt_dim") options.scale(Scale::SqrtDim);
  const auto padding_idx = fixture.option<int64_t>("padding_idx", -1);
  if (padding_idx >= 0) options.padding_idx(padding_idx);
  return options;
}

TEST(TokenEmbeddingParity, MatchesNotebook) {
  for (const Fixture& fixture : fixtures("token_embedding")) {
    if (!fixture.has("in.ids")) continue;  // the init_seed cases, tested below
    TokenEmbedding module(options_of(fixture));
    testing::expect_parity(
        fixture, *module,
        [&](const Golden& golden) { return module->forward(golden.input("ids")); },
        {testing::Op::Forward, testing::Op::Gradient, "", {{"weight", "embedding.weight"}}});
  }
}

// The same seed gives the same N(0, 1) weights as in Python's nn.Embedding.
TEST(TokenEmbeddingParity, InitialisesAsPythonDoes) {
  int64_t live = 0;
  for (const Fixture& fixture : fixtures("token_embedding", "init_seed")) {
    SCOPED_TRACE(fixture.name);
    torch::manual_seed(fixture.seed);
    TokenEmbedding module(options_of(fixture));
    EXPECT_TRUE(testing::bit_equal(module->embedding->weight, fixture["out.output"]));
    torch::manual_seed(fixture.seed + 1);
    module->reset_parameters();
    EXPECT_FALSE(testing::bit_equal(module->embedding->weight, fixture["out.output"]));
    torch::manual_seed(fixture.seed);
    module->reset_parameters();
    EXPECT_TRUE(testing::bit_equal(module->embedding->weight, fixture["out.output"]));
    ++live;
  }
  EXPECT_GE(live, 5);
}

}  // namespace
}  // namespace posenc::token_embedding_test
