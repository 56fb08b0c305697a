#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "posenc/export.h"
#include "posenc/positions/relative/index.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// Whose vectors the rows of a table are multiplied by.
enum class Contract {
  Query,  ///< those of the queries: content to position; Shaw, Transformer-XL, DeBERTa's c2p
  Key     ///< those of the keys: position to content; DeBERTa's p2c
};

}  // namespace relative

/// The term of scores that a table of vectors makes: of each query and key, the product of one of
/// them with the row of their distance.
///
/// x: queries (B, H, Q, D), or keys (B, H, K, D) with Contract::Key; rows: (R, D), for each head
/// (H, R, D) or for each sequence too (B, H, R, D); others: the number of keys, or of queries  ->
/// (B, H, Q, K). `offset` is the position of the first query.
///
/// All rows are multiplied once, and each pair takes one of the products; with relative::Shift it
/// is a view of them.
///
/// Errors: those of relative_index(); c10::TypeError for rows of another dtype; c10::ValueError for
/// another number of rows, channels, heads or sequences, a negative offset, and with
/// relative::Shift for rows that do not reach.
at::Tensor relative_term(const at::Tensor& x, const at::Tensor& rows, int64_t others,
                         const relative::Index& index,
                         relative::Contract contract = relative::Contract::Query,
                         int64_t offset = 0);

}  // namespace posenc
