#pragma once

// Estimates the frequencies of a rotary embedding from its cosines and sines.

#include <cstdint>
#include <string>
#include <vector>

#include "identify/rotary/view.h"

namespace posenc::identification {

/// The frequencies, radians per position, with the largest error of each.
struct RotaryEstimate {
  std::vector<double> f, error;
  double amplitude = 1.0;  ///< the factor of cos and sin; 1 where only frequencies are known
  double amplitude_error = 0.0;
  int64_t length = 0;  ///< positions of the table; 0: frequencies only
};

/// Estimates the frequencies from the angles at positions 1, 2, 4, ...; each angle determines the
/// number of full turns in the next one.
RotaryEstimate estimate_frequencies(const RotaryView& view);

/// `value` rounded to 1, 2, ... significant digits, as far as the result is within the relative
/// `error`, fewest digits first; `value` itself comes last.
std::vector<double> rounded_values(double value, double error);

/// Shortest text that parses as `value`: 500000, 0.25.
std::string number_text(double value);

}  // namespace posenc::identification
