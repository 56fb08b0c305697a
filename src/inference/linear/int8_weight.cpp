#include "inference/linear/int8_weight.h"

#include <ATen/ops/empty.h>

#include "inference/linear/linear.h"
#include "kernels/dispatch.h"
#include "kernels/int8.h"

namespace posenc::inference {
namespace {

namespace int8_kernel = kernels::int8;

constexpr int64_t kGrainOfProducts = 1 << 18;  // least work per thread
constexpr int64_t kGrainOfFloats = 1 << 15;

int64_t blocks(int64_t outer) { return int8_kernel::padded(outer) / int8_kernel::kBlock; }

}  // namespace

Int8Weight::Int8Weight(const at::Tensor& weight, int64_t scale_block)
    : in_(weight.size(1)), out_(weight.size(0)), scale_block_(scale_block) {
  const at::Tensor rows = weight.detach().contiguous();
  bytes_ = at::empty({int8_kernel::weight_bytes(in_, out_)}, at::kChar);
  const int64_t scales = int8_kernel::padded(out_) * int8_kernel::scales(in_, scale_block);
  units_ = at::empty({scales}, at::kFloat);
  sums_ = at::empty({scales}, at::kInt);
  const int8_kernel::PackRequest request = {
      .weight = rows.const_data_ptr<float>(),
      .weight_stride = in_,
      .inner = in_,
      .outer = out_,
      .scale_block = scale_block_,
      .bytes = bytes_.data_ptr<int8_t>(),
      .units = units_.data_ptr<float>(),
      .sums = sums_.data_ptr<int32_t>(),
  };
  const auto pack = kernels::chosen_inference().quantize_int8.pack;
  share_work(blocks(out_), int8_kernel::kBlock * in_, kGrainOfFloats,
             [&](int64_t begin, int64_t end) { pack(request, begin, end); });
}

Int8Weight::Int8Weight(int64_t in, int64_t out, int64_t scale_block, const TakeArray& take)
    : in_(in), out_(out), scale_block_(scale_block) {
  const int64_t scales = int8_kernel::padded(out) * int8_kernel::scales(in, scale_block);
  bytes_ = take("elements", {int8_kernel::weight_bytes(in, out)}, at::kChar);
  units_ = take("units", {scales}, at::kFloat);
  sums_ = take("sums", {scales}, at::kInt);
}

namespace {

// Columns of a product, of which the weight has whole blocks.
int8_kernel::LinearRequest part_of(int8_kernel::LinearRequest request, ColumnPart part) {
  const int64_t block = part.begin / int8_kernel::kBlock;
  const int64_t scales =
      int8_kernel::kBlock * int8_kernel::scales(request.inner, request.scale_block) * block;
  request.weight += block * int8_kernel::kBlock * int8_kernel::row_bytes(request.inner);
  request.weight_units += scales;
  request.weight_sums += scales;
  if (request.bias != nullptr) request.bias += part.begin;
  request.outer = part.end - part.begin;
  return request;
}

}  // namespace

int8_kernel::LinearRequest Int8Weight::request(const Int8Rows& x, int64_t rows, const float* bias,
                                               float* to, int64_t to_stride) const {
  return {
      .x = x.bytes(),
      .x_units = x.units(),
      .x_minus_zeros = x.minus_zeros(),
      .rows = rows,
      .weight = bytes_.const_data_ptr<int8_t>(),
      .weight_units = units_.const_data_ptr<float>(),
      .weight_sums = sums_.const_data_ptr<int32_t>(),
      .bias = bias,
      .inner = in_,
      .outer = out_,
      .scale_block = scale_block_,
      .out = to,
      .out_stride = to_stride,
  };
}

void Int8Weight::run(const Int8Rows& x, int64_t rows, const float* bias, float* to,
                     int64_t to_stride, ColumnPart part) const {
  kernels::chosen_inference().linear_int8.run(part_of(request(x, rows, bias, to, to_stride), part),
                                              0, blocks(part.end - part.begin));
}

void Int8Weight::run(const Int8Rows& x, int64_t rows, const float* bias, float* to,
                     int64_t to_stride) const {
  const int8_kernel::LinearRequest request = this->request(x, rows, bias, to, to_stride);
  const auto run = kernels::chosen_inference().linear_int8.run;
  share_work(blocks(out_), int8_kernel::kBlock * in_ * rows, kGrainOfProducts,
             [&](int64_t begin, int64_t end) { run(request, begin, end); });
}

at::Tensor Int8Weight::rows(const at::Tensor& ids) const {
  const at::Tensor of = ids.to(at::kLong).contiguous();
  at::Tensor out = at::empty({of.numel(), in_}, at::kFloat);
  const int8_kernel::UnpackRequest request = {
      .bytes = bytes_.const_data_ptr<int8_t>(),
      .units = units_.const_data_ptr<float>(),
      .inner = in_,
      .scale_block = scale_block_,
      .rows = of.const_data_ptr<int64_t>(),
      .out = out.data_ptr<float>(),
  };
  const auto unpack = kernels::chosen_inference().quantize_int8.unpack;
  share_work(of.numel(), in_, kGrainOfFloats,
             [&](int64_t begin, int64_t end) { unpack(request, begin, end); });
  return out;
}

int64_t Int8Weight::bytes() const {
  return static_cast<int64_t>(bytes_.nbytes() + units_.nbytes() + sums_.nbytes());
}

}  // namespace posenc::inference
