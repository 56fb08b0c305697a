// Which elements at::dropout keeps: its random bits as a mask of one bit an element.
#pragma once
#include <cstdint>

#include "kernels/embed.h"

namespace posenc::functional {

// at::mt19937 as its data() has it.
constexpr int kStateWords = 624;
struct Mt19937 {
  uint32_t* words = nullptr;  // kStateWords of them
  int next = kStateWords;     // how many are used up

  // ATen counts twice, in `left` and `next`. False where the two contradict each other.
  bool set_counts(int left, uint32_t next_word);
  int left() const { return kStateWords + 1 - next; }
};

// Appends bits to a mask.
struct BitWriter {
  uint8_t* to;           // what is written: whole words of 8 bytes
  uint64_t pending = 0;  // bits not written yet
  int count = 0;

  void append(uint64_t bits, int n);  // 1 <= n <= 64, no bit set beyond
  void finish();                      // writes what is pending; more may follow
};
// Bytes of a mask, with what the kernels read and the writer writes beyond its last bit.
constexpr int64_t mask_bytes(int64_t elements) { return (elements + 63) / 64 * 8 + 8; }

// An element is kept where a uniform number is below `keep` = 1 - p. The numbers are drawn for the
// elements in their order in memory, `elements` of them at a call.
class Mt19937Mask {
 public:
  Mt19937Mask(Mt19937* state, double keep, const kernels::embed::RandomKernels& use);
  void write(int64_t elements, BitWriter& to);

 private:
  Mt19937& state_;
  uint64_t limit_;
  const kernels::embed::RandomKernels& use_;
};

// MKL's viRngBernoulli (ICDF) on a new stream VSL_BRNG_MCG31 of `seed`.
class Mcg31Mask {
 public:
  Mcg31Mask(uint32_t seed, double keep, const kernels::embed::RandomKernels& use);
  void write(int64_t elements, BitWriter& to);

 private:
  uint64_t lanes_[kernels::embed::kMcgLanes];
  uint64_t limit_;
  uint64_t ready_ = 0;  // bits drawn and not written yet
  int ready_count_ = 0;
  const kernels::embed::RandomKernels& use_;
};

}  // namespace posenc::functional
