#include "train/shares.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/ne.h>
#include <c10/util/Exception.h>

#include <cmath>

namespace posenc::train {
namespace {

// The number of labels of each pair that are not padding.
at::Tensor targets_by_pair(const PairBatch& batch) {
  return batch.tgt.slice(1, 1).ne(batch.pad_id).sum(1);
}

double checked_weight(double weight) {
  TORCH_CHECK_VALUE(weight >= 0.0 && std::isfinite(weight),
                    "[Trainer] a weight must be finite and not negative. Got ", weight);
  return weight;
}

// The weight of each process's share.
std::vector<double> weights_of(const PairBatch& batch, const ShareOptions& options) {
  const int64_t ranks = options.group.size();
  std::vector<double> weights;
  const at::Tensor targets = options.weight ? at::Tensor() : targets_by_pair(batch);
  for (int64_t rank = 0; rank < ranks; ++rank) {
    if (rank >= batch.src.size(0)) {
      weights.push_back(0.0);
    } else if (options.weight) {
      weights.push_back(checked_weight(options.weight(share(batch, rank, ranks))));
    } else {
      weights.push_back(targets.slice(0, rank, std::nullopt, ranks).sum().item().toDouble());
    }
  }
  return weights;
}

}  // namespace

std::vector<WeightedShare> shares_of(const std::vector<PairBatch>& batches,
                                     const ShareOptions& options) {
  const int rank = options.group.rank(), ranks = options.group.size();
  if (batches.size() == 1 && ranks == 1) return {{batches[0], 1.0}};
  std::vector<WeightedShare> shares;
  double all = 0.0;
  for (const PairBatch& batch : batches) {
    const auto weights = weights_of(batch, options);
    for (const double weight : weights) all += weight;
    shares.push_back({share(batch, rank, ranks), weights[static_cast<std::size_t>(rank)]});
  }
  TORCH_CHECK_VALUE(all > 0.0, "[Trainer] the batches of a step must have a target");
  for (auto& one : shares) one.factor /= all;
  return shares;
}

}  // namespace posenc::train
