#include "posenc/transformer/layers/window_encoder_layer.h"

#include <algorithm>
#include <ostream>
#include <tuple>
#include <utility>

#include "core/print_fields.h"
#include "core/tensors.h"
#include "posenc/transformer/functional/window_partition.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/blocks.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

constexpr const char* kWindowLayer = "WindowEncoderLayer";

void check_window_layer(const WindowEncoderLayerOptions& options) {
  const TransformerLayerOptions& layer = options.layer();
  const WindowOptions& windows = options.windows();
  check_layer(kWindowLayer, layer);
  TORCH_CHECK_VALUE(layer.norm_first(), "[", kWindowLayer, "] norm_first must be true. Got false");
  check_unread(kWindowLayer, layer,
               {"norm_first", "feed_forward", "norm_kind", "qkv_bias", "key_bias"});
  const int64_t side = std::min(windows.window().height, windows.window().width);
  TORCH_CHECK_VALUE(windows.shift() == 0 || (windows.shift() > 0 && windows.shift() < side), "[",
                    kWindowLayer, "] shift must lie in [0, ", side,
                    "), the shorter side of the window. Got ", windows.shift());
  TORCH_CHECK_VALUE(windows.shift() == 0 || windows.window().height == windows.window().width, "[",
                    kWindowLayer, "] windows that are shifted must be square. Got ",
                    windows.window().height, " x ", windows.window().width);
}

// The mask of the windows of a map that is rolled.
torch::Tensor mask_of(relative::Grid map, const WindowOptions& windows, int64_t shift,
                      const torch::Tensor& like) {
  if (shift == 0) return {};
  return posenc::sent_to(shifted_window_mask(functional::padded_grid(map, windows.window()),
                                             windows.window().height, shift, like.scalar_type()),
                         like.device());
}

}  // namespace

int64_t WindowOptions::shift_of(relative::Grid map) const {
  if (!needs_room()) return shift();
  TORCH_CHECK_VALUE(map.height >= window().height && map.width >= window().width, "[", kWindowLayer,
                    "] a map must be at least as large as its window, ", window().height, " x ",
                    window().width, ", for whose places there is a table. Got ", map.height, " x ",
                    map.width);
  const bool has_room = map.height > window().height && map.width > window().width;
  return has_room ? shift() : 0;
}

WindowEncoderLayerImpl::WindowEncoderLayerImpl(WindowEncoderLayerOptions options_)
    : options(std::move(options_)) {
  WindowEncoderLayerImpl::reset();
}

void WindowEncoderLayerImpl::reset() {
  check_window_layer(options);
  const TransformerLayerOptions& layer = options.layer();
  const LayerDropouts drops = dropouts_of(layer);
  self_attn = register_module(
      "self_attn",
      WindowAttention(WindowAttentionOptions(layer.d_model(), layer.num_heads(), options.windows())
                          .qkv_bias(layer.qkv_bias().value_or(true))
                          .key_bias(layer.key_bias())
                          .dropout(drops.attention)));
  linear1 = register_module("linear1", make_linear1(layer));
  dropout = register_module("dropout", torch::nn::Dropout(drops.activation));
  linear2 = register_module("linear2", make_linear2(layer));
  norm1 = register_module("norm1", make_norm(layer));
  norm2 = register_module("norm2", make_norm(layer));
  dropout1 = register_module("dropout1", torch::nn::Dropout(drops.attention_output));
  dropout2 = register_module("dropout2", torch::nn::Dropout(drops.output));
}

void WindowEncoderLayerImpl::reset_parameters() {
  self_attn->reset_parameters();
  linear1->reset_parameters();
  linear2->reset_parameters();
  norm1->reset_parameters();
  norm2->reset_parameters();
}

void WindowEncoderLayerImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "WindowEncoderLayer", options,
                       WindowEncoderLayerOptions(options.layer(), WindowOptions({-1, -1})));
}

torch::Tensor WindowEncoderLayerImpl::forward(const torch::Tensor& x) { return run(x, nullptr); }

std::tuple<torch::Tensor, torch::Tensor> WindowEncoderLayerImpl::forward_with_weights(
    const torch::Tensor& x) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, &weights);
  return {out, weights.flatten(0, 1)};
}

torch::Tensor WindowEncoderLayerImpl::run(const torch::Tensor& x, torch::Tensor* weights) {
  const TransformerLayerOptions& layer = options.layer();
  const WindowOptions& windows = options.windows();
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(3) == layer.d_model(), "[", kWindowLayer,
                    "] x must be (B, h, w, ", layer.d_model(), "). Got ", x.sizes());
  const relative::Grid map = {x.size(1), x.size(2)};
  const int64_t shift = windows.shift_of(map);
  const double path = dropouts_of(layer).path;
  const auto kept = [&](const torch::Tensor& y) {
    return drop_path(y.flatten(1, 2), path, is_training(), /*batch_first=*/true).view(y.sizes());
  };
  // Where transformers drops out, for the same masks: the rows of windows, and paths after norms.
  const bool after = windows.res_post_norm();
  const torch::Tensor rows =
      functional::window_partition(after ? x : norm1->forward(x), windows.window(), shift);
  const torch::Tensor mask = mask_of(map, windows, shift, rows);
  torch::Tensor out;
  if (weights == nullptr) {
    out = self_attn->forward(rows, mask);
  } else {
    std::tie(out, *weights) = self_attn->forward_with_weights(rows, mask);
  }
  const torch::Tensor attended =
      functional::window_unpartition(drop(*dropout1, out), map, windows.window(), shift);
  const torch::Tensor y = x + kept(after ? norm1->forward(attended) : attended);
  torch::Tensor wide =
      drop(*dropout2, blocks::run(blocks::network_of(*this, layer), after ? y : norm2->forward(y)));
  if (after) wide = norm2->forward(wide);
  return y + (windows.path_of_attention() ? wide : kept(wide));
}

}  // namespace posenc
