#include "inference/layers/layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <limits>

#include "inference/rows/layer_ends.h"
#include "transformer/functional/attention_weights.h"
#include "transformer/functional/fourier_mixing.h"

namespace posenc::inference {
namespace {

// Where a block's input is: the norm before it may be none.
const float* input_of(const Stream& stream, const Norm& before) {
  return before ? stream.input : stream.x;
}

// Runs the layers of an encoder on the packed rows of a batch.
class EncoderRun {
 public:
  EncoderRun(const EncoderStack& stack, const Stream& stream, const Packing& packing,
             const ScoreMask& mask, const LayerInputs& inputs, const LayerEnds& ends)
      : stack_(stack),
        stream_(stream),
        packing_(packing),
        mask_(mask),
        ends_(ends),
        relative_(stack.relative_biases, stack.alibi, mask, packing.length),
        grid_biases_(stack.grid_biases.of(inputs.grid)) {
    int64_t width = 0, query_width = 0, kernels = 0;
    for (const EncoderLayer& layer : stack.layers) {
      width = std::max(width, layer.sizes.width());
      query_width = std::max(query_width, layer.context_width());
      if (layer.convolution)
        kernels = std::max(kernels, layer.convolution->heads * layer.convolution->size);
    }
    if (kernels > 0) convolution_.emplace(stream.rows, stream.width, stream.width / 2, kernels);
    projected_ = at::empty({stream.rows, odd_stride(width)}, at::kFloat);
    context_ = at::empty({stream.rows * query_width}, at::kFloat);
    if (stack.rotations.empty()) return;
    const RowPositions positions(packing, inputs.position_ids, stack.is_axial);
    for (const Rotation& rotation : stack.rotations)
      rotations_.emplace_back(rotation, projected_, positions);
  }

  void run() {
    by_rows(stream_.rows, [&](int64_t begin, int64_t end) {
      normalise(stream_.part(begin, end), stack_.entry);
      project(0, begin, end);
    });
    for (size_t i = 0; i < stack_.layers.size(); ++i) {
      if (stack_.layers[i].is_fourier) {
        transform(i);
      } else {
        attend(stack_.layers[i]);
      }
      if (stack_.layers[i].convolution) {
        by_rows(stream_.rows, [&](int64_t begin, int64_t end) { convolve(i, begin, end); });
      }
      by_rows(stream_.rows, [&](int64_t begin, int64_t end) { finish(i, begin, end); });
    }
  }

 private:
  // The heads of layer i, for rows [begin, end).
  void project(size_t i, int64_t begin, int64_t end) {
    const EncoderLayer& layer = stack_.layers[i];
    const Stream part = stream_.part(begin, end);
    if (layer.is_fourier) return;
    const HeadSizes& sizes = layer.sizes;
    const int64_t stride = projected_.size(1);
    float* const heads = projected_.data_ptr<float>() + begin * stride;
    inference::project(part, layer.in_proj, input_of(part, before(i)), heads, stride);
    if (layer.convolution) {
      convolution_->project(*layer.convolution, part, input_of(part, before(i)), begin);
    }
    if (layer.query_norm) {
      normalise_heads(heads, stride, part.rows, sizes.heads, sizes.head_dim, layer.query_norm);
      normalise_heads(heads + sizes.query_width(), stride, part.rows, sizes.kv_heads,
                      sizes.head_dim, layer.key_norm);
    }
    if (!layer.rotation) return;
    split_rows(part.rows, sizes.width(), [&](int64_t first, int64_t last) {
      rotations_[*layer.rotation](begin + first, begin + last);
    });
  }

  void attend(const EncoderLayer& layer) {
    const int64_t keys = layer.sizes.query_width(), kv_width = layer.sizes.kv_width();
    inference::attend({projected_.narrow(1, 0, keys), projected_.narrow(1, keys, kv_width),
                       projected_.narrow(1, keys + kv_width, kv_width), packing_, packing_,
                       layer.sizes, layer.score_scale,
                       relative_.of(layer.relative, mask_of(layer), packing_, stack_.counts_tokens),
                       layer.window, layer.context_width(), stack_.counts_tokens},
                      context_.data_ptr<float>());
  }

  ScoreMask mask_of(const EncoderLayer& layer) const {
    if (!layer.grid_bias) return mask_;
    ScoreMask own = mask_;
    const at::Tensor bias = packing_.kept_pairs((*grid_biases_)[*layer.grid_bias]);
    own.bias = own.bias.defined() ? own.bias + bias : bias;
    if (own.allowed.defined())
      own.bias.masked_fill_(own.allowed.logical_not(), -std::numeric_limits<double>::infinity());
    return own;
  }

  // The second half of the columns of the context of layer i, for rows [begin, end).
  void convolve(size_t i, int64_t begin, int64_t end) {
    const EncoderLayer& layer = stack_.layers[i];
    const int64_t width = layer.context_width();
    convolution_->run(*layer.convolution, packing_, input_of(stream_, before(i)),
                      projected_.const_data_ptr<float>(), projected_.size(1), begin, end,
                      context_.data_ptr<float>() + width / 2, width, stream_.regime);
  }

  // What layer i adds to the stream, of all rows, a sequence at a time: their complex numbers are
  // few then.
  void transform(size_t i) {
    auto* const input = const_cast<float*>(input_of(stream_, before(i)));  // which is only read
    const int64_t batch = packing_.batch, length = packing_.length, width = stream_.width;
    const at::Tensor rows =
        at::from_blob(input, {batch, length, width}, at::TensorOptions(at::kFloat));
    if (!transformed_.defined()) transformed_ = at::empty({batch, length, width}, at::kFloat);
    for (int64_t b = 0; b < batch; ++b)
      transformed_.narrow(0, b, 1).copy_(functional::fourier_mixing(rows.narrow(0, b, 1)));
  }

  // The norm of the input of layer i.
  const Norm& before(size_t i) const {
    return i == 0 ? stack_.entry : stack_.layers[i - 1].after_feed_forward;
  }

  // All of layer i after the attention, and the heads of the next layer.
  void finish(size_t i, int64_t begin, int64_t end) {
    const EncoderLayer& layer = stack_.layers[i];
    const Stream part = stream_.part(begin, end);
    const int64_t width = layer.context_width();
    if (layer.is_fourier) {
      add(part, transformed_.const_data_ptr<float>() + begin * part.width, layer.after_attention);
    } else {
      add_projected(part, layer.out_proj, context_.const_data_ptr<float>() + begin * width, width,
                    layer.post_attention, layer.after_attention);
    }
    feed_forward(part, layer.feed_forward, layer.post_feed_forward, layer.after_feed_forward);
    ends_.end(i, part, begin, layer.after_feed_forward);
    if (i + 1 < stack_.layers.size()) {
      project(i + 1, begin, end);
    } else if (stack_.last) {
      normalise(part, stack_.last);
    }
  }

  const EncoderStack& stack_;
  const Stream stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  const LayerEnds ends_;
  at::Tensor projected_, context_, transformed_;  // of one layer
  std::vector<RowRotation> rotations_;
  const DistanceRows relative_;
  const std::shared_ptr<const std::vector<at::Tensor>> grid_biases_;
  std::optional<ConvolutionRun> convolution_;
};

// Attention of a decoder's layer.
at::Tensor attend(const HeadSizes& sizes, float scale, const at::Tensor& query,
                  const at::Tensor& keys, const Packing& packing, const Packing& key_packing,
                  const ScoreMask& mask) {
  const int64_t width = sizes.kv_width();
  const at::Tensor out = at::empty({query.size(0), sizes.query_width()}, at::kFloat);
  inference::attend({query, keys.narrow(1, 0, width), keys.narrow(1, width, width), packing,
                     key_packing, sizes, scale, mask, std::nullopt, 0},
                    out.data_ptr<float>());
  return out;
}

}  // namespace

at::Tensor EncoderStack::run(const at::Tensor& rows, const Packing& packing, const ScoreMask& mask,
                             const LayerInputs& inputs, std::vector<at::Tensor>* outputs) const {
  const at::Tensor x = rows.contiguous(), input = norm_first ? at::empty_like(x) : x;
  Stream own = stream(x.data_ptr<float>(), input.data_ptr<float>(), rows.size(0));
  at::Tensor in_8_bits;
  if (reads_int8()) in_8_bits = add_int8(own);
  EncoderRun(*this, own, packing, mask, inputs,
             {outputs, layers.size(), x, packing.rows_without(inputs.kept_rows)})
      .run();
  return result(own) == own.x ? x : input;
}

Stream memory_stream(const DecoderStack& stack, const at::Tensor& rows, at::Tensor& buffer) {
  auto* const x = const_cast<float*>(rows.const_data_ptr<float>());  // which is only read
  Stream stream = {x, x, rows.size(0), stack.width, row_regime(rows.size(0))};
  const auto reads = [](const DecoderLayer& layer) { return layer.memory.is_int8(); };
  if (std::any_of(stack.layers.begin(), stack.layers.end(), reads)) {
    buffer = add_int8(stream);
    normalise(stream, {});
  }
  return stream;
}

at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask, at::Tensor* memory_weights) {
  const int64_t count = rows.size(0), head_width = stack.sizes.query_width();
  const int64_t qkv_width = stack.sizes.width(), kv_width = 2 * stack.sizes.kv_width();
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, qkv_width}, at::kFloat);
  const at::Tensor query = at::empty({count, head_width}, at::kFloat);
  const at::Tensor remembered = at::empty({memory.size(0), kv_width}, at::kFloat);
  const DistanceRows relative(stack.relative_biases, stack.alibi, mask, packing.length);
  Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  at::Tensor in_8_bits, memory_in_8_bits;
  if (stack.reads_int8()) in_8_bits = add_int8(stream);
  const Stream read = memory_stream(stack, memory, memory_in_8_bits);
  const auto each_row = [&](const auto& f) {
    by_rows(count, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  for (const DecoderLayer& layer : stack.layers) {
    each_row([&](const Stream& part, int64_t at) {
      project(part, layer.in_proj, part.input, projected.data_ptr<float>() + at * qkv_width,
              qkv_width);
    });
    by_rows(memory.size(0), [&](int64_t begin, int64_t end) {
      const Stream part = read.part(begin, end);
      project(part, layer.memory, part.x, remembered.data_ptr<float>() + begin * kv_width,
              kv_width);
    });
    const at::Tensor own =
        attend(stack.sizes, layer.score_scale, projected.narrow(1, 0, head_width),
               projected.narrow(1, head_width, kv_width), packing, packing,
               relative.of(layer.relative, mask, packing, /*counts_tokens=*/false));
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, own.const_data_ptr<float>() + at * head_width, head_width,
                    {}, layer.after_attention);
      project(part, layer.query, part.input, query.data_ptr<float>() + at * head_width, head_width);
    });
    const at::Tensor cross = attend(stack.sizes, layer.cross_score_scale, query, remembered,
                                    packing, memory_packing, memory_mask);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, cross.const_data_ptr<float>() + at * head_width,
                    head_width, {}, layer.after_cross);
      feed_forward(part, layer.feed_forward, {}, layer.after_feed_forward);
    });
  }
  if (memory_weights != nullptr) {  // the query and the keys are the last layer's
    const HeadSizes& sizes = stack.sizes;
    const auto heads = [&](const at::Tensor& x, const Packing& whole, int64_t number) {
      return x.unflatten(1, {number, sizes.head_dim})
          .unflatten(0, {whole.batch, whole.length})
          .transpose(1, 2);
    };
    *memory_weights =
        functional::attention_weights(
            heads(query, packing, sizes.heads),
            heads(remembered.narrow(1, 0, sizes.kv_width()), memory_packing, sizes.kv_heads),
            memory_mask, stack.layers.back().cross_score_scale)
            .mean(1);
  }
  if (stack.last) each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stack.result(stream) == stream.x ? x : input;
}

}  // namespace posenc::inference
