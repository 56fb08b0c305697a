#pragma once

#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>
#include <torch/utils.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "posenc/train/fused_sgd.h"
#include "posenc/train/pair_loader.h"
#include "posenc/train/trainer.h"

namespace posenc::testing {

inline std::vector<TokenPair> few_pairs() {
  return {{{1, 2}, {1, 2}}, {{3}, {1, 4}}, {{5, 6, 7}, {1, 2, 3}}, {{4, 1}, {1, 3, 3, 2}}};
}

/// An input that depends on the batch.
inline torch::Tensor input_of(const PairBatch& batch) {
  return torch::linspace(-1, 1, 8).view({2, 4}) * static_cast<double>(1 + batch.tokens % 3);
}

/// Two layers, their optimiser and data: a run of which only the course matters.
struct SmallRun {
  explicit SmallRun(double rate = 0.1) : optimizer(make(rate)) {}

  FusedSGD make(double rate) {
    torch::manual_seed(7);
    for (const auto& child : model->children())
      child->as<torch::nn::LinearImpl>()->reset_parameters();
    return FusedSGD(model->parameters(), rate);
  }
  torch::Tensor loss(const PairBatch& batch) {
    if (on_loss) on_loss();
    return model->forward(input_of(batch)).square().mean();
  }
  Trainer trainer(const TrainerOptions& options) { return trainer(options, optimizer); }
  Trainer trainer(const TrainerOptions& options, torch::optim::Optimizer& other,
                  torch::optim::LRScheduler* schedule = nullptr) {
    return Trainer(
        {*model, &other, schedule}, loader, [this](const PairBatch& batch) { return loss(batch); },
        options);
  }
  /// All weights in one row.
  torch::Tensor weights() const {
    std::vector<torch::Tensor> all;
    for (const auto& parameter : model->parameters()) all.push_back(parameter.detach().flatten());
    return torch::cat(all);
  }

  torch::nn::Linear first{4, 4}, second{4, 2};
  torch::nn::Sequential model{first, second};
  FusedSGD optimizer;
  PairLoader loader{few_pairs(), PairLoaderOptions().max_rows(1)};
  std::function<void()> on_loss;
};

}  // namespace posenc::testing
