// TransformerDecoderLayer and TransformerDecoder against torch.nn: norms, activations, masks,
// dropout with a seed, keys, and the constructor's random draws.

#include "posenc/transformer/layers/transformer_decoder.h"

#include <torch/utils.h>

#include "support/layers.h"

namespace posenc::transformer_decoder_test {
namespace {

using testing::Fixture;
using testing::fixtures;

template <typename Holder>
void follow(const Fixture& fixture, Holder module) {
  testing::expect_parity(
      fixture, *module,
      [&](const Golden& golden) {
        return module->forward(golden.input("x"), golden.input("memory"),
                               AttentionMask::blocked_pairs(golden.input("tgt_mask")),
                               testing::torch_nn_mask(golden.inputs(), "mask", "key_padding_mask"));
      },
      testing::layer_parity());
}

TEST(TransformerDecoderParity, LayersFollowPython) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("transformer_decoder_layer", mode)) {
      follow(fixture, TransformerDecoderLayer(testing::layer_options(fixture)));
    }
  }
}

TEST(TransformerDecoderParity, StacksFollowPython) {
  for (const char* mode : {"eval", "train"}) {
    for (const Fixture& fixture : fixtures("transformer_decoder", mode)) {
      follow(fixture,
             TransformerDecoder(TransformerDecoderOptions(testing::layer_options(fixture),
                                                          fixture.option<int64_t>("layers", 0))
                                    .norm(fixture.option("norm", false))));
    }
  }
}

TEST(TransformerDecoderParity, LayersDrawPythonsWeights) {
  for (const Fixture& fixture : fixtures("transformer_decoder_layer", "init")) {
    torch::manual_seed(fixture.seed);
    testing::expect_drawn(fixture, *TransformerDecoderLayer(testing::layer_options(fixture)));
  }
}

}  // namespace
}  // namespace posenc::transformer_decoder_test
