#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"

namespace posenc {
namespace rotary POSENC_EXPORT {

// The ways to scale the frequencies f for a longer context, each with its own parameters.

/// f = 1 / b^(2i / D).
struct Default {};

/// f / factor: position interpolation.
struct Linear {
  double factor = 1.0;  ///< how many times longer

  POSENC_FIELDS(Linear, factor);
};

/// Frequencies of the first int(proportion * D / 2) pairs only, divided by factor; the other pairs
/// have frequency 0.
struct Proportional {
  double proportion = 1.0;  ///< share of the pairs that rotate
  double factor = 1.0;      ///< divides the frequencies

  POSENC_FIELDS(Proportional, proportion, factor);
};

/// A base that grows with the sequence: b (factor L / max_position - (factor - 1))^(D / (D - 2)),
/// with L at least max_position.
struct Dynamic {
  double factor = 1.0;       ///< how fast the base grows
  int64_t max_position = 0;  ///< the length up to which nothing changes

  POSENC_FIELDS(Dynamic, factor, max_position);
};

/// A fixed base b alpha^(D / (D - 2)): HunYuan.
struct NtkAlpha {
  double alpha = 1.0;  ///< the factor before its power

  POSENC_FIELDS(NtkAlpha, alpha);
};

/// YaRN: high frequencies are kept, low ones are divided by factor, with a ramp in between.
struct Yarn {
  double factor = 1.0;                          ///< how many times longer
  double original_max_position = 0.0;           ///< the original context length
  double beta_fast = 32.0;                      ///< rotations at which the ramp begins
  double beta_slow = 1.0;                       ///< rotations at which it ends
  bool truncate = true;                         ///< rounds the ramp's ends outward
  std::optional<double> attention_factor = {};  ///< of cos and sin; absent: from the next two
  double mscale = 0.0;                          ///< DeepSeek's; 0: absent
  double mscale_all_dim = 0.0;                  ///< DeepSeek's; 0: absent

  POSENC_FIELDS(Yarn, factor, original_max_position, beta_fast, beta_slow, truncate,
                attention_factor, mscale, mscale_all_dim);
};

/// LongRoPE: a factor per frequency, one set for L up to the original context length, one beyond.
struct LongRope {
  std::vector<double> short_factor;             ///< n factors up to the original context
  std::vector<double> long_factor;              ///< n factors beyond it
  double original_max_position = 0.0;           ///< the original context length
  double factor = 1.0;                          ///< how many times longer
  std::optional<double> attention_factor = {};  ///< of cos and sin; absent: from factor

  POSENC_FIELDS(LongRope, short_factor, long_factor, original_max_position, factor,
                attention_factor);
};

/// Phi-MoE's LongRoPE, which uses the frequencies of the short set at every length.
struct PhiMoe {
  std::vector<double> short_factor;    ///< n
  double original_max_position = 0.0;  ///< the original context length
  double short_mscale = 1.0;           ///< factor of cos and sin up to it
  double long_mscale = 1.0;            ///< factor of cos and sin beyond it

  POSENC_FIELDS(PhiMoe, short_factor, original_max_position, short_mscale, long_mscale);
};

/// Llama 3.1: long wavelengths divided by factor, short ones kept, a ramp between.
struct Llama3 {
  double factor = 1.0;                 ///< how many times longer
  double low_freq_factor = 1.0;        ///< wavelengths beyond original / this: divided
  double high_freq_factor = 4.0;       ///< wavelengths below original / this: kept
  double original_max_position = 0.0;  ///< the original context length

  POSENC_FIELDS(Llama3, factor, low_freq_factor, high_freq_factor, original_max_position);
};

/// One of the ways to scale the frequencies.
using Scaling =
    std::variant<Default, Linear, Proportional, Dynamic, NtkAlpha, Yarn, LongRope, PhiMoe, Llama3>;

}  // namespace rotary
}  // namespace posenc
