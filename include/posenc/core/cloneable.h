#pragma once

#include <torch/nn/cloneable.h>

#include <memory>
#include <optional>

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
