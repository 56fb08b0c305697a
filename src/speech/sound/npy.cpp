#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "base/text.h"
#include "speech/sound/sound_file.h"

namespace posenc::sound {
namespace {

using io::InputFile;
using io::little_endian;
using Code = WeightsErrorCode;

constexpr std::string_view kMagic = "\x93NUMPY";

// The header: a dict of Python with the keys descr, fortran_order and shape.
class Header {
 public:
  explicit Header(std::string_view text) : rest_(text) { read(); }

  std::string_view descr;
  bool is_fortran = false;
  std::array<uint64_t, 2> shape = {1, 1};  // of one or two axes
  std::size_t axes = 0;

 private:
  [[noreturn]] static void refuse(const std::string& rule, std::string_view got) {
    throw WeightsError(Code::Corrupt, rule + ". Got " + io::in_quotes(got));
  }
  void skip_blanks() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t\r\n"), rest_.size()));
  }
  bool take(std::string_view word) {
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }
  void need(std::string_view word) {
    if (!take(word)) refuse("must have a header with " + io::in_quotes(word) + " here", rest_);
  }
  std::string_view quoted() {
    skip_blanks();
    const char quote = rest_.empty() ? '\0' : rest_.front();
    const std::size_t end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos)
      refuse("must have a header with a name in quotes here", rest_);
    const std::string_view text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }
  uint64_t number() {
    skip_blanks();
    const std::size_t digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    constexpr std::size_t kMostDigits = 15;
    if (digits == 0 || digits > kMostDigits)
      refuse("must have a header with a size of 1 to 15 digits here", rest_);
    const uint64_t value = std::stoull(std::string(rest_.substr(0, digits)));
    rest_.remove_prefix(digits);
    return value;
  }
  void read_shape() {
    need("(");
    for (; !take(")"); ++axes) {
      if (axes == shape.size())
        throw WeightsError(Code::Unsupported, "must have the shape (n) or (C, n). Got more axes");
      shape[axes] = number();
      if (!take(",")) {
        need(")");
        ++axes;
        return;
      }
    }
  }
  void read() {
    bool has_descr = false, has_order = false, has_shape = false;
    need("{");
    while (!take("}")) {
      const std::string_view key = quoted();
      need(":");
      if (key == "descr") {
        descr = quoted();
        has_descr = true;
      } else if (key == "fortran_order") {
        is_fortran = take("True");
        if (!is_fortran) need("False");
        has_order = true;
      } else if (key == "shape" && !has_shape) {
        read_shape();
        has_shape = true;
      } else {
        refuse("must have a header of descr, fortran_order and shape, each once", key);
      }
      if (!take(",")) {
        need("}");
        break;
      }
    }
    if (!has_descr || !has_order || !has_shape)
      throw WeightsError(Code::Corrupt,
                         "must have a header of descr, fortran_order and shape. Got fewer");
  }

  std::string_view rest_;
};

SampleType sample_type(std::string_view descr) {
  if (descr == "<f4") return SampleType::Float32;
  if (descr == "<f8") return SampleType::Float64;
  throw WeightsError(Code::Unsupported,
                     "must have the dtype float32 or float64, little-endian ('<f4' or '<f8')"
                     ". Got " +
                         io::in_quotes(descr));
}

std::string shape_text(const Header& header) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < header.axes; ++axis)
    text += (axis > 0 ? ", " : "") + std::to_string(header.shape[axis]);
  return text + ")";
}

}  // namespace

bool is_npy(const InputFile& file) {
  return file.size() >= kMagic.size() && file.read(0, kMagic.size()) == kMagic;
}

StoredSound find_npy(const InputFile& file) {
  constexpr uint64_t kMostHeader = 10'000;  // NumPy's own limit
  const auto check = [](bool holds, Code code, const std::string& rule) {
    if (!holds) throw WeightsError(code, rule);
  };
  check(is_npy(file), Code::UnknownFormat, "must be an array of NumPy. Got another format");
  check(file.size() >= 12, Code::Truncated,
        "must have a header. Got " + std::to_string(file.size()) + " bytes");
  const std::string begin = file.read(0, 12);
  const int major = static_cast<unsigned char>(begin[6]);
  check(major >= 1 && major <= 3, Code::Unsupported,
        "must have version 1, 2 or 3 of the format. Got " + std::to_string(major));
  const uint64_t at = major == 1 ? 10 : 12, size = major == 1 ? little_endian<uint16_t>(begin, 8)
                                                              : little_endian<uint32_t>(begin, 8);
  check(size <= kMostHeader, Code::LimitExceeded,
        "must have a header of at most 10000 bytes. Got " + std::to_string(size));
  check(size <= file.size() - at, Code::Truncated,
        "must have a header of " + std::to_string(size) + " bytes. Got " +
            std::to_string(file.size() - at));
  const std::string text = file.read(at, size);
  const Header header(text);
  const SampleType type = sample_type(header.descr);
  const bool has_channels = header.axes == 2;
  const uint64_t channels = has_channels ? header.shape[0] : 1,
                 frames = header.shape[has_channels ? 1 : 0];
  check(header.axes >= 1 && channels >= 1 && channels <= 2, Code::Unsupported,
        "must have the shape (n) or (C, n) with one or two channels. Got " + shape_text(header));
  const uint64_t left = file.size() - at - size,
                 bytes = channels * frames * static_cast<uint64_t>(bytes_of(type));
  check(bytes <= left, Code::Truncated,
        "must have the " + std::to_string(bytes) + " bytes of its array. Got " +
            std::to_string(left));
  return {.type = type,
          .channels = static_cast<int64_t>(channels),
          .frames = static_cast<int64_t>(frames),
          .rate = 0,
          .offset = at + size,
          .is_interleaved = header.is_fortran};
}

}  // namespace posenc::sound
