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

/// A copy of a module's options; null for a class without any. That of an OutputProjection is which
/// weight it uses, since it may be that of another module.
std::shared_ptr<const OptionsCopy> copy_of_options(const torch::nn::Module& module);

/// The name of the first module below `got` whose options compute something else than those of the
/// module of that name below `expected`; empty if there is none.
std::string first_with_other_options(const torch::nn::Module& got,
                                     const torch::nn::Module& expected);

}  // namespace posenc
