#include "support/layers.h"

#include <gtest/gtest.h>

namespace posenc::testing {

ParityOptions layer_parity() {
  ParityOptions options;
  options.forward = options.gradient = Op::Layers;
  return options;
}

TransformerLayerOptions layer_options(const Fixture& fixture) {
  return TransformerLayerOptions(fixture.option<int64_t>("width", 0),
                                 fixture.option<int64_t>("heads", 0))
      .d_ff(fixture.option<int64_t>("d_ff", 0))
      .dropout(fixture.option("dropout", 0.0))
      .activation(activation_of(fixture.option<std::string>("activation", "")))
      .norm_first(fixture.option("norm_first", false))
      .layer_norm_eps(fixture.option("layer_norm_eps", 0.0))
      .bias(fixture.option("bias", true))
      .batch_first(fixture.option("batch_first", true))
      .python_dropout_order(true);
}

AttentionMask torch_nn_mask(const StateDict& inputs, const std::string& mask,
                            const std::string& padding) {
  AttentionMask result;
  if (inputs.contains(mask)) result = AttentionMask::attn_mask_torch_nn(inputs[mask]);
  if (inputs.contains(padding))
    result = result & AttentionMask::key_padding_torch_nn(inputs[padding]);
  return result;
}

void expect_drawn(const Fixture& fixture, const torch::nn::Module& module) {
  SCOPED_TRACE(fixture.name);
  const auto own = state_dict(module);
  const auto theirs = fixture.under("param.");
  EXPECT_EQ(own.size(), theirs.size());
  for (const auto& item : theirs) {
    ASSERT_TRUE(own.contains(item.key())) << item.key();
    EXPECT_TRUE(bit_equal(own[item.key()], item.value())) << item.key();
  }
}

}  // namespace posenc::testing
