#include "catalogue/identify/search.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cmath>

#include "core/one_thread.h"

namespace posenc::identification {
namespace {

constexpr double kGridPower = 1e-3;  // how far pow() over part of the grid may be off
constexpr double kNear = 0.9;        // candidates with a lower correlation are ruled out

double squares(const Distance& d) { return d.left + d.right - 2 * d.dot; }

// Presets that share a recipe are adjacent in presets().
std::vector<std::vector<const Preset*>> groups() {
  std::vector<std::vector<const Preset*>> result;
  for (const Preset& preset : presets()) {
    const bool joins = !result.empty() && result.back().front()->recipe == preset.recipe;
    if (!joins) result.emplace_back();
    result.back().push_back(&preset);
  }
  return result;
}

size_t cost(const Match& match) {
  return 100 * match.candidate.edits.size() + match.candidate.params.size();
}

at::Tensor centred(const at::Tensor& rows) {
  const at::Tensor x = rows.to(at::kDouble);
  return x - x.mean(0, true);
}

class PresetSearch {
 public:
  explicit PresetSearch(const TableView& view)
      : index_(sample_rows(view.rows.size(0))),
        sample_(view.rows.index_select(0, index_).contiguous()) {
    result_.view = view;
  }

  std::optional<SearchResult> run() {
    const OneThreadIfFew threads(result_.view.rows.numel());
    static const auto all = groups();
    for (const bool edited : {false, true}) {
      for (const auto& group : all) {
        const std::string& recipe = group.front()->recipe;
        if (!result_.view.paired && recipe != "unpaired" && recipe != "standardized") continue;
        seen_.clear();
        for_each_candidate(*group.front(), result_.view, edited,
                           [&](const Candidate& c) { consider(c, group); });
      }
      if (result_.exact()) break;
    }
    if (result_.exact()) {
      std::stable_sort(result_.equal.begin(), result_.equal.end(),
                       [](const Match& a, const Match& b) { return cost(a) < cost(b); });
    } else if (!result_.nearest) {
      return std::nullopt;
    } else {
      measure();
    }
    return std::move(result_);
  }

 private:
  void consider(const Candidate& c, const std::vector<const Preset*>& group) {
    if (std::find(seen_.begin(), seen_.end(), c.options) != seen_.end()) return;
    seen_.push_back(c.options);
    const Distance near = sampled_distance(c);
    const bool grid =
        c.options.power_shape() == sinusoid::PowerShape::Grid && near.max_abs < kGridPower;
    if (near.equal || grid) {
      const bool again = std::any_of(result_.equal.begin(), result_.equal.end(),
                                     [&](const Match& m) { return m.group == group; });
      if (again) return;
      const Distance full = full_distance(c, result_.view, true);
      if (full.equal) {
        result_.equal.push_back({c, full, group});
        return;
      }
    }
    if (!(near.correlation() >= kNear)) return;
    if (!result_.nearest || squares(near) < squares(result_.nearest->distance)) {
      result_.nearest = Match{c, near, group};
    }
  }

  Distance sampled_distance(const Candidate& c) const {
    const int64_t rows = needs_whole_table(c.options) ? c.length : sample_.size(0);
    const OneThreadIfFew threads(rows * sample_.size(1));
    return distance(rows_of(c, index_, sample_.scalar_type()), sample_);
  }

  // The distance of the nearest candidate over all rows, and the correlations that distinguish
  // rounding from training.
  void measure() {
    Match& match = *result_.nearest;
    const at::Tensor rows = rows_of(match.candidate, index_, sample_.scalar_type());
    const at::Tensor a = centred(rows), b = centred(sample_);
    const double left = a.square().sum().item<double>(), right = b.square().sum().item<double>();
    const double product = (a * b).sum().item<double>();
    result_.centred = left > 0 && right > 0 ? product / std::sqrt(left * right) : 0;
    const at::Tensor apart = (rows.to(at::kDouble) - sample_.to(at::kDouble)).abs();
    result_.first = apart.slice(0, 0, 4).max().item<double>();
    match.distance = full_distance(match.candidate, result_.view, false);
  }

  at::Tensor index_, sample_;
  SearchResult result_;
  std::vector<SinusoidOptions> seen_;
};

}  // namespace

bool SearchResult::better_than(const SearchResult& other) const {
  if (exact() != other.exact()) return exact();
  return best().distance.max_abs < other.best().distance.max_abs;
}

std::optional<SearchResult> search(const TableView& view) { return PresetSearch(view).run(); }

}  // namespace posenc::identification
