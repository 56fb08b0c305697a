// Rotary embeddings of configurations and of presets, of positions and of grids.

#include "posenc/positions/functional/rotary.h"

#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/models/rotary_config.h"
#include "posenc/positions/nn/polar_embedding.h"
#include "posenc/positions/nn/rotary_position_embedding_2d.h"
#include "posenc/positions/rotary/rotary_preset.h"

namespace posenc::differential {
namespace {

namespace F = posenc::functional;

StateDict results_of(const RotaryCosSin& table, const F::QueryKey& rotated) {
  StateDict results;
  results.insert("cos", table.cos);
  results.insert("sin", table.sin);
  results.insert("q", std::get<0>(rotated));
  results.insert("k", std::get<1>(rotated));
  return results;
}

StateDict rotary(const Json& options, const StateDict& tensors) {
  const RotaryOptions how = rotary_options_of(options);
  const at::Tensor q = tensors["q"], k = tensors["k"];
  const RotaryCosSin table = tensors.contains("cos")
                                 ? RotaryCosSin{tensors["cos"], tensors["sin"]}
                                 : rotary_cos_sin(how, tensors["position_ids"], q.scalar_type());
  const auto axes = F::RotaryFuncOptions().head_axis(how.head_axis());
  StateDict results = results_of(table, F::rotary(q, k, table, how, axes));
  if (how.rotary_value())
    results.insert("v", std::get<0>(F::rotary(tensors["v"], {}, table, how, axes)));
  return results;
}

StateDict rotary_grid(const Json& options, const StateDict& tensors) {
  RotaryPositionEmbedding2d module(RotaryPositionEmbedding2dOptions(rotary_options_of(options))
                                       .prefix_tokens(options.value("prefix_tokens", 0))
                                       .shift(options.value("shift", 0.0))
                                       .jitter(options.value("jitter", 0.0))
                                       .rescale(options.value("rescale", 0.0)));
  module->train(options.contains("seed"));
  const int64_t height = options.at("height"), width = options.at("width");
  const int64_t frames = options.value("frames", 1);
  const auto again = [&] { torch::manual_seed(options.value("seed", 0)); };
  const at::Tensor q = tensors["q"];
  again();
  const RotaryCosSin table = module->cos_sin(height, width, frames, q.scalar_type());
  again();
  return results_of(table, module->forward(q, tensors["k"], height, width, frames));
}

StateDict polar_embedding(const Json& options, const StateDict& tensors) {
  PolarEmbedding module(PolarEmbeddingOptions(options.at("dim"), options.at("heads"))
                            .base(options.at("base").get<double>()));
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    const auto [q, k] = module->forward(in["q"], in["k"], /*offset=*/0, tensors["position_ids"]);
    return torch::cat({q, k}, -3);
  });
}

}  // namespace

RotaryOptions rotary_options_of(const Json& options) {
  if (options.contains("config")) {
    return rotary_options_from_hf(options.at("config").get<std::string>(),
                                  options.value("layer_type", ""));
  }
  const auto name = options.at("preset").get<std::string>();
  if (options.contains("params")) {
    PresetParams params;
    for (const auto& [key, value] : options.at("params").items())
      params.emplace(key, value.get<std::string>());
    return rotary_options_from_params(name, params);
  }
  const RotaryOptions preset = rotary_preset(name, options.at("dim").get<int64_t>());
  return RotaryOptions(preset)
      .base(options.value("base", preset.base()))
      .axis_dims(options.value("axis_dims", preset.axis_dims()))
      .axis_bases(options.value("axis_bases", preset.axis_bases()));
}

Ops rotary_ops() {
  return {{"rotary", rotary}, {"rotary_grid", rotary_grid}, {"polar_embedding", polar_embedding}};
}

}  // namespace posenc::differential
