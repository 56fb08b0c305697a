#pragma once

#include <string>

#include "posenc/io/error.h"

namespace posenc::io {

/// Runs `work`, and adds the public function and the file to any WeightsError that it throws.
template <typename Work>
auto in_context(const char* function, const std::string& path, Work&& work) {
  try {
    return work();
  } catch (const WeightsError& error) {
    throw error.in_file(path).in_function(function);
  }
}

}  // namespace posenc::io
