#pragma once

#include <c10/util/Exception.h>

#include <string>

#include "io/file.h"

namespace posenc::io {

/// Runs `work` and turns its FileError into `[function] path: reason` as a c10::ValueError.
template <typename Work>
auto with_file_errors(const char* function, const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const FileError& error) {
    C10_THROW_ERROR(ValueError, c10::str("[", function, "] ", path, ": ", error.what()));
  }
}

}  // namespace posenc::io
