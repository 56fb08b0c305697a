#pragma once

#include <string>

namespace posenc::testing {

/// What make_models.py has written under this name.
inline std::string marian_path(const std::string& name) {
  return POSENC_LIVE_DIR "/marian/" + name;
}

}  // namespace posenc::testing
