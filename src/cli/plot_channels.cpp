#include "cli/plot_channels.h"

#include <torch/types.h>

#include <algorithm>

namespace posenc::cli {
namespace {

// In a panel about 400 pixels wide, more waves than this merge into a solid block of colour.
constexpr int64_t kMostWaves = 40;
// A channel whose range is below this fraction of the table's looks like a straight line.
constexpr double kLeastRange = 0.02;

// Which columns of (rows, D) are neither constant nor too fast to be visible.
std::vector<bool> visible(const at::Tensor& table) {
  const auto values = table.to(torch::kDouble);
  const auto range = values.amax(0) - values.amin(0);
  const auto sign = (values - values.mean(0)).ge(0);
  const auto turns = sign.slice(0, 1).ne(sign.slice(0, 0, -1)).sum(0);
  const auto good = range.gt(kLeastRange * range.max()).logical_and(turns.le(2 * kMostWaves));
  std::vector<bool> result;
  for (int64_t i = 0; i < table.size(1); ++i) result.push_back(good[i].item<bool>());
  return result;
}

}  // namespace

bool has_pairs(const SinusoidOptions& recipe) { return recipe.axes() == 1 && !recipe.raw_first(); }

std::vector<int64_t> pair_channels(const SinusoidOptions& recipe, int64_t pair) {
  if (recipe.layout() == sinusoid::Layout::Interleaved) return {2 * pair, 2 * pair + 1};
  return {pair, (recipe.axis_widths()[0] + 1) / 2 + pair};
}

const char* function_of(const SinusoidOptions& recipe, int64_t channel) {
  if (!has_pairs(recipe)) return "";
  const bool second = recipe.layout() == sinusoid::Layout::Interleaved
                          ? channel % 2 == 1
                          : channel >= (recipe.axis_widths()[0] + 1) / 2;
  return second != recipe.cos_first() ? " (cos)" : " (sin)";
}

std::vector<int64_t> shown_channels(const SinusoidOptions& recipe, const at::Tensor& table) {
  const auto is_visible = visible(table);
  std::vector<int64_t> channels;
  const auto take = [&](int64_t channel) {
    const bool is_new = std::find(channels.begin(), channels.end(), channel) == channels.end();
    if (channel < table.size(1) && is_new) channels.push_back(channel);
  };
  if (has_pairs(recipe)) {
    std::vector<int64_t> pairs;
    for (int64_t pair = 0; pair < recipe.axis_widths()[0] / 2; ++pair) {
      const auto both = pair_channels(recipe, pair);
      const bool fits = both[1] < table.size(1);
      if (fits && (is_visible[both[0]] || is_visible[both[1]])) pairs.push_back(pair);
    }
    // The slowest curve shown is half-way through the frequencies; beyond that they are straight
    // lines.
    const int64_t half_way = recipe.axis_widths()[0] / 4 - 1;
    const auto slow =
        std::find_if(pairs.begin(), pairs.end(), [&](int64_t pair) { return pair >= half_way; });
    if (!pairs.empty()) {
      const auto last = slow == pairs.end() ? static_cast<int64_t>(pairs.size()) - 1
                                            : std::distance(pairs.begin(), slow);
      const bool all_seen = pairs.front() == 0;
      for (const int64_t i : {int64_t{0}, all_seen ? std::min<int64_t>(2, last) : last / 2, last}) {
        for (const int64_t channel : pair_channels(recipe, pairs[static_cast<std::size_t>(i)])) {
          take(channel);
        }
      }
    }
  }
  for (int64_t i = 0; i < table.size(1) && channels.empty(); ++i) {
    for (int64_t k = i; k < table.size(1) && channels.size() < 6; ++k) {
      if (is_visible[static_cast<std::size_t>(k)]) take(k);
    }
  }
  if (channels.empty()) take(0);  // a constant table still gets a picture
  return channels;
}

std::vector<std::vector<int64_t>> shown_grid_channels(const std::vector<int64_t>& grid,
                                                      const at::Tensor& table) {
  auto sizes = grid;
  sizes.push_back(table.size(1));
  const auto cells = table.to(torch::kDouble).reshape(sizes);
  std::vector<std::vector<int64_t>> result;
  for (std::size_t axis = 0; axis < grid.size(); ++axis) {
    const auto along = static_cast<int64_t>(axis);
    const auto range = (cells.amax(along) - cells.amin(along)).flatten(0, -2).amax(0);
    const auto moving = range.gt(0.25 * range.max()).nonzero().flatten();
    const int64_t count = range.max().item<double>() > 0 ? moving.numel() : 0;
    std::vector<int64_t> channels;
    for (int64_t i = 0; i < std::min<int64_t>(3, count); ++i) {
      channels.push_back(moving[i * count / std::min<int64_t>(3, count)].item<int64_t>());
    }
    result.push_back(channels);
  }
  return result;
}

}  // namespace posenc::cli
