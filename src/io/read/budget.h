#pragma once

#include <cstdint>

#include "posenc/io/error.h"

namespace posenc::io {

/// What one file may cost. Everything that a reader builds, and every visit it pays to a node, is
/// charged in bytes, so that a small file can neither fill the memory nor keep the reader busy.
class Budget {
 public:
  explicit Budget(uint64_t file_bytes) : left_(kBase + kFactor * file_bytes) {}

  void spend(uint64_t bytes) {
    if (bytes > left_) {
      throw WeightsError(WeightsErrorCode::LimitExceeded,
                         "describes more objects than a file of its size may");
    }
    left_ -= bytes;
  }

 private:
  // Less than the ten times the file's size and 64 MB that are promised: the allocator adds to it.
  static constexpr uint64_t kBase = uint64_t{40} << 20;
  static constexpr uint64_t kFactor = 7;

  uint64_t left_;
};

}  // namespace posenc::io
