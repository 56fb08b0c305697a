#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

/// A setting of a relative position encoding, by its name in the system's own configuration.
using RelativeSetting = std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                                     std::vector<std::string>>;

}  // namespace posenc
