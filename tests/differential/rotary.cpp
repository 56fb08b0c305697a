// Rotary embeddings of configurations.

#include "posenc/functional/rotary.h"

#include "differential/ops.h"
#include "posenc/models/rotary_config.h"

namespace posenc::differential {
namespace {

namespace F = posenc::functional;

StateDict rotary(const Json& options, const StateDict& tensors) {
  const RotaryOptions how = rotary_options_from_hf(options.at("config").get<std::string>(),
                                                   options.at("layer_type").get<std::string>());
  const at::Tensor q = tensors["q"], k = tensors["k"];
  const RotaryCosSin table = rotary_cos_sin(how, tensors["position_ids"], q.scalar_type());
  const auto axes = F::RotaryFuncOptions().head_axis(how.head_axis());
  const auto [rotated_q, rotated_k] = F::rotary(q, k, table, how, axes);
  StateDict results;
  results.insert("cos", table.cos);
  results.insert("sin", table.sin);
  results.insert("q", rotated_q);
  results.insert("k", rotated_k);
  return results;
}

}  // namespace

Ops rotary_ops() { return {{"rotary", rotary}}; }

}  // namespace posenc::differential
