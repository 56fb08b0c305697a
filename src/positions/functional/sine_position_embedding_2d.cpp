#include "posenc/positions/functional/sine_position_embedding_2d.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/sin.h>
#include <c10/util/Exception.h>

#include <cmath>

#include "positions/sinusoid/frequency.h"

namespace posenc::functional {
namespace {

using Options = SinePositionEmbedding2dFuncOptions;

// One-based coordinates along h and w: (B, H, W) each, or broadcastable to it.
struct GridCoordinates {
  at::Tensor y, x;
};

GridCoordinates grid_coordinates(const at::Tensor& mask) {
  if (mask.dim() == 3) {
    const at::Tensor valid = mask.logical_not();
    return {valid.cumsum(1, at::kFloat), valid.cumsum(2, at::kFloat)};
  }
  const auto line = [&](int64_t extent) {
    return at::arange(1, extent + 1, at::TensorOptions(at::kFloat).device(mask.device()));
  };
  return {line(mask.size(2)).view({1, -1, 1}), line(mask.size(3)).view({1, 1, -1})};
}

at::Tensor normalized(const at::Tensor& coordinate, int64_t axis, const Options& o) {
  if (!o.normalize()) return coordinate;
  const at::Tensor shifted = o.offset() == 0.0 ? coordinate : coordinate + o.offset();
  return shifted / (coordinate.slice(axis, -1) + o.eps()) * o.scale();
}

// T ** (2 (j // 2) / C) for the C channels of one axis. All channels are computed in one call,
// because the last bits of pow() depend on the tensor's shape.
Frequencies divisors(const Options& o) {
  const int64_t channels = o.d_model() / 2;
  const bool product = o.frequency() == sinusoid::Frequency::PowerOfProduct;
  return frequencies(SinusoidOptions(channels)
                         .frequency(o.frequency())
                         .index(product ? sinusoid::Index::PairNumber : sinusoid::Index::Paired)
                         .base(o.temperature()),
                     channels, 1);
}

// Writes the channels of one axis to out (B, H, W, C), sines and cosines interleaved.
void fill(const at::Tensor& coordinate, const Frequencies& f, const at::Tensor& out) {
  const auto angle = [&](const at::Tensor& divisor) {  // (B, H, W, C / 2)
    return coordinate.unsqueeze(-1) /
           divisor.to(coordinate.device(), coordinate.scalar_type(), true);
  };
  out.slice(3, 0, out.size(3), 2).copy_(at::sin(angle(f.sin)));
  out.slice(3, 1, out.size(3), 2).copy_(at::cos(angle(f.cos)));
}

void check_input(const at::Tensor& mask) {
  TORCH_CHECK_VALUE(mask.dim() == 3 || mask.dim() == 4,
                    "[SinePositionEmbedding2d] the mask must be (B, H, W), or an image without "
                    "padding (B, C, H, W). Got ",
                    mask.sizes());
  TORCH_CHECK_TYPE(mask.dim() == 4 || mask.scalar_type() == at::kBool,
                   "[SinePositionEmbedding2d] the mask must be bool, true for padding. "
                   "Got ",
                   mask.scalar_type());
  TORCH_CHECK_TYPE(mask.dim() == 3 || mask.is_floating_point(),
                   "[SinePositionEmbedding2d] the image must be real-valued. Got ",
                   mask.scalar_type());
  TORCH_CHECK_VALUE(mask.size(-1) > 0 && mask.size(-2) > 0,
                    "[SinePositionEmbedding2d] height and width must be positive. Got ",
                    mask.sizes());
}

}  // namespace

void Options::validate() const {
  const Options& o = *this;
  TORCH_CHECK_VALUE(o.d_model() > 0 && o.d_model() % 4 == 0,
                    "[SinePositionEmbedding2d] d_model must be a positive multiple of 4: sine and "
                    "cosine of y and of x. Got ",
                    o.d_model());
  TORCH_CHECK_VALUE(std::isfinite(o.temperature()) && o.temperature() > 0.0,
                    "[SinePositionEmbedding2d] temperature must be positive and finite. Got ",
                    o.temperature());
  TORCH_CHECK_VALUE(std::isfinite(o.eps()) && o.eps() > 0.0,
                    "[SinePositionEmbedding2d] eps must be positive and finite. Got ", o.eps());
  for (const double value : {o.scale(), o.offset()}) {
    TORCH_CHECK_VALUE(std::isfinite(value),
                      "[SinePositionEmbedding2d] scale and offset must be finite. Got ", value);
  }
  TORCH_CHECK_VALUE(
      o.frequency() == sinusoid::Frequency::Power ||
          o.frequency() == sinusoid::Frequency::PowerOfProduct,
      "[SinePositionEmbedding2d] frequency must be Power or PowerOfProduct. Got the value ",
      static_cast<int>(o.frequency()), " of the enum");
}

at::Tensor sine_position_embedding_2d(const at::Tensor& mask, const Options& options) {
  options.validate();
  check_input(mask);
  const GridCoordinates coordinates = grid_coordinates(mask);
  const Frequencies f = divisors(options);
  const bool image = mask.dim() == 4;
  const int64_t half = options.d_model() / 2;
  // As in DETR, the channels are innermost in memory, whatever the shape. Without padding, the
  // result is the same for every image of the batch.
  const at::Tensor out =
      at::empty({image ? 1 : mask.size(0), mask.size(-2), mask.size(-1), options.d_model()},
                at::TensorOptions(at::kFloat).device(mask.device()));  // (B, H, W, D)
  fill(normalized(coordinates.y, 1, options), f, out.slice(3, 0, half));
  fill(normalized(coordinates.x, 2, options), f, out.slice(3, half));
  const at::Tensor result = out.permute({0, 3, 1, 2});  // (B, D, H, W)
  if (!image) return result;
  return result.to(mask.scalar_type())
      .expand({mask.size(0), options.d_model(), mask.size(2), mask.size(3)});
}

}  // namespace posenc::functional
