#pragma once

#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>

namespace posenc::inference {

/// What freeze() and all calls of frozen models run in: no gradients, and no autocast, whose half
/// precision is not that of the kernels.
class FrozenScope {
 private:
  const at::NoGradGuard no_grad_;
  const c10::impl::ExcludeDispatchKeyGuard no_autocast_{c10::autocast_dispatch_keyset};
};

}  // namespace posenc::inference
