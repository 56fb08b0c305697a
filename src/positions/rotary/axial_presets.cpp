// The presets whose tokens have several coordinates: patches of images, atoms, time stamps.

#include <numbers>

#include "positions/rotary/preset_rows.h"

namespace posenc::rotary {
namespace {

RotaryOptions axial_halves() { return halves().planes(Planes::Axial); }
RotaryOptions axial_pairs() { return adjacent().planes(Planes::Axial); }

// The order in which tokens enter models that merge 2 by 2 of them.
Grid blocks(Coordinates coordinates = Coordinates::Index) {
  return Grid{.coordinates = coordinates, .merge = 2};
}

// SAM's: both axes in pairs, in float32.
RotaryOptions sam(Coordinates coordinates) {
  return axial_pairs()
      .cos_layout(CosLayout::Pairs)
      .cos_type(kept)
      .arithmetic(f32)
      .grid(Grid{.coordinates = coordinates, .width_first = true});
}

}  // namespace

std::vector<RotaryPreset> axial_presets() {
  return {
      // patches of images
      {"qwen2_vl_vision", "transformers 5.23 Qwen2VLVisionRotaryEmbedding", "height, then width",
       axial_halves()
           .cos_type(kept)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)
           .grid(blocks())},
      {"muse_vision", "transformers 5.23 MuseGlimmerVisionRotaryEmbedding",
       "the same, cos and sin rounded",
       axial_halves()
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)
           .grid(Grid{.coordinates = Coordinates::OneBased, .width_first = true})},
      {"step3p7_vision", "transformers 5.23 Step3p7VisionRotaryEmbedding", "width, then height",
       axial_halves().last_plane_first(true).cos_type(kept).arithmetic(f32).head_axis(
           HeadAxis::AfterLength)},
      {"kimi_k25_vision", "transformers 5.23 Kimi_K25VisionRotaryEmbedding",
       "width and height take turns",
       axial_halves()
           .planes(Planes::AxialAlternating)
           .last_plane_first(true)
           .cos_type(kept)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)},
      {"inkling2_vision", "transformers 5.23 Inkling2VisionRotaryEmbedding",
       "width, then height; adjacent pairs",
       axial_pairs()
           .last_plane_first(true)
           .cos_layout(CosLayout::Pairs)
           .cos_type(kept)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)
           .grid(blocks(Coordinates::OneBased))},
      {"pixtral", "transformers 5.23 PixtralVisionRotaryEmbedding",
       "even frequencies for height, odd for width", axial_halves().planes(Planes::EvenOdd)},
      {"gemma4_vision", "transformers 5.23 Gemma4VisionRotaryEmbedding",
       "each axis rotates in channels of its own",
       RotaryOptions(0, Pairing::HalvesPerAxis)
           .planes(Planes::Axial)
           .cos_layout(CosLayout::HalvesPerAxis)
           .head_axis(HeadAxis::AfterLength)
           .grid(Grid{.width_first = true})},
      {"minimax_m3_vision", "transformers 5.23 MiniMaxM3VLVisionRotaryEmbedding",
       "time, height and width; the first part of a head rotates",
       axial_halves().axes(3).part(Part::First).head_axis(HeadAxis::AfterLength).grid(blocks()),
       nullptr, diffusers({"MiniMaxH3RotaryPosEmbed"})},
      {"llama4_vision", "transformers 5.23 Llama4VisionRotaryEmbedding",
       "complex numbers of cos and sin; width, then height, from 1; the class token is last, at 0",
       axial_pairs()
           .last_plane_first(true)
           .cos_layout(CosLayout::Single)
           .cos_type(kept)
           .arithmetic(Arithmetic::Complex)
           .head_axis(HeadAxis::AfterLength)
           .grid(Grid{.coordinates = Coordinates::OneBased, .zero_tokens = 1})},
      {"dinov3",
       "transformers 5.23 DINOv3ViTRopePositionEmbedding, Sapiens2's, EomtDinov3RotaryEmbedding",
       "the midpoints of patches between -1 and 1, in turns",
       axial_halves()
           .frequency(Frequency::PowerOfSteps)
           .position_scale(2 * std::numbers::pi)
           .grid(Grid{.coordinates = Coordinates::Midpoints})},
      {"sam2_video",
       "transformers 5.23 Sam2VideoVisionRotaryEmbedding, EdgeTamVideo's, Sam3TrackerVideo's",
       "adjacent pairs, width first", sam(Coordinates::Index)},
      {"sam3_vit", "transformers 5.23 Sam3ViTRotaryEmbedding",
       "the same, with positions scaled to the window", sam(Coordinates::Scaled)},
      {"vjepa2", "transformers 5.23 VJEPA2RopeAttention",
       "time, height and width, in the dtype of q; the two of a pair differ in angle",
       axial_pairs()
           .axes(3)
           .angle_type(AngleType::Input)
           .cos_layout(CosLayout::HalvesPerAxis)
           .part(Part::First)},
      {"efficientloftr", "transformers 5.23 EfficientLoFTRRotaryEmbedding",
       "height and width take turns, from 1; all heads are one",
       axial_pairs()
           .planes(Planes::AxialAlternating)
           .cos_layout(CosLayout::Pairs)
           .arithmetic(f32)
           .head_axis(HeadAxis::AfterLength)
           .applied_to(AppliedTo::AllHeads)
           .grid(Grid{.coordinates = Coordinates::OneBased})},
      // no patches
      {"esmfold2", "transformers 5.23 EsmFold2RotaryEmbedding",
       "an atom's three coordinates and its number, with a base of their own", axial_halves()},
      {"musicflamingo", "transformers 5.23 MusicFlamingoRotaryEmbedding",
       "window and time, times a time stamp; rotates hidden states, in float64",
       axial_pairs()
           .modulated(true)
           .cos_layout(CosLayout::Pairs)
           .cos_type(kept)
           .part(Part::First)
           .arithmetic(Arithmetic::Float64)
           .applied_to(AppliedTo::HiddenStates)},
      {"lightglue", "transformers 5.23 LightGluePositionalEncoder",
       "learned frequencies: the rotation only, by given cos and sin",
       axial_pairs()
           .frequency(Frequency::Learned)
           .cos_layout(CosLayout::Pairs)
           .cos_type(kept)
           .arithmetic(f32)},
  };
}

}  // namespace posenc::rotary
