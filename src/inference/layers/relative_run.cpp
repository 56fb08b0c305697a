#include "inference/layers/relative_run.h"

#include <ATen/ops/empty.h>

namespace posenc::inference {

RelativeRun::RelativeRun(const Stream& stream, const Packing& packing, const ScoreMask& mask,
                         const LayerEnds& ends, const Norm& last)
    : stream_(stream),
      packing_(packing),
      mask_(mask),
      ends_(ends),
      last_(last),
      reach_(reach_of(packing)) {
  heads_ = at::empty({stream.rows, odd_stride(3 * stream.width)}, at::kFloat);
  context_ = at::empty({stream.rows, stream.width}, at::kFloat);
}

void RelativeRun::run(size_t count) {
  for (size_t i = 0; i < count && !stream_.input_int8; ++i) {
    if (layer(i).reads_int8()) in_8_bits_ = add_int8(stream_);
  }
  by_rows(stream_.rows, [&](int64_t begin, int64_t end) {
    normalise(stream_.part(begin, end), {});
    project(layer(0), begin, end);
  });
  for (size_t i = 0; i < count; ++i) {
    attend(i);
    by_rows(stream_.rows, [&](int64_t begin, int64_t end) {
      finish(layer(i), begin, end);
      after_layer(i, begin, end);
      ends_.end(i, stream_.part(begin, end), begin);
      if (i + 1 < count) {
        project(layer(i + 1), begin, end);
      } else if (last_) {
        normalise(stream_.part(begin, end), last_);
      }
    });
  }
}

void RelativeRun::project(const RelativeLayer& layer, int64_t begin, int64_t end) {
  const Stream part = stream_.part(begin, end);
  const int64_t stride = heads_.size(1);
  inference::project(part, layer.in_proj, part.x, heads_.data_ptr<float>() + begin * stride,
                     stride);
}

void RelativeRun::attend(size_t i) {
  const RelativeLayer& own = layer(i);
  const int64_t width = stream_.width;
  attend_relative({heads_.narrow(1, 0, width), heads_.narrow(1, width, width),
                   heads_.narrow(1, 2 * width, width), packing_, packing_, own.sizes,
                   own.score_scale, mask_, own.window},
                  positions(i), context_.data_ptr<float>());
}

// All of a layer after the attention.
void RelativeRun::finish(const RelativeLayer& layer, int64_t begin, int64_t end) {
  const Stream part = stream_.part(begin, end);
  add_projected(part, layer.out_proj, context_.const_data_ptr<float>() + begin * part.width,
                part.width, {}, layer.after_attention);
  inference::feed_forward(part, layer.feed_forward, {}, layer.after_feed_forward);
}

}  // namespace posenc::inference
