#pragma once

#include <ATen/core/Tensor.h>

#include "positions/functional/embed/fusable.h"

namespace posenc::functional {

/// The names of an operation: in errors, in profiles of its backward, and of its nodes in the
/// autograd graph. All are literals.
struct EmbedNames {
  const char* module;
  const char* backward;
  const char* node;
  const char* norm_backward = nullptr;
  const char* norm_node = nullptr;
};

/// The operation of `plan`, a result of is_fusable(), in one pass on the CPU, including its
/// backward. `dropout` is the probability of plan.drops. A defined `out` must be contiguous, have
/// the right shape and dtype, and not overlap the inputs; it is returned.
at::Tensor embed_fused(EmbedPlan& plan, const EmbedNames& names, double dropout,
                       const at::Tensor& out = {});

/// embed() without the checks of its own; with an undefined `table`, no positions are added.
at::Tensor embed_or_look_up(const at::Tensor& ids, const at::Tensor& weight,
                            const at::Tensor& table, const EmbedFuncOptions& options);

/// Tensors that the kernel writes for the backward; undefined if they are not needed.
struct EmbedSaved {
  at::Tensor mask;             // the dropout bits
  at::Tensor sum, mean, rstd;  // the rows before the norm; (..., 1)
};

/// Makes `out` the result of plan.request in the autograd graph. Part of embed_fused().
void record(const at::Tensor& out, const EmbedPlan& plan, const EmbedNames& names,
            const EmbedSaved& saved);

}  // namespace posenc::functional
