#pragma once

#include <torch/nn/module.h>

#include <memory>
#include <string>

namespace posenc {

/// A copy of a module's options.
class OptionsCopy {
 public:
  virtual ~OptionsCopy() = default;
  /// Whether those of `module`, which is of the same class or another, differ in what its results
  /// in eval mode may depend on; `where` then begins with the first that does, such as
  /// `.rotary.base`.
  virtual bool differs_from(const torch::nn::Module& module, std::string& where) const = 0;
};

/// A copy of a module's options; null for a class without any, and for one of encoders and heads,
/// which copy_of_model_options() knows. That of an OutputProjection is which weight it uses, since
/// it may be that of another module.
std::shared_ptr<const OptionsCopy> copy_of_options(const torch::nn::Module& module);

}  // namespace posenc
