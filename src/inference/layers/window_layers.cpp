// The layers of Swin and SAM on the rows of a map.

#include "inference/layers/window_layers.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/platform/memory.h"
#include "inference/layers/check_freezable.h"
#include "inference/layers/freeze_parts.h"
#include "kernels/dispatch.h"
#include "posenc/transformer/functional/window_partition.h"

namespace posenc::inference {
namespace {

using platform::scratch;
using platform::Scratch;
using relative::Grid;

Norm norm_of(const LayerNorm& module) {
  Norm norm;
  if (!module) return norm;
  norm.weight = module->weight.detach().contiguous();
  if (module->bias.defined()) norm.bias = module->bias.detach().contiguous();
  norm.eps = static_cast<float>(module->options.eps());
  return norm;
}

// Rows of zero keys that a class has no bias for are in in_proj_bias.
WindowLayer window_layer(const WindowEncoderLayerImpl& layer, WeightConverter& convert) {
  const WindowAttentionImpl& attention = *layer.self_attn;
  const int64_t heads = attention.options.num_heads();
  return {.windows = layer.options.windows(),
          .sizes = {heads, heads, attention.options.embed_dim() / heads},
          .in_proj = convert.projection(attention.in_proj_weight, attention.in_proj_bias),
          .out_proj = linear(*attention.out_proj, convert),
          .attention = FrozenWindowAttention(attention, layer.options.windows().shift(),
                                             convert.attention_products()),
          .feed_forward = network_of(blocks::network_of(layer, layer.options.layer()), convert),
          .norm1 = Norm(layer.norm1),
          .norm2 = Norm(layer.norm2)};
}

// The rows of a map in the order of its windows, and back.
class WindowOrder {
 public:
  WindowOrder(int64_t batch, Grid map, Grid window, int64_t shift)
      : window_(window), shift_(shift) {
    const Grid all = functional::padded_grid(map, window);
    counts_ = {all.height / window.height, all.width / window.width};
    from_.reserve(static_cast<std::size_t>(batch * all.height * all.width));
    to_.resize(static_cast<std::size_t>(batch * map.height * map.width));
    for (int64_t b = 0; b < batch; ++b) add_map(b * map.height * map.width, map, all);
  }

  bool is_of(Grid window, int64_t shift) const {
    return window.height == window_.height && window.width == window_.width && shift == shift_;
  }
  Grid counts() const { return counts_; }
  int64_t rows() const { return static_cast<int64_t>(from_.size()); }
  /// The row of the map that is row i of the windows, or -1.
  int64_t from(int64_t i) const { return from_[static_cast<std::size_t>(i)]; }
  /// The row of the windows that is row i of the map.
  int64_t to(int64_t i) const { return to_[static_cast<std::size_t>(i)]; }

 private:
  void add_map(int64_t first, Grid map, Grid all) {
    for (int64_t down = 0; down < counts_.height; ++down) {
      for (int64_t across = 0; across < counts_.width; ++across) {
        for (int64_t i = 0; i < window_.height; ++i) {
          const int64_t row = (down * window_.height + i + shift_) % all.height;
          for (int64_t j = 0; j < window_.width; ++j) {
            const int64_t column = (across * window_.width + j + shift_) % all.width;
            const bool is_there = row < map.height && column < map.width;
            const int64_t index = is_there ? first + row * map.width + column : -1;
            if (is_there) to_[static_cast<std::size_t>(index)] = rows();
            from_.push_back(index);
          }
        }
      }
    }
  }

  Grid window_, counts_ = {};
  int64_t shift_;
  std::vector<int64_t> from_, to_;
};

// The layers of one stage on the rows of one batch of maps.
class StageRun {
 public:
  StageRun(const at::Tensor& x, int64_t batch, Grid map)
      : x_(x), batch_(batch), map_(map), width_(x.size(1)) {}

  void run(const WindowLayer& layer) {
    const int64_t shift = layer.windows.shift_of(map_);
    const WindowOrder& order = order_of(layer.windows.window(), shift);
    resize_buffers(order.rows());
    const int64_t stride = heads_.size(1);
    const RowRegime regime = row_regime(order.rows());
    by_rows(order.rows(), [&](int64_t begin, int64_t end) {
      float* const rows = scratch(Scratch::Hidden, (end - begin) * width_);
      gather(layer, order, begin, end, rows);
      layer.in_proj.run(rows, width_, end - begin, heads_.data_ptr<float>() + begin * stride,
                        stride, regime);
    });
    layer.attention.attend(heads_, layer.sizes, batch_, order.counts(), shift > 0,
                           context_.data_ptr<float>());
    finish(layer, order);
  }

 private:
  const WindowOrder& order_of(Grid window, int64_t shift) {
    for (const WindowOrder& one : orders_) {
      if (one.is_of(window, shift)) return one;
    }
    orders_.reserve(kMostOrders);
    if (orders_.size() == kMostOrders) orders_.clear();
    orders_.emplace_back(batch_, map_, window, shift);
    return orders_.back();
  }

  void resize_buffers(int64_t rows) {
    if (!heads_.defined() || heads_.size(0) != rows) {
      heads_ = at::empty({rows, odd_stride(3 * width_)}, at::kFloat);
      context_ = at::empty({rows, width_}, at::kFloat);
    }
    if (!input_.defined()) input_ = at::empty_like(x_);
  }

  // The input of the projections, of neighbouring rows at once.
  void gather(const WindowLayer& layer, const WindowOrder& order, int64_t begin, int64_t end,
              float* rows) const {
    const float* const x = x_.const_data_ptr<float>();
    const bool normalises = !layer.windows.res_post_norm();
    kernels::inference::AddNormRequest request = {};
    if (normalises) request = layer.norm1.request(width_);
    for (int64_t i = begin; i < end;) {
      const int64_t from = order.from(i);
      int64_t count = 1;
      while (i + count < end && order.from(i + count) == (from < 0 ? -1 : from + count)) ++count;
      float* const to = rows + (i - begin) * width_;
      if (from < 0) {
        std::fill_n(to, count * width_, 0.0F);
      } else if (normalises) {
        request.x = x + from * width_;
        request.out = to;
        kernels::chosen_inference().add_norm.add_norm(request, 0, count);
      } else {
        std::copy_n(x + from * width_, count * width_, to);
      }
      i += count;
    }
  }

  // All of a layer after the attention.
  void finish(const WindowLayer& layer, const WindowOrder& order) {
    const bool after = layer.windows.res_post_norm();
    float* const x = x_.data_ptr<float>();
    const Stream all = {x, after ? x : input_.data_ptr<float>(), x_.size(0), width_,
                        row_regime(x_.size(0))};
    const float* const context = context_.const_data_ptr<float>();
    const Norm none;
    by_rows(all.rows, [&](int64_t begin, int64_t end) {
      const Stream part = all.part(begin, end);
      float* const rows = scratch(Scratch::Hidden, part.rows * width_);
      for (int64_t i = begin; i < end; ++i)
        std::copy_n(context + order.to(i) * width_, width_, rows + (i - begin) * width_);
      add_projected(part, layer.out_proj, rows, width_, after ? layer.norm1 : none,
                    after ? none : layer.norm2);
      feed_forward(part, layer.feed_forward, part.input, after ? layer.norm2 : none, none);
    });
  }

  static constexpr std::size_t kMostOrders = 2;  // of layers that take turns

  const at::Tensor x_;
  const int64_t batch_;
  const Grid map_;
  const int64_t width_;
  std::vector<WindowOrder> orders_;
  at::Tensor heads_, context_, input_;
};

// The rows of 2 x 2 tokens side by side, column by column, and zeros beyond the map.
void gather_four(const float* x, Grid map, int64_t width, int64_t begin, int64_t end, float* to) {
  const int64_t down = (map.height + 1) / 2, across = (map.width + 1) / 2;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t image = i / (down * across), cell = i % (down * across);
    for (int64_t part = 0; part < 4; ++part, to += width) {
      const int64_t row = 2 * (cell / across) + part % 2;
      const int64_t column = 2 * (cell % across) + part / 2;
      if (row < map.height && column < map.width) {
        std::copy_n(x + ((image * map.height + row) * map.width + column) * width, width, to);
      } else {
        std::fill_n(to, width, 0.0F);
      }
    }
  }
}

at::Tensor merged(const at::Tensor& x, const FrozenMerging& merging, int64_t batch, Grid map) {
  const int64_t width = x.size(1);
  const int64_t rows = batch * ((map.height + 1) / 2) * ((map.width + 1) / 2);
  const at::Tensor out = at::empty({rows, 2 * width}, at::kFloat);
  const RowRegime regime = row_regime(rows);
  by_rows(rows, [&](int64_t begin, int64_t end) {
    float* const four = scratch(Scratch::Hidden, (end - begin) * 4 * width);
    float* const to = out.data_ptr<float>() + begin * 2 * width;
    gather_four(x.const_data_ptr<float>(), map, width, begin, end, four);
    if (merging.norm_first) normalise({four, four, end - begin, 4 * width, regime}, merging.norm);
    merging.reduction.run(four, end - begin, to, regime);
    if (!merging.norm_first) normalise({to, to, end - begin, 2 * width, regime}, merging.norm);
  });
  return out;
}

}  // namespace

WindowStages::WindowStages(const WindowEncoderImpl& encoder, WeightConverter& convert)
    : last_(norm_of(encoder.norm)),
      records_layers_(encoder.options.records_layers()),
      has_neck_(!encoder.neck.is_empty()) {
  check_freezable(encoder, "");
  for (std::size_t i = 0; i < encoder.stages->size(); ++i) {
    const WindowStageImpl& stage = encoder.stage(i);
    Stage own = {stage.layer(0).options.layer().d_model(), {}, std::nullopt};
    for (std::size_t j = 0; j < stage.layers->size(); ++j)
      own.layers.push_back(window_layer(stage.layer(j), convert));
    if (stage.downsample) {
      own.merging = {convert.projection(stage.downsample->reduction->weight, {}),
                     norm_of(stage.downsample->norm), stage.downsample->options.norm_first()};
    }
    stages_.push_back(std::move(own));
  }
}

at::Tensor WindowStages::run(const at::Tensor& x, TransformerEncoderRecord& record) const {
  const int64_t batch = x.size(0);
  Grid map = {x.size(1), x.size(2)};
  at::Tensor rows = x.clone(at::MemoryFormat::Contiguous).flatten(0, 2);
  const auto add_map = [&] {
    if (!record.output_hidden_states) return;
    const at::Tensor own = rows.clone().view({batch, map.height * map.width, rows.size(1)});
    record.hidden_states.push_back(records_layers_ ? own.unflatten(1, {map.height, map.width})
                                                   : own);
  };
  add_map();
  for (const Stage& stage : stages_) {
    StageRun run(rows, batch, map);
    for (const WindowLayer& layer : stage.layers) {
      run.run(layer);
      if (records_layers_) add_map();
    }
    if (stage.merging) {
      rows = merged(rows, *stage.merging, batch, map);
      map = {(map.height + 1) / 2, (map.width + 1) / 2};
    }
    if (!records_layers_) add_map();
  }
  if (has_neck_) return rows.view({batch, map.height, map.width, rows.size(1)});
  if (last_) {
    float* const data = rows.data_ptr<float>();
    normalise({data, data, rows.size(0), rows.size(1), row_regime(rows.size(0))}, last_);
  }
  return rows.view({batch, map.height * map.width, rows.size(1)});
}

}  // namespace posenc::inference
