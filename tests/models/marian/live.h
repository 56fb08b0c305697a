#pragma once

#include <string>

namespace posenc::testing {

/// Path of a model or file that make_models.py has written.
inline std::string marian_path(const std::string& name) {
  return POSENC_LIVE_DIR "/marian/" + name;
}

}  // namespace posenc::testing
