// MultiheadAttention against torch.nn.MultiheadAttention: all kinds of masks, packed and separate
// projections, dropout with a seed, and the constructor's random draws.

#include "posenc/transformer/attention/multihead_attention.h"

#include <torch/utils.h>

#include "support/layers.h"

namespace posenc {
namespace {

using testing::Fixture;
using testing::fixtures;

MultiheadAttentionOptions options_of(const Fixture& fixture) {
  const auto width = [&](const char* name) -> std::optional<int64_t> {
    const auto value = fixture.option<int64_t>(name, 0);
    return value == 0 ? std::nullopt : std::optional(value);
  };
  return MultiheadAttentionOptions(fixture.option<int64_t>("width", 0),
                                   fixture.option<int64_t>("heads", 0))
      .dropout(fixture.option("dropout", 0.0))
      .bias(fixture.option("bias", true))
      .kdim(width("kdim"))
      .vdim(width("vdim"))
      .batch_first(fixture.option("batch_first", true))
      .python_dropout_order(true);
}

TEST(MultiheadAttentionParity, FollowsPythonUnderEveryMask) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("multihead_attention", mode)) {
      MultiheadAttention module(options_of(fixture));
      testing::expect_parity(
          fixture, *module,
          [&](const Golden& golden) {
            return module->forward(
                golden.input("query"), golden.input("key"), golden.input("value"),
                testing::torch_nn_mask(golden.inputs(), "mask", "key_padding_mask"));
          },
          testing::layer_parity());
    }
  }
}

TEST(MultiheadAttentionParity, DrawsPythonsWeights) {
  for (const Fixture& fixture : fixtures("multihead_attention", "init")) {
    torch::manual_seed(fixture.seed);
    testing::expect_drawn(fixture, *MultiheadAttention(options_of(fixture)));
  }
}

}  // namespace
}  // namespace posenc
