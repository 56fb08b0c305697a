#include "posenc/positions/relative/scores.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <cmath>
#include <limits>
#include <optional>
#include <vector>

#include "posenc/positions/relative/term.h"
#include "positions/relative/broadcasts.h"
#include "positions/relative/masked.h"
#include "positions/relative/weights.h"

namespace posenc {
namespace relative {

namespace {

void check_queries_and_keys(const char* who, const at::Tensor& q, const at::Tensor& k) {
  TORCH_CHECK_TYPE(q.scalar_type() == k.scalar_type(), "[", who,
                   "] q and k must have the same dtype. Got ", q.scalar_type(), " and ",
                   k.scalar_type());
  TORCH_CHECK_VALUE(q.dim() >= 2 && q.dim() == k.dim() && q.size(-1) == k.size(-1), "[", who,
                    "] q must be (..., Q, D) and k (..., K, D). Got ", q.sizes(), " and ",
                    k.sizes());
  TORCH_CHECK_VALUE(broadcasts(q.sizes().slice(0, q.dim() - 2), k.sizes().slice(0, k.dim() - 2)),
                    "[", who, "] q and k must be of the same heads and sequences. Got ", q.sizes(),
                    " and ", k.sizes());
}

// The sizes of a term or a mask.
void check_added(const char* who, const char* name, at::IntArrayRef sizes, const at::Tensor& q,
                 const at::Tensor& k) {
  const std::vector<int64_t> scores = sizes_of_scores(q, k);
  TORCH_CHECK_VALUE(broadcasts_to(sizes, scores), "[", who, "] the ", name,
                    " must fit the scores, ", at::IntArrayRef(scores), ". Got ", sizes);
}

// Rows of sizes (..., Q, R), of which each query reads those of `keys` keys.
void check_shift(const char* who, at::IntArrayRef sizes, int64_t keys, int64_t origin,
                 int64_t step) {
  const int64_t queries = sizes.end()[-2], rows = sizes.end()[-1];
  TORCH_CHECK_VALUE(
      keys >= 0 && step > 0 && origin >= 0 && queries - 1 <= origin / step && origin <= rows - keys,
      "[", who,
      "] the rows must reach from the first key of the last query to the last key of the first: ",
      keys, " keys from row ", origin, ", and for each of ", queries, " queries ", step,
      " rows before. Got ", sizes);
}

// A term that is never a tensor, as relative_term() has it.
void check_vectors(const char* who, const DistanceVectors& term, const at::Tensor& q,
                   const at::Tensor& k) {
  TORCH_CHECK_VALUE(term.x.defined() && term.rows.defined(), "[", who,
                    "] x and rows of distance vectors must be defined. Got an undefined tensor");
  check_term(who, term.x, term.rows, k.size(-2), term.index, 0);
  TORCH_CHECK_VALUE(q.dim() == 4 && term.x.size(2) == q.size(2), "[", who,
                    "] x of distance vectors must be (B, H, Q, D) for the queries of q. Got ",
                    term.x.sizes(), " beside ", q.sizes());
  for (const at::Tensor* of : {&term.x, &term.rows}) {
    std::vector<int64_t> sizes = of->sizes().vec();
    if (of == &term.rows) sizes.rbegin()[1] = 1;
    sizes.back() = 1;
    check_added(who, "term", sizes, q, k);
  }
  check_shift(who, {term.x.size(2), term.rows.size(-2)}, k.size(-2), term.index.origin, 1);
}

void check_distances(const char* who, const Distances& term, const at::Tensor& q,
                     const at::Tensor& k) {
  const int64_t count = q.size(-2) + k.size(-2) - 1;
  const at::Tensor& entries = term.entries;
  TORCH_CHECK_VALUE(q.dim() >= 3 && entries.defined() && entries.dim() == 2 &&
                        entries.size(0) == sizes_of_scores(q, k).end()[-3] &&
                        entries.size(1) == count,
                    "[", who,
                    "] entries of distances must be (H, Q + K - 1) for the heads, queries "
                    "and keys of q ",
                    q.sizes(), " and k ", k.sizes(), ". Got ",
                    entries.defined() ? c10::str(entries.sizes()) : "an undefined tensor");
}

// The scale of a Scoring, for heads as wide as those of q.
class Scale {
 public:
  Scale(const at::Tensor& q, const Scoring& scoring, std::optional<double> factor)
      : by_(factor ? ScaleBy::Multiply : scoring.scale_by),
        square_(squared_scale(scoring, q.size(-1))),
        factor_(factor.value_or(std::pow(square_, -0.5))),
        given_(factor.has_value()) {
    if (by_ == ScaleBy::DivideRounded)
      rounded_ = at::scalar_tensor(std::sqrt(square_), at::kFloat).to(q.options());
  }

  // The same in the memory of x, if it is float32: in half precision LibTorch rounds a scalar that
  // it multiplies in place.
  void apply_(at::Tensor& x) const {
    if (x.scalar_type() != at::kFloat) {
      x = (*this)(x);
      return;
    }
    switch (by_) {
      case ScaleBy::Multiply: x.mul_(factor_); return;
      case ScaleBy::Divide: x.div_(std::sqrt(square_)); return;
      case ScaleBy::DivideRounded: break;
    }
    x.div_(rounded_);
  }
  at::Tensor operator()(const at::Tensor& x) const {
    switch (by_) {
      case ScaleBy::Multiply: return x * factor_;
      case ScaleBy::Divide: return x / std::sqrt(square_);
      case ScaleBy::DivideRounded: break;
    }
    return x / rounded_;
  }
  // Of the product in one sum.
  double factor() const { return given_ ? factor_ : 1.0 / std::sqrt(square_); }

 private:
  ScaleBy by_;
  double square_, factor_;
  bool given_;
  at::Tensor rounded_;
};

// x + other, in the memory of x where both are float32.
void add_(at::Tensor& x, const at::Tensor& other) {
  if (x.scalar_type() == at::kFloat && other.scalar_type() == at::kFloat) {
    x.add_(other);
  } else {
    x = x + other;
  }
}

// What is added to the scores beside a mask that comes after it; undefined for nothing.
at::Tensor added_of(const at::Tensor& term, const at::Tensor& mask, const Scoring& scoring,
                    const Scale& scale) {
  const at::Tensor added = term.defined() && scoring.scales_term ? scale(term) : term;
  if (!mask.defined() || scoring.masking != Masking::WithTerm) return added;
  return added.defined() ? added + mask : mask;
}

// (B, H, Q, K) from one batched product that also adds the term.
at::Tensor product_onto_term(const at::Tensor& q, const at::Tensor& k, const at::Tensor& term,
                             double alpha) {
  const std::vector<int64_t> sizes = sizes_of_scores(q, k);
  const int64_t batch = sizes[0], heads = sizes[1];
  const auto flat = [&](const at::Tensor& x) {
    const int64_t rows = x.dim() > 1 ? x.size(-2) : 1, columns = x.dim() > 0 ? x.size(-1) : 1;
    return x.expand({batch, heads, rows, columns}).reshape({batch * heads, rows, columns});
  };
  return at::baddbmm(flat(term), flat(q), flat(k).transpose(-1, -2), 1.0, alpha).view(sizes);
}

}  // namespace

std::vector<int64_t> sizes_of_scores(const at::Tensor& q, const at::Tensor& k) {
  std::vector<int64_t> sizes =
      at::infer_size(q.sizes().slice(0, q.dim() - 2), k.sizes().slice(0, k.dim() - 2));
  sizes.insert(sizes.end(), {q.size(-2), k.size(-2)});
  return sizes;
}

// Each query's entries are a part of its head's, which begins one later for the query before.
at::Tensor pairs_of(const Distances& term, int64_t queries, int64_t keys) {
  const at::Tensor& entries = term.entries;
  if (queries == 0 || keys == 0) return entries.new_zeros({entries.size(0), queries, keys});
  return entries.unfold(1, keys, 1)
      .index_select(1, at::arange(queries - 1, -1, -1,
                                  entries.options().dtype(at::kLong).requires_grad(false)));
}

at::Tensor pairs_of(const Term& term, const at::Tensor& q, const at::Tensor& k) {
  if (const auto* pairs = std::get_if<at::Tensor>(&term)) return *pairs;
  if (const auto* row = std::get_if<Distances>(&term))
    return pairs_of(*row, q.size(-2), k.size(-2));
  const auto& vectors = std::get<DistanceVectors>(term);
  return relative_term(vectors.x, vectors.rows, k.size(-2), vectors.index);
}

void check_scores(const char* who, const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  check_queries_and_keys(who, q, k);
  const auto* const pairs = std::get_if<at::Tensor>(&rules.term);
  if (pairs != nullptr && pairs->defined()) check_added(who, "term", pairs->sizes(), q, k);
  if (const auto* row = std::get_if<Distances>(&rules.term)) check_distances(who, *row, q, k);
  if (const auto* vectors = std::get_if<DistanceVectors>(&rules.term))
    check_vectors(who, *vectors, q, k);
  if (rules.mask.defined()) check_added(who, "mask", rules.mask.sizes(), q, k);
  const Masking masking = rules.scoring.masking;
  TORCH_CHECK_TYPE(!rules.mask.defined() || masking != Masking::FillLowest ||
                       rules.mask.scalar_type() == at::kBool,
                   "[", who, "] a mask to fill by must be bool. Got ",
                   rules.mask.defined() ? c10::toString(rules.mask.scalar_type()) : "");
  const bool is_added = pairs == nullptr || pairs->defined() ||
                        (rules.mask.defined() && masking == Masking::WithTerm);
  TORCH_CHECK_VALUE(
      rules.scoring.scale_of != ScaleOf::ProductInOneSum || (is_added && q.dim() == 4), "[", who,
      "] q must be (B, H, Q, D), beside a term, to be added in one operation. Got ", q.sizes());
}

at::Tensor composed_scores(const at::Tensor& q, const at::Tensor& k, const Rules& rules) {
  const Scoring& scoring = rules.scoring;
  const at::Tensor& mask = rules.mask;
  const at::Tensor term = pairs_of(rules.term, q, k);
  const Scale scale(q, scoring, rules.scale);
  if (scoring.scale_of == ScaleOf::ProductInOneSum)
    return masked(product_onto_term(q, k, added_of(term, mask, scoring, scale), scale.factor()),
                  mask, scoring);
  const at::Tensor queries = scoring.scale_of == ScaleOf::Query ? scale(q) : q;
  const at::Tensor keys = k.transpose(-1, -2);
  at::Tensor scores = at::matmul(queries, scoring.scale_of == ScaleOf::Key ? scale(keys) : keys);
  if (scoring.in_float32) scores = scores.to(at::kFloat);
  Rules rest = {term, mask, scoring, rules.scale};
  if (scoring.scale_of == ScaleOf::Query || scoring.scale_of == ScaleOf::Key)
    rest.scoring.scale_of = ScaleOf::Nothing;
  // The product is new memory, which the rest of the operations reuse.
  if (scores.is_contiguous() && can_weigh(scores, {}, rest) && !is_recorded(scores, {}, rest)) {
    finish_scores_(scores, rest, q.size(-1));
    return scores;
  }
  if (scoring.scale_of == ScaleOf::Scores) scale.apply_(scores);
  const at::Tensor added = added_of(term, mask, scoring, scale);
  if (added.defined()) add_(scores, added);
  if (scoring.scale_of == ScaleOf::ScoresAndTerm) scale.apply_(scores);
  if (mask.defined() && scoring.masking == Masking::AfterTerm) {
    add_(scores, mask);
    return scores;
  }
  return masked(scores, mask, scoring);
}

at::Scalar lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble: return std::numeric_limits<double>::lowest();
    case at::kHalf: return static_cast<double>(std::numeric_limits<at::Half>::lowest());
    case at::kBFloat16: return static_cast<double>(std::numeric_limits<at::BFloat16>::lowest());
    default: return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

at::Tensor masked(const at::Tensor& scores, const at::Tensor& mask, const Scoring& scoring) {
  if (!mask.defined()) return scores;
  switch (scoring.masking) {
    case Masking::WithTerm: return scores;
    case Masking::AfterTerm: return scores + mask;
    case Masking::Twice: return scores + mask + mask;
    case Masking::FillLowest: break;
  }
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "[relative_scores] a mask to fill by must be bool. Got ", mask.scalar_type());
  return scores.masked_fill(mask.logical_not(), lowest(scores.scalar_type()));
}

}  // namespace relative

at::Tensor relative_scores(const at::Tensor& q, const at::Tensor& k, const relative::Term& term,
                           const at::Tensor& mask, const relative::Scoring& scoring) {
  const relative::Rules rules = {term, mask, scoring};
  relative::check_scores("relative_scores", q, k, rules);
  const bool is_rule = !std::holds_alternative<at::Tensor>(term);
  if (is_rule && relative::can_weigh(q, k, rules) && !relative::is_recorded(q, k, rules))
    return relative::weighed(q, k, rules, relative::Weighed::Scores);
  return relative::composed_scores(q, k, rules);
}

at::Tensor relative_shift(const at::Tensor& x, int64_t keys, int64_t origin, int64_t step) {
  TORCH_CHECK_VALUE(x.dim() >= 2, "[relative_shift] x must be (..., Q, R). Got ", x.sizes());
  relative::check_shift("relative_shift", x.sizes(), keys, origin, step);
  const at::Tensor whole = x.contiguous();
  std::vector<int64_t> sizes = whole.sizes().vec(), strides = whole.strides().vec();
  sizes.back() = keys;
  strides.rbegin()[1] -= step;
  return whole.as_strided(sizes, strides, whole.storage_offset() + origin);
}

}  // namespace posenc
