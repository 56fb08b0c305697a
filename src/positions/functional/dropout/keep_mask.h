// The elements that at::dropout keeps: its random bits as a mask with one bit per element.
#pragma once
#include <cstdint>

#include "kernels/embed.h"

namespace posenc::functional {

// The state of at::mt19937, as returned by its data().
constexpr int kStateWords = 624;
struct Mt19937 {
  uint32_t* words = nullptr;  // kStateWords words
  int next = kStateWords;     // number of words already used

  // ATen keeps two counters, `left` and `next`. Returns false if they contradict each other.
  bool set_counts(int left, uint32_t next_word);
  int left() const { return kStateWords + 1 - next; }
};

// Appends bits to a mask.
struct BitWriter {
  uint8_t* to;           // output, written in words of 8 bytes
  uint64_t pending = 0;  // bits not written yet
  int count = 0;

  void append(uint64_t bits, int n);  // 1 <= n <= 64; higher bits must be 0
  void finish();                      // writes the pending bits; more may follow
};
// Size of a mask in bytes, including the padding that the kernels read and the writer writes.
constexpr int64_t mask_bytes(int64_t elements) { return (elements + 63) / 64 * 8 + 8; }

// An element is kept if its uniform random number is below `keep` = 1 - p. Numbers are drawn for
// the elements in memory order, `elements` of them per call.
class Mt19937Mask {
 public:
  Mt19937Mask(Mt19937* state, double keep, const kernels::embed::RandomKernels& use);
  void write(int64_t elements, BitWriter& to);

 private:
  Mt19937& state_;
  uint64_t limit_;
  const kernels::embed::RandomKernels& use_;
};

// MKL's viRngBernoulli (ICDF) on a new VSL_BRNG_MCG31 stream seeded with `seed`.
class Mcg31Mask {
 public:
  Mcg31Mask(uint32_t seed, double keep, const kernels::embed::RandomKernels& use);
  void write(int64_t elements, BitWriter& to);

 private:
  uint64_t lanes_[kernels::embed::kMcgLanes];
  uint64_t limit_;
  uint64_t ready_ = 0;  // bits drawn but not yet written
  int ready_count_ = 0;
  const kernels::embed::RandomKernels& use_;
};

}  // namespace posenc::functional
