#pragma once

// The recipes: every formula whose bits differ from the others. A preset names a recipe and its
// source.

#include "posenc/sinusoid/options.h"
#include "sinusoid/presets/reader.h"

namespace posenc::recipes {

using Options = SinusoidOptions;
using Reader = PresetReader;

#define POSENC_RECIPE(name) SinusoidOptions name(int64_t dim, const PresetReader& params)

// one axis, exponential frequencies
POSENC_RECIPE(tutorial);
POSENC_RECIPE(nemo_nmt);
POSENC_RECIPE(float_increment);
POSENC_RECIPE(standardized);
POSENC_RECIPE(tape);
POSENC_RECIPE(relative);
POSENC_RECIPE(relative_float_log);
POSENC_RECIPE(relative_distance);
POSENC_RECIPE(fairseq);
POSENC_RECIPE(musicgen);
POSENC_RECIPE(halves_shift1);
POSENC_RECIPE(halves_shift1_zero);
POSENC_RECIPE(whisper);
POSENC_RECIPE(timesfm);
POSENC_RECIPE(fairseq2);
POSENC_RECIPE(funasr);
POSENC_RECIPE(flax);
POSENC_RECIPE(tensor2tensor);
POSENC_RECIPE(opennmt_tf);
POSENC_RECIPE(diffusers_timesteps);
POSENC_RECIPE(guided_diffusion);
POSENC_RECIPE(ddpm);
POSENC_RECIPE(canary);
POSENC_RECIPE(whisper_from_one);
POSENC_RECIPE(gemma_audio);
POSENC_RECIPE(zoedepth);
POSENC_RECIPE(scaled_timesteps);

// one axis, powers
POSENC_RECIPE(notebook_001);
POSENC_RECIPE(notebook_002);
POSENC_RECIPE(notebook_004);
POSENC_RECIPE(transformer_xl);
POSENC_RECIPE(xlnet);
POSENC_RECIPE(nemo_tts);
POSENC_RECIPE(marian);
POSENC_RECIPE(xlm);
POSENC_RECIPE(cct);
POSENC_RECIPE(unpaired);
POSENC_RECIPE(diffusers_1d);
POSENC_RECIPE(ctrl);
POSENC_RECIPE(x_transformers);
POSENC_RECIPE(keras_sine);
POSENC_RECIPE(simple_vit_1d);
POSENC_RECIPE(sam2_1d);
POSENC_RECIPE(positional_encodings_1d);
POSENC_RECIPE(positional_encodings_1d_halves);
POSENC_RECIPE(parakeet);
POSENC_RECIPE(kimi);
POSENC_RECIPE(bros);
POSENC_RECIPE(duration);
POSENC_RECIPE(box_relation);
POSENC_RECIPE(pi0);

// grids
POSENC_RECIPE(mae);
POSENC_RECIPE(vit_mae);
POSENC_RECIPE(diffusers_2d);
POSENC_RECIPE(aimv2);
POSENC_RECIPE(detr);
POSENC_RECIPE(deformable_detr);
POSENC_RECIPE(dab_detr);
POSENC_RECIPE(grounding_dino);
POSENC_RECIPE(timm);
POSENC_RECIPE(rt_detr);
POSENC_RECIPE(rt_detr_v4);
POSENC_RECIPE(moco_v3);
POSENC_RECIPE(monai);
POSENC_RECIPE(simple_vit_2d);
POSENC_RECIPE(loftr);
POSENC_RECIPE(positional_encodings_2d);
POSENC_RECIPE(diffusers_3d);
POSENC_RECIPE(positional_encodings_3d);
POSENC_RECIPE(simple_vit_3d);

// points
POSENC_RECIPE(conditional_detr);
POSENC_RECIPE(nerf);
POSENC_RECIPE(perceiver);

#undef POSENC_RECIPE

}  // namespace posenc::recipes
