#pragma once

#include <c10/util/FunctionRef.h>

#include <vector>

#include "models/config/settings.h"
#include "models/types/model_types.h"
#include "posenc/models/encoder.h"

namespace posenc {

/// EncoderStructure::more and windows: each throws c10::ValueError for settings that are wrong, and
/// for those with which transformers has a model that cannot be run.
using ReadLayers = void(const Settings& config, const hf::ModelType& model,
                        EncoderOptions& options);
using ReadWindows = EncoderOptions(const Settings& config);

/// The options of all layers, if EncoderOptions has not some for each.
inline TransformerLayerOptions& own_layer(EncoderOptions& options) {
  return options.encoder().layer();
}

/// The activation of the feed-forward network; GELU where the class has no setting for it.
Activation activation_in(const Settings& config);

/// The rotary embedding of layers of type `layer_type`, and the width of their heads where it is
/// not d_model / num_heads.
void set_rotary(const Settings& config, const hf::ModelType& model, const std::string& layer_type,
                TransformerLayerOptions& layer);

/// Whether the attention has biases, and the feed-forward network.
void set_biases(TransformerLayerOptions& layer, bool attention, bool feed_forward);

/// Key and value heads that queries share: num_key_value_heads.
void set_kv_heads(const Settings& config, TransformerLayerOptions& layer);

/// ALiBi of classes that add the same bias to a key for all queries, which is that of the distance
/// in causal layers alone.
void set_causal_alibi(const Settings& config, EncoderOptions& options,
                      const relative::Alibi& alibi);
/// The limit of queries, keys and values: clip_qkv, where it is set.
void set_clip(const Settings& config, TransformerLayerOptions& layer);

/// Layer types of classes with a window in some layers.
inline constexpr const char *kSliding = "sliding_attention", *kFull = "full_attention";
inline constexpr int64_t kWidestWindow = int64_t{1} << 31;

/// `sliding_window`, which counts the token itself in causal layers, as transformers does.
int64_t window_of(const Settings& config, bool is_causal);

/// Which layers have a window: layer_types, or `is_sliding` of the number of a layer without them.
std::vector<bool> sliding_layers(const Settings& config, int64_t count,
                                 c10::function_ref<bool(int64_t)> is_sliding);

/// Gives each layer its options: those of all, or what `slide` makes of them where it has a window.
void set_layers(EncoderOptions& options, const std::vector<bool>& sliding,
                c10::function_ref<void(TransformerLayerOptions&)> slide);

/// Gives each layer its options: those of all, which `change` changes for the layer of a number.
void set_each_layer(EncoderOptions& options,
                    c10::function_ref<void(int64_t, TransformerLayerOptions&)> change);

/// Limits of encoders in windows.
inline constexpr int64_t kMostWindowLayers = 1000, kWidestMap = 1 << 20;

/// Their patches, which have no class token.
VisionEmbeddingsOptions window_patches(const Settings& config, int64_t width);

/// The width of their feed-forward networks by `mlp_ratio`.
int64_t window_network_width(const Settings& config, int64_t width);

}  // namespace posenc
