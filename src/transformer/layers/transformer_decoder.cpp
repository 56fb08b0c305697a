#include "posenc/transformer/layers/transformer_decoder.h"

#include <ostream>
#include <utility>

#include "core/check.h"
#include "core/print_fields.h"
#include "transformer/functional/attention_mask_internals.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {

void DecoderCache::select(const torch::Tensor& rows) {
  if (layers.empty()) return;
  const torch::Tensor keys = layers.front().memory.key;  // (B, H, S, Dh)
  const bool leaves = rows.size(0) != keys.size(0);
  // Allocate everything first, so that nothing can fail between two layers.
  std::vector<functional::Heads> rooms;  // shared by neighbours with the same heads
  for (size_t i = 0; i < layers.size(); ++i) {
    const bool shares = i > 0 && layers[i].self.shares_room(layers[i - 1].self);
    rooms.push_back(shares ? rooms.back() : layers[i].self.room_for(rows.size(0)));
  }
  std::vector<functional::Heads> memories;
  AttentionMask mask = memory_mask;
  if (leaves) {
    for (const auto& layer : layers)
      memories.push_back(
          {{}, layer.memory.key.index_select(0, rows), layer.memory.value.index_select(0, rows)});
    mask = AttentionMaskAccess::sequences(mask, rows);
  }
  for (size_t i = 0; i < layers.size(); ++i) {
    layers[i].self.select(rows, rooms[i]);
    if (leaves) layers[i].memory = memories[i];
  }
  memory_mask = std::move(mask);
}

void DecoderCache::truncate(int64_t length) {
  for (auto& layer : layers) layer.self.truncate(length);
}

TransformerDecoderImpl::TransformerDecoderImpl(TransformerDecoderOptions options_)
    : options(options_) {
  TransformerDecoderImpl::reset();
}

void TransformerDecoderImpl::reset() {
  check_positive("TransformerDecoder", "num_layers", options.num_layers());
  layers = register_module("layers", torch::nn::ModuleList());
  for (int64_t i = 0; i < options.num_layers(); ++i) {
    layers->push_back(TransformerDecoderLayer(options.layer()));
  }
  if (options.norm())
    norm = register_module("norm", make_final_norm(options.layer(), options.final_norm_eps(),
                                                   options.final_norm_bias()));
  if (options.alibi())
    check_alibi("TransformerDecoder", options.layer(), options.relative().has_value());
  TORCH_CHECK_VALUE(!options.alibi() || !options.alibi()->bfloat16,
                    "[TransformerDecoder] alibi must be without bfloat16. Got Alibi::bfloat16");
  if (options.relative()) {
    relative_attention_bias = register_module(
        "relative_attention_bias",
        make_shared_bias("TransformerDecoder", options.layer(), *options.relative()));
  }
}

void TransformerDecoderImpl::reset_parameters() {
  for (size_t i = 0; i < layers->size(); ++i) layer(i).reset_parameters();
  if (norm) norm->reset_parameters();
  if (relative_attention_bias) relative_attention_bias->reset_parameters();
}

void TransformerDecoderImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TransformerDecoder", options,
                       TransformerDecoderOptions(options.layer(), -1));
}

TransformerDecoderLayerImpl& TransformerDecoderImpl::layer(size_t i) const {
  return layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", layers, i);
}

torch::Tensor TransformerDecoderImpl::forward(const torch::Tensor& x, const torch::Tensor& memory,
                                              const AttentionMask& mask,
                                              const AttentionMask& memory_mask) {
  const char* name = "TransformerDecoder";
  const AttentionShape shape = attention_shape(name, x, x, options.layer());
  const auto own =
      with_alibi(with_shared_bias(mask, relative_attention_bias, shape.queries, shape.keys),
                 options.alibi(), shape, x)
          .resolved(shape, x);
  const auto cross = memory_mask.resolved(attention_shape(name, x, memory, options.layer()), x);
  torch::Tensor out = x;
  for (size_t i = 0; i < layers->size(); ++i) out = layer(i).forward(out, memory, own, cross);
  return norm ? norm->forward(out) : out;
}

DecoderCache TransformerDecoderImpl::start(const torch::Tensor& memory, int64_t capacity,
                                           const AttentionMask& memory_mask) {
  TORCH_CHECK_VALUE(memory.dim() == 3 && memory.size(2) == options.layer().d_model(),
                    "[TransformerDecoder] memory must be (B, S, ", options.layer().d_model(),
                    "). Got ", memory.sizes());
  DecoderCache cache;
  for (size_t i = 0; i < layers->size(); ++i)
    cache.layers.push_back(layer(i).start(memory, capacity));
  cache.memory_mask = memory_mask.resolved(
      {memory.size(0), options.layer().num_heads(), capacity, memory.size(1)}, memory);
  return cache;
}

torch::Tensor TransformerDecoderImpl::step(torch::Tensor x, DecoderCache& cache,
                                           torch::Tensor* memory_weights,
                                           std::vector<torch::Tensor>* cross_attentions) {
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == options.layer().d_model(),
                    "[TransformerDecoder] a sequence must be (B, t, ", options.layer().d_model(),
                    "). Got ", x.sizes());
  TORCH_CHECK_VALUE(cache.layers.size() == layers->size(),
                    "[TransformerDecoder] the cache must be "
                    "start()'s, of ",
                    layers->size(), " layers. Got ", cache.layers.size());
  const torch::NoGradGuard no_grad;
  const int64_t length = cache.length();
  TORCH_CHECK_VALUE(x.size(1) <= cache.capacity() - length, "[TransformerDecoder] the capacity is ",
                    cache.capacity(), " tokens. Got token ", length + x.size(1));
  const auto mask = AttentionMaskAccess::queries(cache.memory_mask, length, x.size(1));
  const AttentionShape shape = {x.size(0), options.layer().num_heads(), x.size(1),
                                length + x.size(1)};
  const auto alibi = with_alibi({}, options.alibi(), shape, x).after(length);
  const auto own =
      with_shared_bias(alibi, relative_attention_bias, x.size(1), length + x.size(1), length);
  std::vector<torch::Tensor> of_layers;
  torch::Tensor average;
  const torch::Tensor out = all_or_nothing(cache, [&] {
    for (size_t i = 0; i < cache.layers.size(); ++i) {
      const bool averages = memory_weights != nullptr && i + 1 == cache.layers.size();
      torch::Tensor weights;
      const bool is_read = averages || cross_attentions != nullptr;
      x = layer(i).step(x, cache.layers[i], mask, own, is_read ? &weights : nullptr);
      if (averages) average = weights.mean(1);
      if (cross_attentions != nullptr) of_layers.push_back(std::move(weights));
    }
    return norm ? norm->forward(x) : x;
  });
  if (memory_weights != nullptr) *memory_weights = std::move(average);
  if (cross_attentions != nullptr) *cross_attentions = std::move(of_layers);
  return out;
}

}  // namespace posenc
