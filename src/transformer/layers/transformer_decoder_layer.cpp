#include "posenc/transformer/layers/transformer_decoder_layer.h"

#include <functional>
#include <ostream>

#include "core/print_fields.h"
#include "transformer/attention/multihead_attention_internals.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

using Attention = MultiheadAttentionAccess;

// self_attn or multihead_attn may have been replaced by a module with a rotary embedding, which
// step() does not apply.
void check_plain(const MultiheadAttention& attention) {
  TORCH_CHECK_VALUE(attention->rotary.is_empty(),
                    "[TransformerDecoderLayer] steps are not implemented for attention with a "
                    "rotary embedding: use its own step()");
}

// x plus a block of it, with the norm before the block or after the sum.
torch::Tensor residual(const torch::Tensor& x, bool norm_first, TransformerNorm& norm,
                       const torch::nn::Dropout& dropout, const LayerScale& scale,
                       const std::function<torch::Tensor(const torch::Tensor&)>& block) {
  const torch::Tensor dropped = drop(*dropout, block(norm_first && norm ? norm->forward(x) : x));
  const torch::Tensor sum = x + (scale ? scale.ptr()->forward(dropped) : dropped);
  return norm_first ? sum : norm->forward(sum);
}

}  // namespace

TransformerDecoderLayerImpl::TransformerDecoderLayerImpl(TransformerDecoderLayerOptions options_)
    : options(options_) {
  TransformerDecoderLayerImpl::reset();
}

void TransformerDecoderLayerImpl::reset() {
  const std::string of_encoders = unread_option(
      options, {"feed_forward", "norm_first", "norm_kind", "bias", "qkv_bias", "query_bias",
                "key_bias", "value_bias", "out_bias", "batch_first", "layer_scale", "num_kv_heads",
                "head_dim", "relative", "attention_scale", "python_dropout_order"});
  TORCH_CHECK_VALUE(of_encoders.empty(),
                    "[TransformerDecoderLayer] the options must be those of "
                    "a decoder layer. Got ",
                    of_encoders, ", which only encoder layers have");
  check_layer("TransformerDecoderLayer", options);
  const LayerDropouts drops = dropouts_of(options);
  self_attn = register_module("self_attn", make_self_attention(options));
  multihead_attn = register_module("multihead_attn", make_cross_attention(options));
  linear1 = register_module("linear1", make_linear1(options));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(options));
  norm1 = register_module("norm1", make_norm(options));
  norm2 = register_module("norm2", make_norm(options));
  norm3 = register_module("norm3", make_norm(options));
  if (options.layer_scale()) {
    layer_scale1 = register_module("layer_scale1", make_scale(options));
    layer_scale2 = register_module("layer_scale2", make_scale(options));
    layer_scale3 = register_module("layer_scale3", make_scale(options));
  }
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.attention_output));
  dropout3 = register_module("dropout3", torch::nn::Dropout(drops.output));
}

void TransformerDecoderLayerImpl::reset_parameters() {
  for (auto* attention : {&self_attn, &multihead_attn}) (*attention)->reset_parameters();
  for (auto* linear : {&linear1, &linear2}) (*linear)->reset_parameters();
  for (auto* norm : {&norm1, &norm2, &norm3}) (*norm)->reset_parameters();
  for (auto* scale : {&layer_scale1, &layer_scale2, &layer_scale3}) {
    if (*scale) (*scale)->reset_parameters();
  }
}

void TransformerDecoderLayerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerDecoderLayer", options, TransformerLayerOptions(-1, -1));
}

torch::Tensor TransformerDecoderLayerImpl::blocks(torch::Tensor x, const Block& self,
                                                  const Block& cross) {
  const bool first = options.norm_first();
  x = residual(x, first, norm1, dropout1, layer_scale1, self);
  x = residual(x, first, norm2, dropout2, layer_scale2, cross);
  return residual(x, first, norm3, dropout3, layer_scale3, [&](const torch::Tensor& y) {
    return blocks::run(blocks::network_of(*this), y);
  });
}

torch::Tensor TransformerDecoderLayerImpl::forward(const torch::Tensor& x,
                                                   const torch::Tensor& memory,
                                                   const AttentionMask& mask,
                                                   const AttentionMask& memory_mask) {
  return blocks(
      x, [&](const torch::Tensor& y) { return self_attn->forward(y, y, y, mask); },
      [&](const torch::Tensor& y) {
        return multihead_attn->forward(y, memory, memory, memory_mask);
      });
}

DecoderLayerCache TransformerDecoderLayerImpl::start(const torch::Tensor& memory,
                                                     int64_t capacity) {
  check_plain(self_attn);
  check_plain(multihead_attn);
  const auto heads = Attention::split_heads(*multihead_attn, {}, memory, memory);
  return {KeyValueCache(heads, capacity), {{}, heads.key.contiguous(), heads.value.contiguous()}};
}

torch::Tensor TransformerDecoderLayerImpl::step(const torch::Tensor& x, DecoderLayerCache& cache,
                                                const AttentionMask& memory_mask,
                                                const AttentionMask& mask,
                                                torch::Tensor* memory_weights) {
  const torch::NoGradGuard no_grad;
  const Block self = [&](const torch::Tensor& y) {
    const int64_t before = cache.self.length();
    const auto heads = Attention::split_heads(*self_attn, y, y, y);
    return Attention::attend_heads(*self_attn, cache.self.append(heads),
                                   mask & AttentionMask::causal(before), before);
  };
  const Block cross = [&](const torch::Tensor& y) {
    const auto query = Attention::split_heads(*multihead_attn, y, {}, {}).query;
    const functional::Heads heads = {query, cache.memory.key, cache.memory.value};
    if (memory_weights == nullptr)
      return Attention::attend_heads(*multihead_attn, heads, memory_mask);
    auto [out, weights] = Attention::attend_heads_with_weights(*multihead_attn, heads, memory_mask,
                                                               /*average=*/false);
    *memory_weights = std::move(weights);
    return out;
  };
  return all_or_nothing(cache.self, [&] { return blocks(x, self, cross); });
}

}  // namespace posenc
