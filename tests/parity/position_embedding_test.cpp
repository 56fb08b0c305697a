// Notebook 02 PositionalEncoding (a frozen Embedding) and notebook 04 MyPositionEncoding (a
// buffer).

#include "posenc/positions/nn/position_embedding.h"

#include "support/parity.h"

namespace posenc {
namespace {

using testing::Fixture;
using testing::fixtures;
using RegisterAs = PositionEmbeddingOptions::RegisterAs;

TEST(PositionEmbeddingParity, MatchesNotebook) {
  for (const Fixture& fixture : fixtures("position_embedding")) {
    const bool buffer = fixture.option<std::string>("storage", "") == "buffer";
    PositionEmbedding module(PositionEmbeddingOptions(fixture.option<int64_t>("d_model", 0))
                                 .max_len(fixture.option<int64_t>("max_len", 0))
                                 .register_as(buffer ? RegisterAs::Buffer : RegisterAs::Parameter));
    testing::expect_parity(
        fixture, *module,
        [&](const Golden& golden) { return module->forward(golden.input("position_ids")); },
        {testing::Op::Forward, testing::Op::Gradient, buffer ? "pos_enc" : "embedding.weight", {}});
  }
}

}  // namespace
}  // namespace posenc
