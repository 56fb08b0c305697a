#include "inference/freeze/audio_rows.h"

#include <ATen/ops/empty.h>

#include "inference/layers/freeze_parts.h"
#include "inference/rows/stream.h"

namespace posenc::inference {
namespace {

at::Tensor positions_of(const AudioEmbeddingsImpl& embeddings) {
  return embeddings.position_embedding
             ? embeddings.position_embedding.ptr()->weight.detach().contiguous()
             : embeddings.position_encoding.ptr()->pe.detach().squeeze(0).contiguous();
}

// A row of each of these frames, and one of zeros before and behind them.
at::Tensor padded_rows(int64_t frames, int64_t width) {
  at::Tensor rows = at::empty({frames + 2, width}, at::kFloat);
  rows[0].zero_();
  rows[frames + 1].zero_();
  return rows;
}

}  // namespace

AudioRows::AudioRows(const AudioEmbeddingsImpl& embeddings, WeightConverter& convert)
    : conv1(convolution(*embeddings.conv1.ptr(), convert)),
      conv2(convolution(*embeddings.conv2.ptr(), convert)),
      table(positions_of(embeddings)) {}

at::Tensor AudioRows::rows(const at::Tensor& features) const {
  const int64_t batch = features.size(0), bins = features.size(1), frames = 2 * positions();
  const int64_t width = conv1.out();
  const at::Tensor wide = padded_rows(frames, bins), narrow = padded_rows(frames, width);
  const at::Tensor all = at::empty({batch * positions(), width}, at::kFloat);
  const float* const x = wide.const_data_ptr<float>();
  float* const y = narrow.data_ptr<float>();
  const auto run = [&](const Projection& conv, const float* from, int64_t stride, int64_t count,
                       float* to) {
    by_rows(count, [&](int64_t begin, int64_t end) {
      float* const own = to + begin * width;
      // The regime is that of a sound, so that a batch changes no bit.
      conv.run(from + begin * stride, stride, end - begin, own, width, row_regime(count));
      activate(Activation::GELU, own, (end - begin) * width);
    });
  };
  for (int64_t sound = 0; sound < batch; ++sound) {
    wide.narrow(0, 1, frames).copy_(features[sound].t());
    run(conv1, x, bins, frames, y + width);
    float* const out = all.data_ptr<float>() + sound * table.numel();
    run(conv2, y, 2 * width, positions(), out);
    const float* const added = table.const_data_ptr<float>();
    split_rows(positions(), width, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin * width; i < end * width; ++i) out[i] += added[i];
    });
  }
  return all;
}

}  // namespace posenc::inference
