// posenc-budget: one attention: its blocks of queries, its scores, its sums

#include "inference/attention/relative_attention.h"

#include <ATen/TensorOperators.h>

#include <algorithm>
#include <cstdlib>
#include <limits>

#include "base/platform/memory.h"
#include "core/torch_internals/parts.h"
#include "kernels/dispatch.h"
#include "positions/relative/products.h"

namespace posenc::inference {
namespace {

namespace kernel = kernels::inference;
using platform::scratch;
using platform::Scratch;

// A block of queries and a tile of keys. Distances reach beyond both by as many rows as they have,
// so small ones compute fewer products that no pair needs; these are multiples of the panels.
constexpr int64_t kQueries = 3 * kernel::kPanelRows, kKeys = kernel::kPanelRows;

// One head of one sequence.
class RelativeHead {
 public:
  RelativeHead(const AttentionInput& input, const PositionHeads& positions, int64_t sequence,
               int64_t head)
      : input_(input), positions_(positions), sequence_(sequence), head_(head) {
    first_ = input.queries.first[static_cast<std::size_t>(sequence)];
    length_ = input.queries.lengths[static_cast<std::size_t>(sequence)];
    const auto& counts = input.queries.token_counts;
    tokens_ = counts.empty() ? length_ : counts[static_cast<std::size_t>(sequence)];
    width_ = input.sizes.head_dim;
    if (input.queries.packed) packed_positions_ = input.queries.positions.data() + first_;
    stride_ = input.query.stride(0);
    const int64_t column = head * width_;
    query_ = input.query.const_data_ptr<float>() + first_ * stride_ + column;
    key_ = input.key.const_data_ptr<float>() + first_ * stride_ + column;
    value_ = input.value.const_data_ptr<float>() + first_ * stride_ + column;
    is_dense_ = length_ == 0 || position(length_ - 1) - position(0) == length_ - 1;
    const bool is_second_half = 2 * sequence >= input.queries.batch;
    keys_ = is_second_half && positions.backward_keys.defined() ? positions.backward_keys
                                                                : positions.keys;
  }

  void run(const at::Tensor& bias, float* out, int64_t out_stride) {
    out += first_ * out_stride + head_ * width_;
    const int64_t size = std::min(kQueries, length_);
    term_ = scratch(Scratch::Hidden, size * length_);
    const bool has_keys_alone = keys_.defined() && is_dense_ && !bias.defined() &&
                                !positions_.queries.defined() && !positions_.segments.defined() &&
                                !input_.mask.by_distance.defined() && !input_.mask.is_causal &&
                                !input_.window;
    for (int64_t begin = 0; begin < length_; begin += kQueries) {
      const int64_t end = std::min(begin + kQueries, length_);
      if (has_keys_alone) {
        const Products products = multiply_keys(begin, end);
        attend(begin, end, products.diagonal(begin) + position(0), products.count - 1,
               out + begin * out_stride, out_stride);
        continue;
      }
      add_keys(begin, end);
      if (positions_.queries.defined()) add_queries(begin, end);
      if (positions_.segments.defined()) add_segments(begin, end);
      if (input_.mask.by_distance.defined()) add_by_distance(begin, end);
      if (bias.defined()) add_bias(bias, begin, end);
      if (input_.mask.is_causal) hide_later_keys(begin, end);
      if (input_.window) hide_far_keys(begin, end);
      attend(begin, end, term_, length_, out + begin * out_stride, out_stride);
    }
    for (int64_t i = 0; bias.defined() && i < length_; ++i) {
      if (is_blind(bias, i)) average(i, out + i * out_stride);
    }
  }

 private:
  static constexpr float kNever = -std::numeric_limits<float>::infinity();

  int64_t position(int64_t i) const {
    return packed_positions_ == nullptr ? i : packed_positions_[i];
  }

  // Queries [begin, end) times the keys of `count` distances from `lowest` on.
  struct Products {
    const RelativeHead& head;
    const float* memory;
    int64_t begin, lowest, count;

    // The products of query i, indexed by the position of a key.
    const float* diagonal(int64_t i) const {
      return memory + (i - begin) * count - head.position(i) - lowest;
    }
  };

  Products multiply_keys(int64_t begin, int64_t end) {
    const int64_t lowest = position(0) - position(end - 1);
    const int64_t count = position(length_ - 1) - position(begin) - lowest + 1;
    float* const products = scratch(Scratch::Branch, (end - begin) * count);
    const float* queries = query_ + begin * stride_;
    int64_t stride = stride_;
    if (positions_.key_bias.defined()) {
      queries = biased_queries(positions_.key_bias, begin, end);
      stride = width_;
    }
    relative::multiply(queries, stride, end - begin,
                       PositionHeads::rows(keys_, positions_.reach, head_, lowest), width_, count,
                       products);
    return {*this, products, begin, lowest, count};
  }

  // Queries [begin, end) with a bias of heads, (end - begin, Dh).
  const float* biased_queries(const at::Tensor& bias, int64_t begin, int64_t end) const {
    const float* const added = bias.const_data_ptr<float>() + head_ * width_;
    float* const out = scratch(Scratch::Queries, (end - begin) * width_);
    for (int64_t i = begin; i < end; ++i) {
      const float* const from = query_ + i * stride_;
      float* const to = out + (i - begin) * width_;
      for (int64_t c = 0; c < width_; ++c) to[c] = from[c] + added[c];
    }
    return out;
  }

  // term = q . keys(distance)
  void add_keys(int64_t begin, int64_t end) {
    if (!keys_.defined()) {
      std::fill_n(term_, (end - begin) * length_, 0.0F);
      return;
    }
    const Products products = multiply_keys(begin, end);
    for (int64_t i = begin; i < end; ++i) {
      const float* const from = products.diagonal(i);
      float* const to = term_ + (i - begin) * length_;
      if (is_dense_) {
        std::copy_n(from + position(0), length_, to);
      } else {
        for (int64_t j = 0; j < length_; ++j) to[j] = from[position(j)];
      }
    }
  }

  // term += k . queries(distance)
  void add_queries(int64_t begin, int64_t end) {
    for (int64_t first = 0; first < length_; first += kKeys) {
      const int64_t last = std::min(first + kKeys, length_);
      const int64_t lowest = position(first) - position(end - 1);
      const int64_t count = position(last - 1) - position(begin) - lowest + 1;
      float* const products = scratch(Scratch::Branch, (last - first) * count);
      relative::multiply(key_ + first * stride_, stride_, last - first,
                         PositionHeads::rows(positions_.queries, positions_.reach, head_, lowest),
                         width_, count, products);
      for (int64_t i = begin; i < end; ++i) {
        const float* const from = products - position(i) - lowest;
        float* const to = term_ + (i - begin) * length_;
        if (is_dense_) {
          const float* const diagonal = from + position(first);
          for (int64_t j = 0; j < last - first; ++j) to[first + j] += diagonal[j * (count + 1)];
        } else {
          for (int64_t j = first; j < last; ++j) to[j] += from[(j - first) * count + position(j)];
        }
      }
    }
  }

  // term += q . segment_keys[whether the segments differ]
  void add_segments(int64_t begin, int64_t end) {
    const float* const queries = biased_queries(positions_.segment_bias, begin, end);
    const float* const own = positions_.segment_keys.const_data_ptr<float>() + 2 * head_ * width_;
    const int64_t* const segments = positions_.segments.const_data_ptr<int64_t>() + first_;
    for (int64_t i = begin; i < end; ++i) {
      const float* const query = queries + (i - begin) * width_;
      float same = 0.0F, other = 0.0F;
      for (int64_t c = 0; c < width_; ++c) {
        same += query[c] * own[c];
        other += query[c] * own[width_ + c];
      }
      float* const to = term_ + (i - begin) * length_;
      for (int64_t j = 0; j < length_; ++j) to[j] += segments[j] == segments[i] ? same : other;
    }
  }

  const float* row_of(const at::Tensor& bias, int64_t i) const {
    return bias.const_data_ptr<float>() + sequence_ * bias.stride(0) + head_ * bias.stride(1) +
           i * bias.stride(2);
  }

  // Whether the masks let query i attend to no key. A window alone leaves it itself.
  bool is_blind(const at::Tensor& bias, int64_t i) const {
    const float* const row = row_of(bias, i);
    for (int64_t j = 0; j < length_; ++j) {
      if (row[j * bias.stride(3)] != kNever && !is_far(i, j)) return false;
    }
    return true;
  }

  // -inf hides a NaN too.
  void add_bias(const at::Tensor& bias, int64_t begin, int64_t end) {
    const int64_t step = bias.stride(3);
    for (int64_t i = begin; i < end; ++i) {
      const float* const row = row_of(bias, i);
      float* const to = term_ + (i - begin) * length_;
      for (int64_t j = 0; j < length_; ++j) {
        const float own = row[j * step];
        to[j] = own == kNever ? kNever : to[j] + own;
      }
    }
  }

  void add_by_distance(int64_t begin, int64_t end) {
    const at::Tensor& rows = input_.mask.by_distance;
    const float* const of_itself =
        rows.const_data_ptr<float>() + head_ * rows.stride(0) + input_.keys.length - 1;
    for (int64_t i = begin; i < end; ++i) {
      float* const to = term_ + (i - begin) * length_;
      for (int64_t j = 0; j < length_; ++j) to[j] += of_itself[position(i) - position(j)];
    }
  }

  void hide_later_keys(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const row = term_ + (i - begin) * length_;
      std::fill(row + i + 1, row + length_, kNever);
    }
  }

  bool is_far(int64_t i, int64_t j) const {
    return input_.window && std::abs(position(i) - position(j)) > *input_.window;
  }

  void hide_far_keys(int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      float* const row = term_ + (i - begin) * length_;
      for (int64_t j = 0; j < length_; ++j) {
        if (is_far(i, j)) row[j] = kNever;
      }
    }
  }

  // `term` is added to the scores; that of a query is `term_stride` from that of the one before.
  void attend(int64_t begin, int64_t end, const float* term, int64_t term_stride, float* out,
              int64_t out_stride) {
    attend_with_term({query_ + begin * stride_, key_, value_, stride_, width_, end - begin, length_,
                      tokens_, input_.scoring},
                     term, term_stride, out, out_stride);
  }

  // For query i, the mean of the values of the tokens of the sequence; for padding, of all rows.
  void average(int64_t i, float* out) const {
    const Packing& rows = input_.queries;
    const bool is_token = !rows.is_padding(first_ + i);
    int64_t count = 0;
    std::fill_n(out, width_, 0.0F);
    for (int64_t j = 0; j < length_; ++j) {
      if (is_token && rows.is_padding(first_ + j)) continue;
      ++count;
      for (int64_t c = 0; c < width_; ++c) out[c] += value_[j * stride_ + c];
    }
    for (int64_t c = 0; c < width_; ++c) out[c] /= static_cast<float>(count);
  }

  const AttentionInput& input_;
  const PositionHeads& positions_;
  const int64_t sequence_, head_;
  at::Tensor keys_;  // of this sequence
  const int64_t* packed_positions_ = nullptr;
  const float *query_, *key_, *value_;
  int64_t first_, length_, tokens_, width_, stride_;
  bool is_dense_;  // no token of the sequence is dropped between others
  float* term_ = nullptr;
};

}  // namespace

int64_t reach_of(const Packing& packing) {
  int64_t reach = 0;
  for (std::size_t b = 0; b < packing.lengths.size(); ++b) {
    const int64_t first = packing.first[b], length = packing.lengths[b];
    if (length == 0) continue;
    const auto position = [&](int64_t row) {
      return packing.packed ? packing.positions[static_cast<std::size_t>(row)] : row;
    };
    reach = std::max(reach, position(first + length - 1) - position(first));
  }
  return reach;
}

void attend_with_term(const OneHead& head, const float* term, int64_t term_stride, float* out,
                      int64_t out_stride) {
  const int64_t none = 0;
  kernel::SequenceAttentionRequest request = {};
  request.query = head.query;
  request.query_stride = head.stride;
  request.keys = head.keys;
  request.values = head.values;
  request.key_stride = head.stride;
  request.heads = request.sequences = 1;
  request.width = head.width;
  request.query_first = request.key_first = &none;
  request.query_lengths = &head.queries;
  request.key_lengths = &head.rows;
  request.key_tokens = &head.tokens;
  request.scale = head.scoring.scale;
  request.bias = term;
  request.bias_strides[2] = term_stride;
  request.bias_strides[3] = 1;
  request.out = out;
  request.out_stride = out_stride;
  const kernels::SequenceAttention own = kernels::sequence_attention(
      kernels::chosen_inference(), head.scoring.products, head.width, head.rows);
  own.kernels.attend(request, 0, 1, scratch(Scratch::Scores, own.scratch_floats));
}

void attend_relative(const AttentionInput& input, const PositionHeads& positions, float* out) {
  const int64_t batch = input.queries.batch, heads = input.sizes.heads;
  const int64_t length = input.queries.length;
  at::Tensor bias = input.mask.bias;
  if (bias.defined()) bias = bias.expand({batch, heads, length, length});
  const int64_t stride = input.out_stride > 0 ? input.out_stride : input.sizes.query_width();
  torch_internals::parallel_parts(0, batch * heads, 1, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t sequence = item / heads, head = item % heads;
      RelativeHead(input, positions, sequence, head).run(bias, out, stride);
    }
  });
}

}  // namespace posenc::inference
