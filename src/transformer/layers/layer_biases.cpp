// What a stack adds to the scores of all of its layers.

#include <utility>

#include "core/tensors.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/layers/layer_kinds.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

bool attends_plainly(const TransformerLayerOptions& layer) { return kind_of(layer).reads.empty(); }

RelativePositionBias make_shared_bias(const char* module, const TransformerLayerOptions& layer,
                                      const relative::Index& index) {
  TORCH_CHECK_VALUE(!layer.relative(), "[", module,
                    "] relative must be of the stack, or of its layers. Got both");
  TORCH_CHECK_VALUE(attends_plainly(layer), "[", module,
                    "] relative must be with layers of Mixing::Attention without a bottleneck, "
                    "disentangled or Transformer-XL's attention and a conformer. Got others");
  return RelativePositionBias(index, layer.num_heads());
}

AttentionMask with_shared_bias(const AttentionMask& mask, const RelativePositionBias& bias,
                               int64_t queries, int64_t keys, int64_t offset) {
  if (bias.is_empty()) return mask;
  return mask & AttentionMask::additive(bias.ptr()->forward(queries, keys, offset));
}

void check_grid(const char* module, const TransformerEncoderOptions& options,
                const std::optional<relative::Grid>& grid, int64_t length) {
  std::optional<relative::Grid> own = options.grid_bias();
  for (std::size_t i = 0; !own && i < static_cast<std::size_t>(options.num_layers()); ++i)
    own = options.layer_at(i).grid_bias();
  if (!own) return;
  const relative::Grid of = grid.value_or(*own);
  TORCH_CHECK_VALUE(of.height > 0 && of.width > 0 && length == 1 + of.height * of.width, "[",
                    module, "] a sequence must have a class token and the patches of the grid, ",
                    of.height, "x", of.width, ". Got ", length, " tokens");
}

AttentionMask with_grid_bias(const AttentionMask& mask, const GridPositionBias& bias,
                             const std::optional<relative::Grid>& grid) {
  return bias.is_empty() ? mask : mask & AttentionMask::additive(bias.ptr()->forward(grid));
}

void check_alibi(const char* module, const TransformerLayerOptions& layer, bool has_relative) {
  TORCH_CHECK_VALUE(
      !has_relative && !layer.relative() && attends_plainly(layer), "[", module,
      "] alibi must be without a relative position bias, and with layers of "
      "Mixing::Attention without a bottleneck, disentangled or Transformer-XL's attention and a "
      "conformer. Got others");
}

AttentionMask with_alibi(const AttentionMask& mask, const std::optional<relative::Alibi>& alibi,
                         const AttentionShape& shape, const torch::Tensor& like) {
  if (!alibi) return mask;
  const torch::Tensor keys = alibi->counts_tokens ? mask.padding_keys() : torch::Tensor();
  if (alibi->bfloat16) {
    const torch::Tensor positions =
        keys.defined() ? alibi_positions(keys)
                       : torch::arange(shape.keys, like.options().dtype(torch::kLong)).unsqueeze(0);
    return mask & AttentionMask::additive(
                      alibi_bias_of_keys(*alibi, shape.heads, positions).to(like.scalar_type()));
  }
  const torch::Tensor slopes = sent_to(alibi_slopes(shape.heads, *alibi), like.device());
  if (!keys.defined() || shape.queries != shape.keys) return mask & AttentionMask::slopes(slopes);
  return mask & AttentionMask::additive(alibi_bias_of_tokens(slopes, keys));
}

torch::Tensor alibi_bias_of_keys(const relative::Alibi& alibi, int64_t heads,
                                 const torch::Tensor& positions) {
  const torch::Tensor slopes =
      sent_to(alibi_slopes(heads, alibi.slopes, alibi.bias_max), positions.device());
  const torch::Tensor products = slopes.to(torch::kBFloat16).view({1, -1, 1, 1}) *
                                 positions.view({-1, 1, 1, positions.size(1)});
  return products.to(torch::kFloat) * alibi.factor;
}

torch::Tensor alibi_bias_of_tokens(const torch::Tensor& slopes, const torch::Tensor& is_token) {
  const torch::Tensor positions = is_token.cumsum(-1);
  const torch::Tensor away = (positions.unsqueeze(1) - positions.unsqueeze(2)).abs().unsqueeze(1);
  return -(slopes.view({1, -1, 1, 1}) * away);
}

}  // namespace posenc
