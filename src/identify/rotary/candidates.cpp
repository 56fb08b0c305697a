// If a scaling has more parameters than its frequencies determine, the values that models use are
// tried. A candidate counts only if it reproduces the table.

#include "identify/rotary/candidates.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

#include "identify/rotary/fit.h"

namespace posenc::identification {
namespace {

using Params = std::map<std::string, std::string>;

constexpr double kUsualBases[] = {10000, 500000, 1000000, 100000, 50000, 150000, 20000, 1000, 100};
constexpr double kPlain = 0.98;        // of the first frequency, which is 1 without linear scaling
constexpr double kMostFactor = 128.0;  // of rotary::Dynamic
constexpr double kUsualHigh[] = {4, 1.5, 2, 8};  // high_freq_factor
constexpr size_t kRoundDigits = 5;               // of a base that nothing has changed
constexpr int64_t kLongestOriginal = int64_t{1} << 22, kShortestOriginal = 256;

class Candidates : RotaryFit {
 public:
  Candidates(const RotaryEstimate& e, int64_t dim,
             const std::function<bool(const RotaryCandidate&)>& visit)
      : RotaryFit(e, dim), e_(e), n_(frequencies()), dim_(dim), visit_(visit) {}

  /// Whether one was accepted.
  bool run() const {
    if (unscaled(/*round=*/true) || linear()) return true;
    return dim_ % 2 == 0 &&
           (proportional() || dynamic() || alpha() || llama3() || yarn() || longrope());
  }
  bool run_with_any_base() const { return unscaled(/*round=*/false); }

 private:
  RotaryOptions options(double base) const {
    return RotaryOptions(dim_, rotary::Pairing::Adjacent)
        .base(base)
        .part(rotary::Part::First)
        .cos_layout(rotary::CosLayout::Single);
  }

  bool try_candidate(double base, const rotary::Scaling& scaling, Params params, std::string code,
                     int64_t length = 0, std::string preset = "") const {
    params["rope_theta"] = number_text(base);
    params["head_dim"] = std::to_string(dim_);
    return visit_({options(base).scaling(scaling), length, std::move(params), std::move(code),
                   std::move(preset)});
  }

  // A base with many digits has more likely been changed by a scaling.
  bool unscaled(bool round) const {
    if (f(0) < kPlain) return false;
    const auto try_base = [&](double b) {
      return (number_text(b).size() <= kRoundDigits || b == std::round(b / 1000) * 1000) == round &&
             try_candidate(b, rotary::Default{}, {{"rope_type", "default"}}, "");
    };
    const auto all = rounded(base(n_));
    return std::any_of(all.begin(), all.end(), try_base);
  }

  bool linear() const {
    if (!(f(0) < kPlain) || !(f(0) > 0)) return false;
    const FittedValue factor{1 / f(0), std::max(kErrors * relative_error(0), kFactorError)};
    for (const double b : rounded(base(n_))) {
      for (const double by : rounded(factor)) {
        if (try_candidate(b, rotary::Linear{by},
                          {{"rope_type", "linear"}, {"factor", number_text(by)}},
                          fmt::format("posenc::rotary::Linear{{{}}}", number_text(by))))
          return true;
      }
    }
    return false;
  }

  // Frequencies of 0 at the end.
  bool proportional() const {
    int64_t rotating = n_;
    while (rotating > 0 && f(rotating - 1) <= error(rotating - 1)) --rotating;
    if (rotating == n_ || rotating < 2) return false;
    const double share = static_cast<double>(rotating) / static_cast<double>(n_);
    const FittedValue factor{1 / f(0), std::max(kErrors * relative_error(0), kFactorError)};
    for (const double b : rounded(base(rotating))) {
      for (const double by : f(0) < kPlain ? rounded(factor) : std::vector<double>{1.0}) {
        Params params = {{"rope_type", "proportional"},
                         {"partial_rotary_factor", number_text(share)}};
        if (by != 1.0) params["factor"] = number_text(by);
        if (try_candidate(b, rotary::Proportional{share, by}, params,
                          fmt::format("posenc::rotary::Proportional{{{}, {}}}", number_text(share),
                                      number_text(by))))
          return true;
      }
    }
    return false;
  }

  bool alpha() const {
    if (dim_ <= 2) return false;
    for (const double usual : kUsualBases) {
      const FittedValue alpha = growth(usual);
      if (!(alpha.value > 1.5)) continue;
      const double by = rounded_values(alpha.value, alpha.error).front();
      const std::string text = number_text(by);
      if (text.size() <= 6 &&
          try_candidate(usual, rotary::NtkAlpha{by}, {{"rope_type", "dynamic"}, {"alpha", text}},
                        fmt::format("posenc::rotary::NtkAlpha{{{}}}", text), 0, "hunyuan_v1"))
        return true;
    }
    return false;
  }

  // A table longer than max_position, if its length is known.
  bool dynamic() const {
    if (dim_ <= 2) return false;
    for (const double usual : kUsualBases) {
      const FittedValue grown = growth(usual);
      for (int64_t most = kShortestOriginal; most < e_.length; most *= 2) {
        const double longer = static_cast<double>(e_.length) / static_cast<double>(most);
        const FittedValue factor{(grown.value - 1) / (longer - 1), 2 * grown.error};
        if (!(factor.value > 1.0)) continue;
        const double by = rounded_values(factor.value, factor.error).front();
        const std::string text = number_text(by);
        if (text.size() > 4 || by > kMostFactor) continue;
        const Params params = {{"rope_type", "dynamic"},
                               {"factor", text},
                               {"max_position_embeddings", std::to_string(most)}};
        if (try_candidate(usual, rotary::Dynamic{by, most}, params,
                          fmt::format("posenc::rotary::Dynamic{{{}, {}}}", text, most), e_.length))
          return true;
      }
    }
    return false;
  }

  bool llama3() const {
    for (const double b : bases_before_ramp()) {
      for (const double factor : factors(b)) {
        if (!(factor > 1.0)) continue;
        std::vector<std::pair<double, double>> tried;  // high_freq_factor, original length
        const FittedLine line =
            ramp(b, factor, [&](int64_t i) { return plain(b, i) / (2 * std::numbers::pi); });
        if (line.points >= 2 && line.start < 0) {
          const double high = 1 - 1 / line.start;
          for (const double h : rounded_values(high, 0.01)) {
            for (const double original : rounded_values(line.slope * (h - 1), 0.01))
              tried.emplace_back(h, original);
          }
        }
        for (const double high : kUsualHigh) {
          for (int64_t original = kShortestOriginal; original <= kLongestOriginal; original *= 2)
            tried.emplace_back(high, static_cast<double>(original));
        }
        for (const auto& [high, original] : tried) {
          if (offer_llama3(b, factor, high, original)) return true;
        }
      }
    }
    return false;
  }

  bool offer_llama3(double base, double factor, double high, double original) const {
    if (!(high > 1.0) || !(original > 0.0)) return false;
    return try_candidate(base, rotary::Llama3{factor, 1.0, high, original},
                         {{"rope_type", "llama3"},
                          {"factor", number_text(factor)},
                          {"low_freq_factor", "1"},
                          {"high_freq_factor", number_text(high)},
                          {"original_max_position_embeddings", number_text(original)}},
                         fmt::format("posenc::rotary::Llama3{{{}, 1, {}, {}}}", number_text(factor),
                                     number_text(high), number_text(original)));
  }

  bool yarn() const {
    for (const double b : bases_before_ramp()) {
      for (const double factor : factors(b)) {
        if (!(factor > 1.0)) continue;
        std::vector<double> originals;
        for (int64_t original = kShortestOriginal; original <= kLongestOriginal; original *= 2)
          originals.push_back(static_cast<double>(original));
        const FittedLine line = ramp(b, factor, [](int64_t i) { return static_cast<double>(i); });
        if (line.points >= 2) {  // where the ramp begins, at 32 rotations
          const double low = (1 - line.start) / line.slope;
          const double original = 64 * std::numbers::pi * std::pow(b, exponent(1) * low);
          for (const double o : rounded_values(original, 0.02)) originals.push_back(o);
        }
        for (const double original : originals) {
          if (offer_yarn(b, factor, original, true) || offer_yarn(b, factor, original, false))
            return true;
        }
      }
    }
    return false;
  }

  bool offer_yarn(double base, double factor, double original, bool truncate) const {
    if (!(original >= 1.0) || !std::isfinite(original)) return false;
    rotary::Yarn s;
    s.factor = factor;
    s.original_max_position = original;
    s.truncate = truncate;
    Params params = {{"rope_type", "yarn"},
                     {"factor", number_text(factor)},
                     {"original_max_position_embeddings", number_text(original)}};
    std::string attention = "{}";
    const double usual = factor <= 1.0 ? 1.0 : 0.1 * std::log(factor) + 1.0;
    if (e_.length > 0 && std::abs(e_.amplitude - usual) > e_.amplitude_error) {
      s.attention_factor = e_.amplitude;
      attention = params["attention_factor"] = number_text(e_.amplitude);
    }
    if (!truncate) params["truncate"] = "false";
    return try_candidate(
        base, s, params,
        fmt::format("posenc::rotary::Yarn{{{}, {}, 32, 1, {}, {}}}", number_text(factor),
                    number_text(original), truncate, attention));
  }

  // A factor per frequency, each a decimal fraction of a few digits.
  bool longrope() const {
    for (const double usual : kUsualBases) {
      std::vector<double> factors;
      for (int64_t i = 0; i < n_; ++i) {
        if (relative_error(i) > 1e-4) return false;
        const double factor = plain(usual, i) / f(i);
        const double rounded = std::round(factor * 1e4) / 1e4;
        if (std::abs(rounded - factor) > (1e-6 + relative_error(i)) * factor) break;
        factors.push_back(rounded);
      }
      if (static_cast<int64_t>(factors.size()) < n_ || factors.back() < 0.5) continue;
      rotary::LongRope s;
      s.short_factor = s.long_factor = factors;
      s.original_max_position = 2;
      s.attention_factor = e_.amplitude;
      std::vector<std::string> texts;
      for (const double factor : factors) texts.push_back(number_text(factor));
      const std::string list = fmt::format("{}", fmt::join(texts, ","));
      Params params = {{"rope_type", "longrope"},
                       {"short_factor", list},
                       {"long_factor", list},
                       {"factor", "1"},
                       {"original_max_position_embeddings", "2"}};
      if (e_.length > 0) params["attention_factor"] = number_text(e_.amplitude);
      if (try_candidate(usual, s, params,
                        fmt::format("posenc::rotary::LongRope{{{{{0}}}, {{{0}}}, 2, 1, {1}}}", list,
                                    number_text(e_.amplitude))))
        return true;
    }
    return false;
  }

  const RotaryEstimate& e_;
  const int64_t n_, dim_;
  const std::function<bool(const RotaryCandidate&)>& visit_;
};

}  // namespace

void for_each_rotary(const RotaryEstimate& estimate,
                     const std::function<bool(const RotaryCandidate&)>& visit) {
  const auto n = static_cast<int64_t>(estimate.f.size());
  for (const int64_t dim : {2 * n, 2 * n - 1}) {  // an odd dim has its own exponents
    if (Candidates(estimate, dim, visit).run()) return;
  }
  Candidates(estimate, 2 * n, visit).run_with_any_base();
}

}  // namespace posenc::identification
