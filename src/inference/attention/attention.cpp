#include "inference/attention/attention.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;

constexpr int64_t kGrainOfSequences = 1 << 16;  // least work in attention per thread

// How many keys a query may see.
int64_t most_keys(const AttentionInput& input) {
  const int64_t keys = input.keys.length;
  return input.window && *input.window < keys / 2 ? 2 * *input.window + 1 : keys;
}

// Makes a request for all sequences one for some of them.
void take(const SequenceRange& sequences, kernel::SequenceAttentionRequest& request) {
  const int64_t begin = sequences.begin;
  request.sequences = sequences.end - begin;
  request.query_first += begin;
  request.query_lengths += begin;
  request.key_first += begin;
  request.key_lengths += begin;
  if (request.key_tokens != nullptr) request.key_tokens += begin;
  if (request.query_places != nullptr) request.query_places += begin;
  if (request.bias != nullptr) request.bias += begin * request.bias_strides[0];
  if (request.masks != nullptr) request.masks += begin;
}

}  // namespace

HeadSizes HeadSizes::of(const MultiheadAttentionOptions& options) {
  const int64_t heads = options.num_heads();
  return {heads, options.num_kv_heads().value_or(heads),
          options.head_dim().value_or(options.embed_dim() / heads)};
}

float score_scale(int64_t head_dim) { return 1.0F / std::sqrt(static_cast<float>(head_dim)); }

void attend(const AttentionInput& input, float* out) { attend(input, input.queries.all(), out); }

void attend(const AttentionInput& input, const SequenceRange& sequences, float* out) {
  const int64_t batch = input.queries.batch;
  const HeadSizes& sizes = input.sizes;
  kernel::SequenceAttentionRequest request = {};
  request.query = input.query.const_data_ptr<float>();
  request.query_stride = input.query.stride(0);
  request.keys = input.key.const_data_ptr<float>();
  request.values = input.value.const_data_ptr<float>();
  request.key_stride = input.key.stride(0);
  request.heads = sizes.heads;
  request.group = sizes.heads / sizes.kv_heads;
  request.width = sizes.head_dim;
  request.sequences = batch;
  request.query_first = input.queries.first.data();
  request.query_lengths = input.queries.lengths.data();
  request.key_first = input.keys.first.data();
  request.key_lengths = input.keys.lengths.data();
  if (!input.keys.token_counts.empty()) request.key_tokens = input.keys.token_counts.data();
  request.scale = input.scoring.scale;
  request.softcap = input.scoring.softcap;
  request.is_causal = input.mask.is_causal;
  request.has_window = input.window.has_value();
  if (input.window && *input.window < input.keys.length) {
    request.window = *input.window;
    if (input.keys.packed) request.positions = input.keys.positions.data();
  }
  at::Tensor bias = input.mask.bias;
  if (bias.defined()) {
    bias = bias.expand({batch, sizes.heads, input.queries.length, input.keys.length});
    request.bias = bias.const_data_ptr<float>();
    std::copy_n(bias.strides().begin(), 4, request.bias_strides);
  }
  const at::Tensor& relative = input.mask.by_distance;
  if (relative.defined()) {
    TORCH_CHECK_VALUE(relative.size(0) == sizes.heads,
                      "[AttentionMask] slopes() takes a slope for each of the ", sizes.heads,
                      " heads. Got ", relative.size(0));
    request.relative =
        relative.const_data_ptr<float>() +
        (input.has_longer_distances ? distance_zero(relative) : input.keys.length - 1);
    request.relative_stride = relative.stride(0);
    if (!input.counts_tokens && !input.keys.has_neighbours())
      request.relative_positions = input.keys.positions.data();
  }
  request.query_places = input.query_places;
  request.masks = input.masks;
  request.mask_stride = input.queries.length;
  request.out = out;
  request.out_stride = input.out_stride > 0 ? input.out_stride : sizes.query_width();
  const kernels::SequenceAttention own = kernels::sequence_attention(
      kernels::chosen_inference(), input.scoring.products, sizes.head_dim, input.keys.length);
  take(sequences, request);
  const int64_t products = sequences.rows * sizes.query_width() * most_keys(input);
  const int64_t count = request.sequences * sizes.heads;
  const int64_t grain = kGrainOfSequences * count / std::max<int64_t>(1, products);
  torch_internals::parallel_parts(
      0, count, std::max<int64_t>(1, grain), [&](int64_t begin, int64_t end) {
        own.kernels.attend(request, begin, end,
                           platform::scratch(platform::Scratch::Scores, own.scratch_floats));
      });
}

void normalise_heads(float* x, int64_t stride, int64_t rows, int64_t width, const Norm& norm) {
  const int64_t own = norm.weight.size(-1), weights = norm.weight.numel() / own;
  const int64_t heads_of_one = width / own / weights;
  split_rows(rows, width, [&](int64_t begin, int64_t end) {
    kernel::AddNormRequest request = norm.request(own);
    const float *const weight = request.weight, *const bias = request.bias;
    for (int64_t row = begin; row < end; ++row) {
      for (int64_t i = 0; i < weights; ++i) {
        request.x = request.out = x + row * stride + i * heads_of_one * own;
        request.weight = weight + i * own;
        if (bias != nullptr) request.bias = bias + i * own;
        kernels::chosen_inference().add_norm.add_norm(request, 0, heads_of_one);
      }
    }
  });
}

void clip_rows(float* x, int64_t stride, int64_t rows, int64_t width, float clip) {
  split_rows(rows, width, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      float* const own = x + row * stride;
      for (int64_t i = 0; i < width; ++i) own[i] = std::clamp(own[i], -clip, clip);  // NaN stays
    }
  });
}

void multiply_rows(float* x, int64_t stride, int64_t rows, int64_t width, const float* factors) {
  for (int64_t row = 0; row < rows; ++row)
    for (float *at = x + row * stride, *end = at + width; at < end; ++at) *at *= factors[row];
}

}  // namespace posenc::inference
