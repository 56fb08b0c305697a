#include "inference/layers.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <cmath>

#include "inference/check_freezable.h"
#include "kernels/dispatch.h"
#include "kernels/inference.h"
#include "nn/transformer/layer_parts.h"
#include "platform/memory.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kGrainOfSequences = 1 << 16;  // least work in attention per thread

Projection linear(const torch::nn::Linear& module, GemmSelector& gemm) {
  return {module->weight, module->bias, gemm.choose(module->weight)};
}

// lambda1 * (W x + b) is (lambda1 W) x + lambda1 b.
Projection scaled(const torch::nn::Linear& module, const LayerScale& scale, GemmSelector& gemm) {
  if (scale.is_empty()) return linear(module, gemm);
  const at::Tensor& factors = scale->lambda1;
  const at::Tensor weight = module->weight * factors.unsqueeze(1);
  return {weight, module->bias.defined() ? module->bias * factors : module->bias,
          gemm.choose(weight)};
}

// Projects with rows part * D .. (part + count) * D of the in-projection of queries, keys and
// values.
Projection in_projection(const MultiheadAttention& module, int64_t part, int64_t count,
                         GemmSelector& gemm) {
  const int64_t width = module->options.embed_dim();
  const auto rows = [&](const at::Tensor& whole) {
    return whole.defined() ? whole.narrow(0, part * width, count * width) : whole;
  };
  const at::Tensor weight = rows(module->in_proj_weight);
  return {weight, rows(module->in_proj_bias), gemm.choose(weight)};
}

FeedForward feed_forward_of(const torch::nn::Linear& wide, const torch::nn::Linear& narrow,
                            const LayerScale& scale, Activation activation, GemmSelector& gemm) {
  return {linear(wide, gemm), scaled(narrow, scale, gemm), activation};
}

// Collects the norms of all blocks, in order, and the stack's own, and assigns to each block the
// norm that follows it.
class Norms {
 public:
  Norms(bool norm_first, const TransformerNorm& last) : norm_first_(norm_first), last_(last) {}
  void add(const TransformerNorm& norm) { norms_.push_back(Norm(norm)); }

  template <typename Layer>
  void assign(Stack<Layer>& stack, std::vector<Norm Layer::*> blocks) {
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

}  // namespace

EncoderStack freeze_stack(const TransformerEncoderImpl& encoder, const std::string& prefix,
                          GemmSelector& gemm) {
  check_freezable(encoder, prefix);
  const auto& options = encoder.options.layer();
  EncoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), encoder.norm);
  // A layer that runs several times appears several times, with the same weights.
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    auto& layer = layer_of<TransformerEncoderLayerImpl>("TransformerEncoder", encoder.layers, i);
    stack.layers.push_back({in_projection(layer.self_attn, 0, 3, gemm),
                            scaled(layer.self_attn->out_proj, layer.layer_scale1, gemm),
                            feed_forward_of(layer.linear1, layer.linear2, layer.layer_scale2,
                                            layer.options.activation(), gemm),
                            {},
                            {}});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
  }
  norms.assign<EncoderLayer>(stack,
                             {&EncoderLayer::after_attention, &EncoderLayer::after_feed_forward});
  return stack;
}

DecoderStack freeze_stack(const TransformerDecoderImpl& decoder, const std::string& prefix,
                          GemmSelector& gemm) {
  check_freezable(decoder, prefix);
  const auto& options = decoder.options.layer();
  DecoderStack stack{options.norm_first(), options.num_heads(), options.d_model(), {}, {}, {}};
  Norms norms(options.norm_first(), decoder.norm);
  for (size_t i = 0; i < decoder.layers->size(); ++i) {
    auto& layer = layer_of<TransformerDecoderLayerImpl>("TransformerDecoder", decoder.layers, i);
    stack.layers.push_back({in_projection(layer.self_attn, 0, 3, gemm),
                            scaled(layer.self_attn->out_proj, layer.layer_scale1, gemm),
                            in_projection(layer.multihead_attn, 0, 1, gemm),
                            in_projection(layer.multihead_attn, 1, 2, gemm),
                            scaled(layer.multihead_attn->out_proj, layer.layer_scale2, gemm),
                            feed_forward_of(layer.linear1, layer.linear2, layer.layer_scale3,
                                            layer.options.activation(), gemm),
                            {},
                            {},
                            {}});
    norms.add(layer.norm1);
    norms.add(layer.norm2);
    norms.add(layer.norm3);
  }
  norms.assign<DecoderLayer>(stack, {&DecoderLayer::after_attention, &DecoderLayer::after_cross,
                                     &DecoderLayer::after_feed_forward});
  return stack;
}

at::Tensor attend(const AttentionInput& input) {
  const int64_t batch = input.queries.batch, width = input.query.size(1) / input.heads;
  const at::Tensor out = at::empty({input.queries.rows, input.query.size(1)}, at::kFloat);
  kernel::SequenceAttentionRequest request = {};
  request.query = input.query.const_data_ptr<float>();
  request.query_stride = input.query.stride(0);
  request.keys = input.key.const_data_ptr<float>();
  request.values = input.value.const_data_ptr<float>();
  request.key_stride = input.key.stride(0);
  request.heads = input.heads;
  request.width = width;
  request.sequences = batch;
  request.query_first = input.queries.first.data();
  request.query_lengths = input.queries.lengths.data();
  request.key_first = input.keys.first.data();
  request.key_lengths = input.keys.lengths.data();
  request.scale = 1.0F / std::sqrt(static_cast<float>(width));
  request.is_causal = input.mask.is_causal;
  at::Tensor bias = input.mask.bias;
  if (bias.defined()) {
    bias = bias.expand({batch, input.heads, input.queries.length, input.keys.length});
    request.bias = bias.const_data_ptr<float>();
    std::copy_n(bias.strides().begin(), 4, request.bias_strides);
  }
  request.out = out.data_ptr<float>();
  request.out_stride = out.size(1);
  const auto attend = kernels::chosen().attention_sequence.attend;
  const int64_t floats = kernel::sequence_floats(width, input.keys.length);
  const int64_t products = out.numel() * input.keys.length;
  const int64_t grain = kGrainOfSequences * batch * input.heads / std::max<int64_t>(1, products);
  at::parallel_for(
      0, batch * input.heads, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        attend(request, begin, end, platform::scratch(platform::Scratch::Scores, floats));
      });
  return out;
}

at::Tensor run(const EncoderStack& stack, const at::Tensor& rows, const Packing& packing,
               const ScoreMask& mask) {
  const int64_t width = stack.width, count = rows.size(0);
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, odd_stride(3 * width)}, at::kFloat);
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  const auto project = [&](const Stream& part, int64_t begin, const EncoderLayer& layer) {
    const int64_t stride = projected.size(1);
    float* const to = projected.data_ptr<float>() + begin * stride;
    layer.in_proj.run(part.input, width, part.rows, to, stride, part.regime);
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
      add_projected(part, layer.out_proj, attended + begin * width, width, layer.after_attention);
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
  const at::Tensor projected = at::empty({count, 3 * width}, at::kFloat);
  const at::Tensor query = at::empty({count, width}, at::kFloat);
  const at::Tensor remembered = at::empty({memory.size(0), 2 * width}, at::kFloat);
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  const RowRegime memory_regime = row_regime(memory.size(0));
  const auto each_row = [&](const auto& f) {
    by_rows(count, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin * width); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  for (const DecoderLayer& layer : stack.layers) {
    each_row([&](const Stream& part, int64_t at) {
      layer.in_proj.run(part.input, part.rows, projected.data_ptr<float>() + 3 * at, part.regime);
    });
    by_rows(memory.size(0), [&](int64_t begin, int64_t end) {
      layer.memory.run(memory.const_data_ptr<float>() + begin * width, end - begin,
                       remembered.data_ptr<float>() + begin * 2 * width, memory_regime);
    });
    const at::Tensor own =
        attend({projected.narrow(1, 0, width), projected.narrow(1, width, width),
                projected.narrow(1, 2 * width, width), packing, packing, stack.heads, mask});
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, own.const_data_ptr<float>() + at, width,
                    layer.after_attention);
      layer.query.run(part.input, part.rows, query.data_ptr<float>() + at, part.regime);
    });
    const at::Tensor cross =
        attend({query, remembered.narrow(1, 0, width), remembered.narrow(1, width, width), packing,
                memory_packing, stack.heads, memory_mask});
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, cross.const_data_ptr<float>() + at, width,
                    layer.after_cross);
      feed_forward(part, layer.feed_forward, layer.after_feed_forward);
    });
  }
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stack.result(stream) == stream.x ? x : input;
}

}  // namespace posenc::inference
