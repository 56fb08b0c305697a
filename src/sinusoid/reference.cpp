#include "sinusoid/reference.h"

#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/div.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/reciprocal.h>
#include <ATen/ops/sin.h>

#include <algorithm>
#include <cmath>

namespace posenc {
namespace {

// Elements a piece of work has at most. It lies below ATen's grain (32768), so that ATen never
// splits it between threads, and is a multiple of every vector width, so that lanes and scalar
// tail fall where one thread over the whole tensor has them: pow() rounds differently in the two.
constexpr int64_t kPiece = 16384;

int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

int64_t sine_count(const SinusoidOptions& o) {
  return o.odd_dim() == OddDim::ExtraSin ? ceil_div(o.dim(), 2) : o.dim() / 2;
}

// 0, 2, 4, ...: the channel of each pair's sine, (n)
at::Tensor channels(const SinusoidOptions& o) {
  return at::arange(0, 2 * sine_count(o), 2, at::TensorOptions(o.arithmetic()));
}

// base ** exponents, in one-thread bits at any number of threads
at::Tensor power(double base, const at::Tensor& exponents) {
  at::Tensor result = at::empty_like(exponents);
  const at::Tensor from = exponents.view({-1});
  at::Tensor to = result.view({-1});
  for (int64_t begin = 0; begin < from.numel(); begin += kPiece) {
    const int64_t end = std::min(begin + kPiece, from.numel());
    at::Tensor piece = to.slice(0, begin, end);
    at::pow_out(piece, base, from.slice(0, begin, end));
  }
  return result;
}

// The rate of each pair, (n) or, over the grid, (N, n): what a position is multiplied with
// (Phase::Product) or divided by (Phase::Quotient).
at::Tensor rates(const SinusoidOptions& o, int64_t positions) {
  const bool product = o.phase() == Phase::Product;
  if (o.frequency() == Frequency::Exp) {
    const double scalar = std::log(o.base()) / static_cast<double>(o.dim());
    return at::exp(at::mul(channels(o), product ? -scalar : scalar));
  }
  at::Tensor exponents = at::div(channels(o), o.dim());
  if (o.power_shape() == PowerShape::Grid) {
    exponents = exponents.expand({positions, exponents.size(0)}).contiguous();
  }
  at::Tensor result = power(o.base(), exponents);
  return product ? at::reciprocal(result) : result;
}

}  // namespace

void reference_rows(const SinusoidOptions& o, const at::Tensor& positions, at::Tensor& rows) {
  const at::Tensor rate = rates(o, positions.size(0));
  const int64_t sines = rate.size(-1);
  const int64_t cosines = o.dim() / 2;
  const bool halves = o.layout() == Layout::Halves;

  const int64_t block = std::max<int64_t>(1, kPiece / std::max<int64_t>(1, sines));
  at::parallel_for(0, ceil_div(positions.size(0), block), 1, [&](int64_t first, int64_t last) {
    at::NoGradGuard no_grad;  // thread-local, hence once more in each worker
    for (int64_t i = first; i < last; ++i) {
      const int64_t begin = i * block;
      const int64_t end = std::min(begin + block, positions.size(0));
      const at::Tensor p = positions.slice(0, begin, end).unsqueeze(1);
      const at::Tensor r = rate.dim() == 2 ? rate.slice(0, begin, end) : rate;
      const at::Tensor angle = o.phase() == Phase::Product ? at::mul(p, r) : at::div(p, r);

      const at::Tensor out = rows.slice(0, begin, end);
      at::Tensor sin = halves ? out.slice(1, 0, sines) : out.slice(1, 0, 2 * sines, 2);
      at::Tensor cos =
          halves ? out.slice(1, sines, sines + cosines) : out.slice(1, 1, 2 * cosines, 2);
      at::sin_out(sin, angle);
      at::cos_out(cos, angle.slice(1, 0, cosines));
      if (o.odd_dim() == OddDim::ZeroColumn && o.dim() % 2 == 1) out.slice(1, o.dim() - 1).zero_();
    }
  });
}

}  // namespace posenc
