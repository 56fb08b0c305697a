#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "inference/linear/projection.h"
#include "posenc/transformer/attention/transformer_xl_options.h"

namespace posenc::inference {

/// The keys of distances of TransformerXLAttentions: rows of a sinusoid times the weight of each
/// layer. They are computed for the longest sequence so far, and kept; several threads may ask at a
/// time.
class DistanceKeys {
 public:
  /// Keys of distances d of a key from a query, -reach <= d <= reach, for each layer
  /// (H, 2 reach + 1, Dh), contiguous.
  struct Keys {
    int64_t reach = 0;
    std::vector<at::Tensor> layers;
  };

  explicit DistanceKeys(TransformerXLOptions options) : options_(std::move(options)) {}

  /// Adds a layer of `heads` heads, whose keys are multiplied by `scale`.
  void add(const at::Tensor& weight, int64_t heads, float scale);
  /// Those that reach at least so far.
  std::shared_ptr<const Keys> up_to(int64_t reach) const;

 private:
  struct Layer {
    Projection projection;
    int64_t heads;
    float scale;
  };

  TransformerXLOptions options_;
  std::vector<Layer> layers_;
  mutable std::mutex mutex_;
  mutable std::shared_ptr<const Keys> keys_;
};

}  // namespace posenc::inference
