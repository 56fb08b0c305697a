#pragma once

#include "positions/relative/weigh.h"

namespace posenc::relative {

/// The errors of relative_term(), in the name of `who`.
void check_term(const char* who, const at::Tensor& x, const at::Tensor& rows, int64_t others,
                const Index& index, int64_t offset);

/// The errors of relative_scores(), in the name of `who`.
void check_scores(const char* who, const at::Tensor& q, const at::Tensor& k, const Rules& rules);

/// A term as a tensor: (H, Q, K) of distances; undefined for none.
at::Tensor pairs_of(const Distances& term, int64_t queries, int64_t keys);
at::Tensor pairs_of(const Term& term, const at::Tensor& q, const at::Tensor& k);

/// The scores by LibTorch's operations; what these do one after the other for float32 on the CPU
/// is done in one pass, with the same bits.
at::Tensor composed_scores(const at::Tensor& q, const at::Tensor& k, const Rules& rules);

/// The weights of attention, in one pass where that is possible; recorded by autograd.
at::Tensor weights(const at::Tensor& q, const at::Tensor& k, const Rules& rules);

}  // namespace posenc::relative
