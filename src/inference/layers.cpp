#include "inference/layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <array>

namespace posenc::inference {
namespace {

Projection linear(const torch::nn::Linear& module, Multipliers& multipliers) {
  return {module->weight, module->bias, multipliers.choose(module->weight)};
}

// The rows part * D .. (part + count) * D of what projects queries, keys and values.
Projection in_projection(const MultiheadAttention& module, int64_t part, int64_t count,
                         Multipliers& multipliers) {
  const int64_t width = module->options.embed_dim();
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, part * width, count * width) : whole;
  };
  const at::Tensor weight = rows(module->in_proj_weight);
  return {weight, rows(module->in_proj_bias), multipliers.choose(weight)};
}

FeedForward feed_forward_of(const torch::nn::Linear& wide, const torch::nn::Linear& narrow,
                            Activation activation, Multipliers& multipliers) {
  return {linear(wide, multipliers), linear(narrow, multipliers), activation};
}

// The norms of all blocks, in order, and of the stack: each block gets the one behind it.
class Norms {
 public:
  Norms(bool norm_first, const LayerNorm& last) : norm_first_(norm_first), last_(last) {}
  void add(const LayerNorm& norm) { norms_.push_back(Norm(norm)); }

  template <typename Layer>
  void hand_out(Stack<Layer>& stack, std::vector<Norm Layer::*> blocks) {
    if (norm_first_) {
      stack.entry = norms_.front();
      norms_.erase(norms_.begin());
      norms_.push_back(last_);
    } else {
      stack.last = last_;
    }
    auto norm = norms_.begin();
    for (Layer& layer : stack.layers)
      for (const auto block : blocks) layer.*block = *norm++;
  }

 private:
  bool norm_first_;
  Norm last_;
  std::vector<Norm> norms_;
};

// (rows, columns) of one group, as (sequences, H, length, Dh), a view.
at::Tensor heads_of(const at::Tensor& x, const Packing::Group& group, int64_t heads) {
  const int64_t rows = group.sequences * group.length;
  return x.narrow(0, group.first_row, rows)
      .unflatten(0, {group.sequences, group.length})
      .unflatten(-1, {heads, x.size(1) / heads})
      .transpose(1, 2);
}

}  // namespace

EncoderStack freeze_stack(TransformerEncoderImpl& encoder, Multipliers& multipliers) {
  const auto& options = encoder.options.layer();
  EncoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), encoder.norm);
  for (const auto& child : *encoder.layers) {
    auto& layer = *child->as<TransformerEncoderLayerImpl>();
    stack.layers.push_back(
        {in_projection(layer.self_attn, 0, 3, multipliers),
         linear(layer.self_attn->out_proj, multipliers),
         feed_forward_of(layer.linear1, layer.linear2, options.activation(), multipliers),
         {},
         {}});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
  }
  norms.hand_out<EncoderLayer>(stack,
                               {&EncoderLayer::after_attention, &EncoderLayer::after_feed_forward});
  return stack;
}

DecoderStack freeze_stack(TransformerDecoderImpl& decoder, Multipliers& multipliers) {
  const auto& options = decoder.options.layer();
  DecoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), decoder.norm);
  for (const auto& child : *decoder.layers) {
    auto& layer = *child->as<TransformerDecoderLayerImpl>();
    stack.layers.push_back(
        {in_projection(layer.self_attn, 0, 3, multipliers),
         linear(layer.self_attn->out_proj, multipliers),
         in_projection(layer.multihead_attn, 0, 1, multipliers),
         in_projection(layer.multihead_attn, 1, 2, multipliers),
         linear(layer.multihead_attn->out_proj, multipliers),
         feed_forward_of(layer.linear1, layer.linear2, options.activation(), multipliers),
         {},
         {},
         {}});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
    norms.add(layer.norm3);
  }
  norms.hand_out<DecoderLayer>(stack, {&DecoderLayer::after_attention, &DecoderLayer::after_cross,
                                       &DecoderLayer::after_feed_forward});
  return stack;
}

at::Tensor attend(const AttentionInput& input) {
  const std::array sizes = {input.queries.rows, input.query.size(1)};
  if (input.queries.rows == 0 || input.keys.rows == 0) return at::zeros(sizes);
  std::optional<at::Tensor> bias;
  if (input.mask.bias.defined()) bias = input.mask.bias;
  const auto& groups = input.queries.groups;
  const auto of_group = [&](size_t i) {
    const auto& keys = input.keys.groups[i];
    return at::scaled_dot_product_attention(heads_of(input.query, groups[i], input.heads),
                                            heads_of(input.key, keys, input.heads),
                                            heads_of(input.value, keys, input.heads), bias,
                                            /*dropout_p=*/0.0, input.mask.is_causal)
        .transpose(1, 2)  // (sequences, length, H, Dh)
        .reshape({groups[i].sequences * groups[i].length, input.query.size(1)});
  };
  if (groups.size() == 1) return of_group(0).contiguous();
  const at::Tensor context = at::empty(sizes);
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].length == 0) continue;
    context.narrow(0, groups[i].first_row, groups[i].sequences * groups[i].length)
        .copy_(of_group(i));
  }
  return context;
}

at::Tensor run(const EncoderStack& stack, const at::Tensor& rows, const Packing& packing,
               const ScoreMask& mask) {
  const int64_t width = stack.width, count = rows.size(0);
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, 3 * width});
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  float* const qkv = projected.data_ptr<float>();
  const auto project = [&](const Stream& part, int64_t begin, const EncoderLayer& layer) {
    layer.in_proj.run(part.input, part.rows, qkv + begin * 3 * width, part.of);
  };
  by_rows(count, [&](int64_t begin, int64_t end) {
    const Stream part = stream.part(begin, end);
    normalise(part, stack.entry);
    project(part, begin, stack.layers.front());
  });
  for (size_t i = 0; i < stack.layers.size(); ++i) {
    const EncoderLayer& layer = stack.layers[i];
    const at::Tensor context =
        attend({projected.narrow(1, 0, width), projected.narrow(1, width, width),
                projected.narrow(1, 2 * width, width), packing, packing, stack.heads, mask});
    const float* const attended = context.const_data_ptr<float>();
    by_rows(count, [&](int64_t begin, int64_t end) {
      const Stream part = stream.part(begin, end);
      add_projected(part, layer.out_proj, attended + begin * width, layer.after_attention);
      feed_forward(part, layer.feed_forward, layer.after_feed_forward);
      if (i + 1 < stack.layers.size()) {
        project(part, begin, stack.layers[i + 1]);
      } else {
        normalise(part, stack.last);
      }
    });
  }
  return stack.result(stream) == stream.x ? x : input;
}

at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask) {
  const int64_t width = stack.width, count = rows.size(0);
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, 3 * width}), query = at::empty({count, width});
  const at::Tensor remembered = at::empty({memory.size(0), 2 * width});
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  const Rows of_memory = rows_case(memory.size(0));
  const auto each_row = [&](const auto& f) {
    by_rows(count, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin * width); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  for (const DecoderLayer& layer : stack.layers) {
    each_row([&](const Stream& part, int64_t at) {
      layer.in_proj.run(part.input, part.rows, projected.data_ptr<float>() + 3 * at, part.of);
    });
    by_rows(memory.size(0), [&](int64_t begin, int64_t end) {
      layer.memory.run(memory.const_data_ptr<float>() + begin * width, end - begin,
                       remembered.data_ptr<float>() + begin * 2 * width, of_memory);
    });
    const at::Tensor own =
        attend({projected.narrow(1, 0, width), projected.narrow(1, width, width),
                projected.narrow(1, 2 * width, width), packing, packing, stack.heads, mask});
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, own.const_data_ptr<float>() + at, layer.after_attention);
      layer.query.run(part.input, part.rows, query.data_ptr<float>() + at, part.of);
    });
    const at::Tensor cross =
        attend({query, remembered.narrow(1, 0, width), remembered.narrow(1, width, width), packing,
                memory_packing, stack.heads, memory_mask});
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, cross.const_data_ptr<float>() + at, layer.after_cross);
      feed_forward(part, layer.feed_forward, layer.after_feed_forward);
    });
  }
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stack.result(stream) == stream.x ? x : input;
}

}  // namespace posenc::inference
