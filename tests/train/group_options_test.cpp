// The options of parameter groups, by reference and by schedules, and parameters that LibTorch's
// own functions list twice.
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <memory>
#include <sstream>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/sparse_adam.h"
#include "support/compare.h"

namespace posenc::testing::group_options_test {
namespace {

using Group = torch::optim::OptimizerParamGroup;

torch::Tensor ones() { return torch::ones({2}).set_requires_grad(true); }

TEST(GroupOptions, SetByReferenceAreTheGroups) {
  auto by_reference = std::make_unique<FusedAdamWOptions>();
  by_reference->weight_decay() = 0.01;
  by_reference->amsgrad() = false;
  by_reference->set_lr(1e-3);
  by_reference->betas() = {0.9, 0.999};
  std::vector<Group> groups;
  groups.emplace_back(std::vector{ones()}, std::move(by_reference));
  auto scaled = std::make_unique<FusedAdamWOptions>();
  scaled->lr() *= 1.0;
  groups.emplace_back(std::vector{ones()}, std::move(scaled));
  FusedAdamW adam(groups, FusedAdamWOptions(0.5).weight_decay(0.1).amsgrad(true).betas({0.5, 0.6}));
  auto first = adam.named_options(0), second = adam.named_options(1);
  EXPECT_EQ(first["weight_decay"], 0.01);
  EXPECT_EQ(first["amsgrad"], 0.0);
  EXPECT_EQ(first["lr"], 1e-3);
  EXPECT_EQ(first["beta1"], 0.9);
  EXPECT_EQ(second["lr"], 1e-3);
  EXPECT_EQ(second["weight_decay"], 0.1);
  auto& options = static_cast<FusedAdamWOptions&>(adam.param_groups()[0].options());
  options.lr() = 0.25;
  const double lr = options.lr();
  EXPECT_EQ(lr, 0.25);
  EXPECT_EQ(options.get_lr(), 0.25);
}

TEST(GroupOptions, ThatAreOnlyReadAreTheOptimisers) {
  auto read = std::make_unique<FusedAdamOptions>();
  const double decay = read->weight_decay();
  EXPECT_EQ(decay, 0.0);
  std::vector<Group> groups;
  groups.emplace_back(std::vector{ones()}, std::move(read));
  FusedAdam adam(groups, FusedAdamOptions(0.5).weight_decay(0.1));
  EXPECT_EQ(adam.named_options(0).at("weight_decay"), 0.1);
}

// A group of sparse gradients beside a dense one: the steps of SparseAdam and of FusedAdam.
TEST(GroupOptions, AGroupOfSparseGradientsIsSteppedByRows) {
  const auto table = [] { return torch::ones({5, 3}).set_requires_grad(true); };
  auto rows = table(), rows_alone = table(), dense = ones(), dense_alone = ones();
  const auto sparse_options = [] {
    return std::make_unique<FusedAdamOptions>(FusedAdamOptions().sparse(true));
  };
  std::vector<Group> groups;
  groups.emplace_back(std::vector{rows}, sparse_options());
  groups.emplace_back(std::vector{dense});
  FusedAdam both(groups, 0.1), alone({dense_alone}, 0.1);
  SparseAdam sparse({rows_alone}, 0.1);
  for (int step = 0; step < 3; ++step) {
    const auto gradient = torch::sparse_coo_tensor(torch::tensor({{step, 4}}),
                                                   torch::full({2, 3}, 1.0 + step), {5, 3});
    rows.mutable_grad() = gradient, rows_alone.mutable_grad() = gradient.clone();
    dense.mutable_grad() = dense_alone.mutable_grad() = torch::full({2}, 0.5 + step);
    both.step(), alone.step(), sparse.step();
  }
  EXPECT_TRUE(bit_equal(rows.detach(), rows_alone.detach()));
  EXPECT_TRUE(bit_equal(dense.detach(), dense_alone.detach()));
  rows.mutable_grad() = torch::ones({5, 3});
  EXPECT_ERROR(both.step(), c10::TypeError,
               "parameter 0 of group 0, [5, 3]: the gradient must be sparse");
  std::vector<Group> decayed;
  decayed.emplace_back(std::vector{rows},
                       std::make_unique<FusedAdamWOptions>(FusedAdamWOptions().sparse(true)));
  EXPECT_ERROR(FusedAdamW(decayed, 0.1), c10::ValueError,
               "[FusedAdamW] a group with sparse(true) must have weight_decay(0)");
}

// add_param_group() of the base class is not virtual, and params() is writable.
TEST(Groups, AParameterListedTwiceByLibTorchIsRefusedBeforeAStep) {
  for (const bool in_two : {false, true}) {
    auto p = ones();
    FusedSGD sgd({p}, FusedSGDOptions(0.1).momentum(0.9));
    if (in_two) {
      static_cast<torch::optim::Optimizer&>(sgd).add_param_group(
          Group({p}, std::make_unique<FusedSGDOptions>(0.1)));
    } else {
      sgd.param_groups()[0].params().push_back(p);
    }
    p.mutable_grad() = torch::ones({2});
    const char* const text = in_two
                                 ? "parameter 0 of group 1, [2]: a parameter must be listed once"
                                 : "parameter 1 of group 0, [2]: a parameter must be listed once";
    EXPECT_ERROR(sgd.step(), c10::ValueError, text);
    EXPECT_TRUE(bit_equal(p.detach(), torch::ones({2})));
    EXPECT_TRUE(sgd.state().empty());
  }
}

double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

// Python keeps the rate that a group had at first as its initial_lr.
TEST(LambdaLR, ASecondScheduleBeginsAtTheFirstRate) {
  FusedSGD sgd({ones()}, 0.5);
  {
    LambdaLR first(sgd, cosine_factor(0, 4));
    for (int step = 0; step < 4; ++step) first.step();
  }
  EXPECT_EQ(rate_of(sgd), 0.0);
  LambdaLR second(sgd, [](int64_t step) { return step == 0 ? 1.0 : 0.5; });
  EXPECT_EQ(rate_of(sgd), 0.5);
  second.step();
  EXPECT_EQ(rate_of(sgd), 0.25);
  EXPECT_EQ(sgd.named_options(0).at("initial_lr"), 0.5);
}

TEST(LambdaLR, ASecondScheduleOfLibTorchsOptimiserIsRefusedAtARateOfZero) {
  torch::optim::Adam adam(std::vector{ones()}, 0.5);
  LambdaLR first(adam, cosine_factor(0, 1));
  first.step();
  EXPECT_EQ(rate_of(adam), 0.0);
  EXPECT_ERROR(
      LambdaLR(adam, cosine_factor(0, 4)), c10::ValueError,
      "[LambdaLR] some group must have a rate above 0 when the schedule is made. Got 0 for "
      "all, as after another schedule; set_lr() first");
}

std::string archive_of(const torch::optim::Optimizer& optimizer) {
  torch::serialize::OutputArchive archive;
  optimizer.save(archive);
  std::ostringstream stream;
  archive.save_to(stream);
  return stream.str();
}

void load(torch::optim::Optimizer& optimizer, const std::string& bytes) {
  std::istringstream stream(bytes);
  torch::serialize::InputArchive archive;
  archive.load_from(stream);
  optimizer.load(archive);
}

TEST(Archive, KeepsTheFirstRateAndTheRule) {
  auto p = ones();
  FusedAdam adam({p}, FusedAdamOptions(0.5).weight_decay(0.1));
  LambdaLR schedule(adam, cosine_factor(0, 4));
  schedule.step(), schedule.step();
  const auto bytes = archive_of(adam);
  FusedAdam resumed({p}, 9.0);
  load(resumed, bytes);
  LambdaLR second(resumed, [](int64_t) { return 1.0; });
  EXPECT_EQ(rate_of(resumed), 0.5);
  FusedAdamW decoupled({p}, 9.0);
  EXPECT_ERROR(load(decoupled, bytes), c10::ValueError,
               "[FusedAdamW] the archive must be of the rule AdamW. Got Adam");
  EXPECT_EQ(rate_of(decoupled), 9.0);
}

}  // namespace
}  // namespace posenc::testing::group_options_test
