#pragma once

#include <ATen/core/Tensor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/models/lora.h"

namespace posenc::lora {

/// What the names in a file begin with, and the file.
inline constexpr std::string_view kRoot = "base_model.model.";
inline constexpr const char* kWeights = "adapter_model.safetensors";
/// How the names of tensors end.
inline constexpr std::string_view kWeight = ".weight", kBias = ".bias";

/// The module of a tensor.
std::string module_of(std::string_view name);

/// What an adapter adds to the weight of one module.
struct LowRank {
  at::Tensor a, b;       ///< (r, in) and (out, r); of an embedding (r, V) and (D, r)
  at::Tensor bias;       ///< of B, if it has one
  at::Tensor magnitude;  ///< with dora
  bool is_embedding = false;
  bool is_turned = false;  ///< whether the weight is (in, out): a table, or that of a Conv1D
  double scale = 1.0;      ///< s of LoraConfig
};

/// The tensors of an adapter by what they do; names are those of the class that was trained.
struct AdapterParts {
  std::map<std::string, LowRank> layers;     ///< by module
  std::map<std::string, at::Tensor> values;  ///< which replace those of the model, by tensor
};

/// Sorts them, and checks them as far as that can be done without the model. Throws WeightsError.
AdapterParts parts_of(const LoraAdapter& adapter);

/// A LowRank at a weight.
struct Placed {
  LowRank layer;
  double scale = 1.0;  ///< that of the caller, beside its own
  int64_t begin = -1;  ///< the first of the rows that it changes; -1: all
};

/// The weight with what adapters add to it, in float32.
at::Tensor merged(const at::Tensor& weight, const std::vector<Placed>& layers);

}  // namespace posenc::lora
