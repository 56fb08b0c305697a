#pragma once

#include <cstdint>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"

// The enumerations in which RotaryOptions describes a rotary embedding. D is the number of channels
// that rotate, n = (D + 1) / 2 the number of frequencies, b the base, L the length of a sequence:
// its largest position plus one.

namespace posenc {
namespace rotary POSENC_EXPORT {

/// How the n frequencies f_i of D channels are computed, and the angle from one of them and a
/// position p. Scalings (rotary_scaling.h) require Power.
enum class Frequency {
  Power,          ///< f = 1 / b^(2i / D), angle p f
  PowerOfSteps,   ///< the same, with the exponent as i steps of 2 / D: DINOv3 in transformers
  PowerDivisor,   ///< f = b^(2i / D), angle p / f: RoFormer, DINOv3 in timm
  Exponential,    ///< f = exp(-ln(b) i / n), angle p f: Kandinsky
  GrowingPower,   ///< f = b^(i / (n - 1)) pi / 2, angle p f: LTX-Video
  PixelBands,     ///< f = pi times n equal steps from 1 to b / 2, angle p f: timm
  LogPixelBands,  ///< f = pi times n powers of two in equal steps from 1 to b / 2, angle p f: timm
  Learned,        ///< weights of the model, passed by the caller: LightGlue, Mochi
};

/// The dtype in which frequencies, angles, cosines and sines are computed.
enum class AngleType {
  Float32,           ///< float32
  Float64,           ///< float64: most of diffusers
  Float64Angle,      ///< frequencies and angles float64, rounded to float32 before cosine and sine
  Float64Frequency,  ///< frequencies float64, rounded to float32 before they are used: LTX-2
  Input,             ///< that of the hidden states: V-JEPA 2
};

/// Which channels form the pair that one frequency rotates, among the D channels that rotate.
enum class Pairing {
  Halves,            ///< channels i and i + n: Llama, GPT-NeoX, most of transformers
  Adjacent,          ///< channels 2i and 2i + 1: Meta's own Llama, GPT-J, Cohere, GLM
  AdjacentToHalves,  ///< reads 2i and 2i + 1, writes i and i + n: DeepSeek-V3
  HalvesPerAxis,     ///< Halves inside the channels of each position axis: Gemma 4's vision
  HalvesPerHead,     ///< Halves inside the channels of each of joined_heads: LTX-2
};

/// The contents of cos and sin for the n angles of a position: the shape of the tensors, and the
/// entry that multiplies each channel.
enum class CosLayout {
  Halves,  ///< (..., D): all n, then all n again; Adjacent pairs read the first
  Pairs,   ///< (..., D): each of the n twice; with Halves, channel i reads entry i: ERNIE-Image
  HalvesPerAxis,  ///< (..., D): Halves for each position axis; channel i reads entry i
  Single,         ///< (..., n)
  Complex,        ///< (..., n), by torch.polar, whose bits are not those of cos and sin
};

/// The dtype of cos and sin.
enum class CosType {
  Input,    ///< that of the hidden states
  Float32,  ///< float32
  Float64,  ///< float64
};

/// How q and k are multiplied. The result has the dtype of q and k, except with Widened.
enum class Arithmetic {
  Input,     ///< in q's dtype, each product and the sum rounded to it; cos and sin cast to it first
  Promoted,  ///< in PyTorch's common dtype of q and cos, rounded once to q's
  Widened,   ///< the same, left in that dtype: CodeGen's float32 q and k
  Float32,   ///< in float32, rounded once to q's dtype
  BFloat16,  ///< in float32, rounded to bfloat16, whatever q's dtype: Kandinsky 5
  Addcmul,   ///< in float32, the second product by torch.addcmul, which may fuse it: LTX-2
  Float64,   ///< in float64, rounded once to q's dtype
  Complex,   ///< one complex product per pair, rounded once to q's dtype; complex128 for
             ///< CosType::Float64
};

/// Which channels of a head rotate. The others are not changed.
enum class Part {
  Whole,  ///< all of them: a head has D channels, anything else is an error
  First,  ///< the first D
  Last,   ///< the last D
};

/// How the frequencies of several position axes (planes, such as time, height and width) are
/// combined into the n of a row. `sections` counts frequencies.
enum class Planes {
  One,          ///< one position per token
  Chunked,      ///< section i comes from plane i modulo 3: Qwen2-VL
  Interleaved,  ///< plane 0, but every third frequency, sections[1] and [2] times, from 1 and 2
  Doubled,      ///< Chunked over the doubled row: the two of a pair may differ in angle: HunYuan-VL
  HeightWidth,  ///< height and width alternate, then time: ERNIE 4.5 VL
  RowColumn,    ///< even frequencies from plane 0, odd from 1: NeoMME
  Axial,        ///< each plane with all the frequencies of its own channels, in turn: vision
  AxialAlternating,  ///< the same, frequency by frequency: Kimi K2.5, EfficientLoFTR
  AxialInterleaved,  ///< Interleaved of 0, height and width, which are two planes: timm
  EvenOdd,           ///< even frequencies of the head from plane 0, then odd from 1: Pixtral
};

/// The order of the axes of q and k.
enum class HeadAxis {
  BeforeLength,  ///< (B, H, L, Dh) or (H, L, Dh)
  AfterLength,   ///< (B, L, H, Dh), or packed sequences (T, H, Dh)
};

/// What an attention layer of the system rotates, and by what.
enum class AppliedTo {
  Heads,           ///< the heads of q and k, by the positions of their tokens
  HeadsByHead,     ///< the heads of q and k, by the number of the head: X-Codec 2, NeuCodec
  HiddenStates,    ///< the hidden states, before they are projected to q and k: Wav2Vec2-Conformer
  AllHeads,        ///< all heads of q as one, and those of k, before they are split: EfficientLoFTR
  HeadsAndOutput,  ///< the heads of q, k and v, and those of the result by -a: DeepSeek-V4
};

/// The coordinate of patch i of n along an axis of a grid. `reference` is Grid's.
enum class Coordinates {
  Index,      ///< i
  OneBased,   ///< i + 1
  Centered,   ///< i - ceil(n / 2): Qwen-Image
  Midpoints,  ///< 2 (i + 1/2) / n - 1: DINOv3
  Interval,   ///< n numbers in equal steps from -1 to 1: timm
  Resized,    ///< i / n * reference: timm's EVA
  Scaled,     ///< i * (reference / width), on each axis: SAM 3
  Floored,    ///< floor(i * reference / n): CogView4
};

/// How the positions of a grid's patches are computed. An axis before height and width is time,
/// with Coordinates::Index.
struct Grid {
  Coordinates coordinates = Coordinates::Index;  ///< of each patch
  bool width_first = false;             ///< a position is (width, height), not (height, width)
  int64_t zero_tokens = 0;              ///< tokens after the patches, at 0: Llama 4's class token
  std::vector<int64_t> reference = {};  ///< the size of the grid that the model was trained with
  double offset = 0.0;                  ///< added to i: timm's grid_offset
  /// The patches come in blocks of merge by merge, row by row in each and block by block, where a
  /// model merges them into one token (spatial_merge_size); 1: row by row. 0: the model's processor
  /// has one for each image, and the grid must be given it: Video-LLaMA 3.
  int64_t merge = 1;
  /// Class tokens before the patches rotate by angles that are weights of the model: MLCD.
  bool learned_prefix = false;

  POSENC_FIELDS(Grid, coordinates, width_first, zero_tokens, reference, offset, merge,
                learned_prefix);
};

}  // namespace rotary
}  // namespace posenc
