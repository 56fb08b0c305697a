#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/sinc.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "core/check.h"
#include "posenc/speech/waveform.h"

namespace posenc {
namespace {

// Rates without common factors, and the reach of the weights around a sample, in samples.
struct Ratio {
  Ratio(int64_t from, int64_t to)
      : before(from / std::gcd(from, to)),
        after(to / std::gcd(from, to)),
        factor(0.99 * static_cast<double>(std::min(before, after))),
        width(static_cast<int64_t>(std::ceil(6.0 * static_cast<double>(before) / factor))) {}

  // The last sample before the place of the output `index`.
  int64_t begin(int64_t index) const { return index * before / after; }

  int64_t before, after;
  double factor;
  int64_t width;
};

// The weights of the samples from `first` on for the outputs from `begin` on: (taps, count).
at::Tensor weights(const Ratio& r, int64_t first, int64_t taps, int64_t begin, int64_t count,
                   const at::TensorOptions& options) {
  const auto places = [](int64_t from, int64_t size, int64_t unit) {
    return at::arange(from, from + size, at::kDouble) / static_cast<double>(unit);
  };
  const at::Tensor t =
      ((places(first, taps, r.before).unsqueeze(1) - places(begin, count, r.after).unsqueeze(0)) *
       r.factor)
          .clamp(-6.0, 6.0);
  const at::Tensor window = (t * (M_PI / 12.0)).cos().square();
  return (window * at::sinc(t) * (r.factor / static_cast<double>(r.before))).to(options);
}

}  // namespace

// The outputs of a period of rates have weights of their own, and those of the next the same, one
// period of samples further. A tile of neighbouring outputs is thus a product, with the samples
// that it reaches in each period as rows: in one convolution with all of a period's outputs, almost
// all weights would be 0.
torch::Tensor resample(const torch::Tensor& samples, int64_t from, int64_t to) {
  constexpr int64_t kTile = 64, kRows = 2048;         // outputs, and periods at a time
  constexpr int64_t kMostWeights = int64_t{1} << 22;  // of a tile
  check_positive("resample", "from", from);
  check_positive("resample", "to", to);
  TORCH_CHECK_VALUE(samples.defined() && samples.is_floating_point() && samples.dim() > 0,
                    "[resample] samples must be floating-point (..., n). Got ",
                    samples.defined() ? samples.toString() : "undefined");
  if (from == to) return samples;
  const Ratio r(from, to);
  const int64_t length = samples.size(-1);
  const int64_t outputs = (length * r.after + r.before - 1) / r.before;
  std::vector<int64_t> sizes(samples.sizes().begin(), samples.sizes().end());
  sizes.back() = outputs;
  if (samples.numel() == 0) return samples.new_empty(sizes);
  // Short periods are taken together.
  const int64_t together = (kTile + r.after - 1) / r.after,
                period = std::min(r.after * together, outputs), step = r.before * together,
                periods = (outputs + period - 1) / period;
  const int64_t most =
      std::clamp<int64_t>(kMostWeights / (2 * r.width + 2), 1, std::min(period, kTile));
  const int64_t reach = (periods - 1) * step + r.begin(period - 1) + r.width + 2;
  const int64_t batch = samples.numel() / length;
  at::Tensor result = samples.new_empty({batch, periods, period});
  const at::Tensor padded = at::constant_pad_nd(samples.reshape({batch, length}),
                                                {r.width, std::max<int64_t>(0, reach - length)});
  for (int64_t begin = 0; begin < period; begin += most) {
    const int64_t count = std::min(most, period - begin), first = r.begin(begin) - r.width,
                  taps = r.begin(begin + count - 1) + r.width + 2 - first;
    const at::Tensor own = weights(r, first, taps, begin, count, samples.options());
    for (int64_t row = 0; row < periods; row += kRows) {
      const int64_t rows = std::min(kRows, periods - row);
      const at::Tensor reached =
          padded.narrow(1, first + r.width + row * step, (rows - 1) * step + taps)
              .unfold(1, taps, step);  // (B, rows, taps)
      result.narrow(1, row, rows).narrow(2, begin, count).copy_(at::matmul(reached, own));
    }
  }
  return result.flatten(1).narrow(1, 0, outputs).reshape(sizes);
}

}  // namespace posenc
