#include "models/decoder/token_runs.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>

#include <algorithm>

#include "posenc/models/decoder.h"

namespace posenc {
namespace {

// The first row for which it holds, or -1.
int64_t first_of(const at::Tensor& rows) {
  return rows.any().item<bool>() ? rows.to(at::kByte).argmax().item<int64_t>() : -1;
}

struct Bounds {
  at::Tensor first, count;  // (B)
};

Bounds bounds_of(const at::Tensor& mask) { return {mask.to(at::kByte).argmax(1), mask.sum(1)}; }

std::vector<int64_t> numbers_of(const at::Tensor& values) {
  const at::Tensor on_cpu = values.to(at::kCPU, at::kLong).contiguous();
  return {on_cpu.const_data_ptr<int64_t>(), on_cpu.const_data_ptr<int64_t>() + on_cpu.numel()};
}

// Where sequences begin in rows that are packed, by their positions (B, L): bool (B, L).
at::Tensor checked_starts(const char* module, const at::Tensor& ids, const DecoderInputs& inputs) {
  const at::Tensor& positions = inputs.position_ids();
  TORCH_CHECK_VALUE(!inputs.attention_mask().defined() && !inputs.last_logits_only(), "[", module,
                    "] position_ids must be without attention_mask and last_logits_only. Got both");
  TORCH_CHECK_TYPE(at::isIntegralType(positions.scalar_type(), /*includeBool=*/false), "[", module,
                   "] position_ids must be integers. Got ", positions.scalar_type());
  TORCH_CHECK_VALUE(positions.sizes() == ids.sizes(), "[", module, "] position_ids must be ",
                    ids.sizes(), ". Got ", positions.sizes());
  const at::Tensor starts = positions.eq(0);
  const at::Tensor before = at::cat({at::zeros_like(positions.narrow(1, 0, 1)).sub(1),
                                     positions.narrow(1, 0, positions.size(1) - 1)},
                                    1);
  const int64_t wrong = first_of(starts.logical_or(positions == before + 1).logical_not().any(1));
  TORCH_CHECK_VALUE(wrong < 0, "[", module,
                    "] position_ids must count the tokens of each sequence from 0. Got others in "
                    "row ",
                    wrong);
  return starts;
}

TokenRuns packed_runs(const char* module, const at::Tensor& ids, const DecoderInputs& inputs) {
  const at::Tensor starts = checked_starts(module, ids, inputs).flatten();
  const at::Tensor begins = starts.nonzero().flatten();
  const at::Tensor ends = at::cat({begins.slice(0, 1), begins.new_full({1}, ids.numel())});
  TokenRuns runs = {ids, numbers_of(ends - begins), {}, true};
  const int64_t count = begins.size(0),
                longest = *std::max_element(runs.lengths.begin(), runs.lengths.end());
  const at::Tensor places = (starts.cumsum(0) - 1) * longest + inputs.position_ids().flatten();
  runs.ids =
      ids.new_zeros({count * longest}).index_copy(0, places, ids.flatten()).view({count, longest});
  runs.places = places.view(ids.sizes());
  return runs;
}

}  // namespace

at::Tensor checked_mask(const char* module, const at::Tensor& mask, at::IntArrayRef sizes) {
  TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true), "[", module,
                   "] attention_mask must be bool or an integer type. Got ", mask.scalar_type());
  TORCH_CHECK_VALUE(mask.sizes() == sizes, "[", module, "] attention_mask must be ", sizes,
                    ". Got ", mask.sizes());
  const at::Tensor is_token = mask.ne(0);
  if (sizes[0] == 0) return is_token;
  const auto [first, count] = bounds_of(is_token);
  const int64_t empty = first_of(count == 0);
  TORCH_CHECK_VALUE(empty < 0, "[", module,
                    "] attention_mask must have a token in each row. Got no token in row ", empty);
  const at::Tensor last = (sizes[1] - 1) - is_token.flip({1}).to(at::kByte).argmax(1);
  const int64_t torn = first_of(last - first + 1 != count);
  TORCH_CHECK_VALUE(torn < 0, "[", module,
                    "] attention_mask must have the tokens of a row beside each other, with "
                    "padding before or after them. Got padding between them in row ",
                    torn);
  return is_token;
}

void check_ids(const char* module, const at::Tensor& ids, const at::Tensor& mask, int64_t vocab) {
  if (!ids.is_cpu()) return;
  at::Tensor outside = (ids < 0).logical_or(ids >= vocab);
  if (mask.defined()) outside = outside.logical_and(mask.ne(0));
  if (!outside.any().item<bool>()) return;
  const int64_t at = outside.to(at::kByte).flatten().argmax().item<int64_t>();
  TORCH_CHECK_VALUE(false, "[", module, "] ids must lie in [0, ", vocab, "). Got ",
                    ids.flatten()[at].item<int64_t>(), " in row ", at / ids.size(1), ", column ",
                    at % ids.size(1));
}

TokenRuns token_runs(const char* module, const at::Tensor& ids, const DecoderInputs& inputs,
                     int64_t vocab) {
  const at::Tensor& mask = inputs.attention_mask();
  TORCH_CHECK_VALUE(ids.defined() && ids.dim() == 2 && ids.size(1) > 0, "[", module,
                    "] ids must be (B, L), of at least one column. Got ",
                    ids.defined() ? c10::str(ids.sizes()) : "an undefined tensor");
  TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false), "[", module,
                   "] ids must be integers. Got ", ids.scalar_type());
  if (inputs.position_ids().defined() && ids.numel() > 0) {
    check_ids(module, ids, {}, vocab);
    return packed_runs(module, ids, inputs);
  }
  const auto rows = static_cast<std::size_t>(ids.size(0));
  TokenRuns runs = {ids, std::vector<int64_t>(rows, ids.size(1)), {}};
  if (!mask.defined() || rows == 0) {
    check_ids(module, ids, {}, vocab);
    return runs;
  }
  const at::Tensor is_token = checked_mask(module, mask, ids.sizes());
  check_ids(module, ids, is_token, vocab);
  if (is_token.all().item<bool>()) return runs;
  const auto [first, count] = bounds_of(is_token);
  runs.lengths = numbers_of(count);
  const int64_t longest = *std::max_element(runs.lengths.begin(), runs.lengths.end());
  const auto numbers = first.options();
  const at::Tensor from = at::arange(longest, numbers).unsqueeze(0);
  const at::Tensor taken = (from + first.unsqueeze(1)).clamp_max(ids.size(1) - 1);
  runs.ids = ids.gather(1, taken).masked_fill(from >= count.unsqueeze(1), 0);
  const at::Tensor own = at::arange(ids.size(1), numbers).unsqueeze(0) - first.unsqueeze(1);
  const at::Tensor columns = own.clamp_min(0).minimum(count.unsqueeze(1) - 1);
  runs.places = columns + at::arange(ids.size(0), numbers).unsqueeze(1) * longest;
  return runs;
}

at::Tensor TokenRuns::in_batch(const at::Tensor& x) const {
  if (!places.defined()) return x;
  return x.flatten(0, 1)
      .index_select(0, places.flatten())
      .view({places.size(0), places.size(1), x.size(2)});
}

at::Tensor TokenRuns::last(const at::Tensor& x) const {
  const at::Tensor ends = at::tensor(lengths, at::kLong).sub(1).to(x.device());
  return x.gather(1, ends.view({-1, 1, 1}).expand({-1, 1, x.size(2)}));
}

}  // namespace posenc
