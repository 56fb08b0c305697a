#include "posenc/positions/rotary/rotary_options.h"

#include <numeric>
#include <variant>

#include "positions/rotary/planes.h"

namespace posenc {

int64_t RotaryOptions::cos_width() const {
  const bool single =
      cos_layout_ == rotary::CosLayout::Single || cos_layout_ == rotary::CosLayout::Complex;
  return single ? frequencies() : rotary_dim();
}

bool RotaryOptions::axial() const {
  switch (planes_) {
    case rotary::Planes::Axial:
    case rotary::Planes::AxialAlternating:
    case rotary::Planes::AxialInterleaved:
    case rotary::Planes::EvenOdd: return true;
    default: return false;
  }
}

std::vector<int64_t> RotaryOptions::plane_dims() const {
  if (!takes_turns(*this)) return {dim_};
  if (!axis_dims_.empty()) return axis_dims_;
  return std::vector<int64_t>(static_cast<size_t>(axes_), dim_ / axes_);
}

bool RotaryOptions::shares_frequencies() const {
  return axis_dims_.empty() && axis_bases_.empty() && axis_divisors_.empty();
}

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
    case rotary::Planes::AxialInterleaved:
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
