#pragma once

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>

#include "functional/dropout/keep_mask.h"

namespace posenc::functional {

/// Whether DropoutBits are at::dropout's own for tensors of `dtype`, contiguous ones or in any
/// dense layout. That depends on the processor and on how LibTorch was built (one generator is
/// asked in the order of memory, another in that of the axes), so it is tried out once, on a
/// generator of its own.
bool has_dropout_bits(at::ScalarType dtype, bool contiguous = true);

/// The same, where the default generator's counters also agree with each other: they need not, in a
/// state that was set by hand.
bool can_draw_dropout_bits(at::ScalarType dtype, bool contiguous = true);

/// The bits that at::dropout(x, 1 - keep, true) draws from the default generator for an x of
/// `dtype`, one an element in the order of memory; the generator ends as at::dropout leaves it. It
/// is locked, as ATen locks it, while this lives.
class DropoutBits {
 public:
  /// `to`: room for mask_bytes(all elements). Only where can_draw_dropout_bits(dtype).
  DropoutBits(double keep, at::ScalarType dtype, uint8_t* to);
  ~DropoutBits();
  DropoutBits(const DropoutBits&) = delete;
  DropoutBits& operator=(const DropoutBits&) = delete;

  /// The next `elements`; all but the last call take a multiple of 64.
  void draw(int64_t elements);

 private:
  friend bool has_dropout_bits(at::ScalarType dtype, bool contiguous);
  friend bool can_draw_dropout_bits(at::ScalarType dtype, bool contiguous);
  enum class Source { None, Mt19937, Mcg31 };
  struct Found {
    Source source = Source::None;
    bool any_layout = false;
  };
  DropoutBits(at::CPUGeneratorImpl& generator, Source source, double keep, bool wide, uint8_t* to);
  static bool draws(Source source, at::ScalarType dtype, const at::Tensor& like);
  static Found find(at::ScalarType dtype);
  static const Found& found(at::ScalarType dtype);

  at::CPUGeneratorImpl& generator_;
  std::unique_lock<std::mutex> lock_;
  BitWriter writer_;
  std::optional<at::mt19937> engine_;
  at::mt19937_data_pod data_;
  Mt19937 state_;
  std::optional<Mt19937Mask> mt19937_;
  std::optional<Mcg31Mask> mcg31_;
};

/// Draws the bits of `elements` by one thread, a chunk (a multiple of 64) at a time, while all of
/// them call `use(begin, end)` for what is drawn: the generator is serial, its use is not.
void draw_while_used(DropoutBits& bits, int64_t elements, int64_t chunk,
                     const std::function<void(int64_t, int64_t)>& use);

/// What a kept element is multiplied by: 1 / keep in the arithmetic of `dtype`, as at::dropout's
/// noise.div_(keep) has it.
double kept_factor(double keep, at::ScalarType dtype);

/// at::dropout's noise, the factor where an element is kept, else 0: a new tensor like `like`,
/// whose elements lie in memory without gaps and in the mask's order.
at::Tensor noise_of(const at::Tensor& mask, double factor, const at::Tensor& like);

}  // namespace posenc::functional
