#include "inference/rows/stream.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "inference/rows/activation_rows.h"
#include "kernels/dispatch.h"
#include "kernels/inference.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kMostRowsPerPart =
    4 * kernel::kPanelRows;  // per part: its layers' intermediates are small
constexpr int64_t kRowsStep = 16;
constexpr int64_t kFewestRows = 32;        // per thread, otherwise columns are split
constexpr int64_t kGrainFloats = 1 << 14;  // least work per thread, in rows
constexpr int64_t kRowsInCache = 4;        // converted at a time

// Null: LibTorch computes it.
const kernel::ActivationKernel* kernel_of(Activation activation) {
  const kernel::ActivationKernels& all = kernels::chosen_inference().activation;
  switch (activation) {
    case Activation::ReLU: return &all.relu;
    case Activation::GELU: return &all.gelu;
    case Activation::GELUTanh: return &all.gelu_tanh;
    case Activation::QuickGELU: return &all.quick_gelu;
    case Activation::ReLUSquared: return &all.relu_squared;
    case Activation::SiLU: return &all.silu;
    default: return nullptr;
  }
}

// x = activation(x); `own` is its kernel.
void activate(Activation activation, const kernel::ActivationKernel* own, float* x, int64_t n) {
  if (own != nullptr) return own->activate(x, n);
  activate_by_row(at::from_blob(x, {1, n}, at::kFloat), activation);
}

// x = activation(x) * y
void gate(Activation activation, const kernel::ActivationKernel* own, float* x, const float* y,
          int64_t n) {
  if (own != nullptr) return own->gate(x, y, n);
  activate(activation, own, x, n);
  for (int64_t i = 0; i < n; ++i) x[i] *= y[i];
}

// Splits rows into parts of equal size, at most kMostRowsPerPart, with the same number of parts per
// thread.
int64_t rows_per_part(int64_t rows, int64_t threads) {
  const auto ceil_div = [](int64_t a, int64_t b) { return (a + b - 1) / b; };
  const int64_t parts = threads * ceil_div(rows, threads * kMostRowsPerPart);
  return ceil_div(ceil_div(rows, parts), kRowsStep) * kRowsStep;
}

kernel::NormKind kernel_norm(NormKind kind) {
  switch (kind) {
    case NormKind::Layer: return kernel::NormKind::Layer;
    case NormKind::RMS: return kernel::NormKind::RMS;
    case NormKind::RMSPlusOne: return kernel::NormKind::RMSPlusOne;
    case NormKind::LayerPlusOne: return kernel::NormKind::LayerPlusOne;
    case NormKind::Affine: break;
  }
  return kernel::NormKind::Affine;
}

// Whether the norm multiplies by 1 + weight.
bool adds_one(kernel::NormKind kind) {
  return kind == kernel::NormKind::RMSPlusOne || kind == kernel::NormKind::LayerPlusOne;
}

}  // namespace

Norm::Norm(const TransformerNormImpl* norm, const LayerScaleImpl* scale) {
  if (norm == nullptr) return;
  kind = kernel_norm(norm->options.kind());
  if (norm->weight.defined()) {
    weight = norm->weight.detach().contiguous();
  } else {
    weight = at::full({norm->options.d_model()}, adds_one(kind) ? 0.0 : 1.0, at::kFloat);
  }
  if (norm->bias.defined()) bias = norm->bias.detach().contiguous();
  eps = static_cast<float>(norm->options.eps());
  if (scale != nullptr) multiply(scale->lambda1.detach());
}

void Norm::multiply(const at::Tensor& factors) {
  if (adds_one(kind)) {
    weight = weight + 1.0;
    kind = kind == kernel::NormKind::RMSPlusOne ? kernel::NormKind::RMS : kernel::NormKind::Layer;
  }
  weight = weight * factors;
  if (bias.defined()) bias = bias * factors;
}

kernel::AddNormRequest Norm::request(int64_t width) const {
  kernel::AddNormRequest request = {};
  request.width = width;
  request.weight = weight.const_data_ptr<float>();
  if (bias.defined()) request.bias = bias.const_data_ptr<float>();
  request.eps = eps;
  request.kind = kind;
  return request;
}

void add(const Stream& stream, const float* y, const Norm& norm) {
  kernel::AddNormRequest request = {};
  if (norm) request = norm.request(stream.width);
  request.x = stream.x;
  request.y = y;
  request.width = stream.width;
  if (stream.norm_first() || !norm) request.sum = stream.x;
  if (norm) request.out = stream.input;
  const auto add_norm = kernels::chosen_inference().add_norm.add_norm;
  const float* const next = norm ? stream.input : stream.x;
  split_rows(stream.rows, stream.width, [&](int64_t begin, int64_t end) {
    if (!stream.input_converted) return add_norm(request, begin, end);
    for (int64_t row = begin; row < end; row += kRowsInCache) {
      const int64_t last = std::min(row + kRowsInCache, end);
      add_norm(request, row, last);
      stream.input_converted.convert(next, stream.width, row, last);
    }
  });
}

at::Tensor add_converted(Stream& stream, RowFormat format) {
  if (format == RowFormat::Float32) return {};
  const int64_t floats = ConvertedRows::floats(format, stream.rows, stream.width);
  const at::Tensor memory = at::empty({floats}, at::kFloat);
  stream.input_converted = {format, memory.data_ptr<float>(), stream.rows, stream.width};
  return memory;
}

void normalise(const Stream& stream, const Norm& norm) {
  if (norm) {
    add(stream, nullptr, norm);
  } else if (stream.input_converted) {
    stream.input_converted.convert(stream.x, stream.width, stream.rows);
  }
}

void project(const Stream& stream, const Projection& projection, const float* input, float* out,
             int64_t out_stride) {
  if (stream.input_converted && projection.row_format() != RowFormat::Float32) {
    projection.run(stream.input_converted, stream.rows, out, out_stride);
  } else {
    projection.run(input, stream.width, stream.rows, out, out_stride, stream.regime);
  }
}

void SharedRows::project(const Projection& projection, float* out, int64_t out_stride) {
  const RowFormat format = projection.row_format();
  if (format == RowFormat::Float32)
    return projection.run(x_, width_, rows_, out, out_stride, regime_);
  if (!converted_) {
    converted_ = {format, buffer_, rows_, width_};
    converted_.convert(x_, width_, rows_);
  }
  projection.run(converted_, rows_, out, out_stride);
}

namespace {

// Adds projection(y), normalised by `post`, to the residual stream; `y_converted`: y as it reads
// it, or none.
void add_branch(const Stream& stream, const Projection& projection, const float* y, int64_t stride,
                const ConvertedRows& y_converted, const Norm& post, const Norm& after) {
  float* const branch = platform::scratch(platform::Scratch::Branch, stream.rows * stream.width);
  if (y_converted) {
    projection.run(y_converted, stream.rows, branch, stream.width);
  } else {
    projection.run(y, stride, stream.rows, branch, stream.width, stream.regime);
  }
  if (post) normalise({branch, branch, stream.rows, stream.width, stream.regime}, post);
  add(stream, branch, after);
}

}  // namespace

void add_projected(const Stream& stream, const Projection& projection, const float* y,
                   int64_t stride, const Norm& post, const Norm& after) {
  add_branch(stream, projection, y, stride, {}, post, after);
}

void activate(Activation activation, float* x, int64_t n) {
  activate(activation, kernel_of(activation), x, n);
}

void feed_forward(const Stream& stream, const FeedForward& layer, const float* input,
                  const Norm& post, const Norm& after) {
  const int64_t stride = odd_stride(layer.wide.out()), width = layer.narrow.in();
  float* const hidden = platform::scratch(platform::Scratch::Hidden, stream.rows * stride);
  project(stream, layer.wide, input, hidden, stride);
  ConvertedRows converted;
  if (const RowFormat format = layer.narrow.row_format(); format != RowFormat::Float32) {
    const int64_t floats = ConvertedRows::floats(format, stream.rows, width);
    converted = {format, platform::scratch(platform::Scratch::Bytes, floats), stream.rows, width};
  }
  const kernel::ActivationKernel* const own = kernel_of(layer.activation);
  split_rows(stream.rows, layer.wide.out(), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const x = hidden + row * stride;
      layer.is_gated ? gate(layer.activation, own, x, x + width, width)
                     : activate(layer.activation, own, x, width);
      if (converted) converted.convert(hidden, stride, row, row + 1);
    }
  });
  add_branch(stream, layer.narrow, hidden, stride, converted, post, after);
}

void split_rows(int64_t rows, int64_t width,
                const std::function<void(int64_t begin, int64_t end)>& f) {
  torch_internals::parallel_parts(0, rows, std::max<int64_t>(1, kGrainFloats / width), f);
}

void by_rows(int64_t rows, const std::function<void(int64_t begin, int64_t end)>& f) {
  if (rows == 0) return;
  const int64_t threads = torch_internals::free_threads(torch_internals::most_threads());
  if (rows < kFewestRows * threads) {
    f(0, rows);
    return;
  }
  const int64_t size = rows_per_part(rows, threads);
  torch_internals::run_parts((rows + size - 1) / size, [&](int64_t part) {
    f(part * size, std::min((part + 1) * size, rows));
  });
}

void by_rows(const SequenceRange& sequences,
             const std::function<void(int64_t begin, int64_t end)>& f) {
  const int64_t first = sequences.first_row;
  by_rows(sequences.rows, [&](int64_t begin, int64_t end) { f(first + begin, first + end); });
}

}  // namespace posenc::inference
