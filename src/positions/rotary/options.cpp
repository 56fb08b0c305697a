#include "posenc/positions/rotary/rotary_options.h"

#include <numeric>
#include <tuple>
#include <type_traits>
#include <variant>

#include "positions/rotary/planes.h"

namespace posenc {
namespace {

// The members of a struct of options. A structured binding that leaves one out does not compile.
std::tuple<> members(const rotary::Default&) { return {}; }
auto members(const rotary::Linear& s) {
  const auto& [factor] = s;
  return std::tie(factor);
}
auto members(const rotary::Proportional& s) {
  const auto& [proportion, factor] = s;
  return std::tie(proportion, factor);
}
auto members(const rotary::Dynamic& s) {
  const auto& [factor, max_position] = s;
  return std::tie(factor, max_position);
}
auto members(const rotary::NtkAlpha& s) {
  const auto& [alpha] = s;
  return std::tie(alpha);
}
auto members(const rotary::Yarn& s) {
  const auto& [factor, original, fast, slow, truncate, attention, mscale, all_dim] = s;
  return std::tie(factor, original, fast, slow, truncate, attention, mscale, all_dim);
}
auto members(const rotary::LongRope& s) {
  const auto& [shorter, longer, original, factor, attention] = s;
  return std::tie(shorter, longer, original, factor, attention);
}
auto members(const rotary::PhiMoe& s) {
  const auto& [shorter, original, short_mscale, long_mscale] = s;
  return std::tie(shorter, original, short_mscale, long_mscale);
}
auto members(const rotary::Llama3& s) {
  const auto& [factor, low, high, original] = s;
  return std::tie(factor, low, high, original);
}
auto members(const rotary::Grid& s) {
  const auto& [coordinates, width_first, zero_tokens, reference, offset, merge, learned] = s;
  return std::tie(coordinates, width_first, zero_tokens, reference, offset, merge, learned);
}

bool is_same(const rotary::Scaling& a, const rotary::Scaling& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& one) {
        return members(one) == members(std::get<std::decay_t<decltype(one)>>(b));
      },
      a);
}

// All options but scaling and grid.
auto members(const RotaryOptions& o) {
  return std::tuple_cat(
      std::tie(o.dim(), o.pairing(), o.base(), o.frequency(), o.angle_type(), o.precision(),
               o.planes(), o.sections(), o.axes(), o.axis_dims(), o.axis_bases(),
               o.last_plane_first(), o.rest_first(), o.position_scale(), o.angle_divisor()),
      std::tie(o.modulated(), o.cos_layout(), o.cos_type(), o.arithmetic(), o.part(),
               o.rotary_heads(), o.applied_to(), o.rotary_value(), o.xpos_scale_base(),
               o.xpos_middle(), o.reversed(), o.head_axis()));
}

}  // namespace

bool operator==(const RotaryOptions& a, const RotaryOptions& b) {
  return members(a) == members(b) && is_same(a.scaling(), b.scaling()) &&
         members(a.grid()) == members(b.grid());
}

int64_t RotaryOptions::cos_width() const {
  const bool single =
      cos_layout_ == rotary::CosLayout::Single || cos_layout_ == rotary::CosLayout::Complex;
  return single ? frequencies() : rotary_dim();
}

bool RotaryOptions::axial() const {
  switch (planes_) {
    case rotary::Planes::Axial:
    case rotary::Planes::AxialAlternating:
    case rotary::Planes::EvenOdd: return true;
    default: return false;
  }
}

std::vector<int64_t> RotaryOptions::plane_dims() const {
  if (!takes_turns(*this)) return {dim_};
  if (!axis_dims_.empty()) return axis_dims_;
  return std::vector<int64_t>(static_cast<size_t>(axes_), dim_ / axes_);
}

bool RotaryOptions::shares_frequencies() const { return axis_dims_.empty() && axis_bases_.empty(); }

int64_t RotaryOptions::frequency_count() const {
  const std::vector<int64_t> dims = plane_dims();
  if (shares_frequencies()) return (dims[0] + 1) / 2;
  return std::accumulate(dims.begin(), dims.end(), int64_t{0}) / 2;
}

bool RotaryOptions::length_dependent() const {
  return std::holds_alternative<rotary::Dynamic>(scaling_) ||
         std::holds_alternative<rotary::LongRope>(scaling_) ||
         std::holds_alternative<rotary::PhiMoe>(scaling_);
}

int64_t RotaryOptions::plane_count() const {
  switch (planes_) {
    case rotary::Planes::One: return 1;
    case rotary::Planes::Doubled: return static_cast<int64_t>(sections_.size());
    case rotary::Planes::RowColumn:
    case rotary::Planes::EvenOdd: return 2;
    case rotary::Planes::Axial:
    case rotary::Planes::AxialAlternating:
      return axis_dims_.empty() ? axes_ : static_cast<int64_t>(axis_dims_.size());
    case rotary::Planes::Chunked:
    case rotary::Planes::Interleaved:
    case rotary::Planes::HeightWidth: return 3;
  }
  return 1;
}

}  // namespace posenc
