#pragma once

#include <ATen/ops/empty.h>

#include "inference/attention/relative_attention.h"
#include "inference/layers/mixers.h"

namespace posenc::inference {

/// What attentions have whose scores have terms of relative positions.
struct RelativeStep {
  HeadSizes sizes;
  Scoring scoring;
  Projection in_proj, out_proj;
  std::optional<int64_t> window = std::nullopt;

  RowFormat row_format() const { return in_proj.row_format(); }
};

/// What they do with a batch; `Kind` has the steps.
template <typename Kind>
class RelativeRun : public MixerRun {
 public:
  RelativeRun(const Kind& own, const BatchRows& batch)
      : own_(own),
        packing_(batch.packing),
        mask_(batch.mask),
        reach_(reach_of(batch.packing)),
        width_(batch.stream.width),
        heads_(at::empty({batch.stream.rows, odd_stride(3 * width_)}, at::kFloat)),
        context_(at::empty({batch.stream.rows, width_}, at::kFloat)) {}

  void read(std::size_t step, const Stream& part, const float* input, int64_t begin) override {
    const int64_t stride = heads_.size(1);
    project(part, own_.steps[step].in_proj, input, heads_.data_ptr<float>() + begin * stride,
            stride);
  }

  void mix(std::size_t step, const float*, const SequenceRange&) override {
    const RelativeStep& own = own_.steps[step];
    attend_relative({heads_.narrow(1, 0, width_), heads_.narrow(1, width_, width_),
                     heads_.narrow(1, 2 * width_, width_), packing_, packing_, own.sizes,
                     own.scoring, mask_, own.window},
                    positions(step), context_.data_ptr<float>());
  }

  void write(std::size_t step, const Stream& part, int64_t begin, const Norm& post,
             const Norm& after) override {
    add_projected(part, own_.steps[step].out_proj,
                  context_.const_data_ptr<float>() + begin * width_, width_, post, after);
  }

 protected:
  /// The positions of a layer by the distances of this batch.
  virtual PositionHeads positions(std::size_t step) const = 0;

  const Kind& own_;
  const Packing& packing_;
  const ScoreMask& mask_;
  const int64_t reach_, width_;

 private:
  const at::Tensor heads_, context_;
};

}  // namespace posenc::inference
