#pragma once

#include <cstdint>
#include <optional>
#include <variant>
#include <vector>

#include "posenc/export.h"

// The words in which RotaryOptions describes a rotary embedding. D is the number of channels that
// rotate, n = (D + 1) / 2 the number of frequencies, b the base, L a sequence's length: its largest
// position plus one.

namespace posenc {
namespace rotary POSENC_EXPORT {

/// Which channels form the pair that one frequency rotates, among the D channels that rotate.
enum class Pairing {
  Halves,            ///< channels i and i + n: Llama, GPT-NeoX, most of transformers
  Adjacent,          ///< channels 2i and 2i + 1: Meta's own Llama, GPT-J, Cohere, GLM
  AdjacentToHalves,  ///< reads 2i and 2i + 1, writes i and i + n: DeepSeek-V3
  HalvesPerAxis,     ///< Halves inside the channels of each position axis: Gemma 4's vision
};

/// What cos and sin hold for the n angles of a position. It is a matter of the tensors' shape, and
/// of which entry a channel is multiplied by.
enum class CosLayout {
  Halves,   ///< (..., D): all n, then all n again
  Pairs,    ///< (..., D): each of the n twice
  Single,   ///< (..., n)
  Complex,  ///< (..., n), by torch.polar, whose bits are not those of cos and sin
};

/// The dtype of cos and sin.
enum class CosType {
  Input,    ///< that of the hidden states: rounded from float32
  Float32,  ///< float32
};

/// How q and k are multiplied. The result has the dtype of q and k, except with Widened.
enum class Arithmetic {
  Input,     ///< in q's dtype, each product and the sum rounded to it; cos and sin cast to it first
  Promoted,  ///< in PyTorch's common dtype of q and cos, rounded once to q's
  Widened,   ///< the same, left in that dtype: CodeGen's float32 q and k
  Float32,   ///< in float32, rounded once to q's dtype
  Complex,   ///< one complex64 product a pair, rounded once to q's dtype
};

/// Which channels of a head rotate. The others pass unchanged.
enum class Part {
  Whole,  ///< all of them: a head has D channels, anything else is an error
  First,  ///< the first D
  Last,   ///< the last D
};

/// How the frequencies of several position axes (planes, as of time, height and width) are combined
/// into the n of a row. `sections` counts frequencies.
enum class Planes {
  One,          ///< one position a token
  Chunked,      ///< section i comes from plane i modulo 3: Qwen2-VL
  Interleaved,  ///< plane 0, but every third frequency, sections[1] and [2] times, from 1 and 2
  Doubled,      ///< Chunked over the doubled row: the two of a pair may differ in angle: HunYuan-VL
  HeightWidth,  ///< height and width take turns, then time: ERNIE 4.5 VL
  RowColumn,    ///< even frequencies from plane 0, odd from 1: NeoMME
  Axial,        ///< each plane with all the frequencies of its D / planes channels, in turn: vision
  AxialReversed,     ///< the same, the last plane first
  AxialAlternating,  ///< the same, frequency by frequency, the last plane first: Kimi K2.5
  EvenOdd,           ///< even frequencies of the head from plane 0, then odd from 1: Pixtral
};

/// The order of the axes of q and k.
enum class HeadAxis {
  BeforeLength,  ///< (B, H, L, Dh) or (H, L, Dh)
  AfterLength,   ///< (B, L, H, Dh), or packed sequences (T, H, Dh)
};

// The ways to stretch the frequencies f of a longer context, each with its own parameters.

/// f = 1 / b^(2i / D).
struct Plain {};

/// f / factor: position interpolation.
struct Linear {
  double factor = 1.0;  ///< how many times longer
};

/// Frequencies of the first int(proportion * D / 2) pairs only, divided by factor; the other pairs
/// have frequency 0.
struct Proportional {
  double proportion = 1.0;  ///< share of the pairs that rotate
  double factor = 1.0;      ///< divides the frequencies
};

/// A base that grows with the sequence: b (factor L / max_position - (factor - 1))^(D / (D - 2)),
/// with L at least max_position.
struct Dynamic {
  double factor = 1.0;       ///< how fast the base grows
  int64_t max_position = 0;  ///< the length up to which nothing changes
};

/// A fixed base b alpha^(D / (D - 2)): HunYuan.
struct NtkAlpha {
  double alpha = 1.0;  ///< the factor before its power
};

/// YaRN: high frequencies stay, low ones are divided by factor, and a ramp joins them.
struct Yarn {
  double factor = 1.0;                          ///< how many times longer
  double original_max_position = 0.0;           ///< the original context length
  double beta_fast = 32.0;                      ///< rotations at which the ramp begins
  double beta_slow = 1.0;                       ///< rotations at which it ends
  bool truncate = true;                         ///< rounds the ramp's ends outward
  std::optional<double> attention_factor = {};  ///< of cos and sin; absent: from the next two
  double mscale = 0.0;                          ///< DeepSeek's; 0: absent
  double mscale_all_dim = 0.0;                  ///< DeepSeek's; 0: absent
};

/// LongRoPE: a factor per frequency, one set for L up to the original context length, one beyond.
struct LongRope {
  std::vector<double> short_factor;             ///< n factors up to the original context
  std::vector<double> long_factor;              ///< n factors beyond it
  double original_max_position = 0.0;           ///< the original context length
  double factor = 1.0;                          ///< how many times longer
  std::optional<double> attention_factor = {};  ///< of cos and sin; absent: from factor
};

/// Phi-MoE's LongRoPE, which has the frequencies of the short set at every length.
struct PhiMoe {
  std::vector<double> short_factor;    ///< n
  double original_max_position = 0.0;  ///< the original context length
  double short_mscale = 1.0;           ///< factor of cos and sin up to it
  double long_mscale = 1.0;            ///< factor of cos and sin beyond it
};

/// Llama 3.1: long wavelengths divided by factor, short ones kept, a ramp between.
struct Llama3 {
  double factor = 1.0;                 ///< how many times longer
  double low_freq_factor = 1.0;        ///< wavelengths beyond original / this: divided
  double high_freq_factor = 4.0;       ///< wavelengths below original / this: kept
  double original_max_position = 0.0;  ///< the original context length
};

/// One of the ways to stretch the frequencies.
using Scaling =
    std::variant<Plain, Linear, Proportional, Dynamic, NtkAlpha, Yarn, LongRope, PhiMoe, Llama3>;

}  // namespace rotary
}  // namespace posenc
