#include "inference/projection.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/ones.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "kernels/dispatch.h"
#include "kernels/inference.h"
#include "platform/memory.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kColumns = 16;             // one cache line in a row of the result
constexpr int64_t kGrainProducts = 1 << 16;  // least work per thread
// at::linear is chosen only if it is faster by this factor, so that noise does not decide.
constexpr double kGain = 0.8;
constexpr int kFewestTurns = 4, kMostTurns = 24;
constexpr double kEnoughSeconds = 0.01;
constexpr int64_t kMeasuredColumns = 2048;
constexpr NativeFor kAlwaysNative = {{true, true, true}};

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

RowRegime row_regime(int64_t rows) {
  return rows == 1 ? RowRegime::One : rows <= kernel::kFewRows ? RowRegime::Few : RowRegime::Many;
}

NativeFor GemmSelector::choose(const at::Tensor& weight) {
  if (wish_ == GemmBackend::Native) return kAlwaysNative;
  if (wish_ == GemmBackend::ATen) return {};
  const std::pair shape(weight.size(0), weight.size(1));
  const auto known = measured_.find(shape);
  return known != measured_.end() ? known->second : measured_[shape] = measure(weight);
}

Projection::Projection(const at::Tensor& weight, const at::Tensor& bias, NativeFor own)
    : weight_(weight.detach().contiguous()), own_(own) {
  if (bias.defined()) bias_ = bias.detach().contiguous();
}

Projection::Projection(Int8Weight weight, const at::Tensor& bias) : int8_(std::move(weight)) {
  if (bias.defined()) bias_ = bias.detach().contiguous();
}

void Projection::run(const float* x, int64_t x_stride, int64_t rows, float* to, int64_t to_stride,
                     RowRegime regime) const {
  if (rows == 0) return;
  const float* const bias_of = bias_.defined() ? bias_.const_data_ptr<float>() : nullptr;
  if (int8_) return int8_->run(x, x_stride, rows, bias_of, to, to_stride);
  if (!own_.rows[static_cast<int>(regime)]) {
    const at::Tensor from =
        at::from_blob(const_cast<float*>(x), {rows, in()}, {x_stride, 1}, at::kFloat);
    at::Tensor result = at::from_blob(to, {rows, out()}, {to_stride, 1}, at::kFloat);
    std::optional<at::Tensor> bias;
    if (bias_.defined()) bias = bias_;
    at::linear_out(result, from, weight_, bias);
    return;
  }
  const kernels::Kernels& set = kernels::chosen();
  const bool many = regime == RowRegime::Many;
  const kernel::LinearKernels& linear = many ? set.linear_many : set.linear_few;
  const kernel::LinearRequest request = {.x = x,
                                         .x_stride = x_stride,
                                         .rows = rows,
                                         .weight = weight_.const_data_ptr<float>(),
                                         .bias = bias_of,
                                         .inner = in(),
                                         .outer = out(),
                                         .out = to,
                                         .out_stride = to_stride};
  const auto columns = [&](int64_t begin, int64_t end) {  // in cache lines
    float* const panel =
        many ? platform::scratch(platform::Scratch::Panel, kernel::scratch_floats(in())) : nullptr;
    linear.run(request, begin * kColumns, std::min(end * kColumns, out()), panel);
  };
  const int64_t lines = (out() + kColumns - 1) / kColumns;
  const int64_t grain = std::max<int64_t>(1, kGrainProducts / (kColumns * in() * rows));
  at::parallel_for(0, lines, grain, columns);
}

}  // namespace posenc::inference
