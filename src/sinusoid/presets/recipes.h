#pragma once

// The recipes: every formula whose bits differ from the others. A preset names a recipe and its
// source.

#include "posenc/sinusoid/options.h"
#include "sinusoid/presets/reader.h"

namespace posenc {

/// The options of a preset, which are not validated. Throws c10::ValueError for a parameter that
/// the preset does not have or that is ill-typed.
SinusoidOptions make_options(const Preset& preset, int64_t dim, const PresetParams& params);

}  // namespace posenc

namespace posenc::recipes {

using Options = SinusoidOptions;
using Reader = PresetReader;

// clang-format off
#define POSENC_RECIPES(RECIPE) \
  /* one axis, exponential frequencies */ \
  RECIPE(tutorial) RECIPE(nemo_nmt) RECIPE(float_increment) RECIPE(standardized) RECIPE(tape) \
  RECIPE(relative) RECIPE(relative_float_log) RECIPE(relative_distance) RECIPE(fairseq) \
  RECIPE(musicgen) RECIPE(halves_shift1) RECIPE(halves_shift1_zero) RECIPE(whisper) \
  RECIPE(timesfm) RECIPE(fairseq2) RECIPE(funasr) RECIPE(flax) RECIPE(tensor2tensor) \
  RECIPE(opennmt_tf) RECIPE(diffusers_timesteps) RECIPE(guided_diffusion) RECIPE(ddpm) \
  RECIPE(canary) RECIPE(whisper_from_one) RECIPE(gemma_audio) RECIPE(zoedepth) \
  RECIPE(scaled_timesteps) \
  /* one axis, powers */ \
  RECIPE(notebook_001) RECIPE(notebook_002) RECIPE(notebook_004) RECIPE(transformer_xl) \
  RECIPE(xlnet) RECIPE(nemo_tts) RECIPE(marian) RECIPE(xlm) RECIPE(cct) RECIPE(unpaired) \
  RECIPE(diffusers_1d) RECIPE(ctrl) RECIPE(x_transformers) RECIPE(keras_sine) \
  RECIPE(simple_vit_1d) RECIPE(sam2_1d) RECIPE(positional_encodings_1d) \
  RECIPE(positional_encodings_1d_halves) RECIPE(parakeet) RECIPE(kimi) RECIPE(bros) \
  RECIPE(duration) RECIPE(box_relation) RECIPE(pi0) \
  /* grids */ \
  RECIPE(mae) RECIPE(vit_mae) RECIPE(diffusers_2d) RECIPE(aimv2) RECIPE(detr) \
  RECIPE(deformable_detr) RECIPE(dab_detr) RECIPE(grounding_dino) RECIPE(timm) RECIPE(rt_detr) \
  RECIPE(rt_detr_v4) RECIPE(moco_v3) RECIPE(monai) RECIPE(simple_vit_2d) RECIPE(loftr) \
  RECIPE(positional_encodings_2d) RECIPE(diffusers_3d) RECIPE(positional_encodings_3d) \
  RECIPE(simple_vit_3d) \
  /* points */ \
  RECIPE(conditional_detr) RECIPE(nerf) RECIPE(perceiver)
// clang-format on

#define POSENC_DECLARE_RECIPE(name) SinusoidOptions name(int64_t dim, const PresetReader& params);
POSENC_RECIPES(POSENC_DECLARE_RECIPE)
#undef POSENC_DECLARE_RECIPE

}  // namespace posenc::recipes
