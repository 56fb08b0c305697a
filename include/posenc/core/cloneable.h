#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>

#include <memory>
#include <optional>

#include "posenc/export.h"

// FORWARD_HAS_DEFAULT_ARGS without the warning that clang -Wpedantic gives in C++17, because
// LibTorch's macro leaves out a variadic argument: programs that have these headers in their own
// source tree would see it.
#ifdef __clang__
#define POSENC_FORWARD_HAS_DEFAULT_ARGS(...)                                      \
  _Pragma("clang diagnostic push")                                                \
      _Pragma("clang diagnostic ignored \"-Wgnu-zero-variadic-macro-arguments\"") \
          FORWARD_HAS_DEFAULT_ARGS(__VA_ARGS__) _Pragma("clang diagnostic pop")
#else
#define POSENC_FORWARD_HAS_DEFAULT_ARGS FORWARD_HAS_DEFAULT_ARGS
#endif

namespace posenc POSENC_EXPORT {

/// Copies the requires_grad flag of each parameter of `original` to the parameter of the same name
/// in `copy`.
inline void copy_requires_grad(const torch::nn::Module& original, torch::nn::Module& copy) {
  auto parameters = copy.named_parameters();
  for (const auto& item : original.named_parameters()) {
    parameters[item.key()].set_requires_grad(item.value().requires_grad());
  }
}

/// Base class of all modules: torch::nn::Cloneable, except that frozen parameters stay frozen in a
/// clone, where LibTorch sets requires_grad on all of them.
template <typename Derived>
class Cloneable : public torch::nn::Cloneable<Derived> {
 public:
  using torch::nn::Cloneable<Derived>::Cloneable;

  /// Returns a deep copy, on `device` if one is given.
  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override {
    auto copy = torch::nn::Cloneable<Derived>::clone(device);
    copy_requires_grad(*this, *copy);
    return copy;
  }
};

}  // namespace posenc
