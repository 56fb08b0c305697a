// Grids and boxes: extents from the shape or from the periods of columns.

#include "catalogue/identify/candidates.h"

#include <ATen/TensorOperators.h>

#include <cmath>

#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/rows.h"

namespace posenc::identification {

// All assignments of extents to depth, height and width.
std::vector<PresetParams> CandidateGenerator::boxes() const {
  const bool deep = takes(preset_, "depth"), square = !takes(preset_, "width");
  std::vector<PresetParams> all;
  for (const auto& e : grids()) {
    if (!deep) {
      if (e.size() != 2) continue;
      if (square && e[0] == e[1]) all.push_back({{"height", e[0]}});
      if (square) continue;
      all.push_back({{"height", e[0]}, {"width", e[1]}});
      if (e[0] != e[1]) all.push_back({{"height", e[1]}, {"width", e[0]}});
    } else if (e.size() == 3) {
      all.push_back({{"depth", e[0]}, {"height", e[1]}, {"width", e[2]}});
    } else if (e.size() == 2) {
      all.push_back({{"depth", e[0]}, {"height", e[1]}, {"width", 1}});
      all.push_back({{"depth", e[0]}, {"height", 1}, {"width", e[1]}});
      all.push_back({{"depth", 1}, {"height", e[0]}, {"width", e[1]}});
    }
  }
  return all;
}

std::vector<std::vector<int64_t>> CandidateGenerator::grids() const {
  if (!view_.extents.empty()) return {view_.extents};
  const int64_t count = view_.rows.size(0) - first_;
  return {{1, count}, {count, 1}};
}

void CandidateGenerator::grid(int64_t dim, const PresetParams& box) const {
  const auto plain = make(dim, box);
  if (!plain || nominal_length(plain->options, view_.rows.size(0)) == 0) {
    if (!plain || !edited_) return;
  }
  if (!fits(plain->options)) return;
  try_candidate(*plain);
  const auto rates = grid_rates(plain->options);
  if (!rates) return;
  if (const char* name = base_name(preset_)) {
    if (std::abs(rates->base / plain->options.base() - 1) < 0.02) return;
    PresetParams params = box;
    params.emplace(name, rounder(rates->base));
    if (const auto c = make(dim, params)) try_candidate(*c);
  }
  if (!takes(preset_, "base_size")) return;
  const double extent = static_cast<double>(longest(plain->options).second);
  for (const double interpolation : {1.0, 2.0, 1.5, 3.0, 4.0, 8.0, 0.5}) {
    const double size = rates->step * extent * interpolation;
    if (std::abs(size - std::round(size)) > 0.02 * size) continue;
    PresetParams params = box;
    params.emplace("base_size", std::round(size));
    params.emplace("interpolation_scale", interpolation);
    if (const auto c = make(dim, params)) try_candidate(*c);
  }
}

// The grid's longest axis: its block of channels and its extent.
std::pair<int64_t, int64_t> CandidateGenerator::longest(const SinusoidOptions& o) const {
  std::pair<int64_t, int64_t> best{0, 0};
  for (int64_t block = 0; block < o.axes(); ++block) {
    const int64_t extent = o.grid()[grid_axis(o, block)];
    if (extent > best.second) best = {block, extent};
  }
  return best;
}

std::optional<Rates> CandidateGenerator::grid_rates(const SinusoidOptions& o) const {
  const auto [block, extent] = longest(o);
  int64_t stride = 1;
  for (int64_t axis = grid_axis(o, block) + 1; axis < o.axes(); ++axis) stride *= o.grid()[axis];
  if (extent < 2 || first_ + (extent - 1) * stride >= view_.rows.size(0)) return std::nullopt;
  const at::Tensor rows = view_.rows.slice(0, first_, first_ + (extent - 1) * stride + 1, stride)
                              .slice(0, 0, kRateRows)
                              .to(at::kDouble)
                              .contiguous();
  return fit_rates(pairs(o, block, rows.size(1)), o.base(), rows);
}

}  // namespace posenc::identification
