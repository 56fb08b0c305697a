#pragma once

// posenc-budget: the options of one class

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <optional>
#include <string>

#include "posenc/core/base_arg.h"
#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/positions/relative/alibi.h"
#include "posenc/positions/relative/index.h"
#include "posenc/positions/relative/window.h"
#include "posenc/transformer/attention/disentangled_options.h"
#include "posenc/transformer/attention/query_growth.h"
#include "posenc/transformer/attention/transformer_xl_options.h"
#include "posenc/transformer/functional/activation.h"
#include "posenc/transformer/layers/adapter_options.h"
#include "posenc/transformer/layers/bottleneck_options.h"
#include "posenc/transformer/layers/conformer_options.h"

namespace posenc POSENC_EXPORT {

/// What mixes the tokens of a sequence in a layer.
enum class Mixing {
  Attention,    ///< self-attention
  Fourier,      ///< the real part of the Fourier transform over tokens and channels: FNet
  Convolution,  ///< ConvolutionalAttention: ConvBERT
};

/// The structure of a feed-forward network.
enum class FeedForward {
  Plain,  ///< linear2(activation(linear1(x)))
  Gated,  ///< linear2(activation(a) * g), where linear1(x) is a followed by g: SwiGLU, GeGLU
};

/// Whether the feed-forward network reads the input of the layer, beside the attention, and not
/// what the attention has added to it: x + attention(norm1(x)) + network(norm(x)).
enum class Parallel {
  None,        ///< it reads x + attention(norm1(x)), by norm2
  SharedNorm,  ///< norm is norm1, and there is no norm2: GPT-J, Phi, Cohere
  TwoNorms,    ///< norm is norm2: GPT-NeoX
};

/// The probabilities of the dropouts of a layer, each in [0, 1); they apply in training only.
struct LayerDropouts {
  double attention = 0.0;         ///< of zeroing an attention weight
  double attention_output = 0.0;  ///< of an element that an attention adds to x
  double activation = 0.0;        ///< of an element between the two linear layers
  double output = 0.0;            ///< of an element that the feed-forward network adds to x
  /// Of zeroing all that a block adds to a sequence, the others being divided by 1 - path: DINOv2's
  /// drop_path_rate. Encoders only.
  double path = 0.0;

  POSENC_FIELDS(LayerDropouts, attention, attention_output, activation, output, path);
};

/// Options of a layer of the encoder or the decoder. A decoder layer refuses those that say so.
struct TransformerLayerOptions {
  /// The default options for width `d_model` and `num_heads` heads.
  TransformerLayerOptions(int64_t d_model, int64_t num_heads)
      : d_model_(d_model), num_heads_(num_heads) {}

  /// Width D of the layer.
  TORCH_ARG(int64_t, d_model);
  /// Number of heads; must divide d_model.
  TORCH_ARG(int64_t, num_heads);
  /// Width of the feed-forward network; PyTorch's dim_feedforward.
  TORCH_ARG(int64_t, d_ff) = 2048;
  /// Probability of every dropout in the layer, in [0, 1), except that of a path.
  TORCH_ARG(double, dropout) = 0.1;
  /// A probability for each of them in place of `dropout`, as most models have.
  TORCH_ARG(std::optional<LayerDropouts>, dropouts) = std::nullopt;
  /// What mixes tokens; all but Mixing::Attention take none of the attention's options, post_norms
  /// or layer_scale, and Mixing::Fourier a num_heads of 1. Encoders only.
  TORCH_ARG(Mixing, mixing) = Mixing::Attention;
  /// Number of tokens that the convolution of Mixing::Convolution sees, around each; odd.
  TORCH_ARG(int64_t, conv_kernel_size) = 9;
  /// Makes layers BottleneckEncoderLayers, which refuse most other options of encoders: MobileBERT.
  TORCH_ARG(std::optional<BottleneckOptions>, bottleneck) = std::nullopt;
  /// Gives layers a DisentangledAttention, beside which they refuse most other options of encoders:
  /// DeBERTa.
  TORCH_ARG(std::optional<DisentangledOptions>, disentangled) = std::nullopt;
  /// Makes layers ConformerEncoderLayers, which refuse most other options of encoders.
  TORCH_ARG(std::optional<ConformerOptions>, conformer) = std::nullopt;
  /// Gives layers a TransformerXLAttention, beside which they refuse most other options of
  /// encoders: XLNet. Those of a conformer may have one too.
  TORCH_ARG(std::optional<TransformerXLOptions>, transformer_xl) = std::nullopt;
  /// The structure of the feed-forward network.
  TORCH_ARG(FeedForward, feed_forward) = FeedForward::Plain;
  /// Activation of the feed-forward network.
  TORCH_ARG(Activation, activation) = Activation::ReLU;
  /// Normalises the input of each block (pre-norm); false: its output, as in the paper.
  TORCH_ARG(bool, norm_first) = false;
  /// Whether the attention has a norm before it; ModernBERT's first layer has none. false needs
  /// norm_first. Encoders only.
  TORCH_ARG(bool, first_norm) = true;
  /// The same for the feed-forward network: with post_norms and without either norm of an input,
  /// OLMo 2. Encoders only.
  TORCH_ARG(bool, second_norm) = true;
  /// Whether a block's normalised input, and not x, is what its output is added to: BLOOM's
  /// apply_residual_connection_post_layernorm. Needs norm_first. Encoders only.
  TORCH_ARG(bool, residual_of_norm) = false;
  /// Whether both blocks read x. Needs norm_first and norms of inputs alone; not with
  /// residual_of_norm, an adapter, per_layer_input or output_factor. Encoders only.
  TORCH_ARG(Parallel, parallel) = Parallel::None;
  /// Normalises the output of each block as well, before it is added to x: Gemma. Needs norm_first.
  /// Encoders only.
  TORCH_ARG(bool, post_norms) = false;
  /// The kind of all norms.
  TORCH_ARG(NormKind, norm_kind) = NormKind::Layer;
  /// Added to the variance, or the mean square, in the norms.
  TORCH_ARG(double, layer_norm_eps) = 1e-5;
  /// Whether the norms have a weight, and a bias; false: OLMo. Those of qk_norm have one. Encoders
  /// only.
  TORCH_ARG(bool, norm_affine) = true;
  /// Whether linear layers and norms have a bias; the four options below set it for some of them.
  TORCH_ARG(bool, bias) = true;
  /// Whether the projections of queries, keys and values have a bias; `bias` unless set.
  TORCH_ARG(std::optional<bool>, qkv_bias) = std::nullopt;
  /// Whether queries have a bias, where `qkv_bias` gives them one; otherwise its rows of
  /// in_proj_bias are zeros that get no gradient. DINOv3's keys have none.
  TORCH_ARG(bool, query_bias) = true;
  /// The same for keys.
  TORCH_ARG(bool, key_bias) = true;
  /// The same for values.
  TORCH_ARG(bool, value_bias) = true;
  /// Whether the projection of the attention's output has one; `bias` unless set.
  TORCH_ARG(std::optional<bool>, out_bias) = std::nullopt;
  /// Whether linear1 has one; `bias` unless set.
  TORCH_ARG(std::optional<bool>, linear1_bias) = std::nullopt;
  /// Whether linear2 has one; `bias` unless set.
  TORCH_ARG(std::optional<bool>, linear2_bias) = std::nullopt;
  /// Whether layer norms have one; `bias` unless set. An RMS norm has none.
  TORCH_ARG(std::optional<bool>, norm_bias) = std::nullopt;
  /// Whether sequences are (B, L, D); false: (L, B, D).
  TORCH_ARG(bool, batch_first) = true;
  /// Multiplies the output of each block by a LayerScale that starts from this factor, before it is
  /// added to x, as DINOv2 does; none unless set.
  TORCH_ARG(std::optional<double>, layer_scale) = std::nullopt;
  /// Multiplies the output of each block before it is added to x: ESMC. Encoders only.
  TORCH_ARG(double, residual_scale) = 1.0;
  /// Adds a block after the feed-forward network, a smaller one: X-MOD. None unless set. Encoders
  /// only, with FeedForward::Plain.
  TORCH_ARG(std::optional<AdapterOptions>, adapter) = std::nullopt;
  /// Width P of an input that the stack makes for each layer of its own input, and that gates a
  /// block after the feed-forward network: EmbeddingGemma 2. None unless set. Encoders only, with
  /// norm_first.
  TORCH_ARG(std::optional<int64_t>, per_layer_input) = std::nullopt;
  /// Multiplies the output of the layer by a number, a buffer: EmbeddingGemma 2. Encoders only,
  /// with norm_first.
  TORCH_ARG(bool, output_factor) = false;
  /// Number of key and value heads (grouped-query attention), a divisor of num_heads; num_heads
  /// unless set.
  TORCH_ARG(std::optional<int64_t>, num_kv_heads) = std::nullopt;
  /// Width of a head; d_model / num_heads unless set, which num_heads need not divide then.
  TORCH_ARG(std::optional<int64_t>, head_dim) = std::nullopt;
  /// Gives the self-attention a relative position bias with this index and a table of its own, as
  /// MultiheadAttentionOptions does: UMT5. For one table that all layers share, as in T5, see
  /// TransformerStackOptions. None unless set.
  TORCH_ARG(std::optional<relative::Index>, relative) = std::nullopt;
  /// Adds a GridPositionBias of the layer's own to the scores, by the rows and columns of patches,
  /// with a table for a grid of this size: BEiT. For one that all layers share see
  /// TransformerEncoderOptions; a layer may have both. None unless set. Encoders only.
  TORCH_ARG(std::optional<relative::Grid>, grid_bias) = std::nullopt;
  /// Rotates queries and keys by their positions; none unless set. Encoders only, as qk_norm and
  /// window.
  TORCH_ARG(std::optional<RotaryEmbeddingOptions>, rotary) = std::nullopt;
  /// Normalises each head of queries and keys, before they are rotated, by a norm of the norms'
  /// kind and epsilon, without bias; not with NormKind::Affine.
  TORCH_ARG(bool, qk_norm) = false;
  /// Whether qk_norm normalises all heads of queries as one, and all of keys: ESMC.
  TORCH_ARG(bool, qk_norm_whole) = false;
  /// Whether the norms of qk_norm have a bias, with NormKind::Layer: Phi. Encoders only.
  TORCH_ARG(bool, qk_norm_bias) = false;
  /// Whether each head has its own weight in the norms of qk_norm, (heads, head_dim), with
  /// NormKind::Layer: Cohere, StableLM. Encoders only.
  TORCH_ARG(bool, qk_norm_per_head) = false;
  /// Whether qk_norm normalises queries and keys after they are rotated: Hunyuan. Encoders only.
  TORCH_ARG(bool, qk_norm_after_rotary) = false;
  /// Queries, keys and values are limited to -qkv_clip .. qkv_clip where they leave the projection:
  /// OLMo, MPT. Encoders only.
  TORCH_ARG(std::optional<double>, qkv_clip) = std::nullopt;
  /// Scores become softcap * tanh(scores / softcap), before masks and biases: Gemma 2. Encoders
  /// only.
  TORCH_ARG(std::optional<double>, attention_softcap) = std::nullopt;
  /// Multiplies queries by a factor that grows with their position. Encoders only.
  TORCH_ARG(std::optional<QueryGrowth>, query_growth) = std::nullopt;
  /// Normalises each head of values by an RMS norm without a weight, of the norms' epsilon:
  /// EmbeddingGemma 2. Encoders only.
  TORCH_ARG(bool, value_norm) = false;
  /// The factor of the scores; 1 / sqrt(head_dim) unless set.
  TORCH_ARG(std::optional<double>, attention_scale) = std::nullopt;
  /// Token i attends to tokens i - window .. i + window only; causal: i - window .. i; unset: all.
  TORCH_ARG(std::optional<int64_t>, window) = std::nullopt;
  /// Draws Python's dropout masks; see functional::MultiheadAttentionFuncOptions.
  TORCH_ARG(bool, python_dropout_order) = false;

  POSENC_FIELDS(TransformerLayerOptions, d_model_, num_heads_, d_ff_, mixing_, conv_kernel_size_,
                bottleneck_, disentangled_, conformer_, transformer_xl_, feed_forward_, activation_,
                norm_first_, first_norm_, second_norm_, residual_of_norm_, parallel_, post_norms_,
                norm_kind_, layer_norm_eps_, norm_affine_, bias_, qkv_bias_, query_bias_, key_bias_,
                value_bias_, out_bias_, linear1_bias_, linear2_bias_, norm_bias_, batch_first_,
                residual_scale_, adapter_, per_layer_input_, output_factor_, num_kv_heads_,
                head_dim_, relative_, grid_bias_, rotary_, qk_norm_, qk_norm_whole_, qk_norm_bias_,
                qk_norm_per_head_, qk_norm_after_rotary_, qkv_clip_, attention_softcap_,
                query_growth_, value_norm_, attention_scale_, window_);
  POSENC_TRAINING_FIELDS(dropout_, dropouts_, layer_scale_, python_dropout_order_);
};

/// Base class of the options of a stack of layers.
template <typename Derived>
class TransformerStackOptions {
 public:
  /// `num_layers` layers with the options `layer`.
  TransformerStackOptions(const TransformerLayerOptions& layer, int64_t num_layers)
      : layer_(layer), num_layers_(num_layers) {}

  /// Options of each layer.
  POSENC_BASE_ARG(TransformerLayerOptions, layer);
  /// Number of layers.
  POSENC_BASE_ARG(int64_t, num_layers);
  /// Adds a final norm after all layers, which pre-norm stacks need.
  POSENC_BASE_ARG(bool, norm) = false;
  /// The epsilon of the final norm, whose other options are those of the layers' norms; their
  /// layer_norm_eps unless set.
  POSENC_BASE_ARG(std::optional<double>, final_norm_eps) = std::nullopt;
  /// Whether the final norm has a bias; as the layers' norms unless set.
  POSENC_BASE_ARG(std::optional<bool>, final_norm_bias) = std::nullopt;
  /// A relative position bias with this index that the self-attention of all layers adds to its
  /// scores, from one table: T5. None unless set; excludes TransformerLayerOptions::relative.
  POSENC_BASE_ARG(std::optional<relative::Index>, relative) = std::nullopt;
  /// ALiBi in the self-attention of all layers: BLOOM, MPT, JinaBERT. None unless set; excludes
  /// relative biases of the stack and of its layers.
  POSENC_BASE_ARG(std::optional<relative::Alibi>, alibi) = std::nullopt;
};

}  // namespace posenc
