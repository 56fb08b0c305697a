#include "posenc/relative/scores.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/baddbmm.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scalar_tensor.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "relative/broadcasts.h"
#include "relative/masked.h"

namespace posenc {
namespace relative {

namespace {

void check_queries_and_keys(const at::Tensor& q, const at::Tensor& k) {
  TORCH_CHECK_TYPE(q.scalar_type() == k.scalar_type(),
                   "[relative_scores] q and k must have the same dtype. Got ", q.scalar_type(),
                   " and ", k.scalar_type());
  TORCH_CHECK_VALUE(q.dim() >= 2 && q.dim() == k.dim() && q.size(-1) == k.size(-1),
                    "[relative_scores] q must be (..., Q, D) and k (..., K, D). Got ", q.sizes(),
                    " and ", k.sizes());
  TORCH_CHECK_VALUE(broadcasts(q.sizes().slice(0, q.dim() - 2), k.sizes().slice(0, k.dim() - 2)),
                    "[relative_scores] q and k must be of the same heads and sequences. Got ",
                    q.sizes(), " and ", k.sizes());
}

// A term or a mask, where it is defined.
void check_added(const char* name, const at::Tensor& x, const at::Tensor& q, const at::Tensor& k) {
  if (!x.defined()) return;
  std::vector<int64_t> scores(static_cast<std::size_t>(q.dim()));
  for (int64_t i = 0; i + 2 < q.dim(); ++i)
    scores[static_cast<std::size_t>(i)] = std::max(q.size(i), k.size(i));
  scores.rbegin()[1] = q.size(-2);
  scores.rbegin()[0] = k.size(-2);
  TORCH_CHECK_VALUE(broadcasts_to(x.sizes(), scores), "[relative_scores] the ", name,
                    " must fit the scores, ", at::IntArrayRef(scores), ". Got ", x.sizes());
}

// The scale of a Place, for heads as wide as those of q.
class Scale {
 public:
  Scale(const at::Tensor& q, const Place& place)
      : by_(place.scale_by), square_(static_cast<double>(q.size(-1) * place.products)) {
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
      case ScaleBy::Multiply: x.mul_(std::pow(square_, -0.5)); return;
      case ScaleBy::Divide: x.div_(std::sqrt(square_)); return;
      case ScaleBy::DivideRounded: break;
    }
    x.div_(rounded_);
  }
  at::Tensor operator()(const at::Tensor& x) const {
    switch (by_) {
      case ScaleBy::Multiply: return x * std::pow(square_, -0.5);
      case ScaleBy::Divide: return x / std::sqrt(square_);
      case ScaleBy::DivideRounded: break;
    }
    return x / rounded_;
  }
  double inverse() const { return 1.0 / std::sqrt(square_); }

 private:
  ScaleBy by_;
  double square_;
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

// (B, H, Q, K) from one batched product that also adds the term.
at::Tensor product_onto_term(const at::Tensor& q, const at::Tensor& k, const at::Tensor& term,
                             double alpha) {
  const int64_t width = q.size(-1);
  const at::Tensor keys = k.reshape({-1, k.size(-2), width}).transpose(-1, -2);
  const at::Tensor onto = term.reshape({-1, term.size(-2), term.size(-1)});
  return at::baddbmm(onto, q.reshape({-1, q.size(-2), width}), keys, 1.0, alpha)
      .view({q.size(0), -1, q.size(-2), k.size(-2)});
}

}  // namespace

at::Scalar lowest(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble: return std::numeric_limits<double>::lowest();
    case at::kHalf: return static_cast<double>(std::numeric_limits<at::Half>::lowest());
    case at::kBFloat16: return static_cast<double>(std::numeric_limits<at::BFloat16>::lowest());
    default: return static_cast<double>(std::numeric_limits<float>::lowest());
  }
}

at::Tensor masked(const at::Tensor& scores, const at::Tensor& mask, const Place& place) {
  if (!mask.defined()) return scores;
  switch (place.mask_place) {
    case MaskPlace::WithTerm: return scores;
    case MaskPlace::AfterTerm: return scores + mask;
    case MaskPlace::Twice: return scores + mask + mask;
    case MaskPlace::FillLowest: break;
  }
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "[relative_scores] a mask to fill by must be bool. Got ", mask.scalar_type());
  return scores.masked_fill(mask.logical_not(), lowest(scores.scalar_type()));
}

}  // namespace relative

at::Tensor relative_scores(const at::Tensor& q, const at::Tensor& k, const at::Tensor& term,
                           const at::Tensor& mask, const relative::Place& place) {
  using relative::ScaleOf;
  relative::check_queries_and_keys(q, k);
  relative::check_added("term", term, q, k);
  relative::check_added("mask", mask, q, k);
  const relative::Scale scale(q, place);
  at::Tensor added = term.defined() && place.scales_term ? scale(term) : term;
  const bool with_term = mask.defined() && place.mask_place == relative::MaskPlace::WithTerm;
  if (with_term) added = added.defined() ? added + mask : mask;
  at::Tensor scores;
  if (place.scale_of == ScaleOf::ProductInOneSum) {
    TORCH_CHECK_VALUE(added.defined() && q.dim() == 4,
                      "[relative_scores] q must be (B, H, Q, D), beside a term, to be added in one "
                      "operation. Got ",
                      q.sizes());
    return masked(relative::product_onto_term(q, k, added, scale.inverse()), mask, place);
  }
  const at::Tensor queries = place.scale_of == ScaleOf::Query ? scale(q) : q;
  const at::Tensor keys = k.transpose(-1, -2);
  scores = at::matmul(queries, place.scale_of == ScaleOf::Key ? scale(keys) : keys);
  if (place.in_float32) scores = scores.to(at::kFloat);
  // The product is new memory, which the rest of the operations reuse.
  if (place.scale_of == ScaleOf::Scores) scale.apply_(scores);
  if (added.defined()) relative::add_(scores, added);
  if (place.scale_of == ScaleOf::ScoresAndTerm) scale.apply_(scores);
  if (mask.defined() && place.mask_place == relative::MaskPlace::AfterTerm) {
    relative::add_(scores, mask);
    return scores;
  }
  return masked(scores, mask, place);
}

at::Tensor relative_shift(const at::Tensor& x, int64_t keys, int64_t origin, int64_t step) {
  TORCH_CHECK_VALUE(x.dim() >= 2, "[relative_shift] x must be (..., Q, R). Got ", x.sizes());
  const int64_t queries = x.size(-2), rows = x.size(-1);
  TORCH_CHECK_VALUE(
      keys >= 0 && step > 0 && origin >= 0 && queries - 1 <= origin / step && origin <= rows - keys,
      "[relative_shift] the rows must reach from the first key of the last query to "
      "the last key of the first: ",
      keys, " keys from row ", origin, ", and for each of ", queries, " queries ", step,
      " rows before. Got ", x.sizes());
  const at::Tensor whole = x.contiguous();
  std::vector<int64_t> sizes = whole.sizes().vec(), strides = whole.strides().vec();
  sizes.back() = keys;
  strides.rbegin()[1] -= step;
  return whole.as_strided(sizes, strides, whole.storage_offset() + origin);
}

}  // namespace posenc
