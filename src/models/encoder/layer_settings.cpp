#include "models/encoder/layer_settings.h"

#include <optional>
#include <string>
#include <utility>

#include "models/config/activation_name.h"
#include "models/config/setting_names.h"
#include "models/embeddings/presets.h"
#include "models/positions/model_options.h"
#include "models/positions/rope_parameters.h"

namespace posenc {

Activation activation_in(const Settings& config) {
  const char* key = config.name_of(hf::kActivation);
  if (key == nullptr) return Activation::GELU;
  return named_activation(config, key, config.text(key));
}

void set_rotary(const Settings& config, const hf::ModelType& model, const std::string& layer_type,
                TransformerLayerOptions& layer) {
  constexpr int64_t kWidestHead = int64_t{1} << 20;
  const int64_t head_dim = rotary_head_dim(config, model, layer_type);
  if (head_dim > kWidestHead) {
    config.refuse("head_dim", "must be at most " + std::to_string(kWidestHead));
  }
  if (head_dim * layer.num_heads() != layer.d_model()) layer.head_dim(head_dim);
  // The frequencies of a call do not depend on the calls before it.
  layer.rotary(RotaryEmbeddingOptions(rotary_options_of(config, model, layer_type))
                   .length_rule(LengthRule::PerCall));
}

void set_biases(TransformerLayerOptions& layer, bool attention, bool feed_forward) {
  layer.qkv_bias(attention).out_bias(attention);
  layer.linear1_bias(feed_forward).linear2_bias(feed_forward);
}

void set_kv_heads(const Settings& config, TransformerLayerOptions& layer) {
  if (!config.has("num_key_value_heads")) return;
  const int64_t heads = layer.num_heads();
  const int64_t kv_heads = config.integer("num_key_value_heads", 1, heads);
  if (heads % kv_heads != 0) {
    config.refuse("num_key_value_heads",
                  "must divide " + config.key("num_attention_heads") + " " + std::to_string(heads));
  }
  if (kv_heads != heads) layer.num_kv_heads(kv_heads);
}

void set_causal_alibi(const Settings& config, EncoderOptions& options,
                      const relative::Alibi& alibi) {
  if (!options.causal())
    config.refuse("is_causal",
                  "must be true with ALiBi, whose biases grow with the place of a key");
  options.encoder().alibi(alibi);
}

void set_clip(const Settings& config, TransformerLayerOptions& layer) {
  constexpr const char* kClip = "clip_qkv";
  const std::optional<double> clip = config.real_if(kClip);
  if (clip && !(*clip >= 0.0)) config.refuse(kClip, "must not be negative");
  layer.qkv_clip(clip);
}

int64_t window_of(const Settings& config, bool is_causal) {
  return is_causal ? config.integer("sliding_window", 1, kWidestWindow) - 1
                   : config.integer("sliding_window", 0, kWidestWindow);
}

std::vector<bool> sliding_layers(const Settings& config, int64_t count,
                                 c10::function_ref<bool(int64_t)> is_sliding) {
  std::vector<bool> sliding;
  if (!config.has("layer_types")) {
    for (int64_t i = 0; i < count; ++i) sliding.push_back(is_sliding(i));
    return sliding;
  }
  const nlohmann::json& types = config.value("layer_types");
  if (!types.is_array() || static_cast<int64_t>(types.size()) != count) {
    config.refuse("layer_types", "must be a list of the type of each of " +
                                     config.key("num_hidden_layers") + " " + std::to_string(count) +
                                     " layers");
  }
  for (const nlohmann::json& type : types) {
    if (type != kSliding && type != kFull) {
      config.refuse("layer_types", "must have full_attention and sliding_attention only", type);
    }
    sliding.push_back(type == kSliding);
  }
  return sliding;
}

void set_layers(EncoderOptions& options, const std::vector<bool>& sliding,
                c10::function_ref<void(TransformerLayerOptions&)> slide) {
  std::optional<TransformerLayerOptions> other;
  std::vector<TransformerLayerOptions> layers;
  for (const bool one : sliding) {
    if (one && !other) {
      other = own_layer(options);
      slide(*other);
    }
    layers.push_back(one ? *other : own_layer(options));
  }
  if (other) options.encoder().layers(std::move(layers));
}

void set_each_layer(EncoderOptions& options,
                    c10::function_ref<void(int64_t, TransformerLayerOptions&)> change) {
  std::vector<TransformerLayerOptions> layers;
  for (int64_t i = 0; i < options.encoder().num_layers(); ++i) {
    layers.push_back(own_layer(options));
    change(i, layers.back());
  }
  options.encoder().layers(std::move(layers));
}

VisionEmbeddingsOptions window_patches(const Settings& config, int64_t width) {
  const VisionSides image = vision_sides(config, "image_size");
  const VisionSides patch = vision_sides(config, "patch_size");
  VisionEmbeddingsOptions options(image.height, patch.height, width);
  options.image_width(image.width).patch_width(patch.width).class_tokens(0);
  options.num_channels(config.integer("num_channels", 1, kWidestMap));
  options.initializer_range(config.real("initializer_range"));
  options.position_table(vision::PositionTable::None);
  return options;
}

int64_t window_network_width(const Settings& config, int64_t width) {
  const double wide = config.real("mlp_ratio") * static_cast<double>(width);
  if (!(wide >= 1.0 && wide < static_cast<double>(kWidestMap)))
    config.refuse("mlp_ratio", "must make a network of at least one channel");
  return static_cast<int64_t>(wide);
}

}  // namespace posenc
