#pragma once

#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/linear.h>

#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "posenc/positions/nn/grid_position_bias.h"
#include "posenc/positions/nn/transformer_norm.h"
#include "posenc/transformer/attention/disentangled_attention.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/attention/transformer_xl_attention.h"
#include "posenc/transformer/layers/layer_scale.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/transformer_layer_options.h"

namespace posenc {

/// Throws c10::ValueError for invalid layer options.
void check_layer(const char* module, const TransformerLayerOptions& options);
/// The first option that is not its default, unless all layers read it or it is one of `own`; empty
/// if there is none.
std::string unread_option(const TransformerLayerOptions& options,
                          const std::vector<std::string_view>& own);
/// Throws c10::ValueError naming `module` if there is one; `with` follows the rule.
void check_unread(const char* module, const TransformerLayerOptions& options,
                  const std::vector<std::string_view>& own, const std::string& with = "");

/// The probability of each dropout.
LayerDropouts dropouts_of(const TransformerLayerOptions& options);

/// The mask combined with the layer's window, if it has one.
inline AttentionMask with_window(const AttentionMask& mask,
                                 const TransformerLayerOptions& options) {
  return options.window() ? mask & AttentionMask::window(*options.window()) : mask;
}

/// The mask of a stack of such layers where the rows of padding are computed too: in a disentangled
/// attention they attend to nothing, in Transformer-XL's also to themselves.
AttentionMask mask_of_stack(const AttentionMask& mask, const TransformerLayerOptions& options);

/// The self-attention; the attention to a memory has no relative position bias.
MultiheadAttention make_self_attention(const TransformerLayerOptions& options);
MultiheadAttention make_cross_attention(const TransformerLayerOptions& options);
TransformerXLAttention make_transformer_xl_attention(const TransformerLayerOptions& options);
DisentangledAttention make_disentangled_attention(const TransformerLayerOptions& options);
ConvolutionalAttention make_convolutional_attention(const TransformerLayerOptions& options);
/// The two linear layers of the feed-forward network.
torch::nn::Linear make_linear1(const TransformerLayerOptions& options);
torch::nn::Linear make_linear2(const TransformerLayerOptions& options);
TransformerNorm make_norm(const TransformerLayerOptions& options);
/// The final norm of a stack of such layers, with an epsilon and a bias of its own if they are
/// given.
TransformerNorm make_final_norm(TransformerLayerOptions layer, std::optional<double> eps,
                                std::optional<bool> bias);
/// Only with layer_scale().
LayerScale make_scale(const TransformerLayerOptions& options);

/// Whether a layer is a TransformerEncoderLayer with attention, to whose scores a bias can be
/// added.
bool attends_plainly(const TransformerLayerOptions& layer);

/// The relative position bias with this index that the layers of a stack share. Throws
/// c10::ValueError naming `module` for layers that have their own.
RelativePositionBias make_shared_bias(const char* module, const TransformerLayerOptions& layer,
                                      const relative::Index& index);
/// The mask, and the shared bias unless it is null, for queries after `offset` others.
AttentionMask with_shared_bias(const AttentionMask& mask, const RelativePositionBias& bias,
                               int64_t queries, int64_t keys, int64_t offset = 0);

/// Throws c10::ValueError naming `module` for a sequence that is not that of `grid`, or of the grid
/// of the tables, if the stack has grid biases.
void check_grid(const char* module, const TransformerEncoderOptions& options,
                const std::optional<relative::Grid>& grid, int64_t length);
/// The mask, and the bias for this grid unless `bias` is null.
AttentionMask with_grid_bias(const AttentionMask& mask, const GridPositionBias& bias,
                             const std::optional<relative::Grid>& grid);
/// Throws c10::ValueError naming `module` for a stack with ALiBi whose layers cannot have it, or
/// that has a relative position bias as well.
void check_alibi(const char* module, const TransformerLayerOptions& layer, bool has_relative);
/// The mask, and ALiBi for scores of this shape on the device of `like` unless there is none. Of
/// fewer queries than keys, distances are those of columns.
AttentionMask with_alibi(const AttentionMask& mask, const std::optional<relative::Alibi>& alibi,
                         const AttentionShape& shape, const torch::Tensor& like);
/// The bias (B, H, 1, K) of Alibi::bfloat16 for keys at these positions (B, K).
torch::Tensor alibi_bias_of_keys(const relative::Alibi& alibi, int64_t heads,
                                 const torch::Tensor& positions);
/// ALiBi's bias (B, H, L, L) by the tokens between two, which is_token (B, L) tells from padding.
torch::Tensor alibi_bias_of_tokens(const torch::Tensor& slopes, const torch::Tensor& is_token);

/// Layer i of a stack. Callers can modify the ModuleList, so this throws c10::ValueError naming
/// `module` if the layer is of another class.
template <typename Layer>
Layer& layer_of(const char* module, const torch::nn::ModuleList& layers, std::size_t i) {
  const auto layer = layers->ptr(i);
  auto* const own = layer->as<Layer>();
  TORCH_CHECK_VALUE(own != nullptr, "[", module, "] each layer must be a ", module,
                    "Layer. Got for layer ", i, " a ", layer->name());
  return *own;
}

/// The indices of the layers of a stack as they run: `order`, or each of `count` once if it is
/// empty.
std::vector<size_t> layers_in_order(const std::vector<int64_t>& order, size_t count);

/// x (B, ., .), of which each sequence is zeros with probability `p` in training; the others are
/// divided by 1 - p.
torch::Tensor drop_path(const torch::Tensor& x, double p, bool training, bool batch_first);

/// The output of an attention; stores its weights unless `weights` is null.
template <typename Attention, typename... Arguments>
torch::Tensor attend_with(Attention& attention, torch::Tensor* weights,
                          const Arguments&... arguments) {
  if (weights == nullptr) return attention.forward(arguments...);
  torch::Tensor out;
  std::tie(out, *weights) = attention.forward_with_weights(arguments...);
  return out;
}

/// The same of heads, with the weights of each.
torch::Tensor attend_heads(MultiheadAttentionImpl& attention, torch::Tensor* weights,
                           const torch::Tensor& query, const torch::Tensor& key,
                           const torch::Tensor& value, const AttentionMask& mask,
                           const torch::Tensor& position_ids = {});

/// Sizes of the scores for queries in x and keys in `keys`, laid out according to the options.
/// Throws c10::ValueError naming `module` unless both have three axes.
AttentionShape attention_shape(const char* module, const torch::Tensor& x,
                               const torch::Tensor& keys, const TransformerLayerOptions& options);

/// Runs step(), which appends to the cache; if it throws, the cache is left as it was.
template <typename Cache, typename Step>
torch::Tensor all_or_nothing(Cache& cache, const Step& step) {
  const int64_t length = cache.length();
  try {
    return step();
  } catch (...) {
    cache.truncate(length);
    throw;
  }
}

}  // namespace posenc
