#pragma once

#include <ATen/core/Tensor.h>

#include "functional/rotary/fusable.h"

namespace posenc::functional {

/// rotary() in one pass on the CPU, its backward included, by the plan that is_fusable() made of
/// the same arguments.
QueryKey rotary_fused(RotaryPlan& plan, const at::Tensor& q, const at::Tensor& k,
                      const RotaryOptions& options, const RotaryFuncOptions& how);

/// The same into `q_out` and `k_out`, of the right shapes and type and with whole rows, which are
/// q and k themselves or apart from all that is read. Nothing is recorded.
void rotary_fused_out(RotaryPlan& plan, const at::Tensor& q_out, const at::Tensor& k_out,
                      const at::Tensor& q, const at::Tensor& k, const RotaryFuncOptions& how);

/// The gradient of one of rotary()'s inputs, by the plan that is_fusable() made of that of its
/// result.
at::Tensor rotary_fused_backward(RotaryPlan& plan, const at::Tensor& grad,
                                 const RotaryFuncOptions& how);

}  // namespace posenc::functional
