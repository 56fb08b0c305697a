#include "inference/layers/decoder_stack.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scalar_tensor.h>

#include <algorithm>

#include "inference/layers/check_freezable.h"
#include "inference/layers/freeze_parts.h"
#include "transformer/functional/attention_weights.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

// Attention of a decoder's layer.
at::Tensor attend(const HeadSizes& sizes, const Scoring& scoring, const at::Tensor& query,
                  const at::Tensor& keys, const Packing& packing, const Packing& key_packing,
                  const ScoreMask& mask) {
  const int64_t width = sizes.kv_width();
  const at::Tensor out = at::empty({query.size(0), sizes.query_width()}, at::kFloat);
  inference::attend({query, keys.narrow(1, 0, width), keys.narrow(1, width, width), packing,
                     key_packing, sizes, scoring, mask, std::nullopt, 0},
                    out.data_ptr<float>());
  return out;
}

// The norm after all layers, whose result is multiplied by `scale`.
Norm last_norm(const TransformerNorm& norm, double scale) {
  Norm last(norm);
  if (scale == 1.0) return last;
  TORCH_CHECK_VALUE(norm,
                    "[freeze] the decoder must have a final norm, whose result "
                    "output_scale multiplies. Got no norm");
  last.multiply(at::scalar_tensor(scale, at::kFloat));
  return last;
}

}  // namespace

DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          WeightConverter& convert, double output_scale) {
  check_freezable(decoder, prefix);
  const auto& options = decoder.options.layer();
  DecoderStack stack;
  stack.norm_first = options.norm_first();
  stack.heads = options.num_heads();
  stack.width = options.d_model();
  stack.alibi = alibi_of(decoder.options.alibi(), stack.heads);
  const Norm last = last_norm(decoder.norm, output_scale);
  for (size_t i = 0; i < decoder.layers->size(); ++i) {
    auto& layer = layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", decoder.layers, i);
    const HeadSizes& sizes = stack.sizes = HeadSizes::of(layer.self_attn->options);
    stack.layers.push_back(
        {.in_proj = in_projection(*layer.self_attn, 0, sizes.width(), convert),
         .out_proj = linear(*layer.self_attn->out_proj, convert, blocks::get(layer.layer_scale1)),
         .query = in_projection(*layer.multihead_attn, 0, sizes.query_width(), convert),
         .memory = in_projection(*layer.multihead_attn, sizes.query_width(), 2 * sizes.kv_width(),
                                 convert),
         .cross_out =
             linear(*layer.multihead_attn->out_proj, convert, blocks::get(layer.layer_scale2)),
         .feed_forward =
             network_of(blocks::network_of(layer), convert, blocks::get(layer.layer_scale3)),
         .scoring = {scale_of(*layer.self_attn), convert.attention_products()},
         .cross_scoring = {scale_of(*layer.multihead_attn), convert.attention_products()},
         .relative = relative_of(stack.relative_biases, decoder.relative_attention_bias,
                                 layer.self_attn->relative_attention_bias),
         .after_attention = Norm(layer.norm1),
         .after_cross = Norm(layer.norm2),
         .after_feed_forward = Norm(layer.norm3)});
  }
  if (!stack.norm_first) {
    stack.last = last;
    return stack;
  }
  std::vector<Norm*> norms;
  for (DecoderLayer& layer : stack.layers) {
    norms.insert(norms.end(),
                 {&layer.after_attention, &layer.after_cross, &layer.after_feed_forward});
  }
  shift_norms(norms, stack.entry, last);
  return stack;
}

Stream memory_stream(const DecoderStack& stack, const at::Tensor& rows, at::Tensor& buffer) {
  auto* const x = const_cast<float*>(rows.const_data_ptr<float>());  // which is only read
  Stream stream = {x, x, rows.size(0), stack.width, row_regime(rows.size(0))};
  RowFormat format = RowFormat::Float32;
  for (const DecoderLayer& layer : stack.layers) format = either(format, layer.memory.row_format());
  buffer = add_converted(stream, format);
  if (stream.input_converted) normalise(stream, {});
  return stream;
}

at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask, at::Tensor* memory_weights) {
  const int64_t count = rows.size(0), head_width = stack.sizes.query_width();
  const int64_t qkv_width = stack.sizes.width(), kv_width = 2 * stack.sizes.kv_width();
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, qkv_width}, at::kFloat);
  const at::Tensor query = at::empty({count, head_width}, at::kFloat);
  const at::Tensor remembered = at::empty({memory.size(0), kv_width}, at::kFloat);
  const DistanceRows relative(stack.relative_biases, stack.alibi, mask, packing.length);
  Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  const at::Tensor converted = add_converted(stream, stack.row_format());
  at::Tensor converted_memory;
  const Stream read = memory_stream(stack, memory, converted_memory);
  const auto each_row = [&](const auto& f) {
    by_rows(count, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  for (const DecoderLayer& layer : stack.layers) {
    each_row([&](const Stream& part, int64_t at) {
      project(part, layer.in_proj, part.input, projected.data_ptr<float>() + at * qkv_width,
              qkv_width);
    });
    by_rows(memory.size(0), [&](int64_t begin, int64_t end) {
      const Stream part = read.part(begin, end);
      project(part, layer.memory, part.x, remembered.data_ptr<float>() + begin * kv_width,
              kv_width);
    });
    const at::Tensor own =
        attend(stack.sizes, layer.scoring, projected.narrow(1, 0, head_width),
               projected.narrow(1, head_width, kv_width), packing, packing,
               relative.of(layer.relative, mask, packing, /*counts_tokens=*/false));
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, own.const_data_ptr<float>() + at * head_width, head_width,
                    {}, layer.after_attention);
      project(part, layer.query, part.input, query.data_ptr<float>() + at * head_width, head_width);
    });
    const at::Tensor cross = attend(stack.sizes, layer.cross_scoring, query, remembered, packing,
                                    memory_packing, memory_mask);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, cross.const_data_ptr<float>() + at * head_width,
                    head_width, {}, layer.after_cross);
      feed_forward(part, layer.feed_forward, part.input, {}, layer.after_feed_forward);
    });
  }
  if (memory_weights != nullptr) {  // the query and the keys are the last layer's
    const HeadSizes& sizes = stack.sizes;
    const auto heads = [&](const at::Tensor& x, const Packing& whole, int64_t number) {
      return x.unflatten(1, {number, sizes.head_dim})
          .unflatten(0, {whole.batch, whole.length})
          .transpose(1, 2);
    };
    *memory_weights =
        functional::attention_weights(
            heads(query, packing, sizes.heads),
            heads(remembered.narrow(1, 0, sizes.kv_width()), memory_packing, sizes.kv_heads),
            memory_mask, stack.layers.back().cross_scoring.scale)
            .mean(1);
  }
  if (stack.last) each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stack.result(stream) == stream.x ? x : input;
}

}  // namespace posenc::inference
