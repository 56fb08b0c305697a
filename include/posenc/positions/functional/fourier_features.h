#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc {
namespace functional POSENC_EXPORT {

/// Options of fourier_features().
struct FourierFeaturesFuncOptions {
  /// Features of points with `channels` coordinates at `multires` frequencies.
  FourierFeaturesFuncOptions(int64_t channels, int64_t multires)
      : channels_(channels), multires_(multires) {}

  /// Number of coordinates C of a point.
  TORCH_ARG(int64_t, channels);
  /// Number of frequencies m per coordinate, at most 128.
  TORCH_ARG(int64_t, multires);
  /// Puts the coordinates themselves first.
  TORCH_ARG(bool, include_input) = true;
  /// Frequencies 1, 2, 4, ..., 2^(m-1); false: m evenly spaced frequencies from 1 to 2^(m-1).
  TORCH_ARG(bool, log_sampling) = true;
  /// Factor of all angles. pi gives the formula in the paper, which the paper's code does not use.
  TORCH_ARG(double, angle_scale) = 1.0;

 public:
  /// Width of a row: 2 C m, plus C with include_input.
  int64_t out_channels() const {
    return (include_input_ ? channels_ : 0) + 2 * channels_ * multires_;
  }
  /// Throws c10::ValueError for options out of range.
  void validate() const;

  POSENC_FIELDS(FourierFeaturesFuncOptions, channels_, multires_, include_input_, log_sampling_,
                angle_scale_);
};

/// NeRF's encoding of points: [x, sin(f0 x), cos(f0 x), sin(f1 x), cos(f1 x), ...], where each
/// entry is a block of C channels and x is in radians at frequency 1.
///
/// x: (..., C), floating-point  ->  (..., C + 2 C m), in x's dtype on its device; differentiable.
///
/// Half precision is computed in float32 and rounded once. NaN and infinity give NaN.
///
/// Errors: c10::ValueError for a wrong width and options out of range; c10::TypeError if x is not
/// floating-point.
at::Tensor fourier_features(const at::Tensor& x, const FourierFeaturesFuncOptions& options);

}  // namespace functional
}  // namespace posenc
