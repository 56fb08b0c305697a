#include <torch/nn/module.h>
#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/weights/load.h"

namespace posenc::differential {
namespace {

AttentionMask part_of(const Json& part, const StateDict& in) {
  const std::string kind = part.at("kind");
  if (kind == "causal") return AttentionMask::causal(part.value("offset", 0));
  const auto& tensor = in[part.at("in").get<std::string>()];
  if (kind == "padding") return AttentionMask::padding(tensor, part.at("pad"));
  static const std::map<std::string, AttentionMask (*)(const at::Tensor&)> kMakers = {
      {"attn_mask", AttentionMask::attn_mask_torch_nn},
      {"key_padding_mask", AttentionMask::key_padding_torch_nn},
      {"key_padding", AttentionMask::key_padding},
      {"allowed", AttentionMask::allowed},
      {"allowed_pairs", AttentionMask::allowed_pairs},
      {"blocked", AttentionMask::blocked},
      {"blocked_pairs", AttentionMask::blocked_pairs},
      {"additive", AttentionMask::additive},
      {"additive_pairs", AttentionMask::additive_pairs}};
  return kMakers.at(kind)(tensor);
}

StateDict under(const StateDict& tensors, const std::string& prefix) {
  StateDict found;
  for (const auto& item : tensors) {
    if (item.key().rfind(prefix, 0) == 0)
      found.insert(item.key().substr(prefix.size()), item.value());
  }
  return found;
}

}  // namespace

AttentionMask mask_of(const Json& options, const std::string& name, const StateDict& in) {
  AttentionMask mask;
  if (options.contains(name)) {
    for (const auto& part : options.at(name)) mask = mask & part_of(part, in);
  }
  return mask;
}

at::ScalarType dtype_of(const Json& options) {
  static const std::map<std::string, at::ScalarType> kNames = {{"float32", at::kFloat},
                                                               {"float64", at::kDouble},
                                                               {"bfloat16", at::kBFloat16},
                                                               {"float16", at::kHalf}};
  return kNames.at(options.value("dtype", "float32"));
}

TransformerLayerOptions layer_options(const Json& options) {
  return TransformerLayerOptions(options.at("width"), options.at("heads"))
      .d_ff(options.at("d_ff"))
      .dropout(options.at("dropout"))
      .activation(activation_of(options.at("activation").get<std::string>()))
      .norm_first(options.at("norm_first"))
      .layer_norm_eps(options.at("eps"))
      .bias(options.at("bias"))
      .batch_first(options.value("batch_first", true))
      .python_dropout_order(true);
}

StateDict differentiate(torch::nn::Module& module, const Json& options, const StateDict& tensors,
                        const std::function<at::Tensor(const StateDict& in)>& forward) {
  module.to(dtype_of(options));
  load_state_dict(module, under(tensors, "param."));
  module.train(options.value("train", false));
  StateDict leaves, results;
  for (const auto& item : under(tensors, "in.")) {
    auto leaf = item.value().clone();
    leaves.insert(item.key(), leaf.is_floating_point() ? leaf.requires_grad_() : leaf);
  }
  torch::manual_seed(options.value("seed", 0));
  const at::Tensor out = forward(leaves);
  results.insert("out", out);
  if (!tensors.contains("cotangent")) return results;
  (out * tensors["cotangent"]).sum().backward();
  for (const auto& item : module.named_parameters()) {
    if (!item.value().grad().defined()) continue;
    const auto grad = item.value().grad();
    results.insert("grad.param." + item.key(), grad.is_sparse() ? grad.to_dense() : grad);
  }
  for (const auto& item : leaves) {
    if (item.value().grad().defined()) results.insert("grad.in." + item.key(), item.value().grad());
  }
  return results;
}

}  // namespace posenc::differential
