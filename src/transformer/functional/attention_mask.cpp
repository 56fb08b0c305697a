// posenc-budget: the makers of one class, and how it is resolved
#include "posenc/transformer/functional/attention_mask.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/zeros.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <limits>
#include <tuple>

#include "core/tensors.h"
#include "posenc/transformer/functional/window_partition.h"
#include "positions/relative/grid_rules.h"
#include "transformer/functional/attention_mask_internals.h"

namespace posenc {
namespace {

constexpr double kForbidden = -std::numeric_limits<double>::infinity();

std::string mask_dtype(const at::Tensor& mask) {
  return mask.defined() ? c10::toString(mask.scalar_type()) : "an undefined tensor";
}

// Names the maker for a mask of this type, for the error of one that does not accept it.
std::string right_maker(const at::Tensor& mask) {
  if (!mask.defined()) return "";
  if (mask.is_floating_point()) return "; numbers that are added to the scores: additive()";
  if (mask.scalar_type() == at::kBool)
    return "; true for what may attend: allowed(), for what may "
           "not: blocked(), for a token: key_padding()";
  if (at::isIntegralType(mask.scalar_type(), /*includeBool=*/false))
    return "; integers that are 0 for padding: key_padding()";
  return "";
}

void check_type(bool takes, const char* maker, const char* what, const at::Tensor& mask) {
  TORCH_CHECK_TYPE(takes, "[AttentionMask] ", maker, " takes ", what, ". Got ", mask_dtype(mask),
                   right_maker(mask));
}

// Checks a mask over keys, (B, S).
void check_keys(const char* maker, const at::Tensor& mask, bool integers) {
  const bool integral =
      mask.defined() && at::isIntegralType(mask.scalar_type(), /*includeBool=*/false);
  check_type(mask.defined() && (mask.scalar_type() == at::kBool || (integers && integral)), maker,
             integers ? "a bool or integer tensor" : "a bool tensor", mask);
  TORCH_CHECK_VALUE(mask.dim() == 2, "[AttentionMask] ", maker,
                    " takes (B, S): a mask with a query axis comes by allowed() or blocked(). Got ",
                    mask.sizes());
}

enum class Values { Bools, Numbers };

// Checks a mask over queries and keys. A mask with two axes is read as (L, S) only if the caller
// requests it: a key mask (B, S) also has two, and nothing else would distinguish them when B == L.
void check_pairs(const char* maker, const at::Tensor& mask, Values values, bool pairs) {
  const bool bools = values == Values::Bools;
  check_type(mask.defined() && (bools ? mask.scalar_type() == at::kBool : mask.is_floating_point()),
             maker, bools ? "a bool tensor" : "real numbers", mask);
  if (pairs) {
    TORCH_CHECK_VALUE(mask.dim() == 2, "[AttentionMask] ", maker,
                      " takes (L, S): a mask with a batch axis comes by the maker of that name "
                      "without _pairs. Got ",
                      mask.sizes());
  } else {
    TORCH_CHECK_VALUE(mask.dim() == 3 || mask.dim() == 4, "[AttentionMask] ", maker,
                      " takes (B, L, S), (B * H, L, S) or (B, H, L, S); (L, S) comes by the maker "
                      "of that name with _pairs, padding (B, S) by key_padding(). Got ",
                      mask.sizes());
  }
}

// Returns `mask` as (B|1, H|1, L|1, S|1). A mask with three axes whose first is B * H follows the
// torch.nn convention; with `of_heads`, any other first axis (except 1) is an error.
at::Tensor as_scores(const at::Tensor& mask, bool of_heads, const AttentionShape& shape) {
  const int64_t expected[] = {shape.batch, shape.heads, shape.queries, shape.keys};
  const int64_t blocks = shape.batch * shape.heads;
  TORCH_CHECK_VALUE(!of_heads || mask.size(0) == 1 || mask.size(0) == blocks,
                    "[AttentionMask] torch.nn's attn_mask of three axes must be (B * H, L, S) = [",
                    blocks, ", ", shape.queries, ", ", shape.keys, "]. Got ", mask.sizes());
  at::Tensor result = mask;
  if (mask.dim() == 3 && mask.size(0) == blocks && shape.heads > 1) {
    result = mask.unflatten(0, {shape.batch, shape.heads});  // (B * H, L, S) -> (B, H, L, S)
  } else if (mask.dim() == 3) {
    result = mask.unsqueeze(1);  // (B, L, S) -> (B, 1, L, S)
  } else if (mask.dim() == 2) {
    result = mask.unsqueeze(0).unsqueeze(0);  // (L, S) -> (1, 1, L, S)
  }
  bool fits = true;
  for (int64_t axis = 0; axis < 4; ++axis) {
    fits = fits && (result.size(axis) == 1 || result.size(axis) == expected[axis]);
  }
  TORCH_CHECK_VALUE(fits, "[AttentionMask] a mask must broadcast to the scores (B, H, L, S) = ",
                    at::IntArrayRef(expected),
                    " from (L, S), (B, L, S), (B * H, L, S) or (B, H, L, S). Got ", mask.sizes());
  return result;
}

// Returns a mask over keys as (B, 1, 1, S). It must be complete: a missing axis is an error, not a
// broadcast.
at::Tensor keys_as_scores(const at::Tensor& keys, const AttentionShape& shape) {
  TORCH_CHECK_VALUE(keys.size(0) == shape.batch && keys.size(1) == shape.keys,
                    "[AttentionMask] a mask over keys must be (B, S) = [", shape.batch, ", ",
                    shape.keys, "]. Got ", keys.sizes());
  return keys.unsqueeze(1).unsqueeze(1);
}

void check_device(const at::Tensor& mask, const at::Tensor& like) {
  TORCH_CHECK_VALUE(mask.device() == like.device(), "[AttentionMask] a mask must be on the device ",
                    like.device(), " of what it masks. Got ", mask.device());
}

// (L, S), as scores: key j minus query i.
at::Tensor distances(const AttentionShape& shape, const at::Tensor& like) {
  const auto indices = like.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor queries = at::arange(shape.queries, indices).unsqueeze(1);
  return (at::arange(shape.keys, indices) - queries).view({1, 1, shape.queries, shape.keys});
}

void check_slopes(const at::Tensor& slopes, const AttentionShape& shape, const at::Tensor& like) {
  TORCH_CHECK_VALUE(slopes.size(0) == shape.heads,
                    "[AttentionMask] slopes() takes a slope for each of the ", shape.heads,
                    " heads. Got ", slopes.size(0));
  check_device(slopes, like);
}

// ALiBi's bias, (1, H, L, S).
at::Tensor bias_of(const at::Tensor& slopes, int64_t offset, const AttentionShape& shape,
                   const at::Tensor& like) {
  check_slopes(slopes, shape, like);
  const at::Tensor away = (distances(shape, like) - offset).abs().to(slopes.scalar_type());
  return -(slopes.view({1, -1, 1, 1}) * away);
}

// The bias of windows of a grid, (1, 1, L, L): the scores of each window, at the positions that its
// tokens have in the grid.
at::Tensor bias_of_windows(relative::Grid grid, int64_t window, int64_t shift,
                           const AttentionShape& shape, const at::Tensor& like) {
  const int64_t tokens = grid.height * grid.width;
  TORCH_CHECK_VALUE(shape.queries == tokens && shape.keys == tokens,
                    "[AttentionMask] window() of a grid takes its ", grid.height, " x ", grid.width,
                    " tokens as queries and keys. Got ", shape.queries, " queries and ", shape.keys,
                    " keys");
  const auto numbers = like.options().dtype(at::kLong).requires_grad(false);
  const at::Tensor positions = functional::window_partition(
      at::arange(tokens, numbers).view({1, grid.height, grid.width, 1}), {window, window}, shift);
  const at::Tensor own = positions.view({-1, window * window});  // (windows, N)
  const at::Tensor apart =
      shift > 0
          ? sent_to(shifted_window_mask(grid, window, shift, like.scalar_type()), like.device())
          : at::zeros({1, 1, 1}, like.options().requires_grad(false));
  at::Tensor bias = at::full({tokens, tokens}, kForbidden, like.options().requires_grad(false));
  bias.index_put_({own.unsqueeze(2), own.unsqueeze(1)}, apart);
  return bias.view({1, 1, tokens, tokens});
}

// A distance after `tokens` others; one beyond all keys stays there.
int64_t moved(int64_t distance, int64_t tokens) {
  constexpr int64_t most = std::numeric_limits<int64_t>::max();
  return tokens > 0 && distance > most - tokens ? most : distance + tokens;
}

// The keys of both; each may be undefined for all. Undefined for those of different batches.
at::Tensor both_keys(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() ? a : b;
  return a.sizes() == b.sizes() ? a.logical_and(b) : at::Tensor();
}

at::Tensor rows_of(const at::Tensor& mask, int64_t first, int64_t count) {
  const int64_t present = mask.size(-2);
  TORCH_CHECK_VALUE(present == 1 || (first >= 0 && count >= 0 && first <= present - count),
                    "[AttentionMask] queries must lie in [0, ", present, "). Got ", first, " to ",
                    first + count - 1);
  return present == 1 ? mask : mask.narrow(-2, first, count);
}

}  // namespace

AttentionMask AttentionMask::key_padding(const at::Tensor& is_token) {
  check_keys("key_padding()", is_token, /*integers=*/true);
  AttentionMask mask;
  mask.keys_.push_back(is_token.to(at::kBool));
  return mask;
}

AttentionMask AttentionMask::key_padding_torch_nn(const at::Tensor& is_padding) {
  check_keys("key_padding_torch_nn()", is_padding, /*integers=*/false);
  return key_padding(is_padding.logical_not());
}

AttentionMask AttentionMask::padding(const at::Tensor& ids, int64_t pad) {
  check_type(ids.defined() && at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
             "padding()", "ids, integers", ids);
  TORCH_CHECK_VALUE(ids.dim() == 2, "[AttentionMask] padding() takes ids (B, S). Got ",
                    ids.sizes());
  return key_padding(ids.to(at::kLong) != pad);  // int64: `pad` may not fit a narrower type
}

AttentionMask AttentionMask::causal(int64_t offset) {
  AttentionMask mask;
  mask.causal_ = offset;
  return mask;
}

AttentionMask AttentionMask::window(int64_t width) {
  TORCH_CHECK_VALUE(width >= 0, "[AttentionMask] window() takes a width of at least 0. Got ",
                    width);
  AttentionMask mask = causal(width);
  mask.first_ = -width;
  return mask;
}

AttentionMask AttentionMask::window(int64_t height, int64_t width, int64_t window, int64_t shift) {
  relative::check_windows("AttentionMask", {height, width}, window);
  TORCH_CHECK_VALUE(shift >= 0 && shift < window, "[AttentionMask] window() takes a shift in [0, ",
                    window, "), the window. Got ", shift);
  AttentionMask mask;
  mask.windows_.push_back({height, width, window, shift});
  return mask;
}

AttentionMask AttentionMask::allowed(const at::Tensor& may_attend) {
  check_pairs("allowed()", may_attend, Values::Bools, /*pairs=*/false);
  AttentionMask mask;
  mask.allowed_.push_back({may_attend});
  return mask;
}

AttentionMask AttentionMask::allowed_pairs(const at::Tensor& may_attend) {
  check_pairs("allowed_pairs()", may_attend, Values::Bools, /*pairs=*/true);
  AttentionMask mask;
  mask.allowed_.push_back({may_attend});
  return mask;
}

AttentionMask AttentionMask::blocked(const at::Tensor& may_not_attend) {
  check_pairs("blocked()", may_not_attend, Values::Bools, /*pairs=*/false);
  return allowed(may_not_attend.logical_not());
}

AttentionMask AttentionMask::blocked_pairs(const at::Tensor& may_not_attend) {
  check_pairs("blocked_pairs()", may_not_attend, Values::Bools, /*pairs=*/true);
  return allowed_pairs(may_not_attend.logical_not());
}

AttentionMask AttentionMask::additive(const at::Tensor& bias) {
  check_pairs("additive()", bias, Values::Numbers, /*pairs=*/false);
  AttentionMask mask;
  mask.biases_.push_back({bias});
  return mask;
}

AttentionMask AttentionMask::additive_pairs(const at::Tensor& bias) {
  check_pairs("additive_pairs()", bias, Values::Numbers, /*pairs=*/true);
  AttentionMask mask;
  mask.biases_.push_back({bias});
  return mask;
}

AttentionMask AttentionMask::slopes(const at::Tensor& slopes) {
  check_type(slopes.defined() && slopes.is_floating_point(), "slopes()", "real numbers", slopes);
  TORCH_CHECK_VALUE(slopes.dim() == 1, "[AttentionMask] slopes() takes (H). Got ", slopes.sizes());
  AttentionMask mask;
  mask.slopes_.push_back({slopes});
  return mask;
}

AttentionMask AttentionMask::attn_mask_torch_nn(const at::Tensor& mask) {
  const bool is_bool = mask.defined() && mask.scalar_type() == at::kBool;
  check_type(is_bool || (mask.defined() && mask.is_floating_point()), "attn_mask_torch_nn()",
             "a bool tensor or real numbers", mask);
  TORCH_CHECK_VALUE(mask.dim() == 2 || mask.dim() == 3,
                    "[AttentionMask] attn_mask_torch_nn() takes (L, S) or (B * H, L, S); "
                    "(B, H, L, S) comes by blocked() or additive(). Got ",
                    mask.sizes());
  if (mask.dim() == 2) return is_bool ? blocked_pairs(mask) : additive_pairs(mask);
  AttentionMask made = is_bool ? blocked(mask) : additive(mask);
  for (auto* parts : {&made.allowed_, &made.biases_}) {
    for (Pairs& part : *parts) part.of_heads = true;
  }
  return made;
}

AttentionMask AttentionMask::operator&(const AttentionMask& other) const {
  AttentionMask both = *this;
  const auto join = [](auto& to, const auto& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  join(both.keys_, other.keys_);
  both.padding_ = both_keys(padding_, other.padding_);
  join(both.allowed_, other.allowed_);
  join(both.biases_, other.biases_);
  join(both.slopes_, other.slopes_);
  join(both.windows_, other.windows_);
  if (other.causal_) both.causal_ = std::min(causal_.value_or(*other.causal_), *other.causal_);
  if (other.first_) both.first_ = std::max(first_.value_or(*other.first_), *other.first_);
  return both;
}

at::Tensor AttentionMask::padding_keys() const {
  at::Tensor keys = padding_;
  for (const at::Tensor& one : keys_) {
    if (keys.defined() && keys.sizes() != one.sizes()) return {};
    keys = both_keys(keys, one);
  }
  return keys;
}

AttentionMask AttentionMaskAccess::without_keys(const AttentionMask& mask) {
  AttentionMask rest = mask;
  rest.keys_.clear();
  rest.padding_.reset();
  return rest;
}

std::string AttentionMaskAccess::other_makers(const AttentionMask& mask) {
  const bool is_window = mask.first_.has_value() || !mask.windows_.empty();
  const bool is_causal = mask.causal_ && (!mask.first_ || *mask.causal_ != -*mask.first_);
  std::string names;
  for (const auto& [is_there, name] :
       {std::pair(is_causal, "causal()"), std::pair(is_window, "window()"),
        std::pair(!mask.allowed_.empty(), "allowed()"),
        std::pair(!mask.biases_.empty(), "additive()"),
        std::pair(!mask.slopes_.empty(), "slopes()")})
    if (is_there) names += (names.empty() ? "" : " & ") + std::string(name);
  return names;
}

AttentionMask AttentionMaskAccess::with_padding(const AttentionMask& mask, const at::Tensor& keys) {
  AttentionMask told = without_keys(mask);
  told.padding_ = keys;
  return told;
}

AttentionMask AttentionMaskAccess::copied(const AttentionMask& mask) {
  AttentionMask own = mask;
  const auto copy = [](at::Tensor& of) {
    if (of.defined()) of = of.detach().clone();
  };
  for (auto& keys : own.keys_) copy(keys);
  copy(own.padding_);
  for (auto* pairs : {&own.allowed_, &own.biases_})
    for (auto& part : *pairs) copy(part.mask), copy(part.allowed);
  for (auto& one : own.slopes_) copy(one.slopes);
  return own;
}

AttentionMask AttentionMaskAccess::without_slopes(const AttentionMask& mask) {
  AttentionMask rest = mask;
  rest.slopes_.clear();
  return rest;
}

at::Tensor AttentionMaskAccess::by_distance(const AttentionMask& mask, const AttentionShape& shape,
                                            const at::Tensor& like, int64_t room) {
  at::Tensor rows;
  const int64_t count = std::max<int64_t>(shape.queries + shape.keys - 1, 0);
  for (const auto& one : mask.slopes_) {
    check_slopes(one.slopes, shape, like);
    const at::Tensor away =
        (at::arange(count, at::kLong) + (one.offset + 1 - shape.keys)).abs().to(at::kFloat);
    if (!rows.defined()) rows = at::zeros({shape.heads, count + room}, at::kFloat);
    rows.narrow(1, 0, count).sub_(one.slopes.to(at::kFloat).unsqueeze(1) * away);
  }
  return rows;
}

AttentionMask AttentionMask::after(int64_t tokens) const {
  TORCH_CHECK_VALUE(tokens == 0 || windows_.empty(),
                    "[AttentionMask] window() of a grid must be of all its tokens: it cannot be "
                    "moved by ",
                    tokens, " others");
  AttentionMask mask = *this;
  if (causal_) mask.causal_ = moved(*causal_, tokens);
  if (first_) mask.first_ = moved(*first_, tokens);
  for (Slopes& one : mask.slopes_) one.offset += tokens;
  return mask;
}

AttentionMask AttentionMaskAccess::queries(const AttentionMask& mask, int64_t first,
                                           int64_t count) {
  AttentionMask some = mask;
  for (auto* parts : {&some.allowed_, &some.biases_}) {
    for (auto& part : *parts) {
      part.mask = rows_of(part.mask, first, count);
      if (part.allowed.defined()) part.allowed = rows_of(part.allowed, first, count);
    }
  }
  return some.after(first);
}

AttentionMask AttentionMaskAccess::without_first_keys(const AttentionMask& mask, int64_t count) {
  if (count == 0) return mask;
  AttentionMask rest = mask.after(-count);
  const auto narrow = [&](at::Tensor& of) {
    if (of.defined() && of.size(-1) > count) of = of.narrow(-1, count, of.size(-1) - count);
  };
  for (at::Tensor& keys : rest.keys_) narrow(keys);
  narrow(rest.padding_);
  for (auto* parts : {&rest.allowed_, &rest.biases_})
    for (auto& part : *parts) narrow(part.mask), narrow(part.allowed);
  return rest;
}

AttentionMask AttentionMaskAccess::sequences(const AttentionMask& mask, const at::Tensor& rows) {
  AttentionMask some = mask;
  if (some.padding_.defined()) some.padding_ = some.padding_.index_select(0, rows);
  for (auto& part : some.biases_) {
    for (at::Tensor* of : {&part.mask, &part.allowed})
      if (of->defined() && of->size(0) > 1) *of = of->index_select(0, rows);
  }
  return some;
}

ScoreMask AttentionMaskAccess::resolve(const AttentionMask& mask, const AttentionShape& shape,
                                       const at::Tensor& like) {
  const auto& [keys, pairs, causal] = std::tie(mask.keys_, mask.allowed_, mask.causal_);
  auto biases = mask.biases_;
  for (const auto& one : mask.slopes_)
    biases.push_back({bias_of(one.slopes, one.offset, shape, like)});
  for (const auto& one : mask.windows_) {
    biases.push_back(
        {bias_of_windows({one.height, one.width}, one.window, one.shift, shape, like)});
  }
  const bool all_causal = !causal || *causal >= shape.keys - 1;  // even query 0 sees all keys
  const bool all_first = !mask.first_ || *mask.first_ <= 1 - shape.queries;  // and the last one
  if (keys.empty() && pairs.empty() && biases.empty() && all_first) {
    if (all_causal) return {};
    if (*causal == 0) return {{}, true};
  }
  // SDPA adds a float32 bias to half-precision scores before these are rounded.
  const bool rounds = at::isReducedFloatingType(like.scalar_type()) && !biases.empty() &&
                      (biases.size() > 1 || biases[0].mask.scalar_type() != like.scalar_type());
  const at::ScalarType type = rounds ? at::kFloat : like.scalar_type();
  at::Tensor bias;
  for (const auto& one : biases) {
    check_device(one.mask, like);
    const at::Tensor scores =  // not lazily negated, as kernels read its memory
        as_scores(one.mask, one.of_heads, shape).to(type).resolve_neg();
    bias = bias.defined() ? bias + scores : scores;
  }
  if (bias.defined() && !like.is_cpu()) bias = bias.to(like.scalar_type());  // all that GPUs take
  at::Tensor allowed;
  const auto allow = [&](const at::Tensor& scores) {
    allowed = allowed.defined() ? allowed.logical_and(scores) : scores;
  };
  for (const auto& one : biases)  // what a resolved bias forbids, the others do not change
    if (one.allowed.defined()) allow(one.allowed);
  if (!all_causal) allow(distances(shape, like) <= *causal);
  if (!all_first) allow(distances(shape, like) >= *mask.first_);
  for (const at::Tensor& one : keys) check_device(one, like), allow(keys_as_scores(one, shape));
  for (const auto& one : pairs)
    check_device(one.mask, like), allow(as_scores(one.mask, one.of_heads, shape));
  const bool is_resolved = biases.size() == 1 && allowed.is_same(biases[0].allowed);
  if (!allowed.defined() || is_resolved) return {bias, false, {}, allowed};
  if (!bias.defined()) bias = at::zeros({1, 1, 1, 1}, like.options().requires_grad(false));
  return {bias.masked_fill(allowed.logical_not(), kForbidden), false, {}, allowed};
}

relative::Distances ScoreMask::distances(int64_t queries, int64_t keys) const {
  const int64_t count = std::max<int64_t>(queries + keys - 1, 0);
  return {by_distance.narrow(1, 0, count).flip(1)};
}

AttentionMask AttentionMask::resolved(const AttentionShape& shape, const at::Tensor& like) const {
  const ScoreMask mask = AttentionMaskAccess::resolve(*this, shape, like);
  if (mask.is_causal) return causal();
  if (!mask.bias.defined()) return {};
  AttentionMask one = additive(mask.bias);
  one.biases_[0].allowed = mask.allowed;
  one.padding_ = padding_keys();
  return one;
}

}  // namespace posenc
