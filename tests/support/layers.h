#pragma once

#include "posenc/transformer/functional/attention_mask.h"
#include "posenc/transformer/layers/transformer_layer_options.h"
#include "support/parity.h"

namespace posenc::testing {

/// How attention, layers and stacks are compared with Python's.
ParityOptions layer_parity();

/// The options of a fixture's layer, including Python's order of dropout.
TransformerLayerOptions layer_options(const Fixture& fixture);

/// Combines two mask arguments of torch.nn; `mask` and `padding` are their names in the inputs.
AttentionMask torch_nn_mask(const StateDict& inputs, const std::string& mask,
                            const std::string& padding);

/// Expects the parameters of a module made after torch::manual_seed(fixture.seed) to equal, bit for
/// bit, those that Python drew with that seed.
void expect_drawn(const Fixture& fixture, const torch::nn::Module& module);

}  // namespace posenc::testing
