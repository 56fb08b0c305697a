#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/positions/functional/rotary.h"

namespace posenc::functional {

/// The order of the axes of q and k, which rotary() sets before it calls these functions.
inline rotary::HeadAxis head_axis_of(const RotaryFuncOptions& func_options) {
  return func_options.head_axis().value_or(rotary::HeadAxis::BeforeLength);
}

/// The axes of q and k, from the last one.
inline bool before_length(const RotaryFuncOptions& func_options) {
  return head_axis_of(func_options) == rotary::HeadAxis::BeforeLength;
}
inline int64_t length_axis(const RotaryFuncOptions& func_options) {
  return before_length(func_options) ? -2 : -3;
}
inline int64_t heads_axis(const RotaryFuncOptions& func_options) {
  return before_length(func_options) ? -3 : -2;
}

/// The definition of the rotation, as ATen operations. The tensors of `table`, (...,
/// options.cos_width()), are broadcast against x (..., Dh); x is also multiplied by its scale.
/// `inverse` rotates back.
at::Tensor composed_rotary(const at::Tensor& x, const RotaryCosSin& table,
                           const RotaryOptions& options, bool inverse);

/// How many rotations a head has, each of a part of its channels: of the position axes with
/// Pairing::HalvesPerAxis, of the joined heads with HalvesPerHead, otherwise 1.
int64_t blocks_of_pairs(const RotaryOptions& options);

/// Whether the two channels of a pair are adjacent in the input of the rotation, or of its inverse.
bool reads_adjacent(const RotaryOptions& options, bool inverse);
/// The same for its output.
bool writes_adjacent(const RotaryOptions& options, bool inverse);

/// composed_rotary() of q or k; `func_options` specifies the axis of the heads, and `table` is that
/// of rotary(). An undefined x gives an undefined tensor.
at::Tensor rotated_heads(const at::Tensor& x, const RotaryCosSin& table,
                         const RotaryOptions& options, const RotaryFuncOptions& func_options);

/// Throws c10::ValueError, naming `module`, unless `tokens` tokens from `offset` on, or those of
/// position_ids, can be rotated.
void check_rotary_offset(const char* module, const RotaryOptions& options, int64_t offset,
                         const at::Tensor& position_ids, int64_t tokens);

}  // namespace posenc::functional
