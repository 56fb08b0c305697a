#include "positions/functional/dropout/keep_mask.h"

#include <cmath>
#include <cstring>

namespace posenc::functional {
namespace {

constexpr uint64_t kMcgModulus = 0x7fffffff, kMcgFactor = 1132489760;

uint64_t low_bits(uint64_t bits, int n) { return n == 64 ? bits : bits & ((uint64_t{1} << n) - 1); }

uint32_t tempered(uint32_t y) {
  y ^= y >> 11;
  y ^= y << 7 & 0x9d2c5680;
  y ^= y << 15 & 0xefc60000;
  return y ^ y >> 18;
}

}  // namespace

bool Mt19937::set_counts(int left, uint32_t next_word) {
  next = left == 1 ? kStateWords : static_cast<int>(next_word);  // 1: just seeded, or used up
  return left >= 1 && left <= kStateWords &&
         (left == 1 || int64_t{left} + next_word == kStateWords + 1);
}

void BitWriter::append(uint64_t bits, int n) {
  pending |= bits << count;
  if (count + n < 64) {
    count += n;
    return;
  }
  std::memcpy(to, &pending, sizeof pending);
  to += sizeof pending;
  pending = count == 0 ? 0 : bits >> (64 - count);
  count += n - 64;
}

void BitWriter::finish() { std::memcpy(to, &pending, sizeof pending); }

// For an integer x, x 2^-53 < keep is equivalent to x < ceil(keep 2^53): both sides are exact.
Mt19937Mask::Mt19937Mask(Mt19937* state, double keep, const kernels::embed::RandomKernels& use)
    : state_(*state), limit_(static_cast<uint64_t>(std::ceil(keep * 0x1p53))), use_(use) {}

void Mt19937Mask::write(int64_t elements, BitWriter& to) {
  while (elements > 0) {
    if (state_.next == kStateWords - 1) {  // a pair that spans two blocks
      uint32_t pair[2] = {state_.words[state_.next], 0};
      use_.twist(state_.words);
      pair[1] = state_.words[0];
      const uint64_t high = tempered(pair[0]), low = tempered(pair[1]);
      to.append(((high << 32 | low) & ((uint64_t{1} << 53) - 1)) < limit_, 1);
      state_.next = 1;
      --elements;
      continue;
    }
    if (state_.next == kStateWords) {
      use_.twist(state_.words);
      state_.next = 0;
    }
    const int64_t pairs = (kStateWords - state_.next) / 2;
    const int n = static_cast<int>(elements < pairs ? (elements < 64 ? elements : 64)
                                                    : (pairs < 64 ? pairs : 64));
    to.append(use_.keep_mt19937(state_.words + state_.next, n, limit_), n);
    state_.next += 2 * n;
    elements -= n;
  }
}

Mcg31Mask::Mcg31Mask(uint32_t seed, double keep, const kernels::embed::RandomKernels& use)
    : use_(use) {
  uint64_t x = seed % kMcgModulus;
  if (x == 0) x = 1;
  for (uint64_t& lane : lanes_) {
    lane = x;
    x = x * kMcgFactor % kMcgModulus;
  }
  // x / (2^31 - 1) < keep for an integer x: the float64 quotient is below keep exactly if x is
  // below the first integer whose quotient is not.
  const auto below = [&](uint64_t y) {
    return static_cast<double>(y) / static_cast<double>(kMcgModulus) < keep;
  };
  limit_ = static_cast<uint64_t>(keep * static_cast<double>(kMcgModulus));
  while (limit_ > 0 && !below(limit_ - 1)) --limit_;
  while (below(limit_)) ++limit_;
}

void Mcg31Mask::write(int64_t elements, BitWriter& to) {
  while (elements > 0) {
    if (ready_count_ == 0) {
      ready_ = use_.keep_mcg31(lanes_, limit_);
      ready_count_ = 64;
    }
    const int n = static_cast<int>(elements < ready_count_ ? elements : ready_count_);
    to.append(low_bits(ready_, n), n);
    ready_ = n == 64 ? 0 : ready_ >> n;
    ready_count_ -= n;
    elements -= n;
  }
}

}  // namespace posenc::functional
