#include "models/model_folder.h"

#include <ATen/ops/aminmax.h>
#include <torch/nn/module.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

namespace posenc {
namespace {

const char* const kWeightsFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                     "pytorch_model.bin", "pytorch_model.bin.index.json"};

}  // namespace

std::string weights_in(const char* caller, const std::string& folder) {
  for (const char* name : kWeightsFiles) {
    const auto path = std::filesystem::path(folder) / name;
    if (std::filesystem::exists(path)) return path.string();
  }
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must hold model.safetensors, pytorch_model.bin or an index of shards")
      .in_file(folder)
      .in_function(caller);
}

const io::TensorSource::Entry* find_entry(const io::TensorSource& source, const std::string& name) {
  const auto& entries = source.entries();
  const auto found = std::find_if(entries.begin(), entries.end(),
                                  [&](const auto& entry) { return entry.name == name; });
  return found == entries.end() ? nullptr : &*found;
}

WeightsError missing_tensor(const std::string& name) {
  return WeightsError(WeightsErrorCode::MissingKeys, "is not in the file").in_tensor(name);
}

void check_stated_sizes(const char* caller, const std::string& folder,
                        const io::TensorSource& source, const std::vector<StatedSize>& stated) {
  for (const auto& [setting, value, tensors, axis, rank] : stated) {
    const auto found = std::find_if(tensors.begin(), tensors.end(), [&](const auto& name) {
      return find_entry(source, name) != nullptr;
    });
    if (found == tensors.end()) throw missing_tensor(tensors.front());
    const auto& sizes = find_entry(source, *found)->sizes;
    TORCH_CHECK_VALUE(sizes.size() == rank && sizes[axis] == value, "[", caller, "] ", folder, ": ",
                      setting, " in config.json must be axis ", axis, " of ", *found, ", (",
                      c10::Join(", ", sizes), "). Got ", value);
  }
}

void check_finite(const char* caller, const torch::nn::Module& model, const std::string& path,
                  const std::function<std::string(const std::string&)>& name_in_file,
                  const std::function<bool(const std::string&)>& may_be_infinite) {
  for (const auto& item : model.named_parameters()) {
    if (item.value().numel() == 0) continue;
    const auto [least, most] =
        at::aminmax(item.value().detach());  // both are NaN if any element is
    const double range[] = {least.item<double>(), most.item<double>()};
    if (std::all_of(std::begin(range), std::end(range), [&](double value) {
          return std::isfinite(value) || (std::isinf(value) && may_be_infinite(item.key()));
        })) {
      continue;
    }
    throw WeightsError(WeightsErrorCode::Corrupt, "must be finite numbers. Got infinity or NaN")
        .in_tensor(name_in_file(item.key()))
        .in_file(path)
        .in_function(caller);
  }
}

}  // namespace posenc
