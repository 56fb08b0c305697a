#include "models/sentence/same_stages.h"

#include <tuple>

namespace posenc {
namespace {

auto fields(const sentence::Pooling& stage) {
  return std::tuple(stage.modes, stage.include_prompt);
}
auto fields(const sentence::Dense& stage) {
  return std::tuple(stage.in_features, stage.out_features, stage.bias, stage.activation,
                    stage.use_residual, stage.input, stage.output);
}
auto fields(const sentence::Normalize& stage) { return std::tuple(stage.input, stage.output); }
auto fields(const sentence::LayerNorm& stage) { return std::tuple(stage.dimension); }
auto fields(const sentence::Dropout& stage) { return std::tuple(stage.p); }
auto fields(const sentence::WeightedLayerPooling& stage) {
  return std::tuple(stage.num_hidden_layers, stage.layer_start);
}
auto fields(const sentence::WordWeights& stage) { return std::tuple(stage.vocab_size); }
auto fields(const sentence::CNN& stage) {
  return std::tuple(stage.in_embedding_dimension, stage.out_channels, stage.kernel_sizes,
                    stage.stride_sizes);
}

}  // namespace

bool are_same(const sentence::Stage& a, const sentence::Stage& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& stage) {
        return fields(stage) == fields(std::get<std::decay_t<decltype(stage)>>(b));
      },
      a);
}

}  // namespace posenc
