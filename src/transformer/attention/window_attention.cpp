#include "posenc/transformer/attention/window_attention.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "core/tensors.h"
#include "posenc/core/skip_init.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/scores.h"
#include "positions/nn/weights.h"
#include "positions/relative/axes.h"
#include "positions/relative/cosine_window.h"
#include "transformer/functional/drop.h"

namespace posenc {
namespace {

constexpr const char* kWindowAttention = "WindowAttention";
constexpr int64_t kHiddenCoordinates = 512;  // in Swin v2's network
constexpr double kFirstScale = 10.0;         // of its cosines

int64_t tokens_of(relative::Grid window) { return window.height * window.width; }

}  // namespace

WindowAttentionImpl::WindowAttentionImpl(WindowAttentionOptions options_) : options(options_) {
  WindowAttentionImpl::reset();
}

void WindowAttentionImpl::reset() {
  const int64_t width = options.embed_dim();
  const relative::Grid window = options.windows().window();
  check_positive(kWindowAttention, "embed_dim", width);
  check_positive(kWindowAttention, "num_heads", options.num_heads());
  check_dropout(kWindowAttention, options.dropout());
  TORCH_CHECK_VALUE(width % options.num_heads() == 0, "[", kWindowAttention,
                    "] embed_dim must be a multiple of num_heads ", options.num_heads(), ". Got ",
                    width);
  TORCH_CHECK_VALUE(window.height > 0 && window.width > 0, "[", kWindowAttention,
                    "] window must have positive sides. Got ", window.height, " x ", window.width);
  in_proj_weight = register_parameter("in_proj_weight", torch::empty({3 * width, width}));
  if (options.qkv_bias())
    in_proj_bias = register_parameter("in_proj_bias", torch::empty({3 * width}));
  out_proj = register_module("out_proj", make_linear(torch::nn::LinearOptions(width, width)));
  register_positions();
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
  if (!SkipInit::is_active()) reset_parameters();
}

void WindowAttentionImpl::register_positions() {
  const int64_t heads = options.num_heads(), width = options.embed_dim() / heads;
  const relative::Grid window = options.windows().window();
  const int64_t down = 2 * window.height - 1, across = 2 * window.width - 1;
  switch (options.windows().positions()) {
    case WindowPositions::None: break;
    case WindowPositions::Table:
      relative_position_bias_table =
          register_parameter("relative_position_bias_table", torch::empty({down * across, heads}));
      break;
    case WindowPositions::Continuous:
      logit_scale = register_parameter("logit_scale", torch::empty({heads, 1, 1}));
      coordinates = register_module("coordinates",
                                    make_linear(torch::nn::LinearOptions(2, kHiddenCoordinates)));
      entries = register_module(
          "entries", make_linear(torch::nn::LinearOptions(kHiddenCoordinates, heads).bias(false)));
      break;
    case WindowPositions::Axes:
      rel_pos_h = register_parameter("rel_pos_h", torch::empty({down, width}));
      rel_pos_w = register_parameter("rel_pos_w", torch::empty({across, width}));
      break;
  }
}

void WindowAttentionImpl::reset_parameters() {
  torch::nn::init::xavier_uniform_(in_proj_weight);
  if (in_proj_bias.defined()) torch::nn::init::zeros_(in_proj_bias);
  out_proj->reset_parameters();
  for (const torch::Tensor& table : {relative_position_bias_table, rel_pos_h, rel_pos_w}) {
    if (table.defined()) torch::nn::init::zeros_(table);
  }
  if (!logit_scale.defined()) return;
  torch::nn::init::constant_(logit_scale, std::log(kFirstScale));
  coordinates->reset_parameters();
  entries->reset_parameters();
}

void WindowAttentionImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "WindowAttention", options,
                       WindowAttentionOptions(-1, -1, WindowOptions({-1, -1})));
}

torch::Tensor WindowAttentionImpl::position_bias() const {
  const WindowOptions& windows = options.windows();
  if (windows.positions() == WindowPositions::Table) {
    const torch::Tensor index =
        sent_to(relative_window_index(windows.window()), relative_position_bias_table.device());
    return relative_bias_of_indices(relative_position_bias_table, index);
  }
  if (windows.positions() != WindowPositions::Continuous) return {};
  return relative::continuous_position_bias(windows.window(), windows.pretrained_window(),
                                            relative::LogCoordinates::SwinV2, coordinates->weight,
                                            coordinates->bias, entries->weight);
}

// (B, W, H, N, N)
torch::Tensor WindowAttentionImpl::weights(const torch::Tensor& q, const torch::Tensor& k,
                                           const torch::Tensor& mask) const {
  using relative::Masking;
  using relative::ScaleBy;
  using relative::ScaleOf;
  const torch::Tensor of_heads = mask.defined() ? mask.unsqueeze(1) : mask;  // (W, 1, N, N)
  switch (options.windows().positions()) {
    case WindowPositions::Continuous:
      return relative_weights(relative::normalized(q) * relative::cosine_scale(logit_scale),
                              relative::normalized(k), position_bias(), of_heads,
                              {ScaleOf::Nothing, ScaleBy::Multiply, 1, false, Masking::Twice});
    case WindowPositions::Axes: {
      const relative::Grid window = options.windows().window();
      const auto [down, across] =
          relative::axis_terms(q, relative::axis_rows(rel_pos_h, window.height, window.height),
                               relative::axis_rows(rel_pos_w, window.width, window.width));
      const torch::Tensor term =
          (down + across)
              .reshape({q.size(0), q.size(1), q.size(2), tokens_of(window), tokens_of(window)});
      return relative_weights(q, k, term, of_heads, {ScaleOf::Query});
    }
    case WindowPositions::Table:
      return relative_weights(q, k, position_bias(), of_heads,
                              {ScaleOf::Scores, ScaleBy::Multiply, 1, false, Masking::WithTerm});
    case WindowPositions::None: break;
  }
  return relative_weights(q, k, {}, of_heads, {});
}

torch::Tensor WindowAttentionImpl::forward(const torch::Tensor& x, const torch::Tensor& mask) {
  return run(x, mask, nullptr);
}

std::tuple<torch::Tensor, torch::Tensor> WindowAttentionImpl::forward_with_weights(
    const torch::Tensor& x, const torch::Tensor& mask) {
  torch::Tensor weights;
  const torch::Tensor out = run(x, mask, &weights);
  return {out, weights};
}

torch::Tensor WindowAttentionImpl::run(const torch::Tensor& x, const torch::Tensor& mask,
                                       torch::Tensor* shares) {
  const int64_t width = options.embed_dim(), heads = options.num_heads();
  const int64_t tokens = tokens_of(options.windows().window());
  TORCH_CHECK_VALUE(x.dim() == 4 && x.size(2) == tokens && x.size(3) == width, "[",
                    kWindowAttention, "] x must be (B, windows, ", tokens, ", ", width, "). Got ",
                    x.sizes());
  TORCH_CHECK_VALUE(
      !mask.defined() || (mask.dim() == 3 && (mask.size(0) == x.size(1) || mask.size(0) == 1) &&
                          mask.size(1) == tokens && mask.size(2) == tokens),
      "[", kWindowAttention, "] mask must be (", x.size(1), ", ", tokens, ", ", tokens, "). Got ",
      mask.defined() ? c10::str(mask.sizes()) : "");
  TORCH_CHECK_TYPE(!mask.defined() || mask.is_floating_point(), "[", kWindowAttention,
                   "] mask must be real numbers, which are added to the scores. Got ",
                   mask.defined() ? c10::toString(mask.scalar_type()) : "");
  torch::Tensor bias = in_proj_bias;
  if (bias.defined() && !options.key_bias()) {  // zeros without a gradient
    bias = torch::cat({bias.narrow(0, 0, width), bias.narrow(0, width, width).detach(),
                       bias.narrow(0, 2 * width, width)});
  }
  const torch::Tensor parts = torch::linear(x, in_proj_weight, bias)
                                  .unflatten(-1, {3, heads, width / heads})
                                  .permute({3, 0, 1, 4, 2, 5});  // (3, B, W, H, N, Dh)
  const torch::Tensor q = parts[0], k = parts[1], v = parts[2];
  const torch::Tensor shared = this->weights(q, k, mask);
  const torch::Tensor weights = drop(*dropout, shared);
  // Swin's classes return them after the dropout, SAM's before it.
  const WindowPositions positions = options.windows().positions();
  const bool is_sam = positions == WindowPositions::Axes || positions == WindowPositions::None;
  if (shares != nullptr) *shares = is_sam ? shared : weights;
  return out_proj->forward(torch::matmul(weights, v).transpose(2, 3).flatten(3));
}

}  // namespace posenc
