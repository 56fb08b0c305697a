#include "posenc/positions/sinusoid/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/shortcut.h"

namespace posenc {
namespace {

void check_length(const char* function, int64_t length, int64_t least) {
  TORCH_CHECK_VALUE(length >= least, "[", function, "] length must be at least ", least, ". Got ",
                    length);
}

void check_integers(const char* function, const char* what, const at::Tensor& t) {
  TORCH_CHECK_TYPE(at::isIntegralType(t.scalar_type(), /*includeBool=*/false), "[", function, "] ",
                   what, " must be integers. Got ", t.scalar_type());
}

at::TensorOptions integers(const at::TensorOptions& options) { return options.dtype(at::kLong); }

// Whether a loop over the elements, in memory order, does what ATen would.
bool is_simple(const at::Tensor& given) {
  return torch_internals::dispatches_plainly() && torch_internals::is_plain(given) &&
         given.is_contiguous();
}

// Numbers the tokens of each sequence from `first` on; padding gets the number `others`.
template <typename Integer, typename IsToken>
at::Tensor number_tokens(const at::Tensor& given, int64_t first, int64_t others, IsToken is_token) {
  const at::Tensor out = torch_internals::fresh_output(given.sizes(), at::kLong);
  const auto* from = static_cast<const Integer*>(given.const_data_ptr());
  int64_t* to = out.mutable_data_ptr<int64_t>();
  const int64_t total = given.numel(), length = given.sizes().back();
  for (int64_t begin = 0; begin < total; begin += length) {
    int64_t next = first;
    for (int64_t i = begin; i < begin + length; ++i) to[i] = is_token(from[i]) ? next++ : others;
  }
  return out;
}

}  // namespace

at::Tensor positions_from_offset(int64_t length, int64_t offset, const at::TensorOptions& options) {
  check_length("positions_from_offset", length, 0);
  return at::arange(offset, offset + length, integers(options));
}

at::Tensor positions_from_offsets(const at::Tensor& offsets, int64_t length) {
  check_length("positions_from_offsets", length, 0);
  check_integers("positions_from_offsets", "offsets", offsets);
  TORCH_CHECK_VALUE(offsets.dim() == 1, "[positions_from_offsets] offsets must be (B). Got ",
                    offsets.sizes());
  return offsets.to(at::kLong).unsqueeze(1) + at::arange(length, integers(offsets.options()));
}

at::Tensor positions_from_ids(const at::Tensor& ids, int64_t padding_idx, int64_t past) {
  check_integers("positions_from_ids", "ids", ids);
  TORCH_CHECK_VALUE(ids.dim() >= 1, "[positions_from_ids] ids must be (..., L). Got ", ids.sizes());
  TORCH_CHECK_VALUE(past >= 0, "[positions_from_ids] past must not be negative. Got ", past);
  const auto is_token = [padding_idx](int64_t id) { return id != padding_idx; };
  const int64_t first = padding_idx + 1 + past;
  if (is_simple(ids)) {
    switch (ids.scalar_type()) {
      case at::kLong: return number_tokens<int64_t>(ids, first, padding_idx, is_token);
      case at::kInt: return number_tokens<int32_t>(ids, first, padding_idx, is_token);
      default: break;
    }
  }
  const at::Tensor tokens = ids.ne(padding_idx).to(at::kLong);
  return (at::cumsum(tokens, -1) + past) * tokens + padding_idx;
}

at::Tensor positions_from_mask(const at::Tensor& mask, int64_t padding_position, int64_t first) {
  TORCH_CHECK_TYPE(at::isIntegralType(mask.scalar_type(), /*includeBool=*/true),
                   "[positions_from_mask] mask must be boolean or integers, nonzero for a token. "
                   "Got ",
                   mask.scalar_type());
  TORCH_CHECK_VALUE(mask.dim() >= 1, "[positions_from_mask] mask must be (..., L). Got ",
                    mask.sizes());
  const auto is_token = [](int64_t value) { return value != 0; };
  if (is_simple(mask)) {
    switch (mask.scalar_type()) {
      case at::kLong: return number_tokens<int64_t>(mask, first, padding_position, is_token);
      case at::kInt: return number_tokens<int32_t>(mask, first, padding_position, is_token);
      case at::kByte:
      case at::kBool: return number_tokens<uint8_t>(mask, first, padding_position, is_token);
      default: break;
    }
  }
  const at::Tensor tokens = mask.ne(0);
  return at::where(tokens, at::cumsum(tokens.to(at::kLong), -1) + (first - 1), padding_position);
}

at::Tensor positions_from_lengths(const at::Tensor& lengths, int64_t origin) {
  check_integers("positions_from_lengths", "lengths", lengths);
  TORCH_CHECK_VALUE(lengths.dim() == 1, "[positions_from_lengths] lengths must be (N). Got ",
                    lengths.sizes());
  const at::Tensor counts = lengths.to(at::kLong);
  const at::Tensor starts = at::cumsum(counts, 0) - counts;
  const at::Tensor repeated =
      at::repeat_interleave(starts, counts);  // the first index of each token's sequence
  return at::arange(repeated.size(0), repeated.options()) - repeated + origin;
}

at::Tensor reversed_positions(int64_t length, const at::TensorOptions& options) {
  check_length("reversed_positions", length, 0);
  return at::arange(length - 1, -1, -1, integers(options));
}

at::Tensor relative_positions(int64_t length, const at::TensorOptions& options) {
  check_length("relative_positions", length, 1);
  return at::arange(length - 1, -length, -1, integers(options));
}

at::Tensor real_positions(int64_t length, double start, double step,
                          const at::TensorOptions& options) {
  check_length("real_positions", length, 0);
  TORCH_CHECK_VALUE(std::isfinite(start) && std::isfinite(step),
                    "[real_positions] start and step must be finite. Got ", start, " and ", step);
  const auto type = options.has_dtype() ? options : options.dtype(at::kDouble);
  return at::arange(length, type) * step + start;
}

}  // namespace posenc
