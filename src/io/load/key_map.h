#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "posenc/io/load.h"

namespace posenc::io {

/// What a file's `name` is called in the module: without the prefix, and renamed by the map.
/// nullopt for a name that the map leaves out.
std::optional<std::string> mapped_name(std::string_view name, const LoadOptions& options);

/// Throws c10::ValueError for a new name that has more `*` than its pattern.
void check_key_map(const KeyMap& map);

}  // namespace posenc::io
