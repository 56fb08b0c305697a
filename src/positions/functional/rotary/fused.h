#pragma once

#include <ATen/core/Tensor.h>

#include "positions/functional/rotary/fusable.h"

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

/// Makes `out` the results of rotating q and k by `plan` in the autograd graph, as far as autograd
/// records their inputs. Part of rotary_fused().
void record(const RotaryPlan& plan, const QueryKey& out, const at::Tensor& q, const at::Tensor& k,
            const RotaryOptions& options, const RotaryFuncOptions& func_options);

/// Whether rotary_fused_out() may write `out`, the result of x, while it reads its inputs: `out` is
/// x itself, or it overlaps neither the inputs nor the other result.
bool may_write(const at::Tensor& out, const at::Tensor& x, const at::Tensor& other,
               const at::Tensor& other_out, const RotaryCosSin& table,
               const RotaryFuncOptions& func_options);

}  // namespace posenc::functional
