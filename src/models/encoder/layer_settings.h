#pragma once

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// The activation of the feed-forward network; GELU where the class has no setting for it.
Activation activation_in(const Settings& config);

/// The rotary embedding of layers of type `layer_type`, and the width of their heads where it is
/// not d_model / num_heads.
void set_rotary(const Settings& config, const hf::ModelType& model, const std::string& layer_type,
                TransformerLayerOptions& layer);

/// EncoderStructure::more: what the layers of a class have besides. Each takes options that the
/// rest of the structure has set, and throws c10::ValueError for settings that are wrong.
using ReadLayers = void(const Settings& config, const hf::ModelType& model,
                        EncoderOptions& options);
ReadLayers without_biases, without_wide_bias, read_beit, read_bloom, read_convbert, read_deberta,
    read_deberta_v2, read_dinov3, read_esm_layers, read_eurobert, read_fnet, read_gemma3,
    read_jina_bert, read_layoutlmv3, read_llama, read_mistral, read_mobilebert_layers,
    read_modernbert, read_mpnet, read_mpt, read_qwen2, read_qwen3, read_squeezebert, read_t5,
    read_umt5, read_wav2vec2_conformer, read_xlm, read_xlnet;

/// EncoderStructure::windows: all options of an encoder in windows, without the pooling. Each
/// throws c10::ValueError for settings that are wrong, and for those with which transformers has a
/// model that cannot be run.
using ReadWindows = EncoderOptions(const Settings& config);
ReadWindows read_donut_swin, read_sam, read_swin, read_swin_v2;

}  // namespace posenc
