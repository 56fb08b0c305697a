#include "weights/common/resolve_sign.h"

#include <cstdint>
#include <cstring>
#include <string>

#include "posenc/weights/error.h"

namespace posenc::io {
namespace {

// The pointer may be unaligned, so elements are copied out and in.
template <typename Word, typename Change>
void for_each_word(void* bytes, std::size_t count, std::size_t step, Change&& change) {
  auto* at = static_cast<char*>(bytes);
  for (std::size_t i = 0; i + sizeof(Word) <= count; i += step * sizeof(Word)) {
    Word word;
    std::memcpy(&word, at + i, sizeof word);
    word = change(word);
    std::memcpy(at + i, &word, sizeof word);
  }
}

template <typename Word>
void flip_sign_bits(void* bytes, std::size_t count, std::size_t step = 1) {
  constexpr Word kSign = static_cast<Word>(Word{1} << (8 * sizeof(Word) - 1));
  for_each_word<Word>(bytes, count, step,
                      [](Word word) { return static_cast<Word>(word ^ kSign); });
}

template <typename Word>
void negate_integers(void* bytes, std::size_t count) {
  for_each_word<Word>(bytes, count, 1, [](Word word) { return static_cast<Word>(0 - word); });
}

// The imaginary part is the second of each pair.
void conjugate(ManifestDtype dtype, void* bytes, std::size_t count) {
  auto* imaginary = static_cast<char*>(bytes) + item_size(dtype) / 2;
  count -= static_cast<std::size_t>(item_size(dtype) / 2);
  switch (dtype) {
    case ManifestDtype::Complex32: return flip_sign_bits<uint16_t>(imaginary, count, 2);
    case ManifestDtype::Complex64: return flip_sign_bits<uint32_t>(imaginary, count, 2);
    case ManifestDtype::Complex128: return flip_sign_bits<uint64_t>(imaginary, count, 2);
    default: return;  // a real number is its own conjugate
  }
}

void negate(ManifestDtype dtype, void* bytes, std::size_t count) {
  switch (dtype) {
    case ManifestDtype::Float16:
    case ManifestDtype::BFloat16:
    case ManifestDtype::Complex32: return flip_sign_bits<uint16_t>(bytes, count);
    case ManifestDtype::Float32:
    case ManifestDtype::Complex64: return flip_sign_bits<uint32_t>(bytes, count);
    case ManifestDtype::Float64:
    case ManifestDtype::Complex128: return flip_sign_bits<uint64_t>(bytes, count);
    case ManifestDtype::Float8_e4m3fn:
    case ManifestDtype::Float8_e5m2: return flip_sign_bits<uint8_t>(bytes, count);
    case ManifestDtype::Float8_e4m3fnuz:
    case ManifestDtype::Float8_e5m2fnuz:  // the sign bit alone is their NaN, and zero has no sign
      return for_each_word<uint8_t>(bytes, count, 1, [](uint8_t word) {
        return static_cast<uint8_t>((word & 0x7f) == 0 ? word : word ^ 0x80);
      });
    case ManifestDtype::Float4_e2m1fn_x2:
      return for_each_word<uint8_t>(bytes, count, 1,
                                    [](uint8_t pair) { return static_cast<uint8_t>(pair ^ 0x88); });
    case ManifestDtype::UInt8:
    case ManifestDtype::Int8: return negate_integers<uint8_t>(bytes, count);
    case ManifestDtype::UInt16:
    case ManifestDtype::Int16: return negate_integers<uint16_t>(bytes, count);
    case ManifestDtype::UInt32:
    case ManifestDtype::Int32: return negate_integers<uint32_t>(bytes, count);
    case ManifestDtype::UInt64:
    case ManifestDtype::Int64: return negate_integers<uint64_t>(bytes, count);
    case ManifestDtype::Bool:
    case ManifestDtype::Float8_e8m0fnu: return check_negative(dtype);
  }
}

}  // namespace

void check_negative(ManifestDtype dtype) {
  if (dtype != ManifestDtype::Bool && dtype != ManifestDtype::Float8_e8m0fnu) return;
  throw WeightsError(
      WeightsErrorCode::Unsupported,
      std::string("has the negative bit, and ") + dtype_name(dtype) + " has no negative numbers");
}

void resolve_sign(const FileView& view, void* bytes, std::size_t count) {
  if (count == 0) return;
  if (view.conj) conjugate(view.dtype, bytes, count);
  if (view.negative) negate(view.dtype, bytes, count);
}

}  // namespace posenc::io
