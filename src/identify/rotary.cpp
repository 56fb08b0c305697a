// identify_rotary(): the first candidate with the bits of the table, or the first within the
// rounding of another CPU.

#include <ATen/TensorOperators.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cos.h>
#include <ATen/ops/outer.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/tensor.h>
#include <c10/util/Exception.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/epsilon.h"
#include "identify/candidate.h"
#include "identify/rotary/candidates.h"
#include "identify/rotary/place.h"
#include "identify/rotary/view.h"
#include "posenc/identify.h"
#include "posenc/sinusoid/rotary_preset.h"

namespace posenc {
namespace {

using namespace identification;
using rotary::CosLayout;

constexpr double kLeastFirst = 0.01;     // of the first frequency of an unknown scaling
constexpr double kFewestTurns = 20.0;    // of a rotary embedding's first frequency to its last
constexpr int64_t kFewestUnscaled = 8;   // of one whose scaling is not known
constexpr double kUnscaledError = 2e-3;  // what the estimates of its frequencies may add

// Estimates may be parameters that no rotary embedding has.
bool is_valid(const RotaryOptions& options) {
  try {
    options.validate();
    return true;
  } catch (const c10::ValueError&) {
    return false;
  }
}

struct RotaryMatch {
  RotaryCandidate candidate;
  Distance distance;
  bool polar;
};

class RotarySearch {
 public:
  explicit RotarySearch(const RotaryView& view) : view_(view) {
    if (view.inv_freq.defined()) return;
    sample_ = sample_rows(view.length());
  }

  std::optional<RotaryMatch> run(const RotaryEstimate& estimate) {
    amplitude_ = std::max(1.0, estimate.amplitude);
    for_each_rotary(estimate, [this](const RotaryCandidate& candidate) {
      return is_valid(candidate.options) && consider(candidate);
    });
    return best_;
  }

  // The largest difference at the last position that other roundings of frequency, angle and cosine
  // cause, measured between CPUs and libraries.
  double bound() const {
    const double step = half_epsilon_of(view_.inv_freq.defined() ? view_.inv_freq.scalar_type()
                                                                 : view_.values().scalar_type());
    if (view_.inv_freq.defined()) return 5e-7 + step;
    return amplitude_ *
           (4 * std::min(static_cast<double>(view_.length()), 1e5) * 0x1p-24 + 2.4e-7 + step);
  }

 private:
  bool consider(const RotaryCandidate& candidate) {
    for (const bool polar : {true, false}) {
      if (polar && !view_.may_be_polar) continue;
      if (!near(candidate, polar)) continue;
      const Distance whole = between(candidate, polar, all_rows());
      if (!whole.equal && (best_ || whole.max_abs > bound())) continue;
      best_ = RotaryMatch{candidate, whole, polar};
      if (whole.equal) return true;
    }
    return false;
  }

  at::Tensor all_rows() const {
    if (view_.inv_freq.defined()) return {};
    return at::arange(view_.length(), at::TensorOptions(at::kLong));
  }

  bool near(const RotaryCandidate& candidate, bool polar) const {
    return view_.inv_freq.defined() || between(candidate, polar, sample_).max_abs <= 1.01 * bound();
  }

  Distance between(const RotaryCandidate& candidate, bool polar, const at::Tensor& rows) const {
    const RotaryFrequencies f = rotary_frequencies(candidate.options, candidate.length);
    if (view_.inv_freq.defined()) {
      const at::Tensor own = f.inv_freq.to(view_.inv_freq.scalar_type());
      Distance result = distance(own, view_.inv_freq);
      const at::Tensor x = own.to(at::kDouble), y = view_.inv_freq.to(at::kDouble);
      const double relative = ((x - y).abs() / x.clamp_min(1e-300)).max().item<double>();
      if (!(relative <= bound())) result.max_abs = std::max(result.max_abs, 1.0);
      return result;
    }
    RotaryOptions options = candidate.options;
    if (polar) {
      options.cos_layout(CosLayout::Complex)
          .cos_type(rotary::CosType::Float32)
          .arithmetic(rotary::Arithmetic::Complex);
    }
    const RotaryCosSin table = rotary_cos_sin(options, f, rows, view_.values().scalar_type());
    Distance result;
    result.equal = true;
    if (view_.cos.defined()) result.join(distance(table.cos, view_.cos.index_select(0, rows)));
    if (view_.sin.defined()) result.join(distance(table.sin, view_.sin.index_select(0, rows)));
    return result;
  }

  const RotaryView& view_;
  at::Tensor sample_;
  double amplitude_ = 1.0;
  std::optional<RotaryMatch> best_;
};

// Whether the table holds cosines and sines of frequencies that decrease like those of a rotary
// embedding with any scaling.
bool has_rotary_frequencies(const RotaryView& view, const RotaryEstimate& e, double bound) {
  const auto n = static_cast<int64_t>(e.f.size());
  if (view.inv_freq.defined() || n < kFewestUnscaled || view.length() < 2 * kFewestUnscaled)
    return false;
  for (size_t i = 1; i < e.f.size(); ++i) {
    if (e.f[i] > e.f[i - 1] + e.error[i] + e.error[i - 1]) return false;
  }
  if (e.f.front() > 1.01 || e.f.front() < kLeastFirst) return false;
  if (e.f.front() < kFewestTurns * e.f.back()) return false;
  const at::Tensor rows = sample_rows(view.length());
  const at::Tensor angles = at::outer(rows.to(at::kDouble), at::tensor(e.f, at::kDouble));
  const auto off = [&](const at::Tensor& own, const at::Tensor& expected) {
    if (!own.defined()) return 0.0;
    const at::Tensor there = own.index_select(0, rows).to(at::kDouble);
    return (there - expected * e.amplitude).abs().max().item<double>();
  };
  return std::max(off(view.cos, angles.cos()), off(view.sin, angles.sin())) <=
         bound + kUnscaledError;
}

bool fits(const RotaryPreset& preset, const RotaryView& view, const RotaryMatch& match) {
  const RotaryOptions& o = preset.options;
  if (o.planes() != rotary::Planes::One) return false;
  if (!match.candidate.preset.empty()) return preset.name == match.candidate.preset;
  if (view.inv_freq.defined()) return true;
  if (match.polar || view.layout == "complex") {
    return match.polar && o.cos_layout() == CosLayout::Complex;
  }
  if (view.layout == "halves") return o.cos_layout() == CosLayout::Halves;
  if (view.layout == "pairs") return o.cos_layout() == CosLayout::Pairs;
  return o.cos_layout() == CosLayout::Single;
}

std::string code(const RotaryMatch& match, const std::string& preset) {
  const RotaryOptions& o = match.candidate.options;
  std::string text = fmt::format("posenc::rotary_preset(\"{}\", {})", preset, o.dim());
  if (o.base() != 10000.0) text += fmt::format(".base({})", number_text(o.base()));
  if (!match.candidate.scaling.empty())
    text += fmt::format(".scaling({})", match.candidate.scaling);
  return text;
}

std::string what(const RotaryView& view) {
  if (view.inv_freq.defined()) return "frequencies of a rotary embedding (or of a sinusoid)";
  const std::string both = view.cos.defined() && view.sin.defined() ? "cos and sin" : view.holds;
  return fmt::format("{} of a rotary embedding", both);
}

constexpr const char* kPairing =
    "which channels of q and k form a pair cannot be determined from it";

}  // namespace

RotaryIdentification identify_rotary(const at::Tensor& tensor, const std::string& name) {
  TORCH_CHECK_VALUE(tensor.defined(), "[identify_rotary] tensor must be defined");
  const at::NoGradGuard no_grad;
  RotaryIdentification result;
  result.verdict = "not a rotary embedding";
  const bool is_known = tensor.layout() == at::kStrided && !tensor.is_meta() &&
                        (tensor.is_floating_point() || tensor.is_complex());
  if (!is_known) return result;
  const auto view = rotary_view(tensor, names_rotary(name));
  if (!view) return result;
  const RotaryEstimate estimate = estimate_frequencies(*view);
  RotarySearch search(*view);
  const auto match = search.run(estimate);
  if (!match) {
    if (!has_rotary_frequencies(*view, estimate, search.bound())) return result;
    result.rotary = true;
    result.holds = view->holds;
    result.layout = view->layout;
    result.length = view->length();
    result.verdict =
        fmt::format("{}, with frequencies of no known scaling; {}", what(*view), kPairing);
    return result;
  }
  result.rotary = true;
  result.holds = view->holds;
  result.layout = view->layout;
  result.length = view->length();
  result.max_abs = match->distance.max_abs;
  result.max_ulp = match->distance.max_ulp;
  result.params = match->candidate.params;
  for (const RotaryPreset& preset : rotary_presets()) {
    if (!fits(preset, *view, *match)) continue;
    if (result.nearest.empty()) result.nearest = preset.name;
    if (match->distance.equal) result.presets.push_back(preset.name);
  }
  if (result.nearest.empty()) result.nearest = "llama";
  result.options = code(*match, result.nearest);
  const std::string off =
      match->distance.equal
          ? "equal bits"
          : fmt::format("rounded as on another CPU or by another library, at most {:.2g} apart",
                        result.max_abs);
  result.verdict = fmt::format("{}, {}; {}", what(*view), off, kPairing);
  return result;
}

}  // namespace posenc
