// Notebook 02: a timestep's encoding through pe_linear, alone and added to an image.

#include "posenc/positions/nn/timestep_embedding.h"

#include <torch/utils.h>

#include "support/parity.h"

namespace posenc {
namespace {

TEST(TimestepEmbeddingParity, MatchesNotebook) {
  for (const testing::Fixture& fixture : testing::fixtures("timestep_embedding")) {
    TimestepEmbedding module(TimestepEmbeddingOptions(fixture.option<int64_t>("d_model", 0),
                                                      fixture.option<int64_t>("channels", 0))
                                 .max_len(fixture.option<int64_t>("max_len", 0)));
    testing::expect_parity(fixture, *module,
                           [&](const Golden& golden) {
                             return golden.inputs().contains("image")
                                        ? module->add_to(golden.input("image"), golden.input("t"))
                                        : module->forward(golden.input("t"));
                           },
                           {testing::Op::Linear, testing::Op::Gradient, "pe.embedding.weight", {}});
  }
}

}  // namespace
}  // namespace posenc
