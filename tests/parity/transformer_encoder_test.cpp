// TransformerEncoderLayer and TransformerEncoder against torch.nn: LayerNorm before or after each
// block, activations, masks, dropout with a seed, keys, and the constructor's random draws.

#include "posenc/transformer/layers/transformer_encoder.h"

#include <torch/utils.h>

#include "support/layers.h"

namespace posenc {
namespace {

using testing::Fixture;
using testing::fixtures;

template <typename Holder>
void follow(const Fixture& fixture, Holder module) {
  testing::expect_parity(
      fixture, *module,
      [&](const Golden& golden) {
        return module->forward(golden.input("x"),
                               testing::torch_nn_mask(golden.inputs(), "mask", "key_padding_mask"));
      },
      testing::layer_parity());
}

TEST(TransformerEncoderParity, LayersFollowPython) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("transformer_encoder_layer", mode)) {
      follow(fixture, TransformerEncoderLayer(testing::layer_options(fixture)));
    }
  }
}

TEST(TransformerEncoderParity, StacksFollowPython) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("transformer_encoder", mode)) {
      follow(fixture,
             TransformerEncoder(TransformerEncoderOptions(testing::layer_options(fixture),
                                                          fixture.option<int64_t>("layers", 0))
                                    .norm(fixture.option("norm", false))));
    }
  }
}

TEST(TransformerEncoderParity, LayersDrawPythonsWeights) {
  for (const Fixture& fixture : fixtures("transformer_encoder_layer", "init")) {
    torch::manual_seed(fixture.seed);
    testing::expect_drawn(fixture, *TransformerEncoderLayer(testing::layer_options(fixture)));
  }
}

}  // namespace
}  // namespace posenc
