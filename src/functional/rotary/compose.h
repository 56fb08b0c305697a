#pragma once

#include <ATen/core/Tensor.h>

#include "posenc/functional/rotary.h"

namespace posenc::functional {

/// The rotation as ATen operations: the definition. The tensors of `table`, (...,
/// options.cos_width()), are broadcast against x (..., Dh); its scale multiplies x as it is.
/// `inverse` rotates back.
at::Tensor composed_rotary(const at::Tensor& x, const RotaryCosSin& table,
                           const RotaryOptions& options, bool inverse);

/// Whether the two channels of a pair are adjacent in what the rotation, or its inverse, reads.
bool reads_adjacent(const RotaryOptions& options, bool inverse);
/// The same for what it writes.
bool writes_adjacent(const RotaryOptions& options, bool inverse);

/// composed_rotary() of q or k, whose heads' axis `how` names; `table` as in rotary(). An undefined
/// x gives an undefined tensor.
at::Tensor rotated_heads(const at::Tensor& x, const RotaryCosSin& table,
                         const RotaryOptions& options, const RotaryFuncOptions& how);

}  // namespace posenc::functional
