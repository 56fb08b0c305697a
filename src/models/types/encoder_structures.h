#pragma once

#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <vector>

#include "posenc/models/encoder.h"
#include "posenc/weights/key_map.h"
#include "posenc/weights/state_dict.h"

namespace posenc {

namespace hf {
struct ModelType;
}
class Settings;

namespace io {
class TensorSource;
}
struct EncoderConfig;
struct LayerNames;

/// The names of a layer's tensors in a file: those of the linear layers and norms, without
/// `.weight` and `.bias`.
struct EncoderLayerKeys {
  /// The prefix of layer *, such as `encoder.layer.*.`; empty if each name has an asterisk.
  const char* layer;
  /// The projections; without a key and a value, query has the rows of all three in this order.
  /// All are empty without an attention.
  const char *query = "", *key = "", *value = "", *out = "";
  /// The first linear layer of the feed-forward network; empty: EncoderStructure::layer_names.
  const char* wide = "";
  const char* gate = "";      ///< the rows of its gate, if they are apart
  const char* narrow;         ///< the second linear layer of the feed-forward network
  const char *norm1, *norm2;  ///< of the attention, of the feed-forward network
  const char *post_norm1 = "", *post_norm2 = "";  ///< after them
  const char *q_norm = "", *k_norm = "";          ///< of each head
  /// The whole name of the bias of the keys, which files have not, if it is not below `key`.
  const char* k_bias = "";
};

/// How a family numbers its layers, if not 0, 1, ...
struct LayerNumbering {
  /// The numbers in the names of a layer's tensors.
  std::vector<int64_t> (*numbers)(const EncoderConfig& config, int64_t index);
  /// Adds rules that drop what a file has beyond the layers of the model.
  void (*drop_later)(KeyMap& map, const EncoderConfig& config, const io::TensorSource& source,
                     const std::string& prefix);
  const char* count;  ///< what in config.json tells how many layers there are
};

/// An encoder of transformers, which takes the output of the embeddings of the same model type. The
/// defaults are those of most models, and functions of a family are null where it has nothing of
/// the kind.
struct EncoderStructure {
  /// The rate of a dropout: none, that of kDropout, or that of the attention weights.
  enum class Rate { None, Hidden, Attention };
  using Load = void(const EncoderConfig& config, const io::TensorSource& source,
                    const std::string& prefix, EncoderImpl& model);
  using Save = void(StateDict& tensors, const EncoderConfig& config, const EncoderImpl& model);

  /// The names of the layers' tensors; several if files may use different ones.
  std::span<const EncoderLayerKeys> keys;
  int64_t original_keys = 0;  ///< which of them the original implementation has
  /// The names in an Encoder: of layer *, of its attention, of the network with `wide`, and of the
  /// norm of that.
  const char *own_layers = "encoder.layers.*.", *attention = "self_attn.", *network = "",
             *norm2 = "norm2";
  const LayerNumbering* numbering = nullptr;
  const char* embeddings = "embeddings.";  ///< the prefix of the embeddings' keys
  const char* projection = "";  ///< the embeddings' projection, if it is not below that prefix
  const char* shared = "";      ///< a further name of the tokens' table
  const char* patch_norm = "";  ///< a norm between the embeddings of images and the layers
  const char* norm = "";        ///< a further name of the embeddings' norm
  bool norm_first = false;
  NormKind norm_kind = NormKind::Layer;
  Mixing mixing = Mixing::Attention;
  FeedForward feed_forward = FeedForward::Plain;
  bool rotates = false;  ///< whether the layers have the model's rotary embedding
  Rate attention_output_dropout = Rate::Hidden;
  Rate activation_dropout = Rate::None;  ///< unless the class has a setting for it
  Rate output_dropout = Rate::Hidden;
  const char* last_norm = "";      ///< the norm after all layers
  bool raw_hidden_states = false;  ///< the last of hidden_states is before that norm
  bool is_causal = false;          ///< of one that is no decoder
  encoder::Pooling pooling = encoder::Pooling::None;
  const char* pooler = "pooler.dense";  ///< the linear layer of the pooler
  /// The table of a relative bias: with an asterisk, that of each layer.
  const char* relative_bias = "";
  bool has_head_dim = false;  ///< whether the width of a head is not hidden_size / heads
  const char* dropped = "";   ///< patterns of keys that are not the encoder's, with blanks between
  /// Modules among them without which its class is not complete, with blanks between.
  const char* beside = "";
  /// Patterns of what files have in layers beside those of the encoder, which rest_of keeps, with
  /// blanks between.
  const char* in_layers = "";
  bool (*has_beside)(const Settings& config) = nullptr;  ///< whether it has it; null: always
  /// The names that the frequencies of the rotary embedding may have in a file, which are then its
  /// own, with blanks between; the first is that of a saved file.
  const char* frequencies = "";
  /// Reads all options of an encoder in windows; null: another encoder.
  EncoderOptions (*windows)(const Settings& config) = nullptr;
  /// Settings that have one value in all other classes, and that `more` reads, with blanks between.
  const char* reads = "";
  /// Reads what the layers have besides, after the rest of the structure.
  void (*more)(const Settings& config, const hf::ModelType& model,
               EncoderOptions& options) = nullptr;
  /// Adds rules for what the encoder has beside the layers, and for what a layer has beside its
  /// keys; they come before all others.
  void (*names)(KeyMap& map, const EncoderConfig& config) = nullptr;
  void (*layer_names)(const LayerNames& names) = nullptr;
  Load* load = nullptr;  ///< reads or checks what no rule can
  Save* save = nullptr;  ///< adds what files of its class have besides
  /// Leaves out of a config.json what is not saved.
  void (*settle)(nlohmann::json& object, const Settings& config) = nullptr;
};

/// What several families have.
namespace layers {

constexpr EncoderLayerKeys bert_keys(const char* norm1, const char* norm2,
                                     const char* layer = "encoder.layer.*.") {
  return {.layer = layer,
          .query = "attention.self.query",
          .key = "attention.self.key",
          .value = "attention.self.value",
          .out = "attention.output.dense",
          .wide = "intermediate.dense",
          .narrow = "output.dense",
          .norm1 = norm1,
          .norm2 = norm2};
}
inline constexpr EncoderLayerKeys kBertKeys[] = {
    bert_keys("attention.output.LayerNorm", "output.LayerNorm")};
inline constexpr EncoderStructure kBert = {.keys = kBertKeys,
                                           .pooling = encoder::Pooling::TanhOfFirst};

inline constexpr EncoderLayerKeys kLlamaKeys[] = {{.layer = "layers.*.",
                                                   .query = "self_attn.q_proj",
                                                   .key = "self_attn.k_proj",
                                                   .value = "self_attn.v_proj",
                                                   .out = "self_attn.o_proj",
                                                   .wide = "mlp.gate_proj",
                                                   .gate = "mlp.up_proj",
                                                   .narrow = "mlp.down_proj",
                                                   .norm1 = "input_layernorm",
                                                   .norm2 = "post_attention_layernorm",
                                                   .q_norm = "self_attn.q_norm",
                                                   .k_norm = "self_attn.k_norm"}};

/// Layers like Llama's.
constexpr EncoderStructure llama(decltype(EncoderStructure::more) more,
                                 std::span<const EncoderLayerKeys> keys = kLlamaKeys) {
  return {.keys = keys,
          .embeddings = "",
          .norm_first = true,
          .norm_kind = NormKind::RMS,
          .feed_forward = FeedForward::Gated,
          .rotates = true,
          .last_norm = "norm",
          .dropped = "*.rotary_emb.inv_freq",
          .more = more};
}

}  // namespace layers
}  // namespace posenc
