#include "base/xxhash64.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace posenc::base {
namespace {

static_assert(std::endian::native == std::endian::little);

// The names of the specification.
constexpr uint64_t kPrime1 = 0x9E3779B185EBCA87, kPrime2 = 0xC2B2AE3D27D4EB4F,
                   kPrime3 = 0x165667B19E3779F9, kPrime4 = 0x85EBCA77C2B2AE63,
                   kPrime5 = 0x27D4EB2F165667C5;
constexpr std::size_t kStripe = 32;

template <typename Integer>
uint64_t read(const char* from) {
  Integer value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

uint64_t round_of(uint64_t accumulator, uint64_t lane) {
  return std::rotl(accumulator + lane * kPrime2, 31) * kPrime1;
}

uint64_t merged(uint64_t hash, uint64_t accumulator) {
  return (hash ^ round_of(0, accumulator)) * kPrime1 + kPrime4;
}

}  // namespace

uint64_t xxhash64(std::string_view bytes) {
  const char* at = bytes.data();
  const char* const end = at + bytes.size();
  uint64_t hash = kPrime5;
  if (bytes.size() >= kStripe) {
    uint64_t a = kPrime1 + kPrime2, b = kPrime2, c = 0, d = uint64_t{0} - kPrime1;
    for (; end - at >= static_cast<std::ptrdiff_t>(kStripe); at += kStripe) {
      a = round_of(a, read<uint64_t>(at));
      b = round_of(b, read<uint64_t>(at + 8));
      c = round_of(c, read<uint64_t>(at + 16));
      d = round_of(d, read<uint64_t>(at + 24));
    }
    hash = std::rotl(a, 1) + std::rotl(b, 7) + std::rotl(c, 12) + std::rotl(d, 18);
    for (const uint64_t accumulator : {a, b, c, d}) hash = merged(hash, accumulator);
  }
  hash += bytes.size();
  for (; end - at >= 8; at += 8)
    hash = std::rotl(hash ^ round_of(0, read<uint64_t>(at)), 27) * kPrime1 + kPrime4;
  for (; end - at >= 4; at += 4)
    hash = std::rotl(hash ^ read<uint32_t>(at) * kPrime1, 23) * kPrime2 + kPrime3;
  for (; at < end; ++at) hash = std::rotl(hash ^ read<uint8_t>(at) * kPrime5, 11) * kPrime1;
  hash = (hash ^ hash >> 33) * kPrime2;
  hash = (hash ^ hash >> 29) * kPrime3;
  return hash ^ hash >> 32;
}

}  // namespace posenc::base
