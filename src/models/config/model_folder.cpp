#include "models/config/model_folder.h"

#include <ATen/ops/aminmax.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <set>

#include "base/model_name.h"
#include "base/text.h"
#include "core/named.h"
#include "weights/common/file.h"
#include "weights/load/key_map.h"

namespace posenc {
namespace {

const char* const kWeightsFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                     "pytorch_model.bin", "pytorch_model.bin.index.json"};

constexpr std::size_t kMostDigits = 18;  // of a number that fits int64_t
constexpr const char* kQuantised = "quantization_config";

void refuse_quantised(const Settings& config) {
  if (config.has(kQuantised)) {
    constexpr const char* kRule =
        "must be left out: quantised weights are not supported, only the model that they were made "
        "of";
    const nlohmann::json& own = config.value(kQuantised);
    const auto method = own.is_object() ? own.find("quant_method") : own.end();
    if (method == own.end()) config.refuse(kQuantised, kRule);
    config.refuse(kQuantised, kRule, *method);
  }
}

// Whether any of the numbers of a layer is beyond what the model has.
bool is_later(const PatternRuns& numbers, const std::vector<int64_t>& counts) {
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const std::string digits(numbers[i]);
    const bool is_number = !digits.empty() && digits.size() <= kMostDigits &&
                           digits.find_first_not_of("0123456789") == std::string::npos;
    if (is_number && std::stoll(digits) >= counts[i]) return true;
  }
  return false;
}

}  // namespace

void check_folder_options(const char* caller, const LoadOptions& options) {
  TORCH_CHECK_VALUE(!options.allow_missing(), "[", caller,
                    "] allow_missing must be false: a model without some of its weights computes "
                    "nothing of use. Got true");
  io::check_renames(caller, options.key_map());
}

void check_is_folder(const char* caller, const std::string& folder) {
  std::error_code unknown;  // such as a name that is too long, or a link to itself
  const bool is_folder = io::may_exist(folder) && std::filesystem::is_directory(folder, unknown);
  if (is_folder) return;
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must be a folder on this machine; nothing is downloaded",
                     base::how_to_get_model(folder))
      .in_file(folder)
      .in_function(caller);
}

Settings model_config(const char* caller, const std::string& folder) {
  check_is_folder(caller, folder);
  Settings config(caller, (std::filesystem::path(folder) / "config.json").string());
  refuse_quantised(config);
  if (config.has("lora_adaptations"))
    config.refuse(
        "lora_adaptations",
        "must be left out: adapters inside the weights are not supported. The model whose "
        "name ends in -hf has them in folders of their own, adapters/TASK");
  if (config.value("text_config").is_object()) refuse_quantised(config.inside("text_config"));
  return config;
}

void drop_later_layers(KeyMap& map, const io::TensorSource& source, const std::string& prefix,
                       const std::string& pattern, const std::vector<int64_t>& counts) {
  const KeyMap layers = {{pattern + "*", ""}};
  std::set<std::string> later;
  for (const auto& entry : source.entries()) {
    if (entry.name.rfind(prefix, 0) != 0) continue;
    const auto found = io::find_rule(std::string_view(entry.name).substr(prefix.size()), layers);
    if (found && is_later(found->runs, counts))
      later.insert(io::fill_pattern(pattern, found->runs));
  }
  for (const std::string& layer : later) map.emplace(map.begin(), layer + "*", "");
}

std::string weights_in(const char* caller, const std::string& folder) {
  for (const char* name : kWeightsFiles) {
    const auto path = (std::filesystem::path(folder) / name).string();
    if (io::may_exist(path)) return path;
  }
  if (io::may_exist((std::filesystem::path(folder) / kFrozenFile).string())) {
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "must hold float32 weights. Got a frozen model, " + std::string(kFrozenFile),
                       "load_frozen_encoder() and the others load it, and commands that freeze")
        .in_file(folder)
        .in_function(caller);
  }
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must hold model.safetensors, pytorch_model.bin or an index of shards")
      .in_file(folder)
      .in_function(caller);
}

bool is_weights_file(std::string_view name) {
  return std::find(std::begin(kWeightsFiles), std::end(kWeightsFiles), name) !=
         std::end(kWeightsFiles);
}

const io::TensorSource::Entry* find_entry(const io::TensorSource& source, const std::string& name) {
  return detail::find_named(source.entries(), name);
}

bool has_tensors_of(const io::TensorSource& source, const std::string& stem) {
  const auto& entries = source.entries();
  return std::any_of(entries.begin(), entries.end(),
                     [&](const auto& entry) { return entry.name.starts_with(stem); });
}

WeightsError missing_tensor(const std::string& name) {
  return WeightsError(WeightsErrorCode::MissingKeys, "is not in the file").in_tensor(name);
}

WeightsError missing_tensor(const io::TensorSource& source, const std::string& name) {
  const std::string module = name.substr(0, name.rfind('.') + 1);
  const auto& entries = source.entries();
  const auto found = std::find_if(entries.begin(), entries.end(), [&](const auto& entry) {
    return entry.is_unreadable &&  // below any prefix
           (entry.name.starts_with(module) || entry.name.find("." + module) != std::string::npos);
  });
  if (found == entries.end()) return missing_tensor(name);
  return WeightsError(
             WeightsErrorCode::Unsupported,
             "is not in the file, where " + io::in_quotes(found->name) + " " + found->fault)
      .in_tensor(name);
}

void check_finite(const char* caller, const torch::nn::Module& model, const std::string& path,
                  const std::function<std::string(const std::string&)>& name_in_file,
                  const std::function<bool(const std::string&)>& may_be_minus_infinity) {
  const auto check = [&](const std::string& name, const at::Tensor& tensor) {
    if (tensor.numel() == 0) return;
    const auto [least, most] = at::aminmax(tensor.detach());  // both are NaN if any element is
    const double range[] = {least.item<double>(), most.item<double>()};
    const bool is_finite = std::all_of(std::begin(range), std::end(range), [&](double value) {
      return std::isfinite(value) ||
             (std::isinf(value) && value < 0 && may_be_minus_infinity(name));
    });
    if (is_finite) return;
    throw WeightsError(WeightsErrorCode::Corrupt, "must be finite numbers. Got infinity or NaN")
        .in_tensor(name_in_file(name))
        .in_file(path)
        .in_function(caller);
  };
  for (const auto& item : model.named_parameters()) check(item.key(), item.value());
  for (const auto& item : model.named_buffers()) {  // others are computed
    const bool is_read = item.key().find(".batch_norm.running_") != std::string::npos;
    if (is_read) check(item.key(), item.value());
  }
}

}  // namespace posenc
