// Attentions whose scores have biases, attentions beside a convolution, and Fourier's mixing.

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <limits>

#include "inference/layers/mixers.h"
#include "transformer/functional/fourier_mixing.h"

namespace posenc::inference {
namespace {

class AttentionRun : public MixerRun {
 public:
  AttentionRun(const AttentionMixers& own, const BatchRows& batch)
      : own_(own),
        stream_(batch.stream),
        packing_(batch.packing),
        mask_(batch.mask),
        relative_(own.relative_biases, own.alibi, batch.mask, batch.packing.length),
        grid_biases_(own.grid_biases.of(batch.inputs.grid)) {
    int64_t width = 0, context_width = 0, kernels = 0;
    for (const AttentionStep& step : own.steps) {
      width = std::max(width, step.sizes.width());
      context_width = std::max(context_width, step.context_width());
      if (step.convolution)
        kernels = std::max(kernels, step.convolution->heads * step.convolution->size);
    }
    if (kernels > 0) convolution_.emplace(stream_.rows, stream_.width, stream_.width / 2, kernels);
    projected_ = at::empty({stream_.rows, odd_stride(width)}, at::kFloat);
    context_ = at::empty({stream_.rows * context_width}, at::kFloat);
    if (own.rotations.empty()) return;
    if (own.rotates_input) rotated_ = at::empty({stream_.rows, stream_.width}, at::kFloat);
    const RowPositions positions(packing_, batch.inputs.position_ids, own.is_axial());
    for (const Rotation& rotation : own.rotations)
      rotations_.emplace_back(rotation, own.rotates_input ? rotated_ : projected_, positions);
  }

  void read(std::size_t step, const Stream& part, const float* input, int64_t begin) override {
    const AttentionStep& own = own_.steps[step];
    const HeadSizes& sizes = own.sizes;
    const int64_t stride = projected_.size(1);
    float* const heads = projected_.data_ptr<float>() + begin * stride;
    if (own.rotation && own_.rotates_input)
      return read_rotated(own, part, input, begin, heads, stride);
    project(part, own.in_proj, input, heads, stride);
    if (own.convolution) convolution_->project(*own.convolution, part, input, begin);
    if (own.query_norm) {
      normalise_heads(heads, stride, part.rows, sizes.heads, sizes.head_dim, own.query_norm);
      normalise_heads(heads + sizes.query_width(), stride, part.rows, sizes.kv_heads,
                      sizes.head_dim, own.key_norm);
    }
    if (own.rotation) rotate(*own.rotation, sizes.width(), begin, part.rows);
  }

  void mix(std::size_t step, const float* input) override {
    const AttentionStep& own = own_.steps[step];
    const int64_t keys = own.sizes.query_width(), kv_width = own.sizes.kv_width();
    attend({projected_.narrow(1, 0, keys), projected_.narrow(1, keys, kv_width),
            projected_.narrow(1, keys + kv_width, kv_width), packing_, packing_, own.sizes,
            own.score_scale, relative_.of(own.relative, mask_of(own), packing_, own_.counts_tokens),
            own.window, own.context_width(), own_.counts_tokens},
           context_.data_ptr<float>());
    if (!own.convolution) return;
    // The second half of the columns of the context.
    by_rows(stream_.rows, [&](int64_t begin, int64_t end) {
      const int64_t width = own.context_width();
      convolution_->run(*own.convolution, packing_, input, projected_.const_data_ptr<float>(),
                        projected_.size(1), begin, end, context_.data_ptr<float>() + width / 2,
                        width, stream_.regime);
    });
  }

  void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
             const Norm& after) override {
    const AttentionStep& own = own_.steps[step];
    const int64_t width = own.context_width();
    add_projected(part, own.out_proj, context_.const_data_ptr<float>() + begin * width, width, post,
                  after);
  }

 private:
  void rotate(std::size_t rotation, int64_t width, int64_t begin, int64_t rows) const {
    split_rows(rows, width, [&](int64_t first, int64_t last) {
      rotations_[rotation](begin + first, begin + last);
    });
  }

  // Queries and keys of rotated rows, values of the rows themselves.
  void read_rotated(const AttentionStep& own, const Stream& part, const float* input, int64_t begin,
                    float* heads, int64_t stride) const {
    float* const rotated = rotated_.data_ptr<float>() + begin * part.width;
    std::copy_n(input, part.rows * part.width, rotated);
    rotate(*own.rotation, part.width, begin, part.rows);
    own.in_proj.run(rotated, part.width, part.rows, heads, stride, part.regime);
    project(part, own.values, input, heads + own.sizes.query_width() + own.sizes.kv_width(),
            stride);
  }

  ScoreMask mask_of(const AttentionStep& own) const {
    if (!own.grid_bias) return mask_;
    ScoreMask mask = mask_;
    const at::Tensor bias = packing_.kept_pairs((*grid_biases_)[*own.grid_bias]);
    mask.bias = mask.bias.defined() ? mask.bias + bias : bias;
    if (mask.allowed.defined())
      mask.bias.masked_fill_(mask.allowed.logical_not(), -std::numeric_limits<double>::infinity());
    return mask;
  }

  const AttentionMixers& own_;
  const Stream& stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  at::Tensor projected_, context_, rotated_;  // of one layer
  std::vector<RowRotation> rotations_;
  const DistanceRows relative_;
  const std::shared_ptr<const std::vector<at::Tensor>> grid_biases_;
  std::optional<ConvolutionRun> convolution_;
};

class FourierRun : public MixerRun {
 public:
  explicit FourierRun(const BatchRows& batch)
      : mixed_(at::empty({batch.packing.batch, batch.packing.length, batch.stream.width},
                         at::kFloat)) {}

  // A sequence at a time: their complex numbers are few then.
  void mix(std::size_t, const float* input) override {
    auto* const data = const_cast<float*>(input);  // which is only read
    const at::Tensor rows = at::from_blob(data, mixed_.sizes(), at::TensorOptions(at::kFloat));
    for (int64_t b = 0; b < mixed_.size(0); ++b)
      mixed_.narrow(0, b, 1).copy_(functional::fourier_mixing(rows.narrow(0, b, 1)));
  }

  void write(std::size_t, const Stream& part, int64_t begin, const Norm&,
             const Norm& after) override {
    add(part, mixed_.const_data_ptr<float>() + begin * part.width, after);
  }

 private:
  const at::Tensor mixed_;
};

}  // namespace

bool AttentionMixers::reads_int8() const {
  return std::any_of(steps.begin(), steps.end(),
                     [](const AttentionStep& step) { return step.in_proj.is_int8(); });
}

std::unique_ptr<MixerRun> AttentionMixers::begin(const BatchRows& batch) const {
  return std::make_unique<AttentionRun>(*this, batch);
}

std::unique_ptr<MixerRun> FourierMixers::begin(const BatchRows& batch) const {
  return std::make_unique<FourierRun>(batch);
}

}  // namespace posenc::inference
