// A training run that is drawn: its model, its data, its optimiser, and what happens when.
#pragma once

#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <memory>
#include <optional>

#include "differential/drawn.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/pair_loader.h"

namespace posenc::differential {

constexpr int64_t kVocab = 12, kWidth = 6;

/// From tokens to numbers.
struct Net : torch::nn::Module {
  Net() = default;
  explicit Net(double p) : dropout(register_module("dropout", torch::nn::Dropout(p))) {
    table = register_module("table", torch::nn::Embedding(kVocab, kWidth));
    a = register_module("a", torch::nn::Linear(kWidth, kWidth));
    b = register_module("b", torch::nn::Linear(kWidth, kWidth));
  }
  torch::nn::Dropout dropout{nullptr};
  torch::nn::Embedding table{nullptr};
  torch::nn::Linear a{nullptr}, b{nullptr};
};

/// The options of a group, and by which of their accessors they are set.
struct GroupPlan {
  std::vector<size_t> parameters;
  std::optional<double> lr, weight_decay, momentum;
  int64_t how = 0;  // 0: by the setters, 1: by reference, 2: lr by set_lr()
};

/// The whole of it.
struct Plan {
  std::string kind;  // SGD, Adam, AdamW, own, LibTorch's SGD
  double lr, weight_decay, momentum, dropout, clip, nan_at = -1;
  std::vector<GroupPlan> groups;
  int64_t steps, micro, save_every, report_every, ranks = 1, seed, data_seed;
  bool head, schedule, twice = false, pads = false, reorders = false;
  // What happens at which step: -1, nothing.
  int64_t eval_at = -1, rate_at = -1, draw_at = -1, report_throws = -1, loss_throws = -1,
          stop_at = -1, stop_throws = -1;
  bool resumes = false;
};

Plan any_plan(Drawn& drawn);
std::vector<TokenPair> pairs_of(const Plan& plan);
PairLoader loader_of(const Plan& plan);
/// The factor of the learning rate after a step.
double factor(int64_t step);
/// The loss of a batch; with `nan` of the same value, but with a gradient that is not finite.
at::Tensor loss_of(Net& net, torch::nn::Linear head, const PairBatch& batch, bool nan);

/// The objects of a run, which a resumed run makes anew.
struct Run {
  /// `reordered`: with the parameters of each group in another order.
  Run(const Plan& plan_, bool reordered);
  std::vector<at::Tensor> weights() const {
    std::vector<at::Tensor> copies;
    for (const auto& p : all) copies.push_back(p.detach().clone());
    return copies;
  }

  const Plan& plan;
  Net net;
  torch::nn::Linear head{nullptr};
  PairLoader loader;
  std::vector<at::Tensor> all;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  std::unique_ptr<LambdaLR> schedule;
};

/// The weights after the loop that PyTorch's user writes, with the options of each group given
/// explicitly.
std::vector<at::Tensor> reference(const Plan& plan);

}  // namespace posenc::differential
