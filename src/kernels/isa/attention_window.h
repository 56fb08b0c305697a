// Which keys the queries of a panel see through a window. Included by attention_sequence.cpp,
// inside the instruction set's own namespace.
#pragma once
#include "kernels/inference.h"
#include "kernels/isa/panels.h"

namespace posenc::kernels::inference::POSENC_ISA {
namespace {

class Window {
 public:
  Window() = default;
  // For queries first .. first + rows - 1 of the sequence that begins in `first_row`. Moves the
  // ends of the keys that they see, begin and end, to those within the window of one of them.
  Window(const SequenceAttentionRequest& p, int64_t first_row, int64_t first, int64_t rows,
         int64_t& begin, int64_t& end)
      : positions_(p.positions != nullptr ? p.positions + first_row : nullptr),
        half_(p.window),
        first_(position(first)),
        last_(position(first + rows - 1)) {
    // Positions ascend, so that no key is further away than the window in rows.
    if (begin < first - half_) begin = first - half_;
    while (first_ - position(begin) > half_) ++begin;
    if (end - (first + rows) > half_) end = first + rows + half_;
    while (position(end - 1) - last_ > half_) --end;
    for (int64_t i = 0; i < rows; ++i)
      after_first_[i] = static_cast<int32_t>(position(first + i) - first_);
  }

  // Forbids key j to the queries that do not see it.
  template <int kVectors>
  POSENC_INLINE void apply(int64_t j, float* scores) const {
    const int64_t at = position(j);
    if (last_ - at <= half_ && at - first_ <= half_) return;  // all of them see it
    const Ints key = static_cast<int32_t>(at - first_) + Ints{};
    const Ints half = static_cast<int32_t>(half_) + Ints{};
    const Words forbidden = bits_of(broadcast(-__builtin_inff()));
    for (int v = 0; v < kVectors; ++v) {
      const Ints away = load<Ints>(after_first_ + v * kFloats) - key;
      float* const to = scores + v * kFloats;
      const Words score = bits_of(load<Floats>(to));
      store(to, floats_of(select((away > half) | (-away > half), forbidden, score)));
    }
  }

 private:
  int64_t position(int64_t i) const { return positions_ != nullptr ? positions_[i] : i; }

  const int64_t* positions_ = nullptr;  // of the sequence's rows, or null: their numbers
  int64_t half_ = 0, first_ = 0, last_ = 0;
  alignas(64) int32_t after_first_[kPanel] = {};  // from the first query's position to each one's
};

}  // namespace
}  // namespace posenc::kernels::inference::POSENC_ISA
