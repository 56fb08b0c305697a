#pragma once

#include <string>

namespace pronounce {

/// Replaces the file at `path` by one with this content, or leaves it untouched and throws: the
/// content is written and synced under another name first, then renamed.
void write_file(const std::string& path, const std::string& content);

}  // namespace pronounce
