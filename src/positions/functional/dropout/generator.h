#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <cstdint>
#include <functional>
#include <optional>

#include "core/torch_internals/cpu_generator.h"
#include "positions/functional/dropout/keep_mask.h"

namespace posenc::functional {

/// Whether DropoutBits reproduces at::dropout for tensors of `dtype`: contiguous ones, or all dense
/// layouts. That depends on the processor and on how LibTorch was built (one generator draws in
/// memory order, another in the order of the axes), so it is tested once, on a private generator.
bool has_dropout_bits(at::ScalarType dtype, bool contiguous = true);

/// The same, and also requires the default generator's counters to be consistent, which they may
/// not be after its state was set by hand.
bool can_draw_dropout_bits(at::ScalarType dtype, bool contiguous = true);

/// The bits that at::dropout(x, 1 - keep, true) would draw from the default generator for an x of
/// `dtype`, one per element in memory order. Leaves the generator in the state in which at::dropout
/// leaves it, and like ATen holds the generator's lock, for the lifetime of this object.
class DropoutBits {
 public:
  /// `to` must have room for mask_bytes(total number of elements). Requires
  /// can_draw_dropout_bits(dtype).
  DropoutBits(double keep, at::ScalarType dtype, uint8_t* to);
  ~DropoutBits();
  DropoutBits(const DropoutBits&) = delete;
  DropoutBits& operator=(const DropoutBits&) = delete;

  /// Draws the next `elements` bits. Every call but the last must draw a multiple of 64.
  void draw(int64_t elements);

 private:
  friend bool has_dropout_bits(at::ScalarType dtype, bool contiguous);
  friend bool can_draw_dropout_bits(at::ScalarType dtype, bool contiguous);
  enum class Source { None, Mt19937, Mcg31 };
  struct Found {
    Source source = Source::None;
    bool any_layout = false;
  };
  DropoutBits(const at::Generator& generator, Source source, double keep, bool wide, uint8_t* to);
  static bool draws(Source source, at::ScalarType dtype, const at::Tensor& like);
  static Found find(at::ScalarType dtype);
  static const Found& found(at::ScalarType dtype);

  torch_internals::CpuGenerator generator_;
  BitWriter writer_;
  torch_internals::EngineState engine_;
  Mt19937 state_;
  std::optional<Mt19937Mask> mt19937_;
  std::optional<Mcg31Mask> mcg31_;
};

/// One thread draws the bits of `elements`, a chunk (a multiple of 64) at a time, while the others
/// call `use(begin, end)` on what has been drawn: the generator is serial, its consumers are not.
void draw_while_used(DropoutBits& bits, int64_t elements, int64_t chunk,
                     const std::function<void(int64_t, int64_t)>& use);

constexpr int64_t kDropoutChunk = 32768;  ///< elements that are worth a task of their own

/// The multiplication of at::dropout, with threads if that pays off.
void run_dropout(kernels::embed::Type type, const kernels::embed::DropoutRequest& request,
                 int64_t elements);

/// The factor of a kept element: 1 / keep in the arithmetic of `dtype`, as in at::dropout's
/// noise.div_(keep).
double kept_factor(double keep, at::ScalarType dtype);

/// The noise tensor of at::dropout: the factor where an element is kept and 0 elsewhere, in a new
/// tensor like `like`, which must be dense and in the mask's order.
at::Tensor noise_of(const at::Tensor& mask, double factor, const at::Tensor& like);

}  // namespace posenc::functional
