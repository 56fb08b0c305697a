#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "posenc/positions/rotary/rotary.h"
#include "positions/rotary/planes.h"

namespace posenc {
namespace {

constexpr int64_t kMostChannels = int64_t{1} << 20;

void check_positive(const char* what, double value) {
  TORCH_CHECK_VALUE(std::isfinite(value) && value > 0.0, "[rotary] ", what,
                    " must be positive and finite. Got ", value);
}

void check_finite(const char* what, double value) {
  TORCH_CHECK_VALUE(std::isfinite(value), "[rotary] ", what, " must be finite. Got ", value);
}

void check_even(const char* scaling, int64_t dim) {
  TORCH_CHECK_VALUE(dim % 2 == 0, "[rotary] dim must be even for ", scaling, ". Got ", dim);
}

// The base is raised to dim / (dim - 2).
void check_beyond_two(const char* scaling, int64_t dim) {
  TORCH_CHECK_VALUE(dim > 2, "[rotary] dim must be above 2 for ", scaling, ". Got ", dim);
}

void check_factors(const char* what, const std::vector<double>& factors, int64_t count) {
  TORCH_CHECK_VALUE(static_cast<int64_t>(factors.size()) == count, "[rotary] ", what,
                    " must have dim / 2 = ", count, " numbers. Got ", factors.size());
  for (const double factor : factors) check_positive(what, factor);
}

void check_attention_factor(const std::optional<double>& factor) {
  if (factor) check_finite("attention_factor", *factor);
}

struct ScalingCheck {
  const RotaryOptions& options;

  void operator()(const rotary::Default&) const {}
  void operator()(const rotary::Linear& s) const { check_positive("factor", s.factor); }
  void operator()(const rotary::Proportional& s) const {
    check_even("rotary::Proportional", options.dim());
    check_positive("factor", s.factor);
    TORCH_CHECK_VALUE(s.proportion > 0.0 && s.proportion <= 1.0,
                      "[rotary] proportion must lie in (0, 1]. Got ", s.proportion);
  }
  void operator()(const rotary::Dynamic& s) const {
    check_beyond_two("rotary::Dynamic", options.dim());
    check_positive("factor", s.factor);
    check_positive("max_position", static_cast<double>(s.max_position));
  }
  void operator()(const rotary::NtkAlpha& s) const {
    check_beyond_two("rotary::NtkAlpha", options.dim());
    check_positive("alpha", s.alpha);
  }
  void operator()(const rotary::Yarn& s) const {
    check_even("rotary::Yarn", options.dim());
    check_positive("factor", s.factor);
    check_positive("original_max_position", s.original_max_position);
    check_positive("beta_fast", s.beta_fast);
    check_positive("beta_slow", s.beta_slow);
    check_finite("mscale", s.mscale);
    check_finite("mscale_all_dim", s.mscale_all_dim);
    check_attention_factor(s.attention_factor);
    TORCH_CHECK_VALUE(options.base() != 1.0,
                      "[rotary] base must not be 1 for rotary::Yarn, which divides by its "
                      "logarithm. Got 1");
  }
  void operator()(const rotary::LongRope& s) const {
    check_factors("short_factor", s.short_factor, options.frequencies());
    check_factors("long_factor", s.long_factor, options.frequencies());
    check_positive("original_max_position", s.original_max_position);
    check_positive("factor", s.factor);
    check_attention_factor(s.attention_factor);
    TORCH_CHECK_VALUE(s.attention_factor || s.factor <= 1.0 || s.original_max_position > 1.0,
                      "[rotary] original_max_position must be above 1 for rotary::LongRope, which "
                      "divides by its logarithm. Got ",
                      s.original_max_position);
  }
  void operator()(const rotary::PhiMoe& s) const {
    check_factors("short_factor", s.short_factor, options.frequencies());
    check_positive("original_max_position", s.original_max_position);
    check_finite("short_mscale", s.short_mscale);
    check_finite("long_mscale", s.long_mscale);
  }
  void operator()(const rotary::Llama3& s) const {
    check_positive("factor", s.factor);
    check_positive("low_freq_factor", s.low_freq_factor);
    check_positive("high_freq_factor", s.high_freq_factor);
    check_positive("original_max_position", s.original_max_position);
  }
};

void check_sections(const RotaryOptions& o) {
  const auto& sections = o.sections();
  const auto got = [&] { return fmt::format("[{}]", fmt::join(sections, ", ")); };
  const int64_t sum = std::accumulate(sections.begin(), sections.end(), int64_t{0});
  TORCH_CHECK_VALUE(
      std::all_of(sections.begin(), sections.end(), [](int64_t section) { return section >= 0; }),
      "[rotary] sections must not be negative. Got ", got());
  switch (o.planes()) {
    case rotary::Planes::One:
    case rotary::Planes::RowColumn:
    case rotary::Planes::Axial:
    case rotary::Planes::AxialAlternating:
    case rotary::Planes::EvenOdd:
      TORCH_CHECK_VALUE(sections.empty(), "[rotary] these planes have no sections. Got ", got());
      break;
    case rotary::Planes::Interleaved:
    case rotary::Planes::AxialInterleaved:
      TORCH_CHECK_VALUE(sections.size() == 3, "[rotary] sections must be three numbers. Got ",
                        got());
      break;
    case rotary::Planes::HeightWidth:
      TORCH_CHECK_VALUE(sections.size() == 3 && sections[0] == sections[1] && sections[2] > 0,
                        "[rotary] sections must be three numbers, the first two equal and the last "
                        "positive. Got ",
                        got());
      [[fallthrough]];
    case rotary::Planes::Chunked:
    case rotary::Planes::Doubled:
      TORCH_CHECK_VALUE(sum == o.frequencies() && !sections.empty(),
                        "[rotary] sections must sum to dim / 2 = ", o.frequencies(), ". Got ",
                        got());
  }
  const bool by_two =
      o.planes() == rotary::Planes::RowColumn || o.planes() == rotary::Planes::EvenOdd;
  TORCH_CHECK_VALUE(!by_two || o.dim() % 4 == 0,
                    "[rotary] dim must be a multiple of 4 for these planes. Got ", o.dim());
}

void check_axis_dims(const RotaryOptions& o) {
  const auto& dims = o.axis_dims();
  const auto got = [&] { return fmt::format("[{}]", fmt::join(dims, ", ")); };
  TORCH_CHECK_VALUE(dims.empty() || takes_turns(o),
                    "[rotary] axis_dims belong to Planes::Axial and AxialAlternating. Got ", got());
  const auto is_even = [&](int64_t n) { return n >= 0 && n % 2 == 0 && n <= o.dim(); };
  TORCH_CHECK_VALUE(
      std::all_of(dims.begin(), dims.end(), is_even) &&
          (dims.empty() || std::any_of(dims.begin(), dims.end(), [](int64_t n) { return n > 0; })),
      "[rotary] axis_dims must be even and not negative, and not all 0. Got ", got());
  const bool alternating = o.planes() == rotary::Planes::AxialAlternating;
  TORCH_CHECK_VALUE(
      !alternating || dims.empty() ||
          std::count(dims.begin(), dims.end(), dims[0]) == static_cast<int64_t>(dims.size()),
      "[rotary] axis_dims must be equal for Planes::AxialAlternating. Got ", got());
  TORCH_CHECK_VALUE(std::accumulate(dims.begin(), dims.end(), int64_t{0}) <= o.dim(),
                    "[rotary] axis_dims must not sum to more than dim = ", o.dim(), ". Got ",
                    got());
  TORCH_CHECK_VALUE(!o.rest_first() || !dims.empty(),
                    "[rotary] rest_first needs axis_dims, which leave pairs over");
}

void check_axes(const RotaryOptions& o) {
  check_axis_dims(o);
  const bool shared = o.planes() == rotary::Planes::AxialInterleaved;  // one row for all planes
  const bool equal = o.axial() && !shared && o.axis_dims().empty();
  TORCH_CHECK_VALUE(!equal || (o.axes() > 0 && o.dim() % (2 * o.axes()) == 0),
                    "[rotary] dim must be a multiple of two channels for each of the axes. Got ",
                    o.dim(), " for ", o.axes());
  TORCH_CHECK_VALUE(
      o.axis_bases().empty() ||
          (takes_turns(o) && static_cast<int64_t>(o.axis_bases().size()) == o.plane_count()),
      "[rotary] axis_bases must have a number for each plane of Planes::Axial or "
      "AxialAlternating. Got ",
      o.axis_bases().size());
  for (const double base : o.axis_bases()) check_positive("axis_bases", base);
  TORCH_CHECK_VALUE(
      o.axis_divisors().empty() ||
          (takes_turns(o) && static_cast<int64_t>(o.axis_divisors().size()) == o.plane_count()),
      "[rotary] axis_divisors must have a number for each plane of Planes::Axial or "
      "AxialAlternating. Got ",
      o.axis_divisors().size());
  TORCH_CHECK_VALUE(o.axis_divisors().empty() || o.angle_divisor() == 1.0,
                    "[rotary] angle_divisor must be 1 beside axis_divisors. Got ",
                    o.angle_divisor());
  for (const double divisor : o.axis_divisors()) check_positive("axis_divisors", divisor);
  TORCH_CHECK_VALUE(!o.last_plane_first() || takes_turns(o),
                    "[rotary] last_plane_first belongs to Planes::Axial and AxialAlternating");
  TORCH_CHECK_VALUE(!o.modulated() || o.axial(),
                    "[rotary] modulated belongs to the axial kinds of planes");
  TORCH_CHECK_VALUE(!o.grid().width_first || (o.axial() && o.plane_count() > 1),
                    "[rotary] grid.width_first needs two planes of the axial kinds");
  TORCH_CHECK_VALUE(o.grid().zero_tokens >= 0,
                    "[rotary] grid.zero_tokens must not be negative. Got ", o.grid().zero_tokens);
  for (const int64_t size : o.grid().reference)
    check_positive("grid.reference", static_cast<double>(size));
  TORCH_CHECK_VALUE(o.grid().merge >= 0, "[rotary] grid.merge must not be negative. Got ",
                    o.grid().merge);
  check_finite("grid.offset", o.grid().offset);
}

void check_frequency(const RotaryOptions& o) {
  using rotary::Frequency;
  const bool scaled = !std::holds_alternative<rotary::Default>(o.scaling());
  TORCH_CHECK_VALUE(!o.axial() || !scaled, "[rotary] patches have rotary::Default frequencies");
  TORCH_CHECK_VALUE(o.frequency() == Frequency::Power || !scaled,
                    "[rotary] a scaling takes Frequency::Power");
  const bool of_powers =
      o.frequency() == Frequency::Power || o.frequency() == Frequency::PowerOfSteps ||
      o.frequency() == Frequency::Exponential || o.frequency() == Frequency::PowerDivisor;
  TORCH_CHECK_VALUE(o.precision() == Precision::Reference || (of_powers && !o.modulated()),
                    "[rotary] Precision::Exact needs frequencies 1 / b^(2i / D) and positions that "
                    "are not modulated");
  TORCH_CHECK_VALUE(std::isfinite(o.position_scale()) && o.position_scale() != 0.0,
                    "[rotary] position_scale must be finite and not 0. Got ", o.position_scale());
  check_positive("angle_divisor", o.angle_divisor());
}

void check_joined_heads(const RotaryOptions& o) {
  if (o.pairing() == rotary::Pairing::HalvesPerHead) {
    TORCH_CHECK_VALUE(o.joined_heads() > 0 && o.dim() % (2 * o.joined_heads()) == 0,
                      "[rotary] joined_heads must be positive, and dim = ", o.dim(),
                      " a multiple of two channels for each. Got ", o.joined_heads());
    TORCH_CHECK_VALUE(o.cos_layout() == rotary::CosLayout::Single,
                      "[rotary] Pairing::HalvesPerHead belongs to CosLayout::Single");
    return;
  }
  TORCH_CHECK_VALUE(o.joined_heads() == 1,
                    "[rotary] joined_heads belong to Pairing::HalvesPerHead. Got ",
                    o.joined_heads());
}

void check_layout(const RotaryOptions& o) {
  using rotary::CosLayout;
  using rotary::Pairing;
  const bool is_complex = o.arithmetic() == rotary::Arithmetic::Complex;
  TORCH_CHECK_VALUE(
      is_complex ? o.cos_layout() == CosLayout::Complex || o.cos_layout() == CosLayout::Single
                 : o.cos_layout() != CosLayout::Complex,
      "[rotary] Arithmetic::Complex takes CosLayout::Complex or Single, and CosLayout::Complex "
      "Arithmetic::Complex");
  TORCH_CHECK_VALUE(!is_complex || (o.pairing() == Pairing::Adjacent && !o.reversed()),
                    "[rotary] complex numbers are adjacent pairs that rotate forward");
  TORCH_CHECK_VALUE(!is_complex || o.cos_type() != rotary::CosType::Input,
                    "[rotary] Arithmetic::Complex takes CosType::Float32 or Float64");
  TORCH_CHECK_VALUE(
      o.cos_layout() != CosLayout::HalvesPerAxis ||
          (o.planes() == rotary::Planes::Axial && o.axis_dims().empty() &&
           (o.pairing() == Pairing::HalvesPerAxis || o.pairing() == Pairing::Adjacent)),
      "[rotary] CosLayout::HalvesPerAxis belongs to Planes::Axial with equal axes "
      "and Pairing::HalvesPerAxis or Adjacent");
  TORCH_CHECK_VALUE(
      o.pairing() != Pairing::HalvesPerAxis || o.cos_layout() == CosLayout::HalvesPerAxis,
      "[rotary] Pairing::HalvesPerAxis belongs to CosLayout::HalvesPerAxis");
  TORCH_CHECK_VALUE(o.rotary_heads() >= 0, "[rotary] rotary_heads must not be negative. Got ",
                    o.rotary_heads());
  TORCH_CHECK_VALUE(std::isfinite(o.xpos_scale_base()) && o.xpos_scale_base() >= 0.0,
                    "[rotary] xpos_scale_base must be finite and not negative. Got ",
                    o.xpos_scale_base());
  TORCH_CHECK_VALUE(
      o.xpos_scale_base() == 0.0 || (o.planes() == rotary::Planes::One && !is_complex &&
                                     o.arithmetic() != rotary::Arithmetic::Addcmul),
      "[rotary] xpos_scale_base needs Planes::One, and no Arithmetic::Complex or Addcmul");
  TORCH_CHECK_VALUE(!o.xpos_middle() || o.xpos_scale_base() > 0.0,
                    "[rotary] xpos_middle belongs to xpos_scale_base. Got ",
                    o.xpos_middle().value_or(0));
  TORCH_CHECK_VALUE(o.cos_layout() != CosLayout::Pairs || o.pairing() == Pairing::Adjacent ||
                        o.pairing() == Pairing::Halves,
                    "[rotary] CosLayout::Pairs belongs to Pairing::Adjacent or Halves");
  check_joined_heads(o);
  TORCH_CHECK_VALUE(o.planes() != rotary::Planes::Doubled ||
                        (o.cos_layout() == CosLayout::Halves && o.pairing() == Pairing::Halves),
                    "[rotary] Planes::Doubled belongs to Pairing::Halves and CosLayout::Halves");
}

}  // namespace

void RotaryOptions::validate() const {
  const RotaryOptions& o = *this;
  TORCH_CHECK_VALUE(o.dim() > 0 && o.dim() <= kMostChannels,
                    "[rotary] dim must lie in [1, 2^20]. Got ", o.dim());
  TORCH_CHECK_VALUE(
      o.dim() % 2 == 0 || o.part() != rotary::Part::Whole,
      "[rotary] an odd dim rotates one more channel: part must be First or Last. Got ", o.dim());
  check_positive("base", o.base());
  std::visit(ScalingCheck{o}, o.scaling());
  check_sections(o);
  check_axes(o);
  check_frequency(o);
  check_layout(o);
}

}  // namespace posenc
