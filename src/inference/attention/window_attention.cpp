// Attention in the windows of a map.

#include "inference/attention/window_attention.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cmath>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "inference/attention/relative_attention.h"
#include "inference/linear/projection.h"
#include "inference/rows/activation_rows.h"
#include "kernels/dispatch.h"
#include "posenc/positions/relative/bias.h"
#include "positions/relative/cosine_window.h"
#include "positions/relative/products.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;
using platform::scratch;
using platform::Scratch;

constexpr int64_t kQueriesAtOnce = 3 * kernel::kPanelRows;
constexpr int64_t kLineFloats = 16;

// One head of one window with terms of both axes, some queries at a time, so that there is no
// matrix of all queries and keys.
class AxesHead {
 public:
  AxesHead(const AttentionInput& input, relative::Grid window, const at::Tensor& down,
           const at::Tensor& across, int64_t sequence, int64_t head)
      : input_(input),
        window_(window),
        down_(down.const_data_ptr<float>()),
        across_(across.const_data_ptr<float>()),
        mask_(input.masks == nullptr ? nullptr : input.masks[sequence]) {
    const int64_t first = sequence * input.queries.length, column = head * input.sizes.head_dim;
    stride_ = input.query.stride(0);
    query_ = input.query.const_data_ptr<float>() + first * stride_ + column;
    key_ = input.key.const_data_ptr<float>() + first * stride_ + column;
    value_ = input.value.const_data_ptr<float>() + first * stride_ + column;
    out_stride_ = input.sizes.query_width();
    out_offset_ = first * out_stride_ + column;
  }

  void run(float* out) const {
    const int64_t tokens = window_.height * window_.width;
    const int64_t down = 2 * window_.height - 1, across = 2 * window_.width - 1;
    const int64_t most = std::min(kQueriesAtOnce, tokens);
    // An odd number of cache lines, so that the scores of a key are not all in one set of the
    // cache.
    const int64_t term_stride = odd_stride(tokens);
    float* const term = scratch(Scratch::Hidden, most * term_stride + kLineFloats);
    float* const products = scratch(Scratch::Branch, most * (down + across));
    for (int64_t begin = 0; begin < tokens; begin += kQueriesAtOnce) {
      const int64_t count = std::min(kQueriesAtOnce, tokens - begin);
      const float* const x = query_ + begin * stride_;
      const int64_t width = input_.sizes.head_dim;
      relative::multiply(x, stride_, count, down_, width, down, products);
      relative::multiply(x, stride_, count, across_, width, across, products + count * down);
      for (int64_t i = 0; i < count; ++i) {
        const int64_t row = (begin + i) / window_.width, column = (begin + i) % window_.width;
        add_axes(products + i * down + (window_.height - 1 - row),
                 products + count * down + i * across + (window_.width - 1 - column),
                 term + i * term_stride);
        if (mask_ != nullptr) add_mask(begin + i, tokens, term + i * term_stride);
      }
      attend_with_term({x, key_, value_, stride_, width, count, tokens, tokens, input_.scoring},
                       term, term_stride, out + out_offset_ + begin * out_stride_, out_stride_);
    }
  }

 private:
  void add_axes(const float* of_rows, const float* of_columns, float* to) const {
    for (int64_t r = 0; r < window_.height; ++r) {
      for (int64_t c = 0; c < window_.width; ++c)
        to[r * window_.width + c] = of_rows[r] + of_columns[c];
    }
  }
  void add_mask(int64_t query, int64_t tokens, float* to) const {
    for (int64_t j = 0; j < tokens; ++j) to[j] += mask_[j * tokens + query];
  }

  const AttentionInput& input_;
  const relative::Grid window_;
  const float *down_, *across_, *mask_;
  const float *query_, *key_, *value_;
  int64_t stride_, out_stride_, out_offset_;
};

// WindowAttentionImpl::position_bias(). What a network computes is the product of posenc's own
// kernels, whose bits do not depend on the number of threads.
at::Tensor position_bias(const WindowAttentionImpl& attention) {
  const WindowOptions& windows = attention.options.windows();
  if (windows.positions() != WindowPositions::Continuous) return attention.position_bias();
  const auto linear = [](const at::Tensor& x, const torch::nn::LinearImpl& layer) {
    return Projection(layer.weight, layer.bias, kAlwaysNative).rows(x);
  };
  const relative::Grid window = windows.window();
  const at::Tensor inputs =
      relative::continuous_inputs(window, windows.pretrained_window(),
                                  relative::LogCoordinates::SwinV2, attention.coordinates->weight);
  const at::Tensor hidden = linear(inputs.flatten(0, 2), *attention.coordinates).relu();
  const at::Tensor table = linear(hidden, *attention.entries);
  activate_by_row(table, Activation::Sigmoid);
  return relative_bias_of_indices(table * 16, relative_window_index(window));
}

}  // namespace

FrozenWindowAttention::FrozenWindowAttention(const WindowAttentionImpl& attention, int64_t shift,
                                             AttentionProducts products)
    : window_(attention.options.windows().window()), products_(products) {
  const WindowPositions positions = attention.options.windows().positions();
  const at::Tensor bias = position_bias(attention);
  if (bias.defined()) bias_ = bias.detach().transpose(-1, -2).contiguous().transpose(-1, -2);
  if (shift > 0) {
    // A map of 2 x 2 windows has one of each kind.
    const int64_t side = window_.height;
    masks_ = shifted_window_mask({2 * side, 2 * side}, side, shift).contiguous();
    if (positions == WindowPositions::Continuous) masks_ = masks_ + masks_;
  }
  if (positions == WindowPositions::Axes) {
    down_ = attention.rel_pos_h.detach().flip(0).contiguous();
    across_ = attention.rel_pos_w.detach().flip(0).contiguous();
  }
  if (positions == WindowPositions::Continuous) {
    // The scores of cosines are up to 100 times as large, and so would their errors be.
    if (products_ == AttentionProducts::Int8Scores) products_ = AttentionProducts::Float32;
    const int64_t width = attention.options.embed_dim() / attention.options.num_heads();
    const double one = 1.0 / std::sqrt(static_cast<double>(width));  // RMS is that much larger
    keys_ = at::full({width}, one, at::kFloat);
    queries_ =
        (relative::cosine_scale(attention.logit_scale.detach()).view({-1, 1}) * keys_).contiguous();
  }
}

// The vectors of each head get the length 1, or that of the factor of the scores.
void FrozenWindowAttention::normalise(const at::Tensor& heads, const HeadSizes& sizes) const {
  constexpr float kSquaredEpsilon = 1e-24F;
  float* const data = heads.data_ptr<float>();
  const int64_t stride = heads.stride(0), width = sizes.head_dim, all = sizes.query_width();
  const auto add_norm = kernels::chosen_inference().add_norm.add_norm;
  split_rows(heads.size(0), 2 * all, [&](int64_t begin, int64_t end) {
    kernel::AddNormRequest request = {};
    request.width = width;
    request.kind = kernel::NormKind::RMS;
    request.eps = kSquaredEpsilon / static_cast<float>(width);
    for (int64_t row = begin; row < end; ++row) {
      float* const x = data + row * stride;
      for (int64_t head = 0; head < sizes.heads; ++head) {
        request.x = request.out = x + head * width;
        request.weight = queries_.const_data_ptr<float>() + head * width;
        add_norm(request, 0, 1);
      }
      request.x = request.out = x + all;
      request.weight = keys_.const_data_ptr<float>();
      add_norm(request, 0, sizes.heads);
    }
  });
}

std::vector<const float*> FrozenWindowAttention::masks_of(int64_t batch,
                                                          relative::Grid counts) const {
  std::vector<const float*> masks;
  masks.reserve(static_cast<std::size_t>(batch * counts.height * counts.width));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t row = 0; row < counts.height; ++row) {
      for (int64_t column = 0; column < counts.width; ++column) {
        const int64_t kind =
            (row + 1 == counts.height ? 2 : 0) + (column + 1 == counts.width ? 1 : 0);
        masks.push_back(kind == 0 ? nullptr
                                  : masks_.const_data_ptr<float>() + kind * masks_.stride(0));
      }
    }
  }
  return masks;
}

void FrozenWindowAttention::attend_axes(const AttentionInput& input, float* out) const {
  const int64_t heads = input.sizes.heads;
  torch_internals::parallel_parts(
      0, input.queries.batch * heads, 1, [&](int64_t begin, int64_t end) {
        for (int64_t item = begin; item < end; ++item)
          AxesHead(input, window_, down_, across_, item / heads, item % heads).run(out);
      });
}

void FrozenWindowAttention::attend(const at::Tensor& heads, const HeadSizes& sizes, int64_t batch,
                                   relative::Grid counts, bool is_shifted, float* out) const {
  if (queries_.defined()) normalise(heads, sizes);
  const int64_t width = sizes.query_width();
  const Packing packing(batch * counts.height * counts.width, window_.height * window_.width);
  std::vector<const float*> masks;
  if (is_shifted) masks = masks_of(batch, counts);
  const float scale = queries_.defined() ? 1.0F : score_scale(sizes.head_dim);
  AttentionInput input = {heads.narrow(1, 0, width),
                          heads.narrow(1, width, width),
                          heads.narrow(1, 2 * width, width),
                          packing,
                          packing,
                          sizes,
                          {scale, products_},
                          {bias_}};
  if (!masks.empty()) input.masks = masks.data();
  if (down_.defined()) return attend_axes(input, out);
  posenc::inference::attend(input, out);
}

}  // namespace posenc::inference
