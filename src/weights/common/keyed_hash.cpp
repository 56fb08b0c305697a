#include "weights/common/keyed_hash.h"

#include <bit>
#include <cstring>
#include <random>

namespace posenc::io {
namespace {

static_assert(std::endian::native == std::endian::little);

// J.-P. Aumasson and D. J. Bernstein, "SipHash: a fast short-input PRF", 2012.
struct State {
  uint64_t a, b, c, d;

  void rounds(int count) {
    for (; count > 0; --count) {
      a += b;
      b = std::rotl(b, 13) ^ a;
      a = std::rotl(a, 32);
      c += d;
      d = std::rotl(d, 16) ^ c;
      a += d;
      d = std::rotl(d, 21) ^ a;
      c += b;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }
};

HashKey random_key() {
  std::random_device device;
  const auto word = [&] { return uint64_t{device()} << 32 | device(); };
  return {word(), word()};
}

}  // namespace

uint64_t sip_hash(std::string_view text, const HashKey& key, int rounds, int last_rounds) {
  State state{key.low ^ 0x736f6d6570736575, key.high ^ 0x646f72616e646f6d,
              key.low ^ 0x6c7967656e657261, key.high ^ 0x7465646279746573};
  const auto take = [&](uint64_t word) {
    state.d ^= word;
    state.rounds(rounds);
    state.a ^= word;
  };
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, sizeof word);
    take(word);
  }
  uint64_t last = static_cast<uint64_t>(text.size()) << 56;
  for (std::size_t i = 0; at + i < text.size(); ++i) {
    last |= static_cast<uint64_t>(static_cast<unsigned char>(text[at + i])) << (8 * i);
  }
  take(last);
  state.c ^= 0xff;
  state.rounds(last_rounds);
  return state.a ^ state.b ^ state.c ^ state.d;
}

std::size_t KeyedHash::operator()(std::string_view text) const {
  static const HashKey key = random_key();
  return sip_hash(text, key);
}

}  // namespace posenc::io
