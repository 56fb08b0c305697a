#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "posenc/models/encoder.h"

namespace posenc {

/// The names of a layer's tensors in a file: those of the linear layers and norms, without
/// `.weight` and `.bias`.
struct EncoderLayerKeys {
  const char* layer;  ///< the prefix of layer *, such as `encoder.layer.*.`
  const char *query, *key, *value, *out;
  const char *wide, *narrow;  ///< the two linear layers of the feed-forward network
  const char *norm1, *norm2;  ///< of the attention, of the feed-forward network
};

/// The names of settings in a config.json, and their defaults. hidden_size, num_attention_heads and
/// num_hidden_layers are names that all classes know.
struct EncoderConfigKeys {
  const char* wide = "intermediate_size";
  bool wide_is_ratio = false;  ///< to hidden_size
  const char* activation = "hidden_act";
  const char* eps = "layer_norm_eps";           ///< empty: default_eps always
  const char* dropout = "hidden_dropout_prob";  ///< empty: none
  const char* embedding = "embedding_size";     ///< the width of the tables before a projection
  int64_t default_hidden = 768, default_heads = 12, default_layers = 12, default_wide = 3072;
  const char* default_activation = "gelu";
  double default_eps = 1e-12;
  double default_dropout = 0.1;
};

/// An encoder of transformers. The defaults are those of most models.
struct EncoderModelRow {
  const char* model_type;
  /// The names of the layers' tensors; several if files may use different ones.
  std::vector<const EncoderLayerKeys*> layers;
  EncoderConfigKeys config = {};
  /// The prefix of all keys in files of models with a head, such as `bert.`; files without it are
  /// read too.
  const char* prefix = "";
  bool is_vision = false;             ///< the front takes pixel_values
  const char* front = "embeddings.";  ///< the prefix of the front's keys
  const char* projection = "";        ///< the front's projection, if it is not below that prefix
  const char* shared = "";            ///< a further name of the tokens' table
  bool norm_first = false;
  const char* last_norm = "";  ///< the norm after all layers
  bool is_causal = false;
  encoder::Pooling pooling = encoder::Pooling::None;
  const char* pooler = "pooler.dense";  ///< the linear layer of the pooler
  bool has_layer_scale = false;    ///< DINOv2: `layer_scale1.lambda1` and `layer_scale2.lambda1`
  bool shares_layers = false;      ///< ALBERT: num_hidden_groups, inner_group_num
  const char* relative_bias = "";  ///< MPNet: the table of a relative bias
  std::vector<const char*> dropped = {};  ///< patterns of keys that are not the encoder's
};

/// A model of several encoders, of which one is loaded.
struct CompositeModelRow {
  const char* model_type;
  const char* settings;  ///< the object in config.json that has those of the encoder
  const char* encoder;   ///< its model_type
};

/// All encoders.
const std::vector<EncoderModelRow>& encoder_model_table();
/// All models of several encoders.
const std::vector<CompositeModelRow>& composite_model_table();

/// The row of `model_type`, or null.
const CompositeModelRow* find_composite_model(std::string_view model_type);
/// The row of `model_type`. Throws c10::ValueError, beginning with `where`, for a known model that
/// posenc cannot run, with what it lacks, and for an unknown one, with the nearest names.
const EncoderModelRow& encoder_model(const std::string& where, std::string_view model_type);

}  // namespace posenc
