#pragma once

#include <string>

namespace pronounce {

/// Replaces the file at `path` with this content. The content is first written and synced under
/// another name, then renamed; on an error, throws and leaves the file untouched.
void write_file(const std::string& path, const std::string& content);

}  // namespace pronounce
