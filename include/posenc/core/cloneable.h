#pragma once

#include <torch/nn/cloneable.h>
#include <torch/nn/modules/common.h>

#include <memory>
#include <optional>

/// FORWARD_HAS_DEFAULT_ARGS without what clang -Wpedantic says of it in C++17, as a user sees it
/// who has these headers in his own tree: LibTorch's macro leaves out a variadic argument.
#ifdef __clang__
#define POSENC_FORWARD_HAS_DEFAULT_ARGS(...)                                      \
  _Pragma("clang diagnostic push")                                                \
      _Pragma("clang diagnostic ignored \"-Wgnu-zero-variadic-macro-arguments\"") \
          FORWARD_HAS_DEFAULT_ARGS(__VA_ARGS__) _Pragma("clang diagnostic pop")
#else
#define POSENC_FORWARD_HAS_DEFAULT_ARGS FORWARD_HAS_DEFAULT_ARGS
#endif

namespace posenc {

/// Gives the parameters of `copy` the requires_grad flags of those of `original` (same names).
void copy_requires_grad(const torch::nn::Module& original, torch::nn::Module& copy);

/// torch::nn::Cloneable whose clones keep frozen parameters frozen; LibTorch's own thaws them.
template <typename Derived>
class Cloneable : public torch::nn::Cloneable<Derived> {
 public:
  using torch::nn::Cloneable<Derived>::Cloneable;

  std::shared_ptr<torch::nn::Module> clone(
      const std::optional<torch::Device>& device = std::nullopt) const override {
    auto copy = torch::nn::Cloneable<Derived>::clone(device);
    copy_requires_grad(*this, *copy);
    return copy;
  }
};

}  // namespace posenc
