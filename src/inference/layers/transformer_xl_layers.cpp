// XLNet's layers on packed rows.

#include "inference/layers/transformer_xl_layers.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <utility>

#include "transformer/attention/segments.h"
#include "transformer/layers/layer_parts.h"
#include "transformer/layers/transformer_xl_rows.h"

namespace posenc::inference {
namespace {

constexpr const char* kFrozenEncoder = "FrozenTransformerEncoder";

TransformerXLLayer transformer_xl_layer(const TransformerXLEncoderLayerImpl& layer,
                                        WeightConverter& convert) {
  const TransformerXLAttentionImpl& attention = *layer.self_attn;
  const int64_t heads = attention.options.num_heads();
  const auto linear = [&](const torch::nn::Linear& module) {
    return convert.projection(module->weight, module->bias);
  };
  return {
      {.sizes = {heads, heads, attention.options.embed_dim() / heads},
       .score_scale = static_cast<float>(attention.scale()),
       .in_proj = transformer_xl_in_proj(attention, convert),
       .out_proj = linear(attention.out_proj),
       .feed_forward = {linear(layer.linear1), linear(layer.linear2), layer.options.activation()},
       .after_attention = Norm(layer.norm1),
       .after_feed_forward = Norm(layer.norm2),
       .window = layer.options.window()},
      TransformerXLParts(attention, convert)};
}

// Runs the layers on the packed rows of a batch.
class TransformerXLRun : public RelativeRun {
 public:
  TransformerXLRun(const std::vector<TransformerXLLayer>& layers,
                   const TransformerXLOptions& options, const DistanceKeys& distances,
                   const Norm& last, const Stream& stream, const Packing& packing,
                   const ScoreMask& mask, const at::Tensor& segments, const LayerEnds& ends)
      : RelativeRun(stream, packing, mask, ends, last),
        layers_(layers),
        bi_data_(options.bi_data()),
        keys_(distances.up_to(reach())),
        segments_(packed_segments(segments, packing)) {}

 private:
  const RelativeLayer& layer(size_t i) const override { return layers_[i]; }

  PositionHeads positions(size_t i) const override {
    return position_heads(layers_[i].parts, keys_->layers[i], keys_->reach, bi_data_, segments_);
  }

  const std::vector<TransformerXLLayer>& layers_;
  const bool bi_data_;
  const std::shared_ptr<const DistanceKeys::Keys> keys_;
  const at::Tensor segments_;
};

}  // namespace

TransformerXLParts::TransformerXLParts(const TransformerXLAttentionImpl& attention,
                                       WeightConverter& convert) {
  for (const at::Tensor& source :
       {attention.position_bias, attention.segment_bias, attention.segment_embed}) {
    if (source.defined()) convert.derived(source, static_cast<int64_t>(source.nbytes()));
  }
  const at::Tensor content = attention.content_bias.detach();
  key_bias = (attention.position_bias.detach() - content).contiguous();
  if (!attention.segment_embed.defined()) return;
  segment_bias = (attention.segment_bias.detach() - content).contiguous();
  segment_keys =
      (attention.segment_embed.detach().transpose(0, 1) * attention.scale()).contiguous();
}

Projection transformer_xl_in_proj(const TransformerXLAttentionImpl& attention,
                                  WeightConverter& convert) {
  const int64_t width = attention.options.embed_dim();
  at::Tensor bias = attention.in_proj_bias.defined() ? attention.in_proj_bias.detach().clone()
                                                     : at::zeros({3 * width}, at::kFloat);
  convert.derived(attention.in_proj_bias, 0);
  convert.derived(attention.content_bias, static_cast<int64_t>(bias.nbytes()));
  bias.narrow(0, 0, width).add_(attention.content_bias.detach().view({width}));
  return convert.projection(attention.in_proj_weight, bias);
}

at::Tensor packed_segments(const at::Tensor& segments, const Packing& packing) {
  if (!segments.defined()) return {};
  const at::Tensor all = segments.to(at::kLong).flatten();
  return packing.packed ? at::index_select(all, 0, at::tensor(packing.positions, at::kLong))
                        : all.contiguous();
}

PositionHeads position_heads(const TransformerXLParts& parts, const at::Tensor& keys, int64_t reach,
                             bool bi_data, const at::Tensor& segments) {
  PositionHeads positions = {.keys = keys, .queries = {}, .reach = reach};
  if (bi_data) positions.backward_keys = keys.flip(1);
  positions.key_bias = parts.key_bias;
  if (!segments.defined()) return positions;
  positions.segments = segments;
  positions.segment_keys = parts.segment_keys;
  positions.segment_bias = parts.segment_bias;
  return positions;
}

TransformerXLLayers::TransformerXLLayers(const TransformerEncoderImpl& encoder,
                                         WeightConverter& convert)
    : FrozenLayers(encoder),
      options_(*encoder.options.layer().transformer_xl()),
      distances_(options_),
      width_(encoder.options.layer().d_model()),
      last_(encoder.norm) {
  convert.derived(encoder.shifted_positions->mask_emb, 0);  // which no layer reads
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    const auto& layer =
        layer_of<TransformerXLEncoderLayerImpl>("TransformerXLEncoder", encoder.layers, i);
    layers_.push_back(transformer_xl_layer(layer, convert));
    distances_.add(layer.self_attn->position_proj->weight, layer_options.num_heads(),
                   layers_.back().score_scale);
  }
}

at::Tensor TransformerXLLayers::run(const at::Tensor& rows, const Packing& packing,
                                    const ScoreMask& mask, const LayerInputs& inputs,
                                    std::vector<at::Tensor>* outputs) const {
  check_bi_data(kFrozenEncoder, options_, packing.batch);
  check_segments(kFrozenEncoder, inputs.segments, packing.batch, packing.length);
  const at::Tensor x = rows.contiguous();
  float* const data = x.data_ptr<float>();
  const Stream stream = {data, data, rows.size(0), width_, row_regime(rows.size(0))};
  TransformerXLRun(layers_, options_, distances_, last_, stream, packing, mask, inputs.segments,
                   {outputs, layers_.size(), x, packing.rows_without(inputs.kept_rows)})
      .run(layers_.size());
  return x;
}

}  // namespace posenc::inference
