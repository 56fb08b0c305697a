#pragma once

namespace torch::nn {
class Module;
}

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A reference to a module, constructed from the module or from its holder, so that functions
/// accept both `*model` and `model`. It does not keep the module alive.
///
/// Errors: c10::Error for an empty holder.
template <typename Module>
class BasicModuleRef {
 public:
  /// Refers to `module`.
  BasicModuleRef(Module& module) : module_(&module) {}  // NOLINT: implicit by design
  /// Refers to the module of a holder, such as torch::nn::Linear or Transformer.
  template <typename Holder, typename = typename Holder::ContainedType>
  BasicModuleRef(const Holder& holder) : module_(holder.ptr().get()) {}  // NOLINT: as above

  /// The module.
  Module& operator*() const noexcept { return *module_; }
  /// The module's members.
  Module* operator->() const noexcept { return module_; }

 private:
  Module* module_;
};

/// A reference to a module that may be changed.
using ModuleRef = BasicModuleRef<torch::nn::Module>;
/// A reference to a module that is only read.
using ConstModuleRef = BasicModuleRef<const torch::nn::Module>;

}  // namespace posenc
