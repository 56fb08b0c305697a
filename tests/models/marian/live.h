#pragma once

#include <filesystem>
#include <string>

namespace posenc::testing {

constexpr const char* kNoMarianModels =
    "ctest's reference.marian has made none: transformers is not installed";

/// What make_models.py has written under this name.
inline std::string marian_path(const std::string& name) {
  return std::string(POSENC_LIVE_DIR) + "/marian/" + name;
}

inline bool has_marian_models() { return std::filesystem::exists(marian_path("archive.json")); }

}  // namespace posenc::testing
