#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "posenc/weights/state_dict.h"
#include "weights/files.h"

namespace posenc::testing {

/// The contiguous bytes of a tensor of any dtype.
inline std::string bits(const at::Tensor& tensor) {
  const auto plain = tensor.detach().resolve_conj().resolve_neg().contiguous();
  return {static_cast<const char*>(plain.const_data_ptr()), plain.nbytes()};
}

inline bool identical(const at::Tensor& a, const at::Tensor& b) {
  return a.scalar_type() == b.scalar_type() && a.sizes() == b.sizes() && bits(a) == bits(b);
}

inline std::vector<std::string> names(const StateDict& tensors) { return tensors.keys(); }

/// The bytes of all tensors of a module, to detect changes.
inline std::vector<std::string> all_bits(const torch::nn::Module& module) {
  std::vector<std::string> all;
  for (const auto& item : state_dict(module)) all.push_back(bits(item.value()));
  return all;
}

}  // namespace posenc::testing
