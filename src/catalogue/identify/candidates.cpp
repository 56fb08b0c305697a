// What all presets share: switches, dimensions, rows of zeros.

#include "catalogue/identify/candidates.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/named.h"
#include "positions/sinusoid/columns.h"
#include "positions/sinusoid/presets/recipe.h"
#include "positions/sinusoid/rows.h"

namespace posenc::identification {
namespace {

// Every combination of the preset's switches.
std::vector<PresetParams> switches(const Preset& preset) {
  static const std::vector<std::pair<const char*, std::vector<const char*>>> known = {
      {"attn_type", {"bi", "uni"}},         {"cls_token", {"0", "1"}},
      {"downscale_freq_shift", {"1", "0"}}, {"flip_sin_to_cos", {"0", "1"}},
      {"interleave_sin_cos", {"0", "1"}},   {"normalize", {"0", "1"}},
      {"reverse_coord", {"0", "1"}},        {"temp_bug_fix", {"1", "0"}}};
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

}  // namespace

bool takes(const Preset& preset, const char* name) {
  return detail::find_named(preset.params, name) != nullptr;
}

const char* base_name(const Preset& preset) {
  for (const char* name :
       {"max_timescale", "theta", "max_period", "max_wavelength", "temperature"}) {
    if (takes(preset, name)) return name;
  }
  return nullptr;
}

CandidateGenerator::CandidateGenerator(const Preset& preset, const TableView& view, bool edited,
                                       const Visit& visit)
    : preset_(preset), view_(view), edited_(edited), visit_(visit) {
  const at::Tensor index = sample_rows(view.rows.size(0));
  std::vector<int64_t> kept;
  const auto* row = index.const_data_ptr<int64_t>();
  for (int64_t i = 0; i < index.numel(); ++i) {
    if (!is_zero(row[i])) numbers_.push_back(row[i]), kept.push_back(i);
  }
  sample_ = view.rows.index_select(0, index)
                .index_select(0, at::tensor(kept))
                .to(at::kDouble)
                .contiguous();
  first_ = is_zero(0) ? 1 : 0;
}

void CandidateGenerator::all() {
  const int64_t channels = view_.rows.size(1);
  for (const int64_t dim : {channels, channels - 1, channels + 1}) {
    for (const PresetParams& params : switches(preset_)) {
      if (takes(preset_, "height")) {
        for (PresetParams box : boxes()) {
          box.insert(params.begin(), params.end());
          grid(dim, box);
        }
      } else {
        line(dim, params);
      }
    }
  }
}

bool CandidateGenerator::is_zero(int64_t row) const {
  return std::find(view_.zeros.begin(), view_.zeros.end(), row) != view_.zeros.end();
}

// The columns of each pair hold a sine and a cosine: their squares add up to the squared amplitude.
bool CandidateGenerator::fits(const SinusoidOptions& o) const {
  if (o.index() == sinusoid::Index::Doubled || o.post() == sinusoid::Post::Standardize) return true;
  const double square = o.post() == sinusoid::Post::None ? 1.0 : 1.0 / static_cast<double>(o.dim());
  const auto value = sample_.accessor<const double, 2>();
  int64_t count = 0, bad = 0;
  for (int64_t block = 0; block < o.axes(); ++block) {
    const Columns sin = columns(o, block, false), cos = columns(o, block, true);
    for (int64_t i = 0; i < std::min(sin.count, cos.count); ++i) {
      const int64_t s = sin.first + i * sin.step, c = cos.first + i * cos.step;
      if (s >= value.size(1) || c >= value.size(1)) continue;
      for (int64_t row = 0; row < value.size(0); row += 3) {
        const double sum = value[row][s] * value[row][s] + value[row][c] * value[row][c];
        ++count;
        if (!(std::abs(sum - square) <= 0.4 * square)) ++bad;
      }
    }
  }
  return bad * 10 <= count;
}

// Returns nullopt for a dim that the preset refuses, or that gives another number of channels.
std::optional<Candidate> CandidateGenerator::make(int64_t dim, const PresetParams& params) const {
  const int64_t channels = view_.rows.size(1);
  Candidate c{&preset_, params, {}, recipes::make_options(preset_, dim, params), 0};
  if (c.options.odd_dim() == sinusoid::OddDim::Error && dim % 2 == 1 && !c.options.raw_first()) {
    return std::nullopt;
  }
  if (c.options.channels() != channels) return std::nullopt;
  try {
    c.options.validate();
  } catch (const c10::Error&) {
    return std::nullopt;
  }
  return c;
}

void CandidateGenerator::try_candidate(Candidate c) const {
  if (edited_ && !view_.zeros.empty() && !c.options.zero_row() && !c.options.cls_row()) {
    const int64_t row = view_.zeros.front();
    if (row == 0) {
      Candidate token = c;
      token.options.cls_row(true);
      token.edits.push_back({".cls_row(true)", "cls_row", "1"});
      visit(std::move(token));
    }
    if (c.options.grid().empty()) {
      c.options.zero_row(row);
      c.edits.push_back({fmt::format(".zero_row({})", row), "zero_row", std::to_string(row)});
    }
  } else if (edited_ && view_.zeros.empty() && (c.options.zero_row() || c.options.cls_row())) {
    if (c.options.zero_row()) c.edits.push_back({".zero_row(std::nullopt)", "zero_row", "none"});
    if (c.options.cls_row()) c.edits.push_back({".cls_row(false)", "cls_row", "0"});
    c.options.zero_row(std::nullopt).cls_row(false);
  }
  visit(std::move(c));
}

void CandidateGenerator::visit(Candidate c) const {
  c.length = nominal_length(c.options, view_.rows.size(0));
  if (c.length > 0) visit_(c);
}

void for_each_candidate(const Preset& preset, const TableView& view, bool edited,
                        const std::function<void(const Candidate&)>& visit) {
  CandidateGenerator(preset, view, edited, visit).all();
}

}  // namespace posenc::identification
