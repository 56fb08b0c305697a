// The parameters that a preset may have been given, guessed from the table.

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "sinusoid/columns.h"
#include "sinusoid/identify/candidate.h"
#include "sinusoid/identify/estimate.h"
#include "sinusoid/presets/reader.h"

namespace posenc::identification {
namespace {

using Visit = std::function<void(const Candidate&)>;
using Extents = std::vector<int64_t>;

constexpr int64_t kRateRows = 64;  // consecutive rows that rates are read from

bool takes(const Preset& preset, const char* name) {
  return std::any_of(preset.params.begin(), preset.params.end(),
                     [&](const PresetParam& param) { return param.name == name; });
}

const char* base_name(const Preset& preset) {
  for (const char* name : {"max_timescale", "theta", "max_period", "max_wavelength",
                           "temperature"}) {
    if (takes(preset, name)) return name;
  }
  return nullptr;
}

// Every combination of the preset's switches.
std::vector<PresetParams> switches(const Preset& preset) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> known = {
      {"attn_type", {"bi", "uni"}},       {"cls_token", {"0", "1"}},
      {"downscale_freq_shift", {"1", "0"}}, {"flip_sin_to_cos", {"0", "1"}},
      {"interleave_sin_cos", {"0", "1"}}, {"normalize", {"0", "1"}},
      {"reverse_coord", {"0", "1"}},      {"temp_bug_fix", {"1", "0"}}};
  std::vector<PresetParams> all = {{}};
  for (const auto& [name, values] : known) {
    if (!takes(preset, name)) continue;
    std::vector<PresetParams> next;
    for (const PresetParams& params : all) {
      for (const char* value : values) {
        next.push_back(params);
        next.back().emplace(name, value);
      }
    }
    all = std::move(next);
  }
  return all;
}

// The assignments of extents to depth, height and width.
std::vector<PresetParams> boxes(const Preset& preset, const std::vector<Extents>& grids) {
  const bool deep = takes(preset, "depth"), square = !takes(preset, "width");
  std::vector<PresetParams> all;
  for (Extents e : grids) {
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

std::string number(double value) { return fmt::format("{}", value); }

class Guesser {
 public:
  Guesser(const Preset& preset, const Reading& reading, bool edited, const Visit& visit)
      : preset_(preset), reading_(reading), edited_(edited), visit_(visit) {
    const at::Tensor index = sample_rows(reading.rows.size(0));
    std::vector<int64_t> kept;
    const auto* row = index.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < index.numel(); ++i) {
      if (!is_zero(row[i])) numbers_.push_back(row[i]), kept.push_back(i);
    }
    sample_ = reading.rows.index_select(0, index)
                  .index_select(0, at::tensor(kept))
                  .to(at::kDouble)
                  .contiguous();
    first_ = is_zero(0) ? 1 : 0;
  }

  void all() {
    const int64_t channels = reading_.rows.size(1);
    for (const int64_t dim : {channels, channels - 1, channels + 1}) {
      for (const PresetParams& params : switches(preset_)) {
        if (takes(preset_, "height")) {
          for (PresetParams box : boxes(preset_, grids())) {
            box.insert(params.begin(), params.end());
            grid(dim, box);
          }
        } else {
          line(dim, params);
        }
      }
    }
  }

 private:
  bool is_zero(int64_t row) const {
    return std::find(reading_.zeros.begin(), reading_.zeros.end(), row) != reading_.zeros.end();
  }

  // With dims that the preset refuses left out.
  std::optional<Candidate> made(int64_t dim, const PresetParams& params) const {
    const int64_t channels = reading_.rows.size(1);
    if (preset_.name == "nerf" && (dim < 9 || (dim - 3) % 6 != 0)) return std::nullopt;
    if (preset_.name == "perceiver_fourier" && dim % 2 == 0) return std::nullopt;
    Candidate c{&preset_, params, {}, preset_.make(dim, PresetReader(preset_, params)), 0};
    if (c.options.odd_dim() == OddDim::Error && dim % 2 == 1 && !c.options.raw_first()) {
      return std::nullopt;
    }
    if (c.options.channels() != channels) return std::nullopt;
    try {
      check(c.options);
    } catch (const c10::Error&) {
      return std::nullopt;
    }
    return c;
  }

  void offer(Candidate c) const {
    if (edited_ && !reading_.zeros.empty() && !c.options.zero_row() && !c.options.cls_row()) {
      const int64_t row = reading_.zeros.front();
      if (row == 0) {
        Candidate token = c;
        token.options.cls_row(true);
        token.edits.push_back({".cls_row(true)", "cls_row", "1"});
        emit(std::move(token));
      }
      if (c.options.grid().empty()) {
        c.options.zero_row(row);
        c.edits.push_back({fmt::format(".zero_row({})", row), "zero_row", number(row)});
      }
    } else if (edited_ && reading_.zeros.empty() && (c.options.zero_row() || c.options.cls_row())) {
      if (c.options.zero_row()) c.edits.push_back({".zero_row(std::nullopt)", "zero_row", "none"});
      if (c.options.cls_row()) c.edits.push_back({".cls_row(false)", "cls_row", "0"});
      c.options.zero_row(std::nullopt).cls_row(false);
    }
    emit(std::move(c));
  }

  void emit(Candidate c) const {
    c.length = length_of(c.options, reading_.rows.size(0));
    if (c.length > 0) visit_(c);
  }

  // One axis: the preset's own positions, then those that the angles tell; then with another base.
  void line(int64_t dim, PresetParams params) {
    if (takes(preset_, "multires")) params.emplace("multires", (dim - 3) / 6);
    if (takes(preset_, "num_bands")) params.emplace("num_bands", (dim - 1) / 2);
    if (params.count("multires") && (dim < 9 || (dim - 3) % 6 != 0)) return;
    if (params.count("num_bands") && (dim < 5 || dim % 2 == 0)) return;
    if (takes(preset_, "padding_idx") && !reading_.zeros.empty()) {
      params.emplace("padding_idx", reading_.zeros.front());
    }
    const auto plain = made(dim, params);
    if (!plain) return;
    layouts(*plain);
    const auto found = pairs(plain->options, 0, reading_.rows.size(1));
    const at::Tensor rows = reading_.rows.slice(0, first_, first_ + kRateRows).to(at::kDouble);
    if (takes(preset_, "max_resolution")) {
      const auto at_row = decode(plain->options, sample_, numbers_);
      const auto last = at_row ? fit_linear(found, at_row->step, rows) : std::nullopt;
      if (!last) return;
      params.emplace("max_resolution", rounder(2 * *last));
      if (const auto c = made(dim, params)) layouts(*c);
      return;
    }
    const char* name = base_name(preset_);
    if (!name && !edited_) return;
    const auto rates = fit_rates(found, plain->options.base(), rows.contiguous());
    if (!rates || std::abs(rates->base / plain->options.base() - 1) < 0.002) return;
    const double base = rounder(rates->base);
    if (name) {
      params.emplace(name, base);
      if (const auto c = made(dim, params)) layouts(*c);
    } else {
      Candidate c = *plain;
      c.options.base(base);
      c.edits.push_back({fmt::format(".base({})", base), "base", number(base)});
      layouts(c);
    }
  }

  void layouts(const Candidate& c) const {
    moved(c);
    if (!edited_ || c.options.raw_first() || !c.options.coordinates().empty()) return;
    for (int kind = 1; kind < 4; ++kind) {
      Candidate other = c;
      if (kind & 1) {
        const bool halves = c.options.layout() == Layout::Halves;
        other.options.layout(halves ? Layout::Interleaved : Layout::Halves);
        other.edits.push_back({halves ? ".layout(posenc::Layout::Interleaved)"
                                      : ".layout(posenc::Layout::Halves)",
                               "layout", halves ? "interleaved" : "halves"});
      }
      if (kind & 2) {
        const bool first = !c.options.cos_first();
        other.options.cos_first(first);
        other.edits.push_back({fmt::format(".cos_first({})", first), "cos_first",
                               first ? "1" : "0"});
      }
      moved(other);
    }
  }

  // At the preset's own positions, and at those that the angles tell.
  void moved(const Candidate& own) const {
    offer(own);
    const SinusoidOptions& o = own.options;
    if (o.angle_by_length() || o.post() == Post::Standardize) return;
    auto line = decode(o, sample_, numbers_);
    if (!line || (line->start == o.start() && line->step == o.step() && o.rows() == Rows::Up)) return;
    Candidate c = own;
    // A row in front that is the preset's own does not count as a position.
    if (takes(preset_, "start")) {
      if (takes(preset_, "scale") && line->step != 1.0) {
        Candidate scaled = own;
        set(scaled, "scale", line->step), set(scaled, "start", line->start / line->step);
        offer(remade(scaled));
      }
      set(c, "start", line->start), set(c, "step", line->step);
      return offer(remade(c));
    }
    const char* name = takes(preset_, "start_index")      ? "start_index"
                       : takes(preset_, "legacy_pad_idx") ? "legacy_pad_idx"
                                                          : nullptr;
    const bool whole = line->start == std::trunc(line->start);
    if (name && whole && line->step == 1.0 && line->start >= -1) {
      set(c, name, line->start);
      return offer(remade(c));
    }
    const bool plain = line->step == 1.0 && whole && o.rows() == Rows::Up;
    if (!plain && !edited_) return;
    c.options.rows(Rows::Up).start(line->start).step(line->step);
    if (o.rows() != Rows::Up) c.edits.push_back({".rows(posenc::Rows::Up)", "rows", "up"});
    c.edits.push_back({fmt::format(".start({})", line->start), "start", number(line->start)});
    if (line->step != 1.0) {
      c.edits.push_back({fmt::format(".step({})", line->step), "step", number(line->step)});
    }
    if (o.zero_row()) {  // the row itself, whatever position it would have had
      c.options.zero_row(*o.zero_row());
    }
    offer(c);
  }

  void set(Candidate& c, const char* name, double value) const {
    c.params.erase(name);
    c.params.emplace(name, value);
  }

  // With its parameters read anew and its edits of layout and base kept.
  Candidate remade(Candidate c) const {
    const SinusoidOptions before = c.options;
    c.options = preset_.make(before.dim(), PresetReader(preset_, c.params));
    c.options.layout(before.layout()).cos_first(before.cos_first()).base(before.base());
    return c;
  }

  std::vector<Extents> grids() const {
    const int64_t count = reading_.rows.size(0) - first_;
    std::vector<Extents> result;
    if (!reading_.extents.empty()) {
      result.push_back(reading_.extents);
    } else if (Extents found = periods(reading_.rows.slice(0, first_)); found.size() > 1) {
      result.push_back(std::move(found));
    } else {
      result.push_back({1, count});
      result.push_back({count, 1});
    }
    return result;
  }

  void grid(int64_t dim, const PresetParams& box) const {
    const auto plain = made(dim, box);
    if (!plain || length_of(plain->options, reading_.rows.size(0)) == 0) {
      if (!plain || !edited_) return;
    }
    offer(*plain);
    const auto rates = grid_rates(plain->options);
    if (!rates) return;
    if (const char* name = base_name(preset_)) {
      if (std::abs(rates->base / plain->options.base() - 1) < 0.02) return;
      PresetParams params = box;
      params.emplace(name, rounder(rates->base));
      if (const auto c = made(dim, params)) offer(*c);
    }
    if (!takes(preset_, "base_size")) return;
    const double extent = static_cast<double>(longest(plain->options).second);
    for (const double interpolation : {1.0, 2.0, 1.5, 3.0, 4.0, 8.0, 0.5}) {
      const double size = rates->step * extent * interpolation;
      if (std::abs(size - std::round(size)) > 0.02 * size) continue;
      PresetParams params = box;
      params.emplace("base_size", std::round(size));
      params.emplace("interpolation_scale", interpolation);
      if (const auto c = made(dim, params)) offer(*c);
    }
  }

  // The block of channels and the extent of the grid's longest axis.
  std::pair<int64_t, int64_t> longest(const SinusoidOptions& o) const {
    std::pair<int64_t, int64_t> best{0, 0};
    for (int64_t block = 0; block < o.axes(); ++block) {
      const int64_t extent = o.grid()[grid_axis(o, block)];
      if (extent > best.second) best = {block, extent};
    }
    return best;
  }

  std::optional<Rates> grid_rates(const SinusoidOptions& o) const {
    const auto [block, extent] = longest(o);
    int64_t stride = 1;
    for (int64_t axis = grid_axis(o, block) + 1; axis < o.axes(); ++axis) stride *= o.grid()[axis];
    if (extent < 2 || first_ + (extent - 1) * stride >= reading_.rows.size(0)) return std::nullopt;
    const at::Tensor rows = reading_.rows
                                .slice(0, first_, first_ + (extent - 1) * stride + 1, stride)
                                .slice(0, 0, kRateRows)
                                .to(at::kDouble)
                                .contiguous();
    return fit_rates(pairs(o, block, rows.size(1)), o.base(), rows);
  }

  const Preset& preset_;
  const Reading& reading_;
  const bool edited_;
  const Visit& visit_;
  at::Tensor sample_;             // rows that are not zero, float64
  std::vector<int64_t> numbers_;  // their numbers
  int64_t first_ = 0;             // first row that is not zero
};

}  // namespace

void for_each_candidate(const Preset& preset, const Reading& reading, bool edited,
                        const Visit& visit) {
  Guesser(preset, reading, edited, visit).all();
}

}  // namespace posenc::identification
