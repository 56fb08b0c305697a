// The rotary embeddings of packages other than transformers and diffusers.

#include <numbers>

#include "positions/rotary/preset_rows.h"

namespace posenc::rotary {
namespace {

RotaryOptions x_transformers() {
  return adjacent()
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .part(Part::First)
      .arithmetic(Arithmetic::Promoted);
}
RotaryOptions timm() {
  return adjacent()
      .planes(Planes::Axial)
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .arithmetic(Arithmetic::Promoted);
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
       complex().head_axis(HeadAxis::AfterLength)},
      {"x_transformers", "x-transformers 2.31.10 RotaryEmbedding",
       "adjacent pairs; cos and sin stay float32; the first part of a head rotates",
       x_transformers()},
      {"xpos", "x-transformers 2.31.10 RotaryEmbedding with use_xpos",
       "the same, and q and k are scaled by their position", x_transformers().xpos_scale_base(512)},
      {"timm_mixed", "timm 1.0.31 RotaryEmbeddingMixed",
       "learned frequencies for each head: given cos and sin",
       adjacent()
           .frequency(Frequency::Learned)
           .cos_type(kept)
           .cos_layout(CosLayout::Pairs)
           .arithmetic(Arithmetic::Promoted)},
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
      {"timm_mrope", "timm 1.0.31 RotaryEmbeddingMRope",
       "every third frequency for height and for width, halves; the others do not rotate",
       halves()
           .planes(Planes::AxialInterleaved)
           .sections({8, 12, 12})
           .cos_type(kept)
           .arithmetic(Arithmetic::Promoted)},
  };
}

}  // namespace posenc::rotary
