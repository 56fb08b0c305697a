// MobileBERT's layers on packed rows.

#include "inference/layers/bottleneck_layers.h"

#include <ATen/ops/empty.h>

#include "base/platform/memory.h"
#include "inference/layers/freeze_parts.h"
#include "inference/rows/layer_ends.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

NormedProjection normed(const torch::nn::Linear& module, const TransformerNorm& norm,
                        WeightConverter& convert) {
  if (!module) return {};
  return {linear(*module, convert), Norm(norm), true};
}

// The projection of queries (0), keys (1) or values (2), which the module has in one tensor or
// apart.
Projection part_of(const MultiheadAttentionImpl& attention, int64_t part,
                   WeightConverter& convert) {
  const int64_t width = attention.options.embed_dim();
  const at::Tensor apart[] = {attention.q_proj_weight, attention.k_proj_weight,
                              attention.v_proj_weight};
  const at::Tensor& source =
      attention.in_proj_weight.defined() ? attention.in_proj_weight : apart[part];
  const at::Tensor weight =
      attention.in_proj_weight.defined() ? source.narrow(0, part * width, width) : source;
  at::Tensor bias = attention.in_proj_bias;
  if (bias.defined()) bias = bias.narrow(0, part * width, width);
  return convert.projection(weight, bias, source);
}

BottleneckLayer frozen_layer(const BottleneckEncoderLayerImpl& layer, WeightConverter& convert) {
  const MultiheadAttentionImpl& attention = *layer.self_attn;
  const BottleneckOptions& own = *layer.options.bottleneck();
  const HeadSizes sizes = HeadSizes::of(attention.options);
  BottleneckLayer frozen = {
      .sizes = sizes,
      .scoring = {scale_of(attention), convert.attention_products()},
      .window = layer.options.window(),
      .input = normed(layer.input, layer.input_norm, convert),
      .shared = own.use_bottleneck_attention() ? NormedProjection()
                                               : normed(layer.shared, layer.shared_norm, convert),
      .values_are_inner = own.use_bottleneck_attention() || !own.use_bottleneck(),
      .query = part_of(attention, 0, convert),
      .key = part_of(attention, 1, convert),
      .value = part_of(attention, 2, convert),
      .attention = normed(attention.out_proj, layer.norm1, convert),
      .networks = {},
      .network_norms = {},
      .output = normed(layer.output, layer.output_norm, convert)};
  const auto add = [&](const BottleneckFeedForwardImpl& one) {
    frozen.networks.push_back(network_of(blocks::network_of(one), convert));
    frozen.network_norms.emplace_back(one.norm);
  };
  for (const auto& network : *layer.ffn) add(*network->as<BottleneckFeedForwardImpl>());
  add(*layer.last_ffn);
  return frozen;
}

// Runs the layers on the packed rows of a batch.
class BottleneckRun {
 public:
  BottleneckRun(const std::vector<BottleneckLayer>& layers, const Norm& last, const Stream& outer,
                int64_t width, const Packing& packing, const ScoreMask& mask, const LayerEnds& ends)
      : layers_(layers),
        last_(last),
        outer_(outer),
        width_(width),
        packing_(packing),
        mask_(mask),
        ends_(ends) {
    const auto rows = [&](int64_t columns) { return at::empty({outer.rows, columns}, at::kFloat); };
    heads_ = rows(odd_stride(3 * width));
    context_ = rows(width);
    shared_ = rows(width);
    if (layers.front().input.is_there) inner_ = rows(width);
  }

  void run() {
    by_rows(outer_.rows, [&](int64_t begin, int64_t end) { project(layers_.front(), begin, end); });
    for (size_t i = 0; i < layers_.size(); ++i) {
      const BottleneckLayer& layer = layers_[i];
      inference::attend({heads_.narrow(1, 0, width_), heads_.narrow(1, width_, width_),
                         heads_.narrow(1, 2 * width_, width_), packing_, packing_, layer.sizes,
                         layer.scoring, mask_, layer.window},
                        context_.data_ptr<float>());
      by_rows(outer_.rows, [&](int64_t begin, int64_t end) {
        finish(layer, begin, end);
        ends_.end(i, outer_.part(begin, end), begin);
        if (i + 1 < layers_.size()) {
          project(layers_[i + 1], begin, end);
        } else {
          normalise(outer_.part(begin, end), last_);
        }
      });
    }
  }

 private:
  // The rows of the bottleneck, which are those of x without one.
  Stream inner(int64_t begin, int64_t end) const {
    if (!inner_.defined()) return outer_.part(begin, end);
    return rows_of(inner_, begin, end);
  }
  Stream rows_of(const at::Tensor& rows, int64_t begin, int64_t end) const {
    float* const x = rows.data_ptr<float>() + begin * width_;
    return {x, x, end - begin, width_, outer_.regime};
  }

  static void fill(const NormedProjection& from, SharedRows& x, const Stream& to) {
    x.project(from.projection, to.x, to.width);
    normalise(to, from.norm);
  }

  // The heads of a layer, for rows [begin, end).
  void project(const BottleneckLayer& layer, int64_t begin, int64_t end) {
    const Stream x = outer_.part(begin, end), bottleneck = inner(begin, end);
    RowFormat format = RowFormat::Float32;
    for (const Projection* const one : {&layer.input.projection, &layer.shared.projection,
                                        &layer.query, &layer.key, &layer.value})
      format = either(format, one->row_format());
    const int64_t outer_floats = ConvertedRows::floats(format, x.rows, x.width);
    const int64_t inner_floats = ConvertedRows::floats(format, x.rows, width_);
    float* const bytes =
        platform::scratch(platform::Scratch::Bytes, outer_floats + 2 * inner_floats);
    const auto rows_in = [](const Stream& of, float* buffer) {
      return SharedRows(of.x, of.rows, of.width, of.regime, buffer);
    };
    SharedRows of_x = rows_in(x, bytes);
    if (layer.input.is_there) fill(layer.input, of_x, bottleneck);
    SharedRows of_bottleneck = rows_in(bottleneck, bytes + outer_floats);
    SharedRows& values = layer.values_are_inner ? of_bottleneck : of_x;
    const Stream shared = rows_of(shared_, begin, end);
    if (layer.shared.is_there) fill(layer.shared, of_x, shared);
    SharedRows of_shared = rows_in(shared, bytes + outer_floats + inner_floats);
    SharedRows& queries = layer.shared.is_there ? of_shared : values;
    const int64_t stride = heads_.size(1);
    float* const heads = heads_.data_ptr<float>() + begin * stride;
    queries.project(layer.query, heads, stride);
    queries.project(layer.key, heads + width_, stride);
    values.project(layer.value, heads + 2 * width_, stride);
  }

  // All of a layer after the attention.
  void finish(const BottleneckLayer& layer, int64_t begin, int64_t end) {
    const Stream bottleneck = inner(begin, end);
    add_projected(bottleneck, layer.attention.projection,
                  context_.const_data_ptr<float>() + begin * width_, width_, {},
                  layer.attention.norm);
    for (size_t i = 0; i < layer.networks.size(); ++i)
      feed_forward(bottleneck, layer.networks[i], bottleneck.input, {}, layer.network_norms[i]);
    if (!layer.output.is_there) return;
    add_projected(outer_.part(begin, end), layer.output.projection, bottleneck.x, width_, {},
                  layer.output.norm);
  }

  const std::vector<BottleneckLayer>& layers_;
  const Norm& last_;
  const Stream outer_;
  const int64_t width_;
  const Packing& packing_;
  const ScoreMask& mask_;
  const LayerEnds ends_;
  at::Tensor heads_, context_, shared_, inner_;  // of one layer
};

}  // namespace

BottleneckLayers::BottleneckLayers(const TransformerEncoderImpl& encoder, WeightConverter& convert)
    : FrozenLayers(encoder),
      width_(encoder.options.layer().d_model()),
      inner_width_(encoder.options.layer().bottleneck()->intra_bottleneck_size()),
      last_(encoder.norm) {
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    layers_.push_back(frozen_layer(
        layer_of<BottleneckEncoderLayerImpl>("BottleneckEncoder", encoder.layers, i), convert));
  }
}

at::Tensor BottleneckLayers::run(const at::Tensor& rows, const Packing& packing,
                                 const ScoreMask& mask, const LayerInputs& inputs,
                                 std::vector<at::Tensor>* outputs) const {
  const at::Tensor x = rows.contiguous();
  float* const data = x.data_ptr<float>();
  const Stream outer = {data, data, rows.size(0), width_, row_regime(rows.size(0))};
  BottleneckRun(layers_, last_, outer, inner_width_, packing, mask,
                {outputs, layers_.size(), x, packing.rows_without(inputs.kept_rows)})
      .run();
  return x;
}

}  // namespace posenc::inference
