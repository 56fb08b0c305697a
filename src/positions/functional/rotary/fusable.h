#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/rotary.h"
#include "posenc/positions/functional/rotary.h"

namespace posenc::functional {

/// The arguments that rotary_fused() passes to the kernels.
struct RotaryPlan {
  kernels::rotary::Type type;
  kernels::rotary::Rotation rotation;  // all but its outputs
  at::Tensor cos, sin;                 // the tensors that it reads
};

/// Whether a plan computes the rotation or its gradient.
enum class Pass { Forward, Backward };

/// Sizes and strides, in elements, of (B, H, L, Dh), (B, L, H, Dh), or either without B.
struct HeadsShape {
  HeadsShape(const at::Tensor& x, rotary::HeadAxis axis);
  int64_t batch, heads, length, width;
  int64_t batch_stride, head_stride, row_stride;
};

/// Whether ATen rounds each of the four products and the two sums of a complex product on this
/// machine, as the kernels do. It does on x86-64; on ARM64 it fuses them.
bool has_separate_complex_product();

/// Whether rotary_fused() can rotate q and k, or the gradients of their results, in one pass on the
/// CPU, with the bits of composed_rotary() or of its derivative. If so, fills `plan`. Either of q
/// and k may be undefined. With `ids`, (L) or (B, L), the table has a row for every position.
bool is_fusable(const at::Tensor& q, const at::Tensor& k, const RotaryCosSin& table,
                const RotaryOptions& options, const RotaryFuncOptions& func_options, Pass pass,
                RotaryPlan& plan, const at::Tensor& ids = {});

}  // namespace posenc::functional
