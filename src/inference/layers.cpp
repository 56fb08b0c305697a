#include "inference/layers.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>

#include <algorithm>

#include "functional/fourier_mixing.h"

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
             const ScoreMask& mask, const at::Tensor& position_ids,
             std::vector<at::Tensor>* outputs)
      : stack_(stack), stream_(stream), packing_(packing), mask_(mask), outputs_(outputs) {
    int64_t width = 0, query_width = 0;
    for (const EncoderLayer& layer : stack.layers) {
      width = std::max(width, layer.sizes.width());
      query_width = std::max(query_width, layer.sizes.query_width());
    }
    projected_ = at::empty({stream.rows, odd_stride(width)}, at::kFloat);
    context_ = at::empty({stream.rows * query_width}, at::kFloat);
    if (stack.rotations.empty()) return;
    const RowPositions positions(packing, position_ids, stack.is_axial());
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
    layer.in_proj.run(input_of(part, before(i)), part.width, part.rows, heads, stride, part.regime);
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
                       layer.sizes, layer.score_scale, mask_, layer.window},
                      context_.data_ptr<float>());
  }

  // What layer i adds to the stream, of all rows.
  void transform(size_t i) {
    auto* const input = const_cast<float*>(input_of(stream_, before(i)));  // which is only read
    const at::Tensor rows = at::from_blob(input, {packing_.batch, packing_.length, stream_.width},
                                          at::TensorOptions(at::kFloat));
    transformed_ = functional::fourier_mixing(rows).contiguous();
  }

  // The norm of the input of layer i.
  const Norm& before(size_t i) const {
    return i == 0 ? stack_.entry : stack_.layers[i - 1].after_feed_forward;
  }

  // All of layer i after the attention, and the heads of the next layer.
  void finish(size_t i, int64_t begin, int64_t end) {
    const EncoderLayer& layer = stack_.layers[i];
    const Stream part = stream_.part(begin, end);
    const int64_t width = layer.sizes.query_width();
    if (layer.is_fourier) {
      add(part, transformed_.const_data_ptr<float>() + begin * part.width, layer.after_attention);
    } else {
      add_projected(part, layer.out_proj, context_.const_data_ptr<float>() + begin * width, width,
                    layer.post_attention, layer.after_attention);
    }
    feed_forward(part, layer.feed_forward, layer.post_feed_forward, layer.after_feed_forward);
    if (outputs_ != nullptr) {
      std::copy_n(part.x, part.rows * part.width,
                  (*outputs_)[i].data_ptr<float>() + begin * part.width);
    }
    if (i + 1 < stack_.layers.size()) {
      project(i + 1, begin, end);
    } else {
      normalise(part, stack_.last);
    }
  }

  const EncoderStack& stack_;
  const Stream stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  std::vector<at::Tensor>* outputs_;              // of each layer; null: they are not wanted
  at::Tensor projected_, context_, transformed_;  // of one layer
  std::vector<RowRotation> rotations_;
};

// Attention of a decoder's layer, with as many heads of keys as of queries.
at::Tensor attend(const DecoderStack& stack, const at::Tensor& query, const at::Tensor& keys,
                  const Packing& packing, const Packing& key_packing, const ScoreMask& mask) {
  const int64_t width = stack.width, head_dim = width / stack.heads;
  const at::Tensor out = at::empty({query.size(0), width}, at::kFloat);
  inference::attend({query,
                     keys.narrow(1, 0, width),
                     keys.narrow(1, width, width),
                     packing,
                     key_packing,
                     {stack.heads, stack.heads, head_dim},
                     score_scale(head_dim),
                     mask},
                    out.data_ptr<float>());
  return out;
}

}  // namespace

at::Tensor run(const EncoderStack& stack, const at::Tensor& rows, const Packing& packing,
               const ScoreMask& mask, const at::Tensor& position_ids,
               std::vector<at::Tensor>* outputs) {
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), rows.size(0));
  if (outputs != nullptr) {
    for (size_t i = 0; i < stack.layers.size(); ++i) outputs->push_back(at::empty_like(x));
  }
  EncoderRun(stack, stream, packing, mask, position_ids, outputs).run();
  return stack.result(stream) == stream.x ? x : input;
}

at::Tensor run(const DecoderStack& stack, const at::Tensor& rows, const at::Tensor& memory,
               const Packing& packing, const Packing& memory_packing, const ScoreMask& mask,
               const ScoreMask& memory_mask) {
  const int64_t width = stack.width, count = rows.size(0);
  const at::Tensor x = rows.contiguous(), input = stack.norm_first ? at::empty_like(x) : x;
  const at::Tensor projected = at::empty({count, 3 * width}, at::kFloat);
  const at::Tensor query = at::empty({count, width}, at::kFloat);
  const at::Tensor remembered = at::empty({memory.size(0), 2 * width}, at::kFloat);
  const Stream stream = stack.stream(x.data_ptr<float>(), input.data_ptr<float>(), count);
  const RowRegime memory_regime = row_regime(memory.size(0));
  const auto each_row = [&](const auto& f) {
    by_rows(count, [&](int64_t begin, int64_t end) { f(stream.part(begin, end), begin * width); });
  };
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.entry); });
  for (const DecoderLayer& layer : stack.layers) {
    each_row([&](const Stream& part, int64_t at) {
      layer.in_proj.run(part.input, part.rows, projected.data_ptr<float>() + 3 * at, part.regime);
    });
    by_rows(memory.size(0), [&](int64_t begin, int64_t end) {
      layer.memory.run(memory.const_data_ptr<float>() + begin * width, end - begin,
                       remembered.data_ptr<float>() + begin * 2 * width, memory_regime);
    });
    const at::Tensor own = attend(stack, projected.narrow(1, 0, width),
                                  projected.narrow(1, width, 2 * width), packing, packing, mask);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.out_proj, own.const_data_ptr<float>() + at, width, {},
                    layer.after_attention);
      layer.query.run(part.input, part.rows, query.data_ptr<float>() + at, part.regime);
    });
    const at::Tensor cross = attend(stack, query, remembered, packing, memory_packing, memory_mask);
    each_row([&](const Stream& part, int64_t at) {
      add_projected(part, layer.cross_out, cross.const_data_ptr<float>() + at, width, {},
                    layer.after_cross);
      feed_forward(part, layer.feed_forward, {}, layer.after_feed_forward);
    });
  }
  each_row([&](const Stream& part, int64_t) { normalise(part, stack.last); });
  return stack.result(stream) == stream.x ? x : input;
}

}  // namespace posenc::inference
