// load_adapter(): the tensors of an adapter.

#include "models/lora/parts.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/matmul.h>

#include <filesystem>
#include <string_view>

#include "base/text.h"
#include "models/lora/config.h"
#include "weights/common/file.h"
#include "weights/common/tensor.h"
#include "weights/load/mismatch.h"

namespace posenc {
namespace lora {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLoader = "load_adapter";
constexpr const char* kOldWeights = "adapter_model.bin";

struct Ending {
  std::string_view text;
  at::Tensor LowRank::*member;
  bool is_embedding = false;
};
constexpr Ending kEndings[] = {{".lora_A.weight", &LowRank::a},
                               {".lora_B.weight", &LowRank::b},
                               {".lora_B.bias", &LowRank::bias},
                               {".lora_magnitude_vector", &LowRank::magnitude},
                               {".lora_magnitude_vector.weight", &LowRank::magnitude},
                               {".lora_embedding_A", &LowRank::a, true},
                               {".lora_embedding_B", &LowRank::b, true}};

WeightsError fault(WeightsErrorCode code, const std::string& name, const std::string& rule) {
  return WeightsError(code, rule).in_tensor(name);
}

// A table of tokens or an output layer, of which PEFT saves the base's weight beside the adapter.
bool is_vocabulary(const std::string& module) {
  const std::string last = module.substr(module.rfind('.') + 1);
  return last.find("embed") != std::string::npos || last == "lm_head" || last == "shared" ||
         last == "wte" || last == "decoder" || last == "generator_lm_head";
}

// The name in the model of a value that replaces the model's; empty for a second copy of one.
std::string replaced_name(const LoraConfig& config, const std::string& name) {
  for (const std::string_view copy : {".modules_to_save.", ".original_module."})
    if (name.find(copy) != std::string::npos) return "";
  constexpr std::string_view kBase = ".base_layer.";
  const auto base = name.find(kBase);
  const std::string own = base == std::string::npos
                              ? name
                              : name.substr(0, base + 1) + name.substr(base + kBase.size());
  const std::string module = module_of(own);
  const bool is_bias = config.bias() != LoraBias::None && own.ends_with("bias");
  const bool is_known =
      is_bias || has_saved_values(config, module) ||
      (is_vocabulary(module) && (base != std::string::npos || own.ends_with(kWeight)));
  if (is_known && own.find("lora_") == std::string::npos) return own;
  throw fault(WeightsErrorCode::UnexpectedKeys, name,
              "must be a tensor of an adapter, of modules_to_save, or a bias that the adapter "
              "replaces");
}

void check_layer(const LoraConfig& config, const std::string& module, const LowRank& layer) {
  const char* const a = layer.is_embedding ? ".lora_embedding_A" : ".lora_A.weight";
  const char* const b = layer.is_embedding ? ".lora_embedding_B" : ".lora_B.weight";
  const auto missing = [&](const std::string& name) {
    return fault(WeightsErrorCode::MissingKeys, module + name, "is not in the adapter");
  };
  if (!layer.a.defined()) throw missing(a);
  if (!layer.b.defined()) throw missing(b);
  const int64_t rank = rank_of(config, module);
  const auto check = [&](const char* name, const at::Tensor& tensor, int64_t axis) {
    if (tensor.dim() == 2 && tensor.size(axis) == rank) return;
    throw fault(
        WeightsErrorCode::ShapeMismatch, module + name,
        c10::str("must have two axes and r = ", rank, axis == 0 ? " rows" : " columns",
                 ", as adapter_config.json says. Got shape ", io::shape_text(tensor.sizes())));
  };
  check(a, layer.a, 0);
  check(b, layer.b, 1);
  const auto check_vector = [&](const char* name, const at::Tensor& tensor, bool is_expected) {
    if (!tensor.defined() && !is_expected) return;
    if (!tensor.defined()) throw missing(name);
    if (!is_expected)
      throw fault(WeightsErrorCode::UnexpectedKeys, module + name,
                  "must not be in an adapter whose settings do not have it");
    if (tensor.dim() != 1 || tensor.size(0) != layer.b.size(0))
      throw fault(WeightsErrorCode::ShapeMismatch, module + name,
                  c10::str("must have shape (", layer.b.size(0), "). Got ",
                           io::shape_text(tensor.sizes())));
  };
  check_vector(".lora_magnitude_vector", layer.magnitude, config.dora());
  check_vector(".lora_B.bias", layer.bias, config.lora_bias() && !layer.is_embedding);
}

at::Tensor checked(const std::string& name, const at::Tensor& tensor) {
  if (!tensor.is_floating_point())
    throw fault(WeightsErrorCode::DtypeMismatch, name,
                "must be floating-point. Got " + io::type_name(tensor.scalar_type()));
  const at::Tensor value = tensor.to(at::kFloat).contiguous();
  if (!at::isfinite(value).all().item<bool>())
    throw fault(WeightsErrorCode::Corrupt, name, "must be finite numbers. Got infinity or NaN");
  return value;
}

std::string weights_path(const std::string& folder) {
  for (const char* name : {kWeights, kOldWeights}) {
    const std::string path = (fs::path(folder) / name).string();
    if (io::may_exist(path)) return path;
  }
  throw WeightsError(WeightsErrorCode::NotFound,
                     "must hold adapter_model.safetensors or adapter_model.bin")
      .in_file(folder)
      .in_function(kLoader);
}

}  // namespace

std::string module_of(std::string_view name) {
  return std::string(name.substr(0, name.rfind('.')));
}

AdapterParts parts_of(const LoraAdapter& adapter) {
  AdapterParts parts;
  for (const auto& item : adapter.tensors) {
    const std::string& name = item.key();
    const Ending* found = nullptr;
    for (const Ending& one : kEndings)
      if (name.ends_with(one.text)) found = &one;
    if (found != nullptr) {
      LowRank& layer = parts.layers[name.substr(0, name.size() - found->text.size())];
      layer.*(found->member) = item.value();
      layer.is_turned = layer.is_embedding |= found->is_embedding;
      continue;
    }
    const std::string own = replaced_name(adapter.config, name);
    if (!own.empty()) parts.values[own] = item.value();
  }
  for (auto& [module, layer] : parts.layers) {
    check_layer(adapter.config, module, layer);
    layer.scale = scale_of(adapter.config, module);
  }
  return parts;
}

at::Tensor merged(const at::Tensor& weight, const std::vector<Placed>& layers) {
  at::Tensor sum = weight.to(at::kFloat);
  for (const auto& [layer, own_scale, begin] : layers) {
    if (begin >= 0) {
      sum = sum.clone();
      at::Tensor rows = sum.narrow(0, begin, layer.b.size(0));
      rows.copy_(merged(rows, {{layer, own_scale}}));
      continue;
    }
    const double scale = layer.scale * own_scale;
    sum = layer.is_turned ? at::addmm(sum, layer.a.t(), layer.b.t(), 1.0, scale)
                          : at::addmm(sum, layer.b, layer.a, 1.0, scale);
    if (!layer.magnitude.defined()) continue;
    const int64_t axis = layer.is_turned ? 0 : 1;  // the other one has a norm for each output
    const at::Tensor norm = at::linalg_vector_norm(sum, 2, at::IntArrayRef{axis});
    sum = sum * (layer.magnitude / norm).unsqueeze(axis);
  }
  return sum;
}

}  // namespace lora

LoraAdapter load_adapter(const std::string& folder) {
  using namespace lora;
  std::error_code unknown;
  if (!io::may_exist(folder) || !fs::is_directory(folder, unknown)) {
    throw WeightsError(WeightsErrorCode::NotFound, "must be the folder of an adapter")
        .in_file(folder)
        .in_function(kLoader);
  }
  LoraAdapter adapter = {read_lora_config(folder), StateDict(), folder};
  const std::string path = weights_path(folder);
  return io::in_context(kLoader, path, [&] {
    for (const auto& item : load_tensors(path)) {
      if (!item.key().starts_with(kRoot))
        throw fault(WeightsErrorCode::UnexpectedKeys, item.key(),
                    "must have a name that begins with base_model.model.");
      adapter.tensors.insert(item.key().substr(kRoot.size()), checked(item.key(), item.value()));
    }
    parts_of(adapter);
    return adapter;
  });
}

}  // namespace posenc
