#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>

namespace posenc::functional {

struct FourierFeaturesFuncOptions {
  FourierFeaturesFuncOptions(int64_t channels, int64_t multires)
      : channels_(channels), multires_(multires) {}

  /// Coordinates C of a point.
  TORCH_ARG(int64_t, channels);
  /// Frequencies m of each coordinate, at most 128.
  TORCH_ARG(int64_t, multires);
  /// The coordinates themselves come first.
  TORCH_ARG(bool, include_input) = true;
  /// Frequencies 1, 2, 4, ..., 2^(m-1); false: m at equal distances from 1 to 2^(m-1).
  TORCH_ARG(bool, log_sampling) = true;
  /// The finished angle times this: pi for the paper's formula, which its code does not follow.
  TORCH_ARG(double, angle_scale) = 1.0;

 public:
  /// Width of a row: C (include_input) + 2 C m.
  int64_t out_channels() const {
    return (include_input_ ? channels_ : 0) + 2 * channels_ * multires_;
  }
};

/// [x, sin(f0 x), cos(f0 x), sin(f1 x), cos(f1 x), ...], each entry a block of C channels, x in
/// radians at frequency 1.
///
/// x: (..., C), real  ->  (..., C + 2 C m), as x; differentiable. Half precision is computed in
/// float32 and rounded once. NaN and infinity come out as NaN.
/// Throws c10::ValueError for another width and options out of range, c10::TypeError where x is not
/// real-valued.
at::Tensor fourier_features(const at::Tensor& x, const FourierFeaturesFuncOptions& options);

/// Throws c10::ValueError for options that no features can have.
void check(const FourierFeaturesFuncOptions& options);

}  // namespace posenc::functional
