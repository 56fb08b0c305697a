#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "posenc/train/group.h"
#include "posenc/train/pair_loader.h"

namespace posenc::train {

/// A process's part of a step: its share of one micro-batch, and the factor of its loss in the mean
/// over all micro-batches and processes. An empty batch has factor 0.
struct WeightedShare {
  PairBatch batch;
  double factor = 1.0;
};

/// How a step is divided.
struct ShareOptions {
  RankGroup group;
  std::function<double(const PairBatch&)> weight;  ///< null: targets that are not padding
};

/// The shares of this process of the batches of a step, which are the same on every process. All
/// factors are computed from the whole batches, so that nothing is sent. Throws c10::ValueError, on
/// every process, for batches without weight.
std::vector<WeightedShare> shares_of(const std::vector<PairBatch>& batches,
                                     const ShareOptions& options);

}  // namespace posenc::train
