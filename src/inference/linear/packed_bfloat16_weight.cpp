#include "inference/linear/packed_bfloat16_weight.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>

#include "inference/linear/linear.h"
#include "kernels/dispatch.h"

namespace posenc::inference {
namespace {

namespace bfloat16_kernel = kernels::bfloat16;

constexpr int64_t kGrainOfPairs = 1 << 17;  // products: least work per thread
constexpr int64_t kGrainOfNumbers = 1 << 15;

int64_t bfloat16_blocks(int64_t outer) {
  return bfloat16_kernel::padded(outer) / bfloat16_kernel::kBlock;
}

}  // namespace

PackedBFloat16Weight::PackedBFloat16Weight(const at::Tensor& weight)
    : in_(weight.size(1)),
      out_(weight.size(0)),
      elements_(at::empty({bfloat16_kernel::weight_elements(in_, out_)}, at::kBFloat16)) {
  const at::Tensor rows = weight.detach().contiguous();
  const bfloat16_kernel::PackRequest request = {
      .weight = rows.const_data_ptr<float>(),
      .weight_stride = in_,
      .inner = in_,
      .outer = out_,
      .out = reinterpret_cast<bfloat16_kernel::BFloat16*>(elements_.data_ptr<at::BFloat16>())};
  const auto pack = kernels::chosen_inference().round_bfloat16.pack;
  share_work(bfloat16_blocks(out_), bfloat16_kernel::kBlock * in_, kGrainOfNumbers,
             [&](int64_t begin, int64_t end) { pack(request, begin, end); });
}

PackedBFloat16Weight::PackedBFloat16Weight(int64_t in, int64_t out, const TakeArray& take)
    : in_(in),
      out_(out),
      elements_(take("elements", {bfloat16_kernel::weight_elements(in, out)}, at::kBFloat16)) {}

void PackedBFloat16Weight::run(const bfloat16_kernel::BFloat16* x, int64_t rows, const float* bias,
                               float* to, int64_t to_stride) const {
  const bfloat16_kernel::LinearRequest request = {.x = x,
                                                  .rows = rows,
                                                  .weight = elements(),
                                                  .bias = bias,
                                                  .inner = in_,
                                                  .outer = out_,
                                                  .out = to,
                                                  .out_stride = to_stride};
  const auto run = kernels::chosen_inference().linear_bfloat16.run;
  share_work(bfloat16_blocks(out_), bfloat16_kernel::kBlock * in_ * rows, kGrainOfPairs,
             [&](int64_t begin, int64_t end) { run(request, begin, end); });
}

void PackedBFloat16Weight::run(const bfloat16_kernel::BFloat16* x, int64_t rows, const float* bias,
                               float* to, int64_t to_stride, ColumnPart part) const {
  const bfloat16_kernel::LinearRequest request = {
      .x = x,
      .rows = rows,
      .weight = elements() + part.begin * bfloat16_kernel::row_elements(in_),
      .bias = bias != nullptr ? bias + part.begin : nullptr,
      .inner = in_,
      .outer = part.end - part.begin,
      .out = to,
      .out_stride = to_stride};
  kernels::chosen_inference().linear_bfloat16.run(request, 0, bfloat16_blocks(request.outer));
}

at::Tensor PackedBFloat16Weight::rows(const at::Tensor& ids) const {
  const at::Tensor of = ids.to(at::kLong).contiguous();
  at::Tensor out = at::empty({of.numel(), in_}, at::kFloat);
  const bfloat16_kernel::UnpackRequest request = {.weight = elements(),
                                                  .inner = in_,
                                                  .rows = of.const_data_ptr<int64_t>(),
                                                  .out = out.data_ptr<float>()};
  const auto unpack = kernels::chosen_inference().round_bfloat16.unpack;
  share_work(of.numel(), in_, kGrainOfNumbers,
             [&](int64_t begin, int64_t end) { unpack(request, begin, end); });
  return out;
}

const bfloat16_kernel::BFloat16* PackedBFloat16Weight::elements() const {
  return reinterpret_cast<const bfloat16_kernel::BFloat16*>(
      elements_.const_data_ptr<at::BFloat16>());
}

}  // namespace posenc::inference
