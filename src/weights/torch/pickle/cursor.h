#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "posenc/weights/error.h"
#include "weights/common/file.h"

namespace posenc::io {

/// Reads the bytes of a pickle, opcode by opcode; reading beyond the end is Truncated.
class PickleCursor {
 public:
  PickleCursor(std::string_view bytes, std::size_t at) : bytes_(bytes), at_(at), opcode_at_(at) {}

  std::size_t at() const { return at_; }

  uint8_t take_opcode() {
    opcode_at_ = at_;
    return take<uint8_t>();
  }

  template <typename Integer>
  Integer take() {
    need(sizeof(Integer));
    const auto value = little_endian<Integer>(bytes_, at_);
    at_ += sizeof(Integer);
    return value;
  }

  uint64_t take_big_endian() {
    uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | take<uint8_t>();
    return value;
  }

  /// Skips `size` bytes and returns where they begin.
  std::size_t take_run(uint64_t size) {
    need(size);
    const std::size_t begin = at_;
    at_ += size;
    return begin;
  }

  /// The same for a line; `size` gets its length without the line end.
  std::size_t take_line(std::size_t& size) {
    const std::size_t end = bytes_.find('\n', at_);
    need(end == std::string_view::npos ? UINT64_MAX : end - at_ + 1);
    size = end - at_;
    return take_run(size + 1);
  }

  /// Throws unless that many bytes are left.
  void need(uint64_t count) const {
    if (count <= bytes_.size() - at_) return;
    throw WeightsError(WeightsErrorCode::Truncated, "holds a pickle that is cut off: its byte " +
                                                        std::to_string(opcode_at_) +
                                                        " asks for more than there is");
  }

  /// The error for an opcode that breaks a rule.
  WeightsError damaged(const std::string& rule) const {
    return {WeightsErrorCode::Corrupt,
            "holds a damaged pickle: " + rule + " at its byte " + std::to_string(opcode_at_)};
  }

 private:
  std::string_view bytes_;
  std::size_t at_;
  std::size_t opcode_at_;
};

}  // namespace posenc::io
