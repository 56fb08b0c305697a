#pragma once

#include <ATen/core/Tensor.h>

#include "kernels/embed/kernels.h"
#include "posenc/functional/embed.h"

namespace posenc::functional {

/// Whether so many elements are faster with this thread's other threads, if it has any.
bool worth_threads(int64_t elements);

/// The kernels' type for `dtype`, whose sums are rounded once if `exact`; false where there is
/// none.
bool find_type(at::ScalarType dtype, bool exact, kernels::embed::Type& type);

/// Whether half types are summed in float32: Precision::Exact.
constexpr bool rounds_once(kernels::embed::Type type) {
  return type == kernels::embed::Type::BFloat16Exact || type == kernels::embed::Type::Float16Exact;
}

/// What embed_fused() hands to the kernels.
struct EmbedPlan {
  kernels::embed::Type type;
  kernels::embed::Gather gather;
  at::Tensor ids_copy, position_ids_copy;  // contiguous int32 or int64, where theirs are not
  int64_t padding = -1;
};

/// Fills `plan`, all but its output and its mask; false where the composition has to run, be it to
/// say what is wrong. Reads every id and position once, to check its range: the kernels rely on it.
bool make_plan(const at::Tensor& ids, const at::Tensor& weight, const at::Tensor& table,
               const EmbedFuncOptions& options, EmbedPlan& plan);

}  // namespace posenc::functional
