#include "speech/words/token_times.h"

#include <ATen/ops/mean.h>
#include <ATen/ops/reflection_pad1d.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/std.h>

#include <limits>
#include <utility>

#include "speech/generation/segments.h"

namespace posenc::speech {
namespace {

enum class Step : char { Diagonal, Up, Left };

}  // namespace

std::vector<int64_t> time_warping(const at::Tensor& matrix) {
  const at::Tensor costs = matrix.contiguous();
  const int64_t rows = costs.size(0), columns = costs.size(1);
  const float* const own = costs.const_data_ptr<float>();
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  // Row by row, where transformers goes column by column: a sum has the same terms.
  std::vector<float> before(static_cast<std::size_t>(columns) + 1, kInfinity), sums = before;
  std::vector<Step> steps(static_cast<std::size_t>(rows * columns));
  before[0] = 0.0F;
  for (int64_t i = 0; i < rows; ++i) {
    sums[0] = kInfinity;
    for (int64_t j = 0; j < columns; ++j) {
      const auto at = static_cast<std::size_t>(j);
      const float diagonal = before[at], up = before[at + 1], left = sums[at];
      float least = left;
      Step step = Step::Left;
      if (diagonal < up && diagonal < left)
        std::tie(least, step) = std::pair(diagonal, Step::Diagonal);
      else if (up < diagonal && up < left)
        std::tie(least, step) = std::pair(up, Step::Up);
      sums[at + 1] = own[i * columns + j] + least;
      steps[static_cast<std::size_t>(i * columns + j)] = step;
    }
    std::swap(before, sums);
  }
  std::vector<int64_t> first(static_cast<std::size_t>(rows), -1);
  for (int64_t i = rows - 1, j = columns - 1; i >= 0;) {
    first[static_cast<std::size_t>(i)] = j;
    const Step step = j < 0 ? Step::Up : steps[static_cast<std::size_t>(i * columns + j)];
    if (step != Step::Left) --i;
    if (step != Step::Up) --j;
  }
  return first;
}

at::Tensor median_filter(const at::Tensor& x, int64_t width) {
  const int64_t reach = width / 2;
  if (x.size(-1) <= reach) return x;
  const at::Tensor padded = at::reflection_pad1d(x, {reach, reach});
  return std::get<0>(at::sort(padded.unfold(-1, width, 1))).select(-1, reach);
}

std::vector<float> token_times(const at::Tensor& attention, int64_t columns, int64_t count,
                               int64_t median_width) {
  std::vector<float> times(static_cast<std::size_t>(count), 0.0F);
  if (attention.size(1) == 0 || columns <= 0) return times;
  at::Tensor x = attention.narrow(2, 0, std::min(columns, attention.size(2)));
  const at::Tensor deviation = at::std(x, {-2}, /*correction=*/0, /*keepdim=*/true);
  x = (x - at::mean(x, {-2}, /*keepdim=*/true)) / deviation;
  const std::vector<int64_t> first = time_warping(-at::mean(median_filter(x, median_width), {0}));
  for (std::size_t k = 0; k < times.size(); ++k) {
    const int64_t column = first[std::min(k, first.size() - 1)];
    times[k] = static_cast<float>(static_cast<double>(column) * kSecondsPerTimestamp);
  }
  return times;
}

}  // namespace posenc::speech
