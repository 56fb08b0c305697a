#include "posenc/models/functional/quantize.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <atomic>

#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"

namespace posenc::functional {
namespace {

constexpr int64_t kGrainEntries = 1 << 15;
constexpr uint8_t kSigned = 0x80;  // xor makes a byte one that is 128 less, as int8

int64_t grain(int64_t entries_each) {
  return std::max<int64_t>(1, kGrainEntries / std::max<int64_t>(1, entries_each));
}

// x in float32, contiguous and on the CPU.
at::Tensor checked(const char* function, const at::Tensor& x) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[", function, "] x must be floating-point. Got ",
                   x.scalar_type());
  TORCH_CHECK_VALUE(x.dim() == 2, "[", function, "] x must be (N, D). Got ", x.sizes());
  TORCH_CHECK_VALUE(x.is_cpu(), "[", function, "] x must be on the CPU. Got ", x.device());
  return x.detach().to(at::kFloat).contiguous();
}

void check_finite(const char* function, const char* what, bool is_finite) {
  TORCH_CHECK_VALUE(is_finite, "[", function, "] ", what,
                    " must be finite. Got infinity or NaN among them");
}

at::Tensor bits_of(const at::Tensor& x, at::ScalarType dtype) {
  const int64_t rows = x.size(0), width = x.size(1);
  at::Tensor out = at::empty({rows, kernels::codes::packed_bytes(width)}, x.options().dtype(dtype));
  const kernels::codes::PackRequest request = {x.const_data_ptr<float>(), width,
                                               dtype == at::kChar ? kSigned : uint8_t{0},
                                               static_cast<uint8_t*>(out.data_ptr())};
  const auto pack = kernels::chosen_inference().codes.pack;
  torch_internals::parallel_parts(0, rows, grain(width),
                                  [&](int64_t begin, int64_t end) { pack(request, begin, end); });
  return out;
}

at::Tensor levels_of(const at::Tensor& x, const at::Tensor& ranges, at::ScalarType dtype) {
  const int64_t rows = x.size(0), width = x.size(1);
  const at::Tensor start = ranges.select(0, 0);
  at::Tensor step = (ranges.select(0, 1) - start) / 255;
  step = at::where(step.eq(0), 1.0, step).to(at::kFloat);
  at::Tensor out = at::empty({rows, width}, x.options().dtype(dtype));
  const kernels::codes::LevelsRequest request = {x.const_data_ptr<float>(),
                                                 width,
                                                 start.const_data_ptr<float>(),
                                                 step.const_data_ptr<float>(),
                                                 dtype == at::kChar ? kSigned : uint8_t{0},
                                                 static_cast<uint8_t*>(out.data_ptr())};
  const auto levels = kernels::chosen_inference().codes.levels;
  std::atomic<bool> are_finite = true;
  torch_internals::parallel_parts(0, rows, grain(width), [&](int64_t begin, int64_t end) {
    if (!levels(request, begin, end)) are_finite = false;
  });
  check_finite("quantize_embeddings", "embeddings", are_finite);
  return out;
}

// Those given for embeddings of a width.
at::Tensor checked_ranges(const at::Tensor& ranges, int64_t width) {
  constexpr const char* kName = "quantize_embeddings";
  TORCH_CHECK_TYPE(ranges.is_floating_point(), "[", kName, "] ranges must be floating-point. Got ",
                   ranges.scalar_type());
  TORCH_CHECK_VALUE(ranges.sizes() == at::IntArrayRef({2, width}), "[", kName,
                    "] ranges must be (2, D) = (2, ", width, "). Got ", ranges.sizes());
  check_finite(kName, "ranges", ranges.isfinite().all().item<bool>());
  return ranges.detach().to(at::kFloat).contiguous();
}

}  // namespace

QuantizedEmbeddings quantize_embeddings(const at::Tensor& x, EmbeddingPrecision precision,
                                        const at::Tensor& ranges) {
  constexpr const char* kName = "quantize_embeddings";
  const at::Tensor rows = checked(kName, x);
  const bool is_signed =
      precision == EmbeddingPrecision::Int8 || precision == EmbeddingPrecision::Binary;
  const at::ScalarType dtype = is_signed ? at::kChar : at::kByte;
  if (precision == EmbeddingPrecision::Binary || precision == EmbeddingPrecision::UBinary) {
    TORCH_CHECK_VALUE(!ranges.defined(), "[", kName,
                      "] ranges must not be given for bits, which have none");
    return {bits_of(rows, dtype), {}};
  }
  QuantizedEmbeddings result;
  if (ranges.defined()) {
    result.ranges = checked_ranges(ranges, rows.size(1));
  } else if (rows.size(0) == 0) {
    return {rows.to(dtype), {}};
  } else {
    result.ranges = embedding_ranges(rows);
  }
  result.embeddings = levels_of(rows, result.ranges, dtype);
  return result;
}

at::Tensor embedding_ranges(const at::Tensor& x) {
  constexpr const char* kName = "embedding_ranges";
  const at::Tensor rows = checked(kName, x);
  const int64_t count = rows.size(0), width = rows.size(1);
  TORCH_CHECK_VALUE(
      count > 1, "[", kName,
      "] ranges must be those of two vectors or more, such as those of a corpus. Got ", count);
  at::Tensor out = at::empty({2, width}, at::kFloat);
  auto* const least = out.data_ptr<float>();
  const kernels::codes::RangesRequest request = {rows.const_data_ptr<float>(), count, width, least,
                                                 least + width};
  const auto ranges = kernels::chosen_inference().codes.ranges;
  std::atomic<bool> are_finite = true;
  torch_internals::parallel_parts(0, width, grain(count), [&](int64_t begin, int64_t end) {
    if (!ranges(request, begin, end)) are_finite = false;
  });
  check_finite(kName, "embeddings", are_finite);
  return out;
}

at::Tensor pack_bits(const at::Tensor& x) { return bits_of(checked("pack_bits", x), at::kByte); }

at::Tensor hamming_distance(const at::Tensor& a, const at::Tensor& b) {
  constexpr const char* kName = "hamming_distance";
  for (const at::Tensor* x : {&a, &b}) {
    TORCH_CHECK_TYPE(x->scalar_type() == at::kByte || x->scalar_type() == at::kChar, "[", kName,
                     "] bits must be packed in uint8 or int8. Got ", x->scalar_type());
    TORCH_CHECK_VALUE(x->dim() == 2 && x->is_cpu(), "[", kName,
                      "] bits must be rows (N, B) on the CPU. Got ", x->sizes(), " on ",
                      x->device());
  }
  TORCH_CHECK_TYPE(a.scalar_type() == b.scalar_type(), "[", kName,
                   "] both must have one dtype. Got ", a.scalar_type(), " and ", b.scalar_type());
  TORCH_CHECK_VALUE(a.size(1) == b.size(1), "[", kName, "] both must have one width. Got ",
                    a.sizes(), " and ", b.sizes());
  const at::Tensor rows = a.contiguous(), columns = b.contiguous();
  at::Tensor out = at::empty({a.size(0), b.size(0)}, at::kInt);
  const kernels::codes::HammingRequest request = {
      static_cast<const uint8_t*>(rows.const_data_ptr()),
      static_cast<const uint8_t*>(columns.const_data_ptr()),
      a.size(0),
      b.size(0),
      a.size(1),
      out.data_ptr<int32_t>()};
  const auto hamming = kernels::chosen_inference().codes.hamming;
  const int64_t words = (a.size(1) / 8 + 1) * a.size(0);
  torch_internals::parallel_parts(0, b.size(0), grain(words), [&](int64_t begin, int64_t end) {
    hamming(request, begin, end);
  });
  return out;
}

}  // namespace posenc::functional
