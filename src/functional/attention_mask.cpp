#include "posenc/functional/attention_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>

namespace posenc {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

void check_bool(const char* maker, const at::Tensor& mask) {
  TORCH_CHECK_TYPE(mask.defined() && mask.scalar_type() == at::kBool, "[AttentionMask] ", maker,
                   " takes a bool tensor (real numbers that are added to the scores: additive()). "
                   "Got ",
                   mask.defined() ? c10::toString(mask.scalar_type()) : "an undefined tensor");
}

// `mask` as (B|1, H|1, L|1, S|1).
at::Tensor as_scores(const at::Tensor& mask, const AttentionShape& shape) {
  const int64_t wanted[] = {shape.batch, shape.heads, shape.queries, shape.keys};
  at::Tensor result = mask;
  if (mask.dim() == 3 && mask.size(0) == shape.batch * shape.heads && shape.heads > 1) {
    result = mask.unflatten(0, {shape.batch, shape.heads});  // (B * H, L, S) -> (B, H, L, S)
  } else if (mask.dim() == 3) {
    result = mask.unsqueeze(1);  // (B, L, S) -> (B, 1, L, S)
  }
  while (result.dim() < 4) result = result.unsqueeze(0);
  bool fits = result.dim() == 4;
  for (int64_t axis = 0; fits && axis < 4; ++axis) {
    fits = result.size(axis) == 1 || result.size(axis) == wanted[axis];
  }
  TORCH_CHECK_VALUE(fits, "[AttentionMask] a mask must broadcast to the scores (B, H, L, S) = ",
                    at::IntArrayRef(wanted), " from (S), (L, S), (B, L, S), (B * H, L, S) or ",
                    "(B, H, L, S); keys to leave out, (B, S), come by padding() or masked_keys(). "
                    "Got ",
                    mask.sizes());
  return result;
}

void check_device(const at::Tensor& mask, const at::Tensor& like) {
  TORCH_CHECK_VALUE(mask.device() == like.device(), "[AttentionMask] a mask must be on the device ",
                    like.device(), " of what it masks. Got ", mask.device());
}

// (L, S), true where key j <= query i + offset.
at::Tensor causal_keep(int64_t offset, const AttentionShape& shape, const at::Tensor& like) {
  const auto indices = like.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor last = at::arange(offset, offset + shape.queries, indices).unsqueeze(1);
  return at::arange(shape.keys, indices) <= last;
}

}  // namespace

AttentionMask AttentionMask::keep(const at::Tensor& may_attend) {
  check_bool("keep()", may_attend);
  AttentionMask mask;
  mask.allowed_.push_back(may_attend);
  return mask;
}

AttentionMask AttentionMask::masked(const at::Tensor& may_not_attend) {
  check_bool("masked()", may_not_attend);
  return keep(may_not_attend.logical_not());
}

AttentionMask AttentionMask::additive(const at::Tensor& bias) {
  TORCH_CHECK_TYPE(bias.defined() && bias.is_floating_point(),
                   "[AttentionMask] additive() takes real numbers (a bool tensor says what may "
                   "attend: keep(), or may not: masked()). Got ",
                   bias.defined() ? c10::toString(bias.scalar_type()) : "an undefined tensor");
  AttentionMask mask;
  mask.biases_.push_back(bias);
  return mask;
}

AttentionMask AttentionMask::causal(int64_t offset) {
  AttentionMask mask;
  mask.causal_ = offset;
  return mask;
}

AttentionMask AttentionMask::padding(const at::Tensor& ids, int64_t pad) {
  TORCH_CHECK_TYPE(ids.scalar_type() == at::kLong || ids.scalar_type() == at::kInt,
                   "[AttentionMask] padding() takes ids, int64 or int32. Got ", ids.scalar_type());
  return masked_keys(ids == pad);
}

AttentionMask AttentionMask::masked_keys(const at::Tensor& may_not_attend) {
  check_bool("masked_keys()", may_not_attend);
  TORCH_CHECK_VALUE(may_not_attend.dim() == 2,
                    "[AttentionMask] padding() and masked_keys() take (B, S). Got ",
                    may_not_attend.sizes());
  return masked(may_not_attend.unsqueeze(1).unsqueeze(1));  // (B, 1, 1, S)
}

AttentionMask AttentionMask::from_torch_nn(const at::Tensor& mask) {
  return mask.scalar_type() == at::kBool ? masked(mask) : additive(mask);
}

AttentionMask AttentionMask::operator&(const AttentionMask& other) const {
  AttentionMask both = *this;
  both.allowed_.insert(both.allowed_.end(), other.allowed_.begin(), other.allowed_.end());
  both.biases_.insert(both.biases_.end(), other.biases_.begin(), other.biases_.end());
  if (other.causal_) both.causal_ = std::min(causal_.value_or(*other.causal_), *other.causal_);
  return both;
}

at::Tensor AttentionMask::keys() const {
  if (causal_ || !biases_.empty()) return {};
  at::Tensor keys;
  for (const at::Tensor& one : allowed_) {
    if (one.dim() != 4 || one.size(1) != 1 || one.size(2) != 1) return {};
    const at::Tensor own = one.squeeze(2).squeeze(1);  // (B, 1, 1, S) -> (B, S)
    if (keys.defined() && keys.sizes() != own.sizes()) return {};
    keys = keys.defined() ? keys.logical_and(own) : own;
  }
  return keys;
}

ScoreMask AttentionMask::resolve(const AttentionShape& shape, const at::Tensor& like) const {
  const bool all_causal = !causal_ || *causal_ >= shape.keys - 1;  // even query 0 sees every key
  if (allowed_.empty() && biases_.empty()) {
    if (all_causal) return {};
    if (*causal_ == 0) return {{}, true};
  }
  at::Tensor bias;
  for (const at::Tensor& one : biases_) {
    check_device(one, like);
    const at::Tensor scores = as_scores(one, shape).to(like.scalar_type());
    bias = bias.defined() ? bias + scores : scores;
  }
  at::Tensor allowed;
  if (!all_causal) allowed = as_scores(causal_keep(*causal_, shape, like), shape);
  for (const at::Tensor& one : allowed_) {
    check_device(one, like);
    const at::Tensor scores = as_scores(one, shape);
    allowed = allowed.defined() ? allowed.logical_and(scores) : scores;
  }
  if (!allowed.defined()) return {bias};
  if (!bias.defined()) bias = at::zeros({1, 1, 1, 1}, like.options().requires_grad(false));
  return {bias.masked_fill(allowed.logical_not(), kForbidden)};
}

AttentionMask AttentionMask::resolved(const AttentionShape& shape, const at::Tensor& like) const {
  const ScoreMask mask = resolve(shape, like);
  if (mask.is_causal) return causal();
  return mask.bias.defined() ? additive(mask.bias) : AttentionMask();
}

}  // namespace posenc
