#pragma once

#include <sstream>

#include "posenc/base/error.h"

namespace posenc::base {

template <typename... Parts>
[[noreturn, gnu::noinline, gnu::cold]] void refuse_argument(const Parts&... parts) {
  std::ostringstream message;
  (message << ... << parts);
  throw ArgumentError(message.str());
}

/// Throws an ArgumentError whose text is all `parts`, unless `holds`: TORCH_CHECK_VALUE without
/// LibTorch. The parts are evaluated in any case.
template <typename... Parts>
void throw_unless(bool holds, const Parts&... parts) {
  if (!holds) [[unlikely]]
    refuse_argument(parts...);
}

}  // namespace posenc::base
