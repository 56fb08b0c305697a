#include "cli/plot_rotary.h"

#include <fmt/format.h>
#include <torch/types.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "posenc/sinusoid/rotary.h"

namespace posenc::cli {
namespace {

constexpr int64_t kPoints = 1500;  // of a curve, at equal ratios of the distance
constexpr double kSmooth = 1.15;   // of distances whose scores a trend averages

struct Scaled {
  const char* name;
  const char* colour;
  rotary::Scaling scaling;
};

// One factor for each frequency, from 1 to the factor of the context length.
rotary::LongRope growing_factors(const RotaryPlot& plot, double original) {
  rotary::LongRope result;
  const int64_t n = plot.dim / 2;
  for (int64_t i = 0; i < n; ++i) {
    const double share = n > 1 ? static_cast<double>(i) / static_cast<double>(n - 1) : 1.0;
    result.long_factor.push_back(std::pow(plot.factor, share));
  }
  result.short_factor.assign(static_cast<size_t>(n), 1.0);
  result.original_max_position = original;
  result.factor = plot.factor;
  return result;
}

std::vector<Scaled> scalings(const RotaryPlot& plot, double original) {
  rotary::Yarn yarn;
  yarn.factor = plot.factor;
  yarn.original_max_position = original;
  return {{"default", "#31688e", rotary::Default{}},
          {"linear", "#d1662a", rotary::Linear{plot.factor}},
          {"dynamic", "#2a9d5c", rotary::Dynamic{plot.factor, static_cast<int64_t>(original)}},
          {"yarn", "#8e3179", yarn},
          {"llama3", "#b8860b", rotary::Llama3{plot.factor, 1.0, 4.0, original}},
          {"longrope", "#1f4fbf", growing_factors(plot, original)}};
}

// Integer distances at approximately equal ratios, without duplicates.
torch::Tensor distances(int64_t most) {
  const auto exponents = torch::linspace(0, std::log(static_cast<double>(most)), kPoints,
                                         torch::TensorOptions(torch::kDouble));
  return std::get<0>(at::_unique(exponents.exp().round(), /*sorted=*/true));
}

// The mean over all unit vectors q = k: every pair has the same share.
torch::Tensor scores(const RotaryPlot& plot, const rotary::Scaling& scaling,
                     const torch::Tensor& distance) {
  const auto options =
      RotaryOptions(plot.dim, rotary::Pairing::Halves).base(plot.base).scaling(scaling);
  const RotaryFrequencies f = rotary_frequencies(options, plot.length);
  return torch::outer(distance, f.inv_freq.to(torch::kDouble)).cos().mean(1) *
         (f.attention_scaling * f.attention_scaling);
}

// The mean over the distances within a ratio of kSmooth.
torch::Tensor trend(const torch::Tensor& distance, const torch::Tensor& curve) {
  const double* const d = distance.const_data_ptr<double>();
  const double* const y = curve.const_data_ptr<double>();
  auto result = torch::empty_like(curve);
  auto* const mean = result.mutable_data_ptr<double>();
  double sum = 0.0;
  for (int64_t i = 0, begin = 0, end = 0; i < curve.numel(); ++i) {
    for (; end < curve.numel() && d[end] <= d[i] * kSmooth; ++end) sum += y[end];
    for (; d[begin] < d[i] / kSmooth; ++begin) sum -= y[begin];
    mean[i] = sum / static_cast<double>(end - begin);
  }
  return result;
}

}  // namespace

Figure rotary_decay(const RotaryPlot& plot) {
  const double original = std::round(static_cast<double>(plot.length) / plot.factor);
  const auto all = scalings(plot, original);
  const torch::Tensor distance = distances(plot.length);
  std::vector<torch::Tensor> columns = {distance};
  double least = 0.0, most = 1.0;
  for (const Scaled& s : all) {
    const torch::Tensor curve = scores(plot, s.scaling, distance);
    least = std::min(least, curve.min().item<double>());
    most = std::max(most, curve.max().item<double>());
    columns.push_back(curve);
    columns.push_back(trend(distance, curve));
  }
  constexpr double width = 1000, height = 680;
  std::string script = data_block("scores", torch::stack(columns, 1));
  script += fmt::format(
      "set multiplot layout 2,3 title 'Score of a query with an equal key at a distance: {} "
      "channels, base {}, original context {}, factor {}' offset 0,-0.2 "
      "margins {},{},{},{} spacing {},{}\n",
      plot.dim, plot.base, original, plot.factor, 75 / width, 1 - 20 / width, 65 / height,
      1 - 80 / height, 25 / width, 85 / height);
  script += fmt::format(
      "set logscale x 2\nset xrange [1:{}]\nset yrange [{:.1f}:{:.1f}]\nset ytics 0.5\n"
      "set xtics 1,16\nset tics out nomirror\nset border 3 lw 0.8\n"
      "set grid ytics lc rgb '#d0d0d0' lt 1 lw 0.6\nunset key\n"
      "set arrow from {},graph 0 to {},graph 1 nohead dt 2 lw 1 lc rgb '#808080'\n",
      plot.length, least - 0.1, most + 0.1, original, original);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const bool left = i % 3 == 0, bottom = i >= 3;
    script += fmt::format(
        "set title '{}' offset 0,-0.6\nset xlabel '{}' offset 0,0.3\nset ylabel '{}'\n"
        "set format y '{}'\nplot ",
        all[i].name, bottom ? "Distance (tokens)" : "", left ? "Score" : "", left ? "%g" : "");
    if (i > 0) script += "$scores using 1:3 with lines lw 1.4 lc rgb '#909090', ";
    script += fmt::format(
        "$scores using 1:{} with lines lw 0.7 lc rgb '#a0{}', "
        "$scores using 1:{} with lines lw 2 lc rgb '{}'\n",
        2 * i + 2, all[i].colour + 1, 2 * i + 3, all[i].colour);
  }
  return {"rotary_decay", static_cast<int>(width), static_cast<int>(height),
          script + "unset multiplot\n"};
}

}  // namespace posenc::cli
