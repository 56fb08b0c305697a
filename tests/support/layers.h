#pragma once

#include "posenc/functional/attention_mask.h"
#include "posenc/nn/transformer/transformer_layer_options.h"
#include "support/parity.h"

namespace posenc::testing {

/// How attention, layers and stacks are held against Python's.
ParityOptions layer_parity();

/// The options of a fixture's layer, Python's order of dropout included.
TransformerLayerOptions layer_options(const Fixture& fixture);

/// What torch.nn's two arguments say together: `mask` and `padding` name them in the inputs.
AttentionMask torch_nn_mask(const Inputs& inputs, const std::string& mask,
                            const std::string& padding);

/// Holds the parameters of a module that was made after torch::manual_seed(fixture.seed) against
/// those that Python drew from that seed, bit for bit.
void expect_drawn(const Fixture& fixture, const torch::nn::Module& module);

}  // namespace posenc::testing
