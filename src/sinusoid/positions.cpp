#include "posenc/sinusoid/positions.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cumsum.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/repeat_interleave.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <cmath>

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

at::TensorOptions whole(const at::TensorOptions& options) { return options.dtype(at::kLong); }

}  // namespace

at::Tensor positions_from_offset(int64_t length, int64_t offset, const at::TensorOptions& options) {
  check_length("positions_from_offset", length, 0);
  return at::arange(offset, offset + length, whole(options));
}

at::Tensor positions_from_offsets(const at::Tensor& offsets, int64_t length) {
  check_length("positions_from_offsets", length, 0);
  check_integers("positions_from_offsets", "offsets", offsets);
  TORCH_CHECK_VALUE(offsets.dim() == 1, "[positions_from_offsets] offsets must be (B). Got ",
                    offsets.sizes());
  return offsets.to(at::kLong).unsqueeze(1) + at::arange(length, whole(offsets.options()));
}

at::Tensor positions_from_ids(const at::Tensor& ids, int64_t padding_idx, int64_t past) {
  check_integers("positions_from_ids", "ids", ids);
  TORCH_CHECK_VALUE(ids.dim() >= 1, "[positions_from_ids] ids must be (..., L). Got ", ids.sizes());
  TORCH_CHECK_VALUE(past >= 0, "[positions_from_ids] past must not be negative. Got ", past);
  const at::Tensor mask = ids.ne(padding_idx).to(at::kLong);
  return (at::cumsum(mask, -1) + past) * mask + padding_idx;
}

at::Tensor positions_from_mask(const at::Tensor& mask, int64_t padding_position) {
  TORCH_CHECK_TYPE(mask.scalar_type() == at::kBool,
                   "[positions_from_mask] mask must be boolean, true for a token. Got ",
                   mask.scalar_type());
  TORCH_CHECK_VALUE(mask.dim() >= 1, "[positions_from_mask] mask must be (..., L). Got ",
                    mask.sizes());
  return at::where(mask, at::cumsum(mask.to(at::kLong), -1) - 1, padding_position);
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
  return at::arange(length - 1, -1, -1, whole(options));
}

at::Tensor relative_positions(int64_t length, const at::TensorOptions& options) {
  check_length("relative_positions", length, 1);
  return at::arange(length - 1, -length, -1, whole(options));
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
