#pragma once

#include <span>

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

/// An encoder of transformers, which takes the output of the embeddings of the same model type. The
/// defaults are those of most models.
struct EncoderStructure {
  /// The names of the layers' tensors; several if files may use different ones.
  std::span<const EncoderLayerKeys> keys;
  const char* embeddings = "embeddings.";  ///< the prefix of the embeddings' keys
  const char* projection = "";  ///< the embeddings' projection, if it is not below that prefix
  const char* shared = "";      ///< a further name of the tokens' table
  bool norm_first = false;
  const char* last_norm = "";  ///< the norm after all layers
  bool raw_hidden_states = false;  ///< the last of hidden_states is before that norm
  bool is_causal = false;
  encoder::Pooling pooling = encoder::Pooling::None;
  const char* pooler = "pooler.dense";  ///< the linear layer of the pooler
  bool has_layer_scale = false;    ///< DINOv2: `layer_scale1.lambda1` and `layer_scale2.lambda1`
  bool shares_layers = false;      ///< ALBERT: num_hidden_groups, inner_group_num
  const char* relative_bias = "";  ///< MPNet: the table of a relative bias
  const char* dropped = "";        ///< a pattern of keys that are not the encoder's
};

/// The structures of the encoders that posenc can run.
namespace layers {

extern const EncoderStructure kAlbert, kBart, kBert, kBertWithoutPooler, kClipText, kDinov2,
    kDistilBert, kElectra, kMBart, kMegatronBert, kMPNet, kRemBert, kRobertaPreLayerNorm,
    kRobertaXL, kSiglipText, kViT;

}  // namespace layers
}  // namespace posenc
