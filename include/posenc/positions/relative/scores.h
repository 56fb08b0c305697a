#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <variant>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/relative/index.h"

namespace posenc POSENC_EXPORT {
namespace relative POSENC_EXPORT {

/// What is scaled by the width of a head.
enum class ScaleOf {
  Nothing,         ///< T5
  Query,           ///< the queries, before the product
  Key,             ///< the keys, before the product: DeBERTa v2
  Scores,          ///< the product
  ScoresAndTerm,   ///< the sum of product and term: Falcon, XLNet, FastSpeech 2
  ProductInOneSum  ///< the product, in the same operation that adds the term: BLOOM's baddbmm
};

/// How: the bits differ.
enum class ScaleBy {
  Multiply,      ///< times D^-0.5
  Divide,        ///< divided by sqrt(D)
  DivideRounded  ///< divided by sqrt(D), which is rounded to the dtype of q before: DeBERTa
};

/// When and how the mask is added.
enum class Masking {
  AfterTerm,  ///< to the sum
  WithTerm,   ///< to the term, before that is added to the scores: Swin in transformers
  Twice,      ///< twice to the sum: Swin v2 in transformers, whose checkpoints were trained so
  FillLowest  ///< bool, true = may attend; other scores become the lowest finite number
};

/// How scores, term and mask are put together: with other orders, other bits.
struct Scoring {
  ScaleOf scale_of = ScaleOf::Scores;    ///< what is scaled
  ScaleBy scale_by = ScaleBy::Multiply;  ///< how
  int64_t products = 1;  ///< how many products share the scale, whose square is D times as large
  bool scales_term = false;              ///< whether the term is scaled alone, in the same way
  Masking masking = Masking::AfterTerm;  ///< when the mask is added
  /// Whether the scores of half-precision inputs become float32 before the term is added: Falcon.
  bool in_float32 = false;

  POSENC_FIELDS(Scoring, scale_of, scale_by, products, scales_term, masking, in_float32);
};

/// A term that depends on the head and the distance only, such as ALiBi's and T5's, given once for
/// each distance: the scores of all pairs are made without a tensor of all pairs.
struct Distances {
  /// (H, Q + K - 1), in float32 like the scores: that of query i and key j is entry j - i + Q - 1.
  at::Tensor entries;
};

/// A term that is the product of a vector of each query with the row of a table of vectors for
/// their distance, as relative_term() has it with relative::Shift, but without a tensor of the
/// products of all rows: Transformer-XL.
struct DistanceVectors {
  at::Tensor x;     ///< (B, H, Q, D): the queries, with a bias of their own
  at::Tensor rows;  ///< (R, D), (H, R, D) or (B, H, R, D)
  Shift index;      ///< the row of distance 0
};

/// What is added to scores: a tensor that is broadcastable to them, which may be undefined, or a
/// rule.
using Term = std::variant<at::Tensor, Distances, DistanceVectors>;

}  // namespace relative

/// The scores of attention with a relative term, up to the input of the softmax.
///
/// q: (..., Q, D), k: (..., K, D), term: broadcastable to (..., Q, K), or a rule, mask:
/// broadcastable to (..., Q, K); either may be undefined  ->  (..., Q, K)
///
/// A rule gives the scores of its tensor but for the rounding of products.
///
/// Errors: c10::TypeError for q and k of different dtypes and, with Masking::FillLowest, a mask
/// that is not bool; c10::ValueError for q and k of different widths, ranks, heads or sequences,
/// and a term or a mask that does not fit the scores; those of relative_term() for its rule.
at::Tensor relative_scores(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                           const at::Tensor& mask, const relative::Scoring& scoring);

/// The weights of attention with a relative term: the softmax of relative_scores(), with the same
/// arguments and errors, in one pass over memory where float32 is computed on the CPU.
///
/// ```cpp
/// auto q = torch::randn({2, 4, 6, 8}), k = torch::randn({2, 4, 6, 8});
/// auto table = torch::randn({11, 4});  // a row for each distance, -5 to 5
/// auto weights = posenc::relative_weights(q, k, posenc::relative::Distances{table.t()}, {}, {});
/// ```
///
/// Weights are those of the composition but for the last bits, and so is the gradient; other dtypes
/// and devices get the composition, whose softmax of half precision is computed in float32. Keys
/// that Masking::FillLowest forbids have a weight of 0, and all have the same weight where it
/// forbids all.
at::Tensor relative_weights(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                            const at::Tensor& mask, const relative::Scoring& scoring);

/// Transformer-XL's shift: of each query's scores of the rows of a table, those of its keys. A view
/// of x, or of a contiguous copy.
///
/// x: (..., Q, R)  ->  (..., Q, keys); entry (i, j) is x(i, j - step i + origin)
///
/// Errors: c10::ValueError for rows that do not reach: all keys of all queries must have one.
///
/// Source: `_rel_shift` of transformers 5.23 and its copies, which pad and reshape.
at::Tensor relative_shift(const at::Tensor& x, int64_t keys, int64_t origin, int64_t step = 1);

}  // namespace posenc
