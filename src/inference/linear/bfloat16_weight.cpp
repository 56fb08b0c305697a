#include "inference/linear/bfloat16_weight.h"

#include <ATen/ops/empty.h>
#include <c10/util/BFloat16.h>

#include "core/torch_internals/parts.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kGrainOfRounding = 1 << 15;

// Tensor::to() might round subnormal numbers to zero, by the instruction of some processors.
at::Tensor rounded(const at::Tensor& weight) {
  const at::Tensor from = weight.detach().contiguous();
  at::Tensor to = at::empty(from.sizes(), at::kBFloat16);
  const auto* const x = from.const_data_ptr<float>();
  auto* const out = reinterpret_cast<uint16_t*>(to.data_ptr<at::BFloat16>());
  torch_internals::parallel_parts(0, from.numel(), kGrainOfRounding,
                                  [&](int64_t begin, int64_t end) {
                                    for (int64_t i = begin; i < end; ++i)
                                      out[i] = c10::detail::round_to_nearest_even(x[i]);
                                  });
  return to;
}

}  // namespace

BFloat16Weight::BFloat16Weight(const at::Tensor& weight) : weight_(rounded(weight)) {}

kernel::LinearRequestOf<kernel::BFloat16> BFloat16Weight::request(const float* x, int64_t x_stride,
                                                                  int64_t rows, const float* bias,
                                                                  float* to,
                                                                  int64_t to_stride) const {
  return {
      .x = x,
      .x_stride = x_stride,
      .rows = rows,
      .weight = reinterpret_cast<const kernel::BFloat16*>(weight_.const_data_ptr<at::BFloat16>()),
      .bias = bias,
      .inner = in(),
      .outer = out(),
      .out = to,
      .out_stride = to_stride};
}

void BFloat16Weight::run(const float* x, int64_t x_stride, int64_t rows, const float* bias,
                         float* to, int64_t to_stride, RowRegime regime) const {
  run_linear(request(x, x_stride, rows, bias, to, to_stride), regime);
}

at::Tensor BFloat16Weight::rows(const at::Tensor& ids) const {
  return weight_.index_select(0, ids.flatten().to(at::kLong)).to(at::kFloat);
}

}  // namespace posenc::inference
