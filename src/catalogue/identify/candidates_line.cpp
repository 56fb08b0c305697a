// One axis, or points: positions and base estimated from the angles, and other layouts.

#include "catalogue/identify/candidates.h"

#include <ATen/TensorOperators.h>
#include <fmt/format.h>

#include <cmath>

#include "positions/sinusoid/presets/recipe.h"

namespace posenc::identification {
namespace {

std::string number(double value) { return fmt::format("{}", value); }

void set(Candidate& c, const char* name, double value) {
  c.params.erase(name);
  c.params.emplace(name, value);
}

}  // namespace

// One axis: the preset's own positions, then those that the angles give; then with another base.
void CandidateGenerator::line(int64_t dim, PresetParams params) {
  if (takes(preset_, "multires")) params.emplace("multires", (dim - 3) / 6);
  if (takes(preset_, "num_bands")) params.emplace("num_bands", (dim - 1) / 2);
  if (params.count("multires") && (dim < 9 || (dim - 3) % 6 != 0)) return;
  if (params.count("num_bands") && (dim < 5 || dim % 2 == 0)) return;
  if (takes(preset_, "padding_idx") && !view_.zeros.empty()) {
    params.emplace("padding_idx", view_.zeros.front());
  }
  const auto plain = make(dim, params);
  if (!plain) return;
  layouts(*plain);
  const auto found = pairs(plain->options, 0, view_.rows.size(1));
  const at::Tensor rows = view_.rows.slice(0, first_, first_ + kRateRows).to(at::kDouble);
  if (takes(preset_, "max_resolution")) {
    const auto at_row = decode(plain->options, sample_, numbers_);
    const auto last = at_row ? fit_linear(found, at_row->step, rows) : std::nullopt;
    if (!last) return;
    params.emplace("max_resolution", rounder(2 * *last));
    if (const auto c = make(dim, params)) layouts(*c);
    return;
  }
  const char* name = base_name(preset_);
  if (!name && !edited_) return;
  const auto rates = fit_rates(found, plain->options.base(), rows.contiguous());
  if (!rates || std::abs(rates->base / plain->options.base() - 1) < 0.002) return;
  const double base = rounder(rates->base);
  if (name) {
    params.emplace(name, base);
    if (const auto c = make(dim, params)) layouts(*c);
  } else {
    Candidate c = *plain;
    c.options.base(base);
    c.edits.push_back({fmt::format(".base({})", base), "base", number(base)});
    layouts(c);
  }
}

void CandidateGenerator::layouts(const Candidate& c) const {
  try_moved_starts(c);
  if (!edited_ || c.options.raw_first() || !c.options.coordinates().empty()) return;
  const bool even = view_.rows.size(1) % 2 == 0;  // otherwise sines outnumber cosines by one
  for (int kind = 1; kind < (even ? 4 : 2); ++kind) {
    Candidate other = c;
    if (kind & 1) {
      const bool halves = c.options.layout() == sinusoid::Layout::Halves;
      other.options.layout(halves ? sinusoid::Layout::Interleaved : sinusoid::Layout::Halves);
      other.edits.push_back({halves ? ".layout(posenc::sinusoid::Layout::Interleaved)"
                                    : ".layout(posenc::sinusoid::Layout::Halves)",
                             "layout", halves ? "interleaved" : "halves"});
    }
    if (kind & 2) {
      const bool first = !c.options.cos_first();
      other.options.cos_first(first);
      other.edits.push_back({fmt::format(".cos_first({})", first), "cos_first", first ? "1" : "0"});
    }
    try_moved_starts(other);
  }
}

// Tries the preset's own positions, and those that the angles give.
void CandidateGenerator::try_moved_starts(const Candidate& own) const {
  const SinusoidOptions& o = own.options;
  if (!fits(o)) return;
  try_candidate(own);
  if (o.angle_by_length() || o.post() == sinusoid::Post::Standardize) return;
  auto line = decode(o, sample_, numbers_);
  if (!line || (line->start == o.start() && line->step == o.step() &&
                o.position_range() == sinusoid::PositionRange::Up))
    return;
  Candidate c = own;
  if (takes(preset_, "start")) {
    if (takes(preset_, "scale") && line->step != 1.0) {
      Candidate scaled = own;
      set(scaled, "scale", line->step), set(scaled, "start", line->start / line->step);
      try_candidate(with_refit_parameters(scaled));
    }
    set(c, "start", line->start), set(c, "step", line->step);
    return try_candidate(with_refit_parameters(c));
  }
  const char* name = takes(preset_, "start_index")      ? "start_index"
                     : takes(preset_, "legacy_pad_idx") ? "legacy_pad_idx"
                                                        : nullptr;
  const bool is_integer = line->start == std::trunc(line->start);
  if (name && is_integer && line->step == 1.0 && line->start >= -1) {
    set(c, name, line->start);
    return try_candidate(with_refit_parameters(c));
  }
  const bool plain = line->step == 1.0 && is_integer &&
                     o.position_range() == sinusoid::PositionRange::Up && line->start > o.start();
  if (!plain && !edited_) return;
  c.options.position_range(sinusoid::PositionRange::Up).start(line->start).step(line->step);
  if (o.position_range() != sinusoid::PositionRange::Up)
    c.edits.push_back({".position_range(posenc::sinusoid::PositionRange::Up)", "rows", "up"});
  c.edits.push_back({fmt::format(".start({})", line->start), "start", number(line->start)});
  if (line->step != 1.0) {
    c.edits.push_back({fmt::format(".step({})", line->step), "step", number(line->step)});
  }
  try_candidate(c);
}

// Rebuilds the options from the parameters, and keeps the edits of layout and base.
Candidate CandidateGenerator::with_refit_parameters(Candidate c) const {
  const SinusoidOptions before = c.options;
  c.options = recipes::make_options(preset_, before.dim(), c.params);
  c.options.layout(before.layout()).cos_first(before.cos_first()).base(before.base());
  return c;
}

}  // namespace posenc::identification
