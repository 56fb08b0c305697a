// The rotary embeddings of packages other than transformers.

#include <numbers>

#include "positions/rotary/preset_rows.h"
#include "positions/rotary/scaling.h"

namespace posenc::rotary {
namespace {

RotaryOptions complex_pairs() { return complex().head_axis(HeadAxis::AfterLength); }
RotaryOptions x_transformers() {
  return adjacent()
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .part(Part::First)
      .arithmetic(Arithmetic::Promoted);
}
// Tokens of images and videos in diffusers: a position on each of several axes.
RotaryOptions video() {
  return adjacent()
      .planes(Planes::Axial)
      .axes(3)
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .arithmetic(f32)
      .head_axis(HeadAxis::AfterLength);
}
RotaryOptions complex_video() { return complex_pairs().planes(Planes::Axial).axes(3); }
RotaryOptions learned() { return adjacent().frequency(Frequency::Learned).cos_type(kept); }
RotaryOptions timm() {
  return adjacent()
      .planes(Planes::Axial)
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .arithmetic(Arithmetic::Promoted);
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

void cosmos(RotaryOptions& options) {
  time_height_width(options);
  if (options.dim() >= 18) options.axis_bases(ntk_bases(options, {2.0, 1.0, 1.0}));
}

}  // namespace

std::vector<RotaryPreset> package_presets() {
  return {
      {"torchtune", "torchtune 0.6.1 RotaryPositionalEmbeddings, Llama3ScaledRoPE",
       "adjacent pairs in float32, cos and sin of half the width",
       adjacent()
           .cos_layout(CosLayout::Single)
           .cos_type(kept)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)},
      {"meta_llama", "torchtitan 0.3.0 ComplexRoPE", "complex numbers, as Meta's own code",
       complex_pairs()},
      {"x_transformers", "x-transformers 2.31.10 RotaryEmbedding",
       "adjacent pairs; cos and sin stay float32; the first part of a head rotates",
       x_transformers()},
      {"xpos", "x-transformers 2.31.10 RotaryEmbedding with use_xpos",
       "the same, and q and k are scaled by their position", x_transformers().xpos_scale_base(512)},
      {"stable_audio3", "diffusers 0.42.1 StableAudio3RotaryEmbedding",
       "the first part of a head rotates, in float32",
       halves().cos_type(kept).part(Part::First).arithmetic(f32).head_axis(HeadAxis::AfterLength)},
      {"flux", "diffusers 0.42.1 FluxPosEmbed", "axes of their own widths, angles in float64",
       video().angle_type(AngleType::Float64), default_axes<16, 56, 56>},
      {"wan", "diffusers 0.42.1 WanRotaryPosEmbed",
       "time, height and width, angles in float64, products in q's and cos' common dtype",
       video().angle_type(AngleType::Float64).arithmetic(Arithmetic::Promoted), time_height_width},
      {"hunyuan_video", "diffusers 0.42.1 HunyuanVideoRotaryPosEmbed",
       "time, height and width, all in float32", video().base(256), default_axes<16, 56, 56>},
      {"lumina2", "diffusers 0.42.1 Lumina2RotaryPosEmbed", "complex numbers in float64",
       complex_video().angle_type(AngleType::Float64).cos_type(CosType::Float64)},
      {"z_image", "diffusers 0.42.1 RopeEmbedder (Z-Image, Bria Fibo 2)",
       "complex numbers, angles in float64",
       complex_video().angle_type(AngleType::Float64Angle).base(256), default_axes<32, 48, 48>},
      {"qwen_image", "diffusers 0.42.1 QwenEmbedRope", "complex numbers; positions may be negative",
       complex_video(), default_axes<16, 56, 56>},
      {"cogview4", "diffusers 0.42.1 CogView4RotaryPosEmbed",
       "height and width, halves, in float32",
       halves().planes(Planes::Axial).cos_type(kept).arithmetic(f32)},
      {"cosmos", "diffusers 0.42.1 CosmosRotaryPosEmbed",
       "time, height and width, halves, a base for each",
       halves().planes(Planes::Axial).axes(3).cos_type(kept).arithmetic(f32), cosmos},
      {"ltx", "diffusers 0.42.1 LTXVideoRotaryPosEmbed",
       "time, height and width take turns; frequencies grow; one head of all channels",
       video()
           .planes(Planes::AxialAlternating)
           .frequency(Frequency::GrowingPower)
           .rest_first(true)
           .applied_to(AppliedTo::AllHeads),
       equal_axes},
      {"mochi", "diffusers 0.42.1 MochiRoPE",
       "learned frequencies for each head: given cos and sin",
       learned().cos_layout(CosLayout::Single).arithmetic(f32).head_axis(HeadAxis::AfterLength)},
      {"timm_mixed", "timm 1.0.31 RotaryEmbeddingMixed",
       "learned frequencies for each head: given cos and sin",
       learned().cos_layout(CosLayout::Pairs).arithmetic(Arithmetic::Promoted)},
      {"timm_cat", "timm 1.0.31 RotaryEmbeddingCat (EVA)",
       "height and width; products in q's and cos' common dtype", timm()},
      {"timm_rope", "timm 1.0.31 RotaryEmbedding", "the same, sin and cos apart", timm()},
      {"timm_dinov3", "timm 1.0.31 RotaryEmbeddingDinoV3",
       "the same, halves; 2 pi times the coordinates divided by periods",
       timm()
           .pairing(Pairing::Halves)
           .cos_layout(CosLayout::Halves)
           .frequency(Frequency::PowerDivisor)
           .base(100)
           .position_scale(2 * std::numbers::pi)},
  };
}

}  // namespace posenc::rotary
