#include "tokenizers/decoders/lossy_utf8.h"

#include "base/text.h"

namespace posenc::text {

std::size_t measure_utf8(std::string_view bytes, std::size_t at, bool& is_whole) {
  const auto lead = static_cast<unsigned char>(bytes[at]);
  is_whole = lead < 0x80;
  if (lead < 0xC2 || lead > 0xF4) return 1;
  const std::size_t size = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  for (std::size_t i = 1; i < size; ++i) {
    if (at + i == bytes.size()) return i;
    const auto byte = static_cast<unsigned char>(bytes[at + i]);
    const unsigned lowest = i == 1 && lead == 0xE0 ? 0xA0 : i == 1 && lead == 0xF0 ? 0x90 : 0x80;
    const unsigned highest = i == 1 && lead == 0xED ? 0x9F : i == 1 && lead == 0xF4 ? 0x8F : 0xBF;
    if (byte < lowest || byte > highest) return i;
  }
  is_whole = true;
  return size;
}

namespace {

// What is whole, and `replacement(size)` for parts of that size that are not.
template <typename Replacement>
std::string repaired(std::string_view bytes, const Replacement& replacement) {
  std::string text;
  for (std::size_t at = 0; at < bytes.size();) {
    bool is_whole;
    const std::size_t size = measure_utf8(bytes, at, is_whole);
    if (is_whole) {
      text += bytes.substr(at, size);
    } else {
      text += replacement(size);
    }
    at += size;
  }
  return text;
}

}  // namespace

std::string lossy_utf8(std::string bytes) {
  if (io::is_utf8(bytes)) return bytes;
  return repaired(bytes, [](std::size_t) { return kReplacement; });
}

std::string lossy_utf8_by_byte(std::string_view bytes) {
  return repaired(bytes, [](std::size_t size) {
    std::string all;
    for (std::size_t i = 0; i < size; ++i) all += kReplacement;
    return all;
  });
}

std::string utf8_without_errors(std::string_view bytes) {
  return repaired(bytes, [](std::size_t) { return std::string_view(); });
}

}  // namespace posenc::text
