#include "inference/relative_run.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace posenc::inference {

RelativeRun::RelativeRun(const Stream& stream, const Packing& packing, const ScoreMask& mask,
                         const LayerOutputs& outputs, const Norm& last)
    : stream_(stream),
      packing_(packing),
      mask_(mask),
      outputs_(outputs),
      last_(last),
      reach_(reach_of(packing)) {
  heads_ = at::empty({stream.rows, odd_stride(3 * stream.width)}, at::kFloat);
  context_ = at::empty({stream.rows, stream.width}, at::kFloat);
}

void RelativeRun::run(size_t count) {
  blind_ = blind_queries(mask_, packing_, layer(0).sizes.heads);
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
      outputs_.add(i, stream_.part(begin, end), begin);
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
                  positions(i), blind_, context_.data_ptr<float>());
}

// All of a layer after the attention.
void RelativeRun::finish(const RelativeLayer& layer, int64_t begin, int64_t end) {
  const Stream part = stream_.part(begin, end);
  add_projected(part, layer.out_proj, context_.const_data_ptr<float>() + begin * part.width,
                part.width, {}, layer.after_attention);
  inference::feed_forward(part, layer.feed_forward, {}, layer.after_feed_forward);
}

bool RelativeRun::is_blind(int64_t row) const {
  if (!blind_.defined()) return false;
  const auto after = std::upper_bound(packing_.first.begin(), packing_.first.end(), row);
  const int64_t sequence = after - packing_.first.begin() - 1;
  const int64_t token = row - packing_.first[static_cast<std::size_t>(sequence)];
  return blind_.const_data_ptr<bool>()[sequence * blind_.stride(0) + token];
}

}  // namespace posenc::inference
