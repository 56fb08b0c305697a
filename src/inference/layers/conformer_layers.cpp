// The layers of a conformer on the rows of whole sequences: tokens see padding.

#include "inference/layers/conformer_layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/rsqrt.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>

#include "inference/rows/layer_ends.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

Projection linear_of(const torch::nn::Linear& module, WeightConverter& convert) {
  return convert.projection(module->weight, module->bias);
}

FeedForward network_of(const ConformerFeedForwardImpl& network, WeightConverter& convert) {
  return {linear_of(network.linear1, convert), linear_of(network.linear2, convert),
          network.options.activation()};
}

FrozenConformerConvolution convolution_of(const ConformerConvolutionImpl& conv,
                                          WeightConverter& convert) {
  const torch::nn::BatchNorm1dImpl& norm = *conv.batch_norm;
  const at::Tensor factors =
      norm.weight.detach() * at::rsqrt(norm.running_var.detach() + norm.options.eps());
  convert.derived(conv.depthwise_weight, static_cast<int64_t>(conv.depthwise_weight.nbytes()));
  convert.derived(norm.bias, static_cast<int64_t>(norm.bias.nbytes()));
  for (const at::Tensor& source : {norm.weight, norm.running_mean, norm.running_var})
    convert.derived(source, 0);
  return {.norm = Norm(conv.norm),
          .pointwise1 = linear_of(conv.pointwise1, convert),
          .pointwise2 = linear_of(conv.pointwise2, convert),
          .depthwise = (conv.depthwise_weight.detach() * factors.unsqueeze(1)).t().contiguous(),
          .bias = norm.bias.detach() - norm.running_mean.detach() * factors,
          .activation = conv.options.activation()};
}

// Rows [first, first + count) of the projection of queries, keys and values.
Projection rows_of_in_proj(const MultiheadAttentionImpl& attention, int64_t first, int64_t count,
                           WeightConverter& convert) {
  at::Tensor bias = attention.in_proj_bias;
  if (bias.defined()) bias = bias.narrow(0, first, count);
  return convert.projection(attention.in_proj_weight.narrow(0, first, count), bias,
                            attention.in_proj_weight);
}

size_t rotation_of(std::vector<Rotation>& all, const RotaryEmbeddingImpl& rotary,
                   const HeadSizes& sizes) {
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].is_of(rotary, sizes)) return i;
  }
  all.emplace_back(rotary, sizes);
  return all.size() - 1;
}

ConformerLayer conformer_layer(const ConformerEncoderLayerImpl& layer, WeightConverter& convert,
                               std::vector<Rotation>& rotations) {
  const int64_t heads = layer.options.num_heads(), width = layer.options.d_model();
  const HeadSizes sizes = {heads, heads, width / heads};
  ConformerLayer frozen = {.before_ffn1 = Norm(layer.ffn1->norm),
                           .before_attention = Norm(layer.norm1),
                           .before_ffn2 = Norm(layer.ffn2->norm),
                           .last = Norm(layer.norm2),
                           .ffn1 = network_of(*layer.ffn1, convert),
                           .ffn2 = network_of(*layer.ffn2, convert),
                           .sizes = sizes,
                           .score_scale = score_scale(sizes.head_dim),
                           .in_proj = {},
                           .values = {},
                           .out_proj = {},
                           .parts = std::nullopt,
                           .rotation = std::nullopt,
                           .conv = convolution_of(*layer.conv, convert)};
  if (layer.transformer_xl_attn) {
    const TransformerXLAttentionImpl& attention = *layer.transformer_xl_attn;
    frozen.score_scale = static_cast<float>(attention.scale());
    frozen.in_proj = transformer_xl_in_proj(attention, convert);
    frozen.out_proj = linear_of(attention.out_proj, convert);
    frozen.parts.emplace(attention, convert);
    return frozen;
  }
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  if (attention.options.scale())
    frozen.score_scale = static_cast<float>(*attention.options.scale());
  frozen.out_proj = linear_of(attention.out_proj, convert);
  if (!layer.rotary) {
    frozen.in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias);
    return frozen;
  }
  frozen.rotation = rotation_of(rotations, *layer.rotary, {heads, 0, sizes.head_dim});
  frozen.in_proj = rows_of_in_proj(attention, 0, 2 * width, convert);
  frozen.values = rows_of_in_proj(attention, 2 * width, width, convert);
  return frozen;
}

// Runs the layers on the rows of a batch.
class ConformerRun {
 public:
  ConformerRun(const ConformerLayers& stack, const Stream& stream, const Packing& packing,
               const ScoreMask& mask, const at::Tensor& position_ids, const LayerEnds& ends)
      : stack_(stack), stream_(stream), packing_(packing), mask_(mask), ends_(ends) {
    const auto rows = [&](int64_t columns) {
      return at::empty({stream.rows, columns}, at::kFloat);
    };
    heads_ = rows(odd_stride(3 * stream.width));
    context_ = rows(stream.width);
    gated_ = rows(odd_stride(2 * stream.width));
    if (stack.distances) keys_ = stack.distances->up_to(reach_of(packing));
    if (stack.rotations.empty()) return;
    rotated_ = rows(stream.width);
    const RowPositions positions(packing, position_ids, /*axial=*/false);
    for (const Rotation& rotation : stack.rotations)
      rotations_.emplace_back(rotation, rotated_, positions);
  }

  void run() {
    each_part([&](const Stream& part, int64_t) { normalise(part, layer(0).before_ffn1); });
    for (size_t i = 0; i < stack_.layers.size(); ++i) {
      each_part([&](const Stream& part, int64_t begin) {
        feed_forward(part, layer(i).ffn1, stack_.half, layer(i).before_attention);
        project(layer(i), part, begin);
      });
      attend(i);
      each_part([&](const Stream& part, int64_t begin) { gate(layer(i), part, begin); });
      by_rows(stream_.rows, [&](int64_t begin, int64_t end) { convolve(layer(i), begin, end); });
      each_part([&](const Stream& part, int64_t begin) { finish(i, part, begin); });
    }
  }

 private:
  const ConformerLayer& layer(size_t i) const { return stack_.layers[i]; }

  template <typename Function>
  void each_part(const Function& f) {
    by_rows(stream_.rows, [&](int64_t begin, int64_t end) { f(stream_.part(begin, end), begin); });
  }

  void project(const ConformerLayer& layer, const Stream& part, int64_t begin) {
    const int64_t stride = heads_.size(1), width = part.width;
    float* const heads = heads_.data_ptr<float>() + begin * stride;
    if (!layer.rotation) return inference::project(part, layer.in_proj, part.input, heads, stride);
    float* const rotated = rotated_.data_ptr<float>() + begin * width;
    std::copy_n(part.input, part.rows * width, rotated);
    split_rows(part.rows, width, [&](int64_t first, int64_t last) {
      rotations_[*layer.rotation](begin + first, begin + last);
    });
    layer.in_proj.run(rotated, width, part.rows, heads, stride, part.regime);
    inference::project(part, layer.values, part.input, heads + 2 * width, stride);
  }

  void attend(size_t i) {
    const int64_t width = stream_.width;
    const AttentionInput input = {heads_.narrow(1, 0, width),
                                  heads_.narrow(1, width, width),
                                  heads_.narrow(1, 2 * width, width),
                                  packing_,
                                  packing_,
                                  layer(i).sizes,
                                  layer(i).score_scale,
                                  mask_};
    float* const out = context_.data_ptr<float>();
    if (!keys_) return inference::attend(input, out);
    attend_relative(
        input, position_heads(*layer(i).parts, keys_->layers[i], keys_->reach, false, {}), out);
  }

  // What the convolution sees: a sigmoid(b).
  void gate(const ConformerLayer& layer, const Stream& part, int64_t begin) {
    const int64_t width = part.width, stride = gated_.size(1);
    add_projected(part, layer.out_proj, context_.const_data_ptr<float>() + begin * width, width, {},
                  layer.conv.norm);
    float* const gated = gated_.data_ptr<float>() + begin * stride;
    inference::project(part, layer.conv.pointwise1, part.input, gated, stride);
    split_rows(part.rows, 2 * width, [&](int64_t first, int64_t last) {
      for (int64_t row = first; row < last; ++row) {
        float* const a = gated + row * stride;
        for (int64_t c = 0; c < width; ++c) a[c] /= 1.0F + std::exp(-a[width + c]);
      }
    });
  }

  // The activated convolution of rows [begin, end), in the memory of the context.
  void convolve(const ConformerLayer& layer, int64_t begin, int64_t end) {
    const int64_t width = stream_.width, stride = gated_.size(1), length = packing_.length;
    const int64_t size = layer.conv.depthwise.size(0), reach = size / 2;
    const float* const gated = gated_.const_data_ptr<float>();
    const float* const weight = layer.conv.depthwise.const_data_ptr<float>();
    const float* const bias = layer.conv.bias.const_data_ptr<float>();
    split_rows(end - begin, width * size, [&](int64_t first, int64_t last) {
      for (int64_t row = begin + first; row < begin + last; ++row) {
        float* const sum = context_.data_ptr<float>() + row * width;
        std::copy_n(bias, width, sum);
        const int64_t token = row % length;
        const int64_t from = std::max<int64_t>(0, reach - token);
        const int64_t to = std::min(size, length - token + reach);
        for (int64_t k = from; k < to; ++k) {
          const float* const x = gated + (row + k - reach) * stride;
          const float* const w = weight + k * width;
          for (int64_t c = 0; c < width; ++c) sum[c] += x[c] * w[c];
        }
        activate(layer.conv.activation, sum, width);
      }
    });
  }

  void finish(size_t i, const Stream& part, int64_t begin) {
    const int64_t width = part.width;
    add_projected(part, layer(i).conv.pointwise2, context_.const_data_ptr<float>() + begin * width,
                  width, {}, layer(i).before_ffn2);
    feed_forward(part, layer(i).ffn2, stack_.half, {});
    const Stream in_place = {part.x, part.x, part.rows, width, part.regime};
    normalise(in_place, layer(i).last);
    ends_.end(i, part, begin);
    if (i + 1 < stack_.layers.size()) {
      normalise(part, layer(i + 1).before_ffn1);
    } else if (stack_.last) {
      normalise(in_place, stack_.last);
    }
  }

  const ConformerLayers& stack_;
  const Stream stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  const LayerEnds ends_;
  std::shared_ptr<const DistanceKeys::Keys> keys_;
  at::Tensor heads_, context_, gated_, rotated_;
  std::vector<RowRotation> rotations_;
};

}  // namespace

ConformerLayers::ConformerLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert)
    : FrozenLayers(encoder), width(encoder.options.layer().d_model()), last(encoder.norm) {
  sees_padding = true;
  half.weight = at::full({width}, 0.5, at::kFloat);
  half.bias = at::zeros({width}, at::kFloat);
  half.kind = kernels::inference::NormKind::Affine;
  const auto& transformer_xl = encoder.options.layer().transformer_xl();
  if (transformer_xl) distances.emplace(*transformer_xl);
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto& layer = layer_of<ConformerEncoderLayerImpl>("ConformerEncoder", encoder.layers, i);
    layers.push_back(conformer_layer(layer, convert, rotations));
    if (distances) {
      distances->add(layer.transformer_xl_attn->position_proj->weight, layer_options.num_heads(),
                     layers.back().score_scale);
    }
  }
}

at::Tensor ConformerLayers::run(const at::Tensor& rows, const Packing& packing,
                                const ScoreMask& mask, const LayerInputs& inputs,
                                std::vector<at::Tensor>* outputs) const {
  const at::Tensor x = rows.contiguous(), input = at::empty_like(x);
  Stream stream = {x.data_ptr<float>(), input.data_ptr<float>(), rows.size(0), width,
                   row_regime(rows.size(0))};
  at::Tensor in_8_bits;
  const bool reads_int8 = std::any_of(layers.begin(), layers.end(), [](const auto& layer) {
    return layer.in_proj.is_int8() || layer.ffn1.wide.is_int8() || layer.ffn2.wide.is_int8() ||
           layer.conv.pointwise1.is_int8();
  });
  if (reads_int8) in_8_bits = add_int8(stream);
  ConformerRun(*this, stream, packing, mask, inputs.position_ids,
               {outputs, layers.size(), x, packing.rows_without(inputs.kept_rows)})
      .run();
  return x;
}

}  // namespace posenc::inference
