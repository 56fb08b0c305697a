#pragma once

#include <optional>
#include <vector>

#include "inference/attention/window_attention.h"
#include "inference/linear/weight_converter.h"
#include "posenc/transformer/layers/window_encoder.h"

namespace posenc::inference {

/// A frozen WindowEncoderLayer.
struct WindowLayer {
  WindowOptions windows;
  HeadSizes sizes;
  Projection in_proj, out_proj;
  FrozenWindowAttention attention;
  FeedForward feed_forward;
  Norm norm1, norm2;
};

/// A frozen PatchMerging.
struct FrozenMerging {
  Projection reduction;
  Norm norm;
  bool norm_first;
};

/// The stages of a frozen WindowEncoder: rows of a map, which are copied into windows and back.
class WindowStages {
 public:
  WindowStages(const WindowEncoderImpl& encoder, WeightConverter& convert);

  /// What WindowEncoder::forward_with() returns and records, without its neck: (B, h, w, D) then,
  /// and otherwise (B, L, D). x: (B, h, w, D), which is not changed.
  at::Tensor run(const at::Tensor& x, TransformerEncoderRecord& record) const;

 private:
  struct Stage {
    int64_t width;
    std::vector<WindowLayer> layers;
    std::optional<FrozenMerging> merging;
  };

  std::vector<Stage> stages_;
  Norm last_;
  bool records_layers_, has_neck_;
};

}  // namespace posenc::inference
