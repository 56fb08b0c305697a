#pragma once

#include "posenc/positions/relative/scores.h"

namespace posenc::relative {

/// The scores with a mask as the place says; an undefined mask changes nothing.
at::Tensor masked(const at::Tensor& scores, const at::Tensor& mask, const Place& place);

/// torch.finfo(dtype).min.
at::Scalar lowest(at::ScalarType dtype);

/// A place that lets a mask replace scores by the lowest number.
inline Place fill_lowest() {
  Place place;
  place.mask_place = MaskPlace::FillLowest;
  return place;
}

}  // namespace posenc::relative
