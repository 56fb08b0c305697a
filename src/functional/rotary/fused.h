#pragma once

#include <ATen/core/Tensor.h>

#include "functional/rotary/fusable.h"

namespace posenc::functional {

/// rotary() in one pass on the CPU, including its backward. `plan` is the result of is_fusable()
/// for the same arguments.
QueryKey rotary_fused(RotaryPlan& plan, const at::Tensor& q, const at::Tensor& k,
                      const RotaryOptions& options, const RotaryFuncOptions& func_options);

/// The same into `q_out` and `k_out`, which have the right shapes and type and contiguous rows, and
/// either are q and k themselves or do not overlap any input. Nothing is recorded.
void rotary_fused_out(RotaryPlan& plan, const at::Tensor& q_out, const at::Tensor& k_out,
                      const at::Tensor& q, const at::Tensor& k,
                      const RotaryFuncOptions& func_options);

/// The gradient of one of rotary()'s inputs. `plan` is the result of is_fusable() for the gradient
/// of the corresponding output.
at::Tensor rotary_fused_backward(RotaryPlan& plan, const at::Tensor& grad,
                                 const RotaryFuncOptions& func_options);

}  // namespace posenc::functional
