#pragma once

#include <c10/util/ArrayRef.h>

#include <cstdint>
#include <string>

namespace posenc::io {

/// `(2, 3)`, for messages.
inline std::string shape_text(c10::ArrayRef<int64_t> sizes) {
  std::string text = "(";
  for (const int64_t size : sizes) text += (text.size() > 1 ? ", " : "") + std::to_string(size);
  return text + ")";
}

}  // namespace posenc::io
