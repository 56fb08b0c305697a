// The rotary embeddings of diffusers. A class with the bits of another row, here or among those of
// transformers, is named in that row's `also`.

#include <numbers>

#include "positions/rotary/preset_rows.h"
#include "positions/rotary/scaling.h"

namespace posenc::rotary {
namespace {

// Tokens of images and videos: a position on each of several axes.
RotaryOptions video() {
  return adjacent()
      .planes(Planes::Axial)
      .axes(3)
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .arithmetic(f32)
      .head_axis(HeadAxis::AfterLength);
}
RotaryOptions complex_video() {
  return complex().planes(Planes::Axial).axes(3).head_axis(HeadAxis::AfterLength);
}
RotaryOptions kandinsky() {
  return video().frequency(Frequency::Exponential).cos_layout(CosLayout::Single);
}
// All heads are one; the frequencies of the axes take turns, after channels that do not rotate.
RotaryOptions ltx() {
  return video()
      .planes(Planes::AxialAlternating)
      .frequency(Frequency::GrowingPower)
      .rest_first(true)
      .applied_to(AppliedTo::AllHeads);
}

// Models choose the channels of each axis; for the usual width of a head nearly all have these.
template <int64_t T, int64_t H, int64_t W>
void default_axes(RotaryOptions& options) {
  if (options.dim() == T + H + W) options.axis_dims({T, H, W});
}

// A third for height and for width, the rest for time.
void time_height_width(RotaryOptions& options) {
  const int64_t third = 2 * (options.dim() / 6);
  if (third > 0) options.axis_dims({options.dim() - 2 * third, third, third});
}

void equal_axes(RotaryOptions& options) {
  const int64_t third = 2 * (options.dim() / 6);
  if (third > 0) options.axis_dims({third, third, third});
}

// A quarter for time, so that the others are even.
void quarter_of_time(RotaryOptions& options) {
  int64_t time = options.dim() / 8 * 2;
  if ((options.dim() - time) / 2 % 2 != 0) time -= 2;
  const int64_t other = (options.dim() - time) / 2;
  if (time >= 0 && other > 0)
    options.axis_dims({time, other, other});  // a head of 8 has none for time
}

void cosmos(RotaryOptions& options) {
  time_height_width(options);
  if (options.dim() >= 18) options.axis_bases(ntk_bases(options, {2.0, 1.0, 1.0}));
}

}  // namespace

std::vector<RotaryPreset> diffusers_presets() {
  return {
      {"stable_audio3", "diffusers 0.42.1 StableAudio3RotaryEmbedding",
       "the first part of a head rotates, in float32",
       halves().cos_type(kept).part(Part::First).arithmetic(f32).head_axis(HeadAxis::AfterLength),
       nullptr, diffusers({"RotaryEmbedding (SAME autoencoder)", "StableAudioAttnProcessor2_0"})},
      {"flux", "diffusers 0.42.1 FluxPosEmbed", "axes of their own widths, angles in float64",
       video().angle_type(AngleType::Float64), default_axes<16, 56, 56>,
       diffusers({"BriaEmbedND", "BriaPosEmbed", "BriaFiboEmbedND", "Flux2PosEmbed",
                  "Flux3PosEmbed", "Krea2RotaryPosEmbed", "LongCatImagePosEmbed",
                  "OvisImagePosEmbed", "MotifVideoRotaryPosEmbed (base 256)"})},
      {"wan", "diffusers 0.42.1 WanRotaryPosEmbed",
       "time, height and width, angles in float64, products in q's and cos' common dtype",
       video().angle_type(AngleType::Float64).arithmetic(Arithmetic::Promoted), time_height_width,
       diffusers({"SkyReelsV2RotaryPosEmbed",
                  "ChronoEditRotaryPosEmbed (the second of two frames is at temporal_skip_len - 1; "
                  "a head_dim that leaves 4 by 6 is split inside a pair)"})},
      {"hunyuan_video", "diffusers 0.42.1 HunyuanVideoRotaryPosEmbed",
       "time, height and width, all in float32", video().base(256), default_axes<16, 56, 56>,
       diffusers({"HunyuanVideo15RotaryPosEmbed", "HunyuanVideoFramepackRotaryPosEmbed",
                  "HunyuanImageRotaryPosEmbed (two or three axes)",
                  "get_rotary_pos_embed of JoyImage", "HeliosRotaryPosEmbed (base 10000)",
                  "EasyAnimateRotaryPosEmbed (base 10000; a quarter of the channels for time)",
                  "get_3d_rotary_pos_embed of CogVideoX and ConsisID (base 10000; a quarter of the "
                  "channels for time)",
                  "get_2d_rotary_pos_embed of Hunyuan-DiT (base 10000; column, then row)"})},
      {"lumina2", "diffusers 0.42.1 Lumina2RotaryPosEmbed", "complex numbers in float64",
       complex_video().angle_type(AngleType::Float64).cos_type(CosType::Float64), nullptr,
       diffusers({"AnyFlowRotaryPosEmbed (the axes of Wan)",
                  "AnyFlowCausalRotaryPosEmbed (the axes of Wan, for whole frames)",
                  "rope_apply of Wan-Animate 2 (the axes of Wan; its result is float32)"})},
      {"z_image", "diffusers 0.42.1 RopeEmbedder (Z-Image, Bria Fibo 2)",
       "complex numbers, angles in float64",
       complex_video().angle_type(AngleType::Float64Angle).base(256), default_axes<32, 48, 48>},
      {"qwen_image", "diffusers 0.42.1 QwenEmbedRope", "complex numbers; positions may be negative",
       complex_video(), default_axes<16, 56, 56>,
       diffusers({"QwenEmbedLayer3DRope", "QwenImage21Rope", "NucleusMoEEmbedRope",
                  "SanaWMRotaryPosEmbed (the axes of Wan)"})},
      {"lumina_next", "diffusers 0.42.1 get_2d_rotary_pos_embed_lumina",
       "complex numbers; height and width take turns",
       complex_video().planes(Planes::AxialAlternating).axes(2)},
      {"cogview4", "diffusers 0.42.1 CogView4RotaryPosEmbed",
       "height and width, halves, in float32",
       halves().planes(Planes::Axial).cos_type(kept).arithmetic(f32), nullptr,
       diffusers({"GlmImageRotaryPosEmbed (rows and columns as they are)"})},
      {"cosmos", "diffusers 0.42.1 CosmosRotaryPosEmbed",
       "time, height and width, halves, a base for each",
       halves().planes(Planes::Axial).axes(3).cos_type(kept).arithmetic(f32), cosmos},
      {"ltx", "diffusers 0.42.1 LTXVideoRotaryPosEmbed",
       "time, height and width take turns; frequencies grow; one head of all channels", ltx(),
       equal_axes,
       diffusers({"LTX2AudioVideoRotaryPosEmbed (rope_type interleaved, without "
                  "double_precision)"})},
      {"ltx2", "diffusers 0.42.1 LTX2AudioVideoRotaryPosEmbed", "the same, frequencies in float64",
       ltx().angle_type(AngleType::Float64Frequency), equal_axes,
       diffusers({"SanaWMLTX2AudioVideoRotaryPosEmbed", "LTX2RotaryPosEmbed1d (one axis)"})},
      {"ltx2_split", "diffusers 0.42.1 LTX2AudioVideoRotaryPosEmbed with rope_type split",
       "the same, halves in each head",
       RotaryOptions(ltx().angle_type(AngleType::Float64Frequency))
           .pairing(Pairing::HalvesPerHead)
           .cos_layout(CosLayout::Single)
           .arithmetic(Arithmetic::Addcmul),
       equal_axes,
       diffusers({"SanaWMLTX2AudioVideoRotaryPosEmbed with rope_type split",
                  "LTX2RotaryPosEmbed1d with rope_type split (one axis)"})},
      {"ltx2_vae", "diffusers 0.42.1 LTX2VideoVaeRotaryPosEmbed3D",
       "time, height and width, frequencies in float64",
       video().angle_type(AngleType::Float64Frequency), quarter_of_time},
      {"mochi", "diffusers 0.42.1 MochiRoPE",
       "learned frequencies for each head: given cos and sin",
       adjacent()
           .frequency(Frequency::Learned)
           .cos_type(kept)
           .cos_layout(CosLayout::Single)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)},
      {"hidream_image", "diffusers 0.42.1 HiDreamImageEmbedND",
       "as flux, cos and sin of half the width",
       video().angle_type(AngleType::Float64).cos_layout(CosLayout::Single),
       default_axes<64, 32, 32>, diffusers({"PRXEmbedND (two axes)"})},
      {"kandinsky5", "diffusers 0.42.1 Kandinsky5RoPE3D, Kandinsky5RoPE1D",
       "exponential frequencies; the result is rounded to bfloat16",
       kandinsky().arithmetic(Arithmetic::BFloat16), default_axes<16, 24, 24>},
      {"kandinsky6", "diffusers 0.42.1 Kandinsky6RoPE3D, Kandinsky6RoPE1D",
       "exponential frequencies", kandinsky(), default_axes<16, 24, 24>,
       diffusers({"Kandinsky6SRRoPE3D"})},
      {"ernie_image", "diffusers 0.42.1 ErnieImageEmbedND3",
       "halves, whose two channels differ in angle; the first part of a head rotates",
       halves()
           .planes(Planes::Axial)
           .axes(3)
           .cos_layout(CosLayout::Pairs)
           .part(Part::First)
           .head_axis(HeadAxis::AfterLength)
           .base(256),
       default_axes<32, 48, 48>},
      {"allegro", "diffusers 0.42.1 get_3d_rotary_pos_embed_allegro",
       "each axis rotates in channels of its own, halves, in float32",
       RotaryOptions(0, Pairing::HalvesPerAxis)
           .planes(Planes::Axial)
           .axes(3)
           .cos_layout(CosLayout::HalvesPerAxis)
           .cos_type(kept)
           .arithmetic(f32)},
      {"minimax_h3_video", "diffusers 0.42.1 MiniMaxH3VideoRotaryPosEmbed",
       "as dinov3 with time, height and width; the first part of a head rotates",
       halves()
           .planes(Planes::Axial)
           .axes(3)
           .frequency(Frequency::PowerOfSteps)
           .base(100)
           .position_scale(2 * std::numbers::pi)
           .part(Part::First)
           .head_axis(HeadAxis::AfterLength)},
  };
}

}  // namespace posenc::rotary
