#pragma once

#include <span>

#include "posenc/models/encoder.h"

namespace posenc {

namespace hf {
struct ModelType;
}
class Settings;

/// The names of a layer's tensors in a file: those of the linear layers and norms, without
/// `.weight` and `.bias`.
struct EncoderLayerKeys {
  /// The prefix of layer *, such as `encoder.layer.*.`; empty if each name has an asterisk.
  const char* layer;
  /// The projections; without a key and a value, query has the rows of all three in this order.
  /// All are empty without an attention.
  const char *query = "", *key = "", *value = "", *out = "";
  const char* wide;            ///< the first linear layer of the feed-forward network
  const char* activated = "";  ///< with gates, the rows that are activated, if wide is their gate
  const char* gate = "";       ///< the rows of its gate, if they are apart
  /// The rows that are activated with gates, where `wide` is another tensor without them: T5.
  const char* gated_wide = "";
  bool gate_first = false;    ///< whether wide has the rows of the gate before those it gates
  const char* narrow;         ///< the second linear layer of the feed-forward network
  const char *norm1, *norm2;  ///< of the attention, of the feed-forward network
  const char *post_norm1 = "", *post_norm2 = "";  ///< after them
  const char *q_norm = "", *k_norm = "";          ///< of each head
  const char *pos_key = "", *pos_query = "";      ///< of relative positions: DeBERTa
  const char *scale1 = "", *scale2 = "";          ///< whole names of a LayerScale's factors: BEiT
  /// The whole names of the tables of grid biases: that of a layer, and that of all, which is not
  /// below `layer`.
  const char *grid_bias = "", *shared_grid_bias = "";
  bool packs_heads =
      false;  ///< query has queries, keys and values of one head after another: BLOOM
  /// The biases of queries, keys and values, where query has the rows of one head after another:
  /// whole names, of which files have not that of the keys.
  const char *q_bias = "", *k_bias = "", *v_bias = "";
  /// What the names of the parameters of places in a window begin with: Swin, SAM.
  const char* window_positions = nullptr;
};

/// An encoder of transformers, which takes the output of the embeddings of the same model type. The
/// defaults are those of most models.
struct EncoderStructure {
  /// The rate of a dropout: none, that of kDropout, or that of the attention weights.
  enum class Rate { None, Hidden, Attention };

  /// The names of the layers' tensors; several if files may use different ones.
  std::span<const EncoderLayerKeys> keys;
  int64_t original_keys = 0;               ///< which of them the original implementation has
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
  bool is_causal = false;
  encoder::Pooling pooling = encoder::Pooling::None;
  const char* pooler = "pooler.dense";  ///< the linear layer of the pooler
  bool has_layer_scale = false;  ///< DINOv2: `layer_scale1.lambda1` and `layer_scale2.lambda1`
  bool shares_layers = false;    ///< ALBERT: num_hidden_groups, inner_group_num
  /// The table of a relative bias: with an asterisk, that of each layer.
  const char* relative_bias = "";
  bool has_head_dim = false;  ///< T5: the width of a head is a setting of its own
  const char* dropped = "";   ///< patterns of keys that are not the encoder's, with blanks between
  const char* beside = "";    ///< a module among them without which its class is not complete
  /// A tensor with what the rotary embedding computes: RoFormer's table, of which a file may have
  /// no other, or ESM's frequencies, which are those of the file.
  const char* rotary_table = "";
  const char* frequencies = "";
  /// Chinese CLIP: from_pretrained zeroes the row of padding that a file has.
  bool zeroes_padding_row = false;
  bool has_bottleneck = false;     ///< MobileBERT: TransformerLayerOptions::bottleneck
  bool is_disentangled = false;    ///< DeBERTa: TransformerLayerOptions::disentangled
  bool is_transformer_xl = false;  ///< XLNet: TransformerLayerOptions::transformer_xl
  bool is_conformer = false;       ///< wav2vec2-conformer: TransformerLayerOptions::conformer
  /// Reads all options of an encoder in windows, whose layers have the number of their stage and
  /// their own in it in their names; null: another encoder.
  EncoderOptions (*windows)(const Settings& config) = nullptr;
  const char* patches = "";    ///< the projection of the patches, if it is not below embeddings
  const char* positions = "";  ///< the same for the table of positions
  bool is_grouped = false;     ///< SqueezeBERT: convolutions in groups, `q_groups` and so on
  /// Reads what few classes have besides; null: nothing.
  void (*more)(const Settings& config, const hf::ModelType& model,
               EncoderOptions& options) = nullptr;
  /// Donut: the rows of the table of each pair of tokens, which its class has in each layer.
  const char* window_index = "";
};

/// The structures of the encoders that posenc can run.
namespace layers {

extern const EncoderStructure kAlbert, kBart, kBeit, kBert, kBertWithoutPooler, kBloom,
    kChineseClipText, kClipText, kClipVision, kConvBert, kDinov2, kDinov3, kDeberta, kDebertaV2,
    kDistilBert, kDonutSwin, kElectra, kEsm, kEuroBert, kFNet, kGemma3, kGte, kJina, kJinaBert,
    kLayoutLMv3, kLlama, kLuke, kMBart, kMegatronBert, kMistral, kMobileBert, kModernBert, kMPNet,
    kMpt, kNomic, kQwen2, kQwen3, kRemBert, kRobertaPreLayerNorm, kRoFormer, kRobertaXL, kSam,
    kSiglipText, kSiglipVision, kSqueezeBert, kSwin, kSwinV2, kT5, kUmt5, kViT, kWav2Vec2Conformer,
    kXlm, kXlnet;

}  // namespace layers
}  // namespace posenc
