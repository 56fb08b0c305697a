// Attentions whose scores have terms of relative positions: DeBERTa's and Transformer-XL's.

#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/index_select.h>
#include <ATen/ops/tensor.h>

#include <algorithm>

#include "inference/attention/relative_attention.h"
#include "inference/layers/mixers.h"
#include "transformer/attention/segments.h"
#include "transformer/layers/transformer_xl_rows.h"

namespace posenc::inference {
namespace {

constexpr const char* kFrozenEncoder = "FrozenTransformerEncoder";

// What both have in common; `Kind` has the steps.
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

  void mix(std::size_t step, const float*) override {
    const RelativeStep& own = own_.steps[step];
    attend_relative({heads_.narrow(1, 0, width_), heads_.narrow(1, width_, width_),
                     heads_.narrow(1, 2 * width_, width_), packing_, packing_, own.sizes,
                     own.score_scale, mask_, own.window},
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

class DisentangledRun : public RelativeRun<DisentangledMixers> {
 public:
  DisentangledRun(const DisentangledMixers& own, const BatchRows& batch) : RelativeRun(own, batch) {
    const bool has_positions =
        std::any_of(own.steps.begin(), own.steps.end(), [](const DisentangledStep& step) {
          return step.position_keys.defined() || step.position_queries.defined();
        });
    if (has_positions)
      rows_of_distances_ = relative_index(at::arange(-reach_, reach_ + 1, at::kLong), own.index);
  }

 private:
  PositionHeads positions(std::size_t step) const override {
    const DisentangledStep& own = own_.steps[step];
    return {by_distance(own.position_keys), by_distance(own.position_queries), reach_};
  }

  // The rows of all distances of this batch: a copy, since many may share one.
  at::Tensor by_distance(const at::Tensor& rows) const {
    return rows.defined() ? at::index_select(rows, 1, rows_of_distances_) : rows;
  }

  at::Tensor rows_of_distances_;  // (2 reach + 1), of the table
};

// The segment of each row, kLong; undefined for undefined segments (B, L).
at::Tensor packed_segments(const at::Tensor& segments, const Packing& packing) {
  if (!segments.defined()) return {};
  const at::Tensor all = segments.to(at::kLong).flatten();
  return packing.packed ? at::index_select(all, 0, at::tensor(packing.positions, at::kLong))
                        : all.contiguous();
}

class TransformerXLRun : public RelativeRun<TransformerXLMixers> {
 public:
  TransformerXLRun(const TransformerXLMixers& own, const BatchRows& batch)
      : RelativeRun(own, batch),
        keys_(own.distances.up_to(reach_)),
        segments_(packed_segments(batch.inputs.segments, batch.packing)) {}

 private:
  PositionHeads positions(std::size_t step) const override {
    const TransformerXLStep& own = own_.steps[step];
    PositionHeads positions = {.keys = keys_->layers[step], .queries = {}, .reach = keys_->reach};
    if (own_.options.bi_data()) positions.backward_keys = positions.keys.flip(1);
    positions.key_bias = own.key_bias;
    if (!segments_.defined()) return positions;
    positions.segments = segments_;
    positions.segment_keys = own.segment_keys;
    positions.segment_bias = own.segment_bias;
    return positions;
  }

  const std::shared_ptr<const DistanceKeys::Keys> keys_;
  const at::Tensor segments_;
};

template <typename Step>
bool any_reads_int8(const std::vector<Step>& steps) {
  return std::any_of(steps.begin(), steps.end(),
                     [](const RelativeStep& step) { return step.in_proj.is_int8(); });
}

}  // namespace

bool DisentangledMixers::reads_int8() const { return any_reads_int8(steps); }
bool TransformerXLMixers::reads_int8() const { return any_reads_int8(steps); }

std::unique_ptr<MixerRun> DisentangledMixers::begin(const BatchRows& batch) const {
  return std::make_unique<DisentangledRun>(*this, batch);
}

std::unique_ptr<MixerRun> TransformerXLMixers::begin(const BatchRows& batch) const {
  check_bi_data(kFrozenEncoder, options, batch.packing.batch);
  check_segments(kFrozenEncoder, batch.inputs.segments, batch.packing.batch, batch.packing.length);
  return std::make_unique<TransformerXLRun>(*this, batch);
}

}  // namespace posenc::inference
