#pragma once

#include <c10/core/impl/LocalDispatchKeySet.h>

#include "posenc/core/skip_init.h"

namespace posenc::torch_internals {

/// RAII guard: tensors that are made on this thread while it is alive are on the meta device,
/// whatever device they are asked for: they have sizes and no memory. A module that is made then
/// says what tensors such a module has.
class WithoutMemory {
 public:
  /// Whether a guard is alive on this thread.
  static bool is_active() {
    return c10::impl::tls_is_dispatch_key_included(c10::DispatchKey::Meta);
  }

 private:
  // The key of the backend would send what has no tensor among its arguments to the CPU.
  static c10::impl::LocalDispatchKeySet keys() {
    auto keys = c10::impl::tls_local_dispatch_key_set();
    keys.included_ = keys.included_.add(c10::DispatchKey::Meta);
    keys.excluded_ = keys.excluded_.add(c10::DispatchKey::BackendSelect);
    return keys;
  }

  SkipInit skip_;
  c10::impl::ForceDispatchKeyGuard guard_{keys()};
};

/// RAII guard inside a WithoutMemory: tensors have memory, which what computes on them needs.
class WithMemory {
  static c10::impl::LocalDispatchKeySet keys() {
    auto keys = c10::impl::tls_local_dispatch_key_set();
    if (!WithoutMemory::is_active()) return keys;
    keys.included_ = keys.included_.remove_backend(c10::BackendComponent::MetaBit);
    keys.excluded_ = keys.excluded_.remove(c10::DispatchKey::BackendSelect);
    return keys;
  }

  c10::impl::ForceDispatchKeyGuard guard_{keys()};
};

}  // namespace posenc::torch_internals
