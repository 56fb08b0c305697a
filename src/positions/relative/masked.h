#pragma once

#include "posenc/positions/relative/scores.h"

namespace posenc::relative {

/// The scores with a mask as the scoring says; an undefined mask changes nothing.
at::Tensor masked(const at::Tensor& scores, const at::Tensor& mask, const Scoring& scoring);

/// torch.finfo(dtype).min.
at::Scalar lowest(at::ScalarType dtype);

/// A scoring that lets a mask replace scores by the lowest number.
inline Scoring fill_lowest() {
  Scoring scoring;
  scoring.masking = Masking::FillLowest;
  return scoring;
}

}  // namespace posenc::relative
