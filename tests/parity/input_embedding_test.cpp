// Notebook 00: InputEmbedding.

#include "posenc/positions/nn/input_embedding.h"

#include "support/parity.h"

namespace posenc {
namespace {

TEST(InputEmbeddingParity, MatchesNotebook) {
  for (const testing::Fixture& fixture : testing::fixtures("input_embedding")) {
    InputEmbedding module(fixture.option<int64_t>("vocab_size", 0),
                          fixture.option<int64_t>("d_model", 0),
                          fixture.option<int64_t>("max_len", 0));
    testing::expect_parity(
        fixture, *module,
        [&](const Golden& golden) { return module->forward(golden.input("ids")); },
        {testing::Op::Forward, testing::Op::Gradient, "pos_encoding.pe", {}});
  }
}

}  // namespace
}  // namespace posenc
