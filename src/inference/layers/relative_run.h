#pragma once

#include "inference/attention/relative_attention.h"
#include "inference/rows/layer_ends.h"

namespace posenc::inference {

/// What post-norm layers have whose attention has terms of relative positions.
struct RelativeLayer {
  HeadSizes sizes;
  float score_scale;
  Projection in_proj, out_proj;
  FeedForward feed_forward;
  Norm after_attention, after_feed_forward;
  std::optional<int64_t> window = std::nullopt;

  /// Whether a projection reads the rows between blocks in 8 bits.
  bool reads_int8() const { return in_proj.is_int8() || feed_forward.wide.is_int8(); }
};

/// The rows of a batch on their way through such layers.
class RelativeRun {
 public:
  /// `last` is the norm after all layers.
  RelativeRun(const Stream& stream, const Packing& packing, const ScoreMask& mask,
              const LayerEnds& ends, const Norm& last);
  virtual ~RelativeRun() = default;

  /// Runs layers 0 .. count - 1.
  void run(size_t count);

 protected:
  virtual const RelativeLayer& layer(size_t i) const = 0;
  /// The positions of layer i by the distances of this batch.
  virtual PositionHeads positions(size_t i) const = 0;
  /// What follows layer i on rows [begin, end) of the stream.
  virtual void after_layer(size_t /*i*/, int64_t /*begin*/, int64_t /*end*/) {}

  const Stream& stream() const { return stream_; }
  const Packing& packing() const { return packing_; }
  int64_t reach() const { return reach_; }

 private:
  void project(const RelativeLayer& layer, int64_t begin, int64_t end);
  void attend(size_t i);
  void finish(const RelativeLayer& layer, int64_t begin, int64_t end);

  Stream stream_;
  const Packing& packing_;
  const ScoreMask& mask_;
  const LayerEnds ends_;
  const Norm& last_;
  const int64_t reach_;
  at::Tensor heads_, context_, in_8_bits_;
};

}  // namespace posenc::inference
