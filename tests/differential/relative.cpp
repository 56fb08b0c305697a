// Relative positions of a preset, and the gradients of its tensors.

#include "posenc/catalogue/relative_preset.h"

#include <torch/autograd.h>
#include <torch/types.h>

#include <algorithm>
#include <string>
#include <type_traits>
#include <vector>

#include "differential/ops.h"
#include "posenc/models/relative_config.h"
#include "posenc/positions/relative/index.h"

namespace posenc::differential {
namespace {

RelativeSetting setting_of(const Json& value) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_number_integer()) return value.get<int64_t>();
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return value.get<std::string>();
  if (!value.empty() && value.at(0).is_string()) return value.get<std::vector<std::string>>();
  return value.get<std::vector<int64_t>>();
}

// The outputs, and with `cotangent.NAME` for some of them `grad.NAME` of every real tensor that
// these depend on.
StateDict relative_case(const Json& options, const StateDict& tensors) {
  RelativeInputs inputs;
  for (const auto& [name, value] : options.at("settings").items())
    inputs.settings.emplace(name, setting_of(value));
  const bool has_gradients = std::any_of(tensors.begin(), tensors.end(), [](const auto& item) {
    return item.key().rfind("cotangent.", 0) == 0;
  });
  const torch::AutoGradMode mode(has_gradients);
  std::vector<std::string> names;
  std::vector<at::Tensor> leaves, results, cotangents;
  for (const auto& item : tensors) {
    if (item.key().rfind("cotangent.", 0) == 0) continue;
    at::Tensor tensor = item.value();
    if (has_gradients && tensor.is_floating_point()) {
      tensor = tensor.clone().requires_grad_();
      names.push_back(item.key());
      leaves.push_back(tensor);
    }
    inputs.tensors.emplace(item.key(), tensor);
  }
  StateDict out;
  for (const auto& [name, tensor] :
       relative_outputs(options.at("settings").at("preset").get<std::string>(), inputs)) {
    out.insert(name, tensor);
    if (!tensors.contains("cotangent." + name)) continue;
    results.push_back(tensor);
    cotangents.push_back(tensors["cotangent." + name]);
  }
  if (results.empty()) return out;
  const auto gradients =
      torch::autograd::grad(results, leaves, cotangents, /*retain_graph=*/std::nullopt,
                            /*create_graph=*/false, /*allow_unused=*/true);
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (gradients[i].defined()) out.insert("grad." + names[i], gradients[i]);
  }
  return out;
}

relative::Index index_of(const Json& index) {
  if (index.contains("max_position"))
    return relative::SignedLog{index.at("buckets"), index.at("max_position")};
  return relative::Buckets{index.at("num_buckets"), index.at("max_distance"),
                           index.at("bidirectional"), index.at("truncate_sum")};
}

StateDict index_case(const Json& options, const StateDict& tensors) {
  StateDict out;
  out.insert("rows", relative_index(tensors["distances"], index_of(options.at("index"))));
  return out;
}

// Words and lists of words as their bytes, with a bar between.
at::Tensor tensor_of(const RelativeSetting& value) {
  const auto bytes = [](const std::string& text) {
    return at::tensor(std::vector<int64_t>(text.begin(), text.end()), at::kByte);
  };
  return std::visit(
      [&](const auto& given) {
        using Given = std::decay_t<decltype(given)>;
        if constexpr (std::is_same_v<Given, bool>) {
          return at::full({1}, given, at::kBool);
        } else if constexpr (std::is_same_v<Given, int64_t>) {
          return at::tensor({given}, at::kLong);
        } else if constexpr (std::is_same_v<Given, double>) {
          return at::tensor({given}, at::kDouble);
        } else if constexpr (std::is_same_v<Given, std::string>) {
          return bytes(given);
        } else if constexpr (std::is_same_v<Given, std::vector<int64_t>>) {
          return at::tensor(given, at::kLong);
        } else {
          std::string text;
          for (const std::string& word : given) text += (text.empty() ? "" : "|") + word;
          return bytes(text);
        }
      },
      value);
}

StateDict config_case(const Json& options, const StateDict&) {
  const RelativeOptions read =
      relative_options_from_hf(options.at("config").get<std::string>(), options.at("stack"));
  StateDict out;
  out.insert("preset", tensor_of(read.preset));
  for (const auto& [name, value] : read.settings) out.insert(name, tensor_of(value));
  return out;
}

}  // namespace

Ops relative_ops() {
  return {{"relative", relative_case},
          {"relative_index", index_case},
          {"relative_config", config_case}};
}

}  // namespace posenc::differential
