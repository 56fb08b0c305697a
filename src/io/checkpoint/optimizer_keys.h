#pragma once

#include <torch/optim/optimizer.h>

#include <cstddef>
#include <string>

#include "io/base/quote.h"
#include "posenc/io/error.h"

namespace posenc::io {

// Keys of an optimiser's record, and its states.

inline std::string group_key(std::size_t group) {
  return "optimizer.group." + std::to_string(group) + ".";
}

inline std::string parameter_key(std::size_t index) {
  return "optimizer." + std::to_string(index) + ".";
}

constexpr const char* kName = "name";  // below a parameter's prefix

// The state of a parameter, or null. Throws WeightsError for one of another type than the others.
template <typename Kind>
const typename Kind::State* state_of(const torch::optim::Optimizer& optimizer,
                                     const at::Tensor& parameter, const std::string& name) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end() || found->second == nullptr) return nullptr;
  const auto* state = dynamic_cast<const typename Kind::State*>(found->second.get());
  if (state != nullptr) return state;
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "cannot hold an optimiser with states of several types. Got "
                     "another one than " +
                         std::string(Kind::kState) + " for " + in_quotes(name));
}

}  // namespace posenc::io
