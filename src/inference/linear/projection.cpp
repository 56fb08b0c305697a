#include "inference/linear/projection.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "kernels/inference.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

// at::linear is chosen only if it is faster by this factor, so that noise does not decide.
constexpr double kGain = 0.8;
constexpr int kFewestTurns = 4, kMostTurns = 24;
constexpr double kEnoughSeconds = 0.01;
constexpr int64_t kMeasuredColumns = 2048;

double seconds_of(const std::function<void()>& action) {
  const auto start = std::chrono::steady_clock::now();
  action();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Compares minimum times, measured in alternation so that a disturbance affects both: other
// processes can stall threads for milliseconds.
bool is_native_faster(const std::function<void()>& own, const std::function<void()>& aten) {
  double least_own = std::numeric_limits<double>::infinity(), least_aten = least_own, spent = 0.0;
  for (int i = 0; i < kFewestTurns || (i < kMostTurns && spent < kEnoughSeconds); ++i) {
    const double a = seconds_of(own), b = seconds_of(aten);
    least_own = std::min(least_own, a);
    least_aten = std::min(least_aten, b);
    spent += a + b;
  }
  return least_own * kGain <= least_aten;
}

NativeFor measure(const at::Tensor& weight) {
  const torch_internals::CallThreads threads({.loops = torch_internals::Loops::LibTorch});
  const int64_t columns = std::min(weight.size(0), kMeasuredColumns);
  const at::Tensor slice = weight.narrow(0, 0, columns);
  const Projection own(slice, {}, kAlwaysNative), aten(slice, {}, {});
  NativeFor result = {};
  for (const int64_t rows : {int64_t{1}, kernel::kFewRows, kernel::kPanelRows}) {
    const at::Tensor x = at::ones({rows, weight.size(1)}, at::kFloat);
    const at::Tensor y = at::empty({rows, columns}, at::kFloat);
    const RowRegime regime = row_regime(rows);
    const auto with = [&](const Projection& projection) {
      return [&] { projection.run(x.const_data_ptr<float>(), rows, y.data_ptr<float>(), regime); };
    };
    result.rows[static_cast<int>(regime)] = is_native_faster(with(own), with(aten));
  }
  return result;
}

}  // namespace

NativeFor GemmSelector::choose(const at::Tensor& weight) {
  if (wish_ == GemmBackend::Native) return kAlwaysNative;
  if (wish_ == GemmBackend::ATen) return {};
  const std::pair shape(weight.size(0), weight.size(1));
  const auto known = measured_.find(shape);
  return known != measured_.end() ? known->second : measured_[shape] = measure(weight);
}

Projection::Projection(const at::Tensor& weight, const at::Tensor& bias, NativeFor own)
    : in_(weight.size(1)), out_(weight.size(0)), weight_(weight.detach().contiguous()), own_(own) {
  if (bias.defined()) bias_ = bias.detach().contiguous();
}

Projection::Projection(const ConvertedWeight& weight, const at::Tensor& bias) {
  if (const auto* const int8 = std::get_if<Int8Weight>(&weight)) int8_ = *int8;
  if (const auto* const bfloat16 = std::get_if<BFloat16Weight>(&weight)) bfloat16_ = *bfloat16;
  if (const auto* const packed = std::get_if<PackedBFloat16Weight>(&weight)) packed_ = *packed;
  std::visit([this](const auto& one) { in_ = one.in(), out_ = one.out(); }, weight);
  if (bias.defined()) bias_ = bias.detach().contiguous();
}

at::Tensor Projection::rows(const at::Tensor& x) const {
  TORCH_CHECK_VALUE(
      x.dim() == 2 && x.size(1) == in() && (!bias_.defined() || bias_.numel() == out()),
      "[freeze] a weight (", out(), ", ", in(), ") and its bias must fit rows. Got ", x.sizes(),
      " and a bias ", bias_.defined() ? bias_.sizes() : at::IntArrayRef());
  const at::Tensor from = x.contiguous(), to = at::empty({x.size(0), out()}, at::kFloat);
  run(from.const_data_ptr<float>(), x.size(0), to.data_ptr<float>(), row_regime(x.size(0)));
  return to;
}

void Projection::run(const ConvertedRows& x, int64_t rows, float* to, int64_t to_stride) const {
  if (rows == 0) return;
  const float* const bias_of = bias_or_null();
  if (int8_) return int8_->run(x.int8(), rows, bias_of, to, to_stride);
  packed_->run(x.bfloat16(), rows, bias_of, to, to_stride);
}

void Projection::run(const float* x, int64_t x_stride, int64_t rows, float* to, int64_t to_stride,
                     RowRegime regime) const {
  if (rows == 0) return;
  if (row_format() != RowFormat::Float32) {
    const int64_t floats = ConvertedRows::floats(row_format(), rows, in());
    const ConvertedRows converted(row_format(), platform::scratch(platform::Scratch::Bytes, floats),
                                  rows, in());
    converted.convert(x, x_stride, rows);
    return run(converted, rows, to, to_stride);
  }
  if (bfloat16_) return bfloat16_->run(x, x_stride, rows, bias_or_null(), to, to_stride, regime);
  if (!own_.rows[static_cast<int>(regime)]) {
    const at::Tensor from =
        at::from_blob(const_cast<float*>(x), {rows, in()}, {x_stride, 1}, at::kFloat);
    at::Tensor result = at::from_blob(to, {rows, out()}, {to_stride, 1}, at::kFloat);
    std::optional<at::Tensor> bias;
    if (bias_.defined()) bias = bias_;
    at::linear_out(result, from, weight_, bias);
    return;
  }
  run_linear(request(x, x_stride, rows, to, to_stride), regime);
}

kernel::LinearRequest Projection::request(const float* x, int64_t x_stride, int64_t rows, float* to,
                                          int64_t to_stride) const {
  return {.x = x,
          .x_stride = x_stride,
          .rows = rows,
          .weight = weight_.const_data_ptr<float>(),
          .bias = bias_or_null(),
          .inner = in(),
          .outer = out(),
          .out = to,
          .out_stride = to_stride};
}

void Projection::run(const float* x, int64_t x_stride, const ConvertedRows& converted, int64_t rows,
                     float* to, int64_t to_stride, RowRegime regime, ColumnPart part) const {
  const float* const bias_of = bias_or_null();
  if (int8_) return int8_->run(converted.int8(), rows, bias_of, to, to_stride, part);
  if (packed_) return packed_->run(converted.bfloat16(), rows, bias_of, to, to_stride, part);
  if (bfloat16_) return bfloat16_->run(x, x_stride, rows, bias_of, to, to_stride, regime, part);
  run_linear(request(x, x_stride, rows, to, to_stride), regime, part);
}

}  // namespace posenc::inference
