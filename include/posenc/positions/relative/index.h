#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <variant>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// T5's buckets of distances: one for each of the smaller distances, and wider ones, on a
/// logarithmic scale, up to max_distance. Rows: num_buckets.
///
/// Source: `T5Attention._relative_position_bucket` of transformers 5.23, bit-identical, and its
/// copies in MPNet, LayoutLM, UDOP, CPM-Ant and x-transformers.
struct Buckets {
  int64_t num_buckets = 32;    ///< how many; even, and at least 4, if bidirectional
  int64_t max_distance = 128;  ///< the distance from which on all keys share the last bucket
  /// Whether keys after the query have half of the buckets to themselves, as in encoders; otherwise
  /// they share the bucket of distance 0.
  bool bidirectional = true;
  /// Whether the logarithm is truncated after the number of exact buckets has been added to it, as
  /// in WavLM, and not before. Only the rounding of the sum differs.
  bool truncate_sum = false;
  /// Rows of the table after those of the buckets, which no distance has: those of MPNet, whose
  /// class computes 32 buckets whatever its setting counts. Not negative.
  int64_t spare_rows = 0;

  POSENC_FIELDS(Buckets, num_buckets, max_distance, bidirectional, truncate_sum, spare_rows);
};

/// DeBERTa v2's buckets: those of the smaller distances and of the wider ones on both sides of 0,
/// as signed numbers. Index: the bucket of (query - key) + buckets, in [0, 2 * buckets).
///
/// Source: `make_log_bucket_position` of transformers 5.23, bit-identical.
struct SignedLog {
  int64_t buckets = 256;       ///< half of the rows; at least 2
  int64_t max_position = 512;  ///< the distance of the last bucket; above buckets / 2 + 1

  POSENC_FIELDS(SignedLog, buckets, max_position);
};

/// A row for each distance from -left to right; farther keys share the last row of their side.
/// Rows: left + right + 1; for `absolute` the larger of both, and one.
///
/// Source: Shaw et al., `distance_embedding` of transformers 5.23; DeBERTa v1, SpeechT5 (with
/// `query_minus_key`) and Phi-4's audio encoder (with `absolute`, where it is symmetric).
struct Clamp {
  int64_t left = 64;             ///< the farthest key before the query; not negative
  int64_t right = 8;             ///< the farthest key after it; not negative
  bool query_minus_key = false;  ///< whether the distance is query - key, and not key - query
  bool absolute = false;         ///< whether both sides share their rows

  POSENC_FIELDS(Clamp, left, right, query_minus_key, absolute);
};

/// A row for each distance from -origin on, without a limit, as in Transformer-XL. Index: key -
/// query + origin.
struct Shift {
  int64_t origin = 0;  ///< the row of distance 0

  POSENC_FIELDS(Shift, origin);
};

/// How a table is indexed by the distance of a key from a query.
using Index = std::variant<Buckets, SignedLog, Clamp, Shift>;

}  // namespace relative

/// Returns the row of a table for each distance: position of the key minus position of the query.
///
/// distances: any shape, int64  ->  the same shape, int64. Distances up to 2^31 do not overflow.
///
/// Errors: c10::TypeError for distances that are not int64; c10::ValueError for an index whose
/// members do not fit each other, are negative, or above 2^32, with the rule.
at::Tensor relative_index(const at::Tensor& distances, const relative::Index& index);

/// The same for every pair of a query and a key.
///
/// queries: (..., Q), keys: (..., K), int64  ->  (..., Q, K)
///
/// Errors: those of the same for distances; c10::ValueError for positions of other sequences.
at::Tensor relative_index(const at::Tensor& queries, const at::Tensor& keys,
                          const relative::Index& index);

/// Returns the number of rows that a table has for this index; 0 if any.
///
/// Errors: c10::ValueError for an index whose members do not fit each other, with the rule.
int64_t relative_rows(const relative::Index& index);

}  // namespace posenc
