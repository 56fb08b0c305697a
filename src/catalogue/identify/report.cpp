#include "catalogue/identify/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "core/floating_point.h"
#include "core/named.h"

namespace posenc::identification {
namespace {

constexpr int64_t kMinRowsToReport = 6;  // with fewer rows or channels, only equal bits count
constexpr double kLearned = 0.98;        // least correlation of a table trained from this sinusoid
constexpr double kMaxDistinguishablePosition =
    1e5;                         // position beyond which rounding looks like noise
constexpr double kRate = 0.999;  // least correlation of a sinusoid with slightly different rates

// Whether an edit makes the recipe another one; the other edits only select rows.
bool changes_recipe(const Candidate& c) {
  return std::any_of(c.edits.begin(), c.edits.end(), [](const Candidate::Edit& edit) {
    return edit.name == "layout" || edit.name == "cos_first" || edit.name == "base";
  });
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789.-+e") == std::string::npos;
}

// posenc::preset("whisper", 384, {{"max_timescale", 500000}}).start(2)
std::string code(const Candidate& c) {
  std::vector<std::string> params;
  for (const auto& [name, value] : c.params) {
    const PresetParam* param = detail::find_named(c.preset->params, name);
    if (param != nullptr && param->fallback == value.text) continue;
    params.push_back(is_number(value.text) ? fmt::format("{{\"{}\", {}}}", name, value.text)
                                           : fmt::format("{{\"{}\", \"{}\"}}", name, value.text));
  }
  std::string text = fmt::format("posenc::preset(\"{}\", {}", c.preset->name, c.options.dim());
  if (!params.empty()) text += fmt::format(", {{{}}}", fmt::join(params, ", "));
  text += ")";
  for (const Candidate::Edit& edit : c.edits) text += edit.code;
  return text;
}

std::map<std::string, std::string> words(const Candidate& c) {
  std::map<std::string, std::string> result;
  for (const PresetParam& param : c.preset->params) result[param.name] = param.fallback;
  for (const auto& [name, value] : c.params) result[name] = value.text;
  for (const Candidate::Edit& edit : c.edits) result[edit.name] = edit.value;
  return result;
}

// How much other roundings of frequency, angle and sine may change the last position: measured
// between CPUs and libraries, 3 p 2^-24 + 1.2e-7 was never exceeded, nor 4 p 2^-24 + 1.2e-7 by
// TensorFlow; plus one step of the type.
double rounding_bound(const Candidate& c, const TableView& view) {
  const double rows = static_cast<double>(view.rows.size(0));
  const double last = std::abs(c.options.start()) + rows * std::abs(c.options.step());
  const auto type = view.rows.scalar_type();
  const double step = half_epsilon_of(type) / 2;
  return 4 * std::min(last, kMaxDistinguishablePosition) * 0x1p-24 *
             std::max(1.0, std::abs(c.options.angle_scale())) +
         2.4e-7 + step;
}

}  // namespace

Identification report(const SearchResult& found) {
  const Match& best = found.best();
  const Candidate& c = best.candidate;
  Identification result;
  result.nearest = c.preset->name;
  result.max_abs = best.distance.max_abs;
  result.max_ulp = best.distance.max_ulp;
  result.params = words(c);
  result.options = code(c);
  result.length = c.length;
  result.shape = found.view.shape;
  result.leading_rows = found.view.leading;

  if (found.exact()) {
    result.sinusoid = true;
    for (const Match& match : found.equal) {
      if (changes_recipe(match.candidate)) continue;
      for (const Preset* preset : match.group) result.presets.push_back(preset->name);
    }
    result.verdict = !changes_recipe(c) ? fmt::format("equal bits: {}", c.preset->name)
                     : result.params.count("base") && c.edits.size() == 1
                         ? fmt::format("the operations of {} with another base", c.preset->name)
                         : fmt::format("the bits of {} with its layout swapped", c.preset->name);
    return result;
  }
  const double bound = rounding_bound(c, found.view);
  const at::Tensor& rows = found.view.rows;
  const bool telling = rows.size(0) >= kMinRowsToReport && rows.size(1) >= kMinRowsToReport;
  if (!telling || !std::isfinite(result.max_abs)) {
    result = Identification();
    result.verdict = "not a sinusoid";
  } else if (result.max_abs <= bound) {
    result.sinusoid = true;
    result.verdict = fmt::format(
        "{}{}, rounded as on another CPU or by another library: at most "
        "{:.2g} apart",
        c.preset->name, changes_recipe(c) ? " with its layout or base changed" : "",
        result.max_abs);
  } else if (found.centred >= kRate && found.first <= 4 * bound && result.max_abs < 0.05) {
    result.sinusoid = true;
    result.verdict = fmt::format("a sinusoid by no known operations; {} is {:.2g} apart",
                                 c.preset->name, result.max_abs);
  } else if (found.centred >= kLearned && std::abs(c.options.step()) == 1.0) {
    result.verdict =
        fmt::format("learned, began as {}: correlation {:.4f}", c.preset->name, found.centred);
  } else {
    result = Identification();
    result.verdict = "not a sinusoid";
  }
  return result;
}

}  // namespace posenc::identification
