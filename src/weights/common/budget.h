#pragma once

#include <cstdint>

#include "posenc/weights/error.h"

namespace posenc::io {

/// Limits what reading one file may cost, so that a small one can neither fill the memory nor keep
/// the reader busy. spend() is charged with the bytes of everything that a reader builds. work() is
/// charged whenever bytes and items of the file are handed out to be walked, copied, hashed or
/// compared, each time anew: an object that a file names a thousand times costs a thousand times as
/// much.
class Budget {
 public:
  explicit Budget(uint64_t file_bytes)
      : bytes_(kBaseBytes + kBytes * file_bytes),
        values_(kBaseValues + kValues * file_bytes),
        work_(kBaseWork + kWork * file_bytes) {}

  void spend(uint64_t bytes) { take(bytes_, bytes); }
  void work(uint64_t units) { take(work_, units); }

  /// Whether a plain value of this many bytes may still be listed. Valid files may have millions of
  /// them, which no one reads one by one, so they have a separate limit, and reaching it is not an
  /// error.
  bool list_value(uint64_t bytes) {
    if (bytes > values_) return false;
    values_ -= bytes;
    return true;
  }

 private:
  static void take(uint64_t& left, uint64_t amount) {
    if (amount > left) {
      throw WeightsError(WeightsErrorCode::LimitExceeded,
                         "describes more objects than a file of its size may");
    }
    left -= amount;
  }

  // Their sum is less than the documented ten times the file's size plus 64 MB, since the pickle
  // itself and the allocator add to it. A bool in a list takes one byte of file and eight of
  // memory.
  static constexpr uint64_t kBaseBytes = uint64_t{36} << 20;
  static constexpr uint64_t kBytes = 8;
  static constexpr uint64_t kBaseValues = uint64_t{12} << 20;
  static constexpr uint64_t kValues = 1;
  // A unit is a nanosecond or less. A one-byte item is walked over three times at most.
  static constexpr uint64_t kBaseWork = uint64_t{1} << 27;
  static constexpr uint64_t kWork = 100;

  uint64_t bytes_, values_, work_;
};

}  // namespace posenc::io
