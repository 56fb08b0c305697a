// DeBERTa's layers on packed rows.

#include "inference/layers/disentangled_layers.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/zeros.h>

#include <algorithm>

#include "inference/layers/check_freezable.h"
#include "inference/rows/activation_rows.h"
#include "transformer/attention/position_projections.h"
#include "transformer/layers/layer_parts.h"

namespace posenc::inference {
namespace {

// The rows (H, R, Dh) of a table, times the scale of the scores. By posenc's own product, whose
// bits do not depend on the number of threads.
at::Tensor position_heads(const at::Tensor& table, const PositionProjection& projection,
                          int64_t heads, float scale) {
  if (!projection.weight.defined()) return {};
  const Projection own(projection.weight, projection.bias, kAlwaysNative);
  return (own.rows(table.detach()) * scale).unflatten(-1, {heads, -1}).transpose(0, 1).contiguous();
}

DisentangledLayer disentangled_layer(const DisentangledEncoderLayerImpl& layer,
                                     const at::Tensor& table, WeightConverter& convert) {
  DisentangledAttentionImpl& attention = *layer.self_attn.ptr();
  const int64_t heads = attention.options.num_heads();
  const auto scale = static_cast<float>(attention.scale());
  const auto [keys, queries] = position_projections(attention, table);
  return {{.sizes = {heads, heads, attention.options.embed_dim() / heads},
           .score_scale = scale,
           .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
           .out_proj = convert.projection(attention.out_proj->weight, attention.out_proj->bias),
           .feed_forward = {convert.projection(layer.linear1->weight, layer.linear1->bias),
                            convert.projection(layer.linear2->weight, layer.linear2->bias),
                            layer.options.activation()},
           .after_attention = Norm(layer.norm1),
           .after_feed_forward = Norm(layer.norm2)},
          position_heads(table, keys, heads, scale),
          position_heads(table, queries, heads, scale)};
}

// The layers have the rows of positions in place of the table and what projects it.
void record_positions(const TransformerEncoderImpl& encoder, int64_t bytes,
                      WeightConverter& convert) {
  const auto leaves_out = [&](const torch::nn::Module& module) {
    for (const at::Tensor& parameter : module.parameters()) convert.derived(parameter, 0);
  };
  if (!encoder.relative_embeddings) return;
  leaves_out(*encoder.relative_embeddings.ptr());
  convert.derived(encoder.relative_embeddings->weight, bytes);
  for (const auto& layer : *encoder.layers) {
    const auto& attention = *layer->as<DisentangledEncoderLayerImpl>()->self_attn.ptr();
    if (attention.pos_key) leaves_out(*attention.pos_key.ptr());
    if (attention.pos_query) leaves_out(*attention.pos_query.ptr());
  }
}

// The weight (D, D / g, K) of a convolution as that of a linear layer (D, K D).
at::Tensor dense_weight(const torch::nn::Conv1dImpl& conv) {
  const int64_t width = conv.weight.size(0), part = conv.weight.size(1), size = conv.weight.size(2);
  at::Tensor dense = at::zeros({width, size, width}, conv.weight.options());
  const int64_t groups = width / part;
  for (int64_t g = 0; g < groups; ++g) {
    dense.narrow(0, g * part, part)
        .narrow(2, g * part, part)
        .copy_(conv.weight.detach().narrow(0, g * part, part).transpose(1, 2));
  }
  return dense.view({width, size * width});
}

// For each row, the rows of its K neighbours side by side: -1 beyond the ends and for padding,
// whether it is dropped or not.
std::vector<int64_t> neighbours(const Packing& packing, int64_t size) {
  const int64_t slots = packing.batch * packing.length, reach = size / 2;
  std::vector<int64_t> row_at(static_cast<std::size_t>(slots), -1), found;
  const auto position = [&](int64_t row) {
    return packing.packed ? packing.positions[static_cast<std::size_t>(row)] : row;
  };
  for (int64_t row = 0; row < packing.rows; ++row) {
    if (!packing.is_padding(row)) row_at[static_cast<std::size_t>(position(row))] = row;
  }
  found.reserve(static_cast<std::size_t>(packing.rows * size));
  for (int64_t row = 0; row < packing.rows; ++row) {
    const int64_t own = position(row), begin = own / packing.length * packing.length;
    for (int64_t other = own - reach; other <= own + reach; ++other) {
      const bool inside = other >= begin && other < begin + packing.length;
      found.push_back(inside ? row_at[static_cast<std::size_t>(other)] : -1);
    }
  }
  return found;
}

// Runs the layers on the packed rows of a batch.
class DisentangledRun : public RelativeRun {
 public:
  DisentangledRun(const std::vector<DisentangledLayer>& layers,
                  const std::optional<FrozenConvolution>& convolution, const relative::Index& index,
                  const Norm& last, const Stream& stream, const Packing& packing,
                  const ScoreMask& mask, const LayerEnds& ends)
      : RelativeRun(stream, packing, mask, ends, last), layers_(layers), convolution_(convolution) {
    const bool has_positions = std::any_of(layers.begin(), layers.end(), [](const auto& layer) {
      return layer.position_keys.defined() || layer.position_queries.defined();
    });
    if (has_positions)
      rows_of_distances_ = relative_index(at::arange(-reach(), reach() + 1, at::kLong), index);
    if (convolution_) gather_neighbours();
  }

 private:
  const RelativeLayer& layer(size_t i) const override { return layers_[i]; }

  PositionHeads positions(size_t i) const override {
    return {by_distance(layers_[i].position_keys), by_distance(layers_[i].position_queries),
            reach()};
  }

  void after_layer(size_t i, int64_t begin, int64_t end) override {
    if (convolution_ && i == 0) convolve(begin, end);
  }

  // The rows of all distances of this batch: a copy, since many may share one.
  at::Tensor by_distance(const at::Tensor& rows) const {
    return rows.defined() ? at::index_select(rows, 1, rows_of_distances_) : rows;
  }

  // The input of the convolution, which is that of the first layer.
  void gather_neighbours() {
    const int64_t width = stream().width, size = convolution_->size;
    neighbours_ = at::empty({stream().rows, size * width}, at::kFloat);
    const std::vector<int64_t> rows = neighbours(packing(), size);
    float* to = neighbours_.data_ptr<float>();
    for (const int64_t row : rows) {
      if (row < 0) {
        std::fill_n(to, width, 0.0F);
      } else {
        std::copy_n(stream().x + row * width, width, to);
      }
      to += width;
    }
  }

  // Adds the convolution to rows [begin, end). Those of padding, where they are not dropped, are
  // zeros after it.
  void convolve(int64_t begin, int64_t end) {
    const Stream part = stream().part(begin, end);
    const at::Tensor added = at::empty({part.rows, part.width}, at::kFloat);
    convolution_->projection.run(neighbours_.const_data_ptr<float>() + begin * neighbours_.size(1),
                                 part.rows, added.data_ptr<float>(), part.regime);
    activate_by_row(added, convolution_->activation);
    add(part, added.const_data_ptr<float>(), convolution_->norm);
    for (int64_t row = begin; row < end; ++row) {
      if (!packing().is_padding(row)) continue;
      std::fill_n(stream().x + row * part.width, part.width, 0.0F);
      if (part.input_int8)
        part.input_int8.convert(part.x, part.width, row - begin, row - begin + 1);
    }
  }

  const std::vector<DisentangledLayer>& layers_;
  const std::optional<FrozenConvolution>& convolution_;
  at::Tensor rows_of_distances_;  // (2 reach + 1), of the table
  at::Tensor neighbours_;
};

}  // namespace

DisentangledLayers::DisentangledLayers(const TransformerEncoderImpl& encoder,
                                       WeightConverter& convert)
    : FrozenLayers(encoder),
      index_(encoder.options.layer().disentangled()->index()),
      width_(encoder.options.layer().d_model()),
      last_(encoder.norm) {
  at::Tensor table;
  if (encoder.relative_embeddings) table = encoder.relative_embeddings.ptr()->forward();
  int64_t bytes_of_positions = 0;
  for (const size_t i : layers_in_order(encoder.options.order(), encoder.layers->size())) {
    layers_.push_back(disentangled_layer(
        layer_of<DisentangledEncoderLayerImpl>("DisentangledEncoder", encoder.layers, i), table,
        convert));
    for (const at::Tensor& rows : {layers_.back().position_keys, layers_.back().position_queries})
      if (rows.defined()) bytes_of_positions += static_cast<int64_t>(rows.nbytes());
  }
  record_positions(encoder, bytes_of_positions, convert);
  if (!encoder.conv) return;
  const DisentangledOptions& own = *encoder.conv->options.disentangled();
  const auto& conv = *encoder.conv->conv;
  const at::Tensor dense = dense_weight(conv);
  convert.derived(conv.weight, static_cast<int64_t>(dense.nbytes()));
  convolution_.emplace(FrozenConvolution{convert.float_projection(dense, conv.bias.detach()),
                                         own.conv_kernel_size(), own.conv_act(),
                                         Norm(encoder.conv->norm)});
}

at::Tensor DisentangledLayers::run(const at::Tensor& rows, const Packing& packing,
                                   const ScoreMask& mask, const LayerInputs& inputs,
                                   std::vector<at::Tensor>* outputs) const {
  const at::Tensor x = rows.contiguous();
  float* const data = x.data_ptr<float>();
  const Stream stream = {data, data, rows.size(0), width_, row_regime(rows.size(0))};
  DisentangledRun(layers_, convolution_, index_, last_, stream, packing, mask,
                  {outputs, layers_.size(), x, packing.rows_without(inputs.kept_rows)})
      .run(layers_.size());
  return x;
}

}  // namespace posenc::inference
