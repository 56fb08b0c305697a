// Common behaviour of posenc's optimisers: groups, duplicates, closures, schedules, strides,
// invalid input.
#include <ATen/ATen.h>
#include <c10/core/InferenceMode.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>

#include <memory>
#include <string>
#include <typeinfo>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"
#include "support/compare.h"

namespace posenc::testing {
namespace {

using Group = torch::optim::OptimizerParamGroup;

torch::Tensor parameter(at::IntArrayRef shape) { return at::randn(shape).set_requires_grad(true); }

torch::Tensor copy_of(const torch::Tensor& p) {
  const auto copy = p.detach().clone().set_requires_grad(true);
  if (p.grad().defined()) copy.mutable_grad() = p.grad().clone();
  return copy;
}

torch::Tensor with_gradient(torch::Tensor p) {
  p.mutable_grad() = at::randn_like(p);
  return p;
}

torch::Tensor row_gradient(const torch::Tensor& p) {
  return at::sparse_coo_tensor(at::tensor({1, 0, 1}, at::kLong).unsqueeze(0),
                               at::randn({3, p.size(1)}), p.sizes());
}

TEST(FusedAdam, StepsATensorThatIsListedTwiceOnce) {
  const auto p = with_gradient(parameter({5, 3}));
  const auto once = copy_of(p);
  FusedAdam twice({p, once.detach().clone().set_requires_grad(true), p}), single({once});
  EXPECT_EQ(twice.parameters().size(), 2u);
  twice.add_parameters({parameter({2}), parameter({3})});
  EXPECT_ERROR(twice.add_parameters({p}), c10::ValueError, "must be in one group only");
  twice.step();
  single.step();
  EXPECT_TRUE(bit_equal(p, once));
}

TEST(FusedAdam, RefusesAParameterInTwoGroups) {
  const auto p = parameter({5, 3});
  const std::vector<Group> groups = {Group({p}), Group({parameter({2}), p})};
  EXPECT_ERROR(FusedAdam{groups}, c10::ValueError,
               "[FusedAdam] a parameter must be in one group only. Got one of [5, 3] in two");
}

TEST(OptimizerOptions, AGroupTakesWhatItWasNotGiven) {
  std::vector<Group> groups;
  groups.emplace_back(std::vector{parameter({2})},
                      std::make_unique<FusedAdamOptions>(FusedAdamOptions().weight_decay(0.0)));
  groups.emplace_back(std::vector{parameter({2})}, std::make_unique<FusedAdamOptions>(0.5));
  groups.emplace_back(std::vector{parameter({2})});
  FusedAdam adam(groups, FusedAdamOptions(0.25).weight_decay(0.125).amsgrad(true));
  const auto of = [&](std::size_t i) {
    return static_cast<const FusedAdamOptions&>(adam.param_groups()[i].options());
  };
  EXPECT_EQ(of(0).weight_decay(), 0.0);  // not set in LibTorch's groups
  EXPECT_EQ(of(0).lr(), 0.25);
  EXPECT_TRUE(of(0).amsgrad());
  EXPECT_EQ(of(1).lr(), 0.5);
  EXPECT_EQ(of(1).weight_decay(), 0.125);
  EXPECT_EQ(of(2).lr(), 0.25);
  EXPECT_EQ(FusedAdamWOptions().weight_decay(), 0.01);
}

TEST(OptimizerOptions, RejectsThoseOfAnotherOptimizer) {
  std::vector<Group> groups;
  groups.emplace_back(std::vector{parameter({2})}, std::make_unique<FusedSGDOptions>(0.5));
  EXPECT_ERROR(FusedAdam{groups}, c10::TypeError,
               "[FusedAdam] the options of a group must be FusedAdamOptions");
}

// A group's set_options() accepts those of any optimiser.
TEST(OptimizerOptions, DoNotStepWithThoseOfAnotherOptimizer) {
  const auto p = torch::ones({2}).set_requires_grad(true);
  const auto q = torch::ones({2}).set_requires_grad(true);
  FusedSGD sgd({p}, 0.5);
  sgd.add_param_group(Group({q}));
  sgd.param_groups()[1].set_options(std::make_unique<torch::optim::AdamOptions>(0.25));
  p.mutable_grad() = torch::ones({2}), q.mutable_grad() = torch::ones({2});
  const char* why = "[FusedSGD] group 1 must have FusedSGDOptions. Got those of another optimiser";
  EXPECT_ERROR(sgd.step(), c10::TypeError, why);
  EXPECT_ERROR(sgd.named_options(1), c10::TypeError, why);
  EXPECT_ERROR(sgd.set_named_options(1, {{"lr", 0.5}}), c10::TypeError, why);
  EXPECT_TRUE(bit_equal(p.detach(), torch::ones({2}))) << "nothing has moved";
}

TEST(CheckpointableOptimizer, NameEveryOption) {
  FusedAdam adam({parameter({2})}, FusedAdamOptions(0.25).betas({0.5, 0.75}).amsgrad(true));
  EXPECT_EQ(adam.rule(), "Adam");
  EXPECT_EQ(adam.named_options(0), (NamedOptions{{"lr", 0.25},
                                                 {"beta1", 0.5},
                                                 {"beta2", 0.75},
                                                 {"eps", 1e-8},
                                                 {"weight_decay", 0},
                                                 {"amsgrad", 1},
                                                 {"maximize", 0}}));
  adam.set_named_options(0, {{"beta2", 0.5}, {"maximize", 1}});
  EXPECT_EQ(adam.named_options(0).at("beta2"), 0.5);
  EXPECT_EQ(adam.named_options(0).at("maximize"), 1.0);
  EXPECT_ERROR(adam.set_named_options(0, {{"lr", 1}, {"beta1", 2}}), c10::ValueError, "betas");
  EXPECT_ERROR(adam.set_named_options(0, {{"lr", 1}, {"gamma", 2}}), c10::ValueError, "1 of the 2");
  EXPECT_EQ(adam.named_options(0).at("lr"), 0.25);
  EXPECT_EQ(FusedAdamW({parameter({2})}).rule(), "AdamW");
  EXPECT_EQ(FusedSGD({parameter({2})}).rule(), "SGD");
  EXPECT_EQ(SparseAdam({parameter({2})}).rule(), "SparseAdam");
}

TEST(FusedSGD, RunsTheClosureWithGradients) {
  const auto p = parameter({3});
  const auto before = p.detach().clone();
  FusedSGD sgd({p}, 0.5);
  const auto loss = sgd.step([&] {
    sgd.zero_grad();
    const auto value = (p * p).sum();
    value.backward();
    return value;
  });
  EXPECT_TRUE(bit_equal(loss.detach(), (before * before).sum()));
  EXPECT_TRUE(bit_equal(p.detach(), before - before));
}

TEST(FusedSGD, FollowsASchedule) {
  const auto p = with_gradient(parameter({3}));
  FusedSGD sgd({p}, 0.5);
  torch::optim::StepLR schedule(sgd, 2, 0.5);
  for (const double rate : {0.5, 0.5, 0.5, 0.25, 0.25}) {
    const auto expected = p.detach() - p.grad() * rate;
    sgd.step();
    EXPECT_TRUE(bit_equal(p.detach(), expected));
    schedule.step();
  }
}

// ATen's kernels walk memory and ignore strides.
TEST(FusedAdam, MeetsElementsWhereverTheyLie) {
  const auto plain = with_gradient(parameter({6, 4}));
  const auto gradient = plain.grad();
  const auto transposed = plain.detach().t().clone(at::MemoryFormat::Contiguous).t();
  auto gaps = at::zeros({6, 8}).slice(1, 0, 8, 2);
  const at::Tensor all[] = {transposed.set_requires_grad(true),
                            gaps.copy_(plain.detach()).set_requires_grad(true)};
  FusedAdam expected({plain}, FusedAdamOptions(0.1).amsgrad(true));
  FusedAdam adam({all[0], all[1]}, FusedAdamOptions(0.1).amsgrad(true));
  for (int step = 0; step < 3; ++step) {
    for (const auto& p : all)
      p.mutable_grad() = step == 1 ? gradient.t().contiguous().t() : gradient;
    expected.step();
    adam.step();
    for (const auto& p : all) EXPECT_TRUE(bit_equal(p.detach(), plain.detach()));
  }
}

// One kernel call serves many parameters: each has its own step count, and other dtypes need a call
// of their own.
TEST(FusedAdam, CountsTheStepsOfEachParameterOfAnyType) {
  for (const auto dtype : {at::kFloat, at::kDouble, at::kBFloat16}) {
    const auto early = parameter({5, 3}),
               late = at::randn({4, 2}).to(dtype).set_requires_grad(true);
    const auto alone = copy_of(late), alone_early = copy_of(early);
    FusedAdam both({early, late}, 0.1), first({alone_early}, 0.1), second({alone}, 0.1);
    for (int step = 0; step < 5; ++step) {
      early.mutable_grad() = at::ones({5, 3}) * (step + 1);
      alone_early.mutable_grad() = early.grad().clone();
      if (step >= 3) {
        late.mutable_grad() = at::ones({4, 2}, dtype) * (step + 2);
        alone.mutable_grad() = late.grad().clone();
      }
      both.step(), first.step(), second.step();
    }
    EXPECT_TRUE(bit_equal(early.detach(), alone_early.detach())) << dtype;
    EXPECT_TRUE(bit_equal(late.detach(), alone.detach())) << dtype;
  }
}

TEST(FusedAdam, TakesEmptyParametersAndStepsOfNone) {
  const auto empty = with_gradient(parameter({0, 4}));
  FusedAdam adam({empty, parameter({3})});
  adam.step();
  adam.zero_grad();
  adam.step();
  EXPECT_EQ(adam.state().size(), 1u);
  FusedAdam(std::vector<Group>{}).step();
}

TEST(Optimizers, RefuseOptionsOutOfRange) {
  const std::vector<torch::Tensor> p = {parameter({2})};
  EXPECT_ERROR(FusedAdam(p, -0.1), c10::ValueError, "[FusedAdam] lr must be at least 0. Got -0.1");
  EXPECT_ERROR(FusedAdamW(p, FusedAdamWOptions().betas({0.9, 1.0})), c10::ValueError,
               "[FusedAdamW] betas must lie in [0, 1). Got (0.9, 1)");
  EXPECT_ERROR(FusedAdam(p, FusedAdamOptions().eps(-1)), c10::ValueError, "eps");
  EXPECT_ERROR(FusedAdam(p, FusedAdamOptions().weight_decay(-1)), c10::ValueError, "weight_decay");
  EXPECT_ERROR(FusedSGD(p, FusedSGDOptions().lr(NAN)), c10::ValueError, "[FusedSGD] lr");
  EXPECT_ERROR(FusedSGD(p, FusedSGDOptions().momentum(-1)), c10::ValueError, "momentum");
  EXPECT_ERROR(FusedSGD(p, FusedSGDOptions().nesterov(true)), c10::ValueError, "nesterov needs");
  EXPECT_ERROR(SparseAdam(p, -0.1), c10::ValueError,
               "[SparseAdam] lr must be at least 0. Got -0.1");
  EXPECT_ERROR(SparseAdam(p, SparseAdamOptions().eps(0)), c10::ValueError, "eps");
  EXPECT_ERROR(SparseAdam(p, SparseAdamOptions().betas({-0.1, 0.9})), c10::ValueError, "betas");
}

TEST(Optimizers, RejectTensorsThatAreNotParameters) {
  const auto p = parameter({2});
  EXPECT_ERROR(FusedAdam({torch::Tensor()}), c10::ValueError, "must be defined");
  EXPECT_ERROR(FusedAdam({p * 2}), c10::ValueError, "[FusedAdam] a parameter must be a leaf");
  EXPECT_ERROR(FusedAdam({at::zeros({2}, at::kLong)}), c10::TypeError, "real floating type");
  EXPECT_ERROR(FusedAdam({at::zeros({2}, at::kComplexFloat)}), c10::TypeError, "floating type");
}

// An error changes nothing, even if the last gradient is the cause.
template <typename Optimizer, typename Options>
void expect_refused(const Options& options, const at::Tensor& bad, const std::string& text) {
  auto good = parameter({4, 3}), p = parameter({4, 3});
  good.mutable_grad() =
      std::is_same_v<Optimizer, SparseAdam> ? row_gradient(good) : at::ones({4, 3});
  p.mutable_grad() = bad;
  const auto before = good.detach().clone();
  Optimizer optimizer(std::vector<Group>{Group({good}), Group({parameter({2}), p})}, options);
  EXPECT_ERROR(optimizer.step(), c10::TypeError, "parameter 1 of group 1, [4, 3]: " + text);
  EXPECT_TRUE(bit_equal(good.detach(), before));
  EXPECT_TRUE(optimizer.state().empty());
}

TEST(Optimizers, RefuseGradientsOfAnotherLayout) {
  const auto rows = row_gradient(parameter({4, 3}));
  expect_refused<FusedAdam>(FusedAdamOptions(), rows,
                            "the gradient must be dense. Got a sparse one");
  expect_refused<FusedSGD>(FusedSGDOptions().weight_decay(0.1), rows, "weight_decay must be 0");
  expect_refused<FusedSGD>(FusedSGDOptions(), rows.to_dense().to_sparse_csr(),
                           "the gradient must be dense or sparse (COO)");
  expect_refused<SparseAdam>(SparseAdamOptions(), at::ones({4, 3}), "the gradient must be sparse");
  expect_refused<SparseAdam>(SparseAdamOptions(), at::ones({4, 3}).to_sparse(),
                             "the gradient must be sparse in its rows only");
}

// A step between forward and backward changes saved tensors, and backward must notice.
template <typename Optimizer, typename Options>
void expect_noticed(const Options& options, bool sparse, const torch::Tensor& values) {
  SCOPED_TRACE(typeid(Options).name());
  auto p = values.set_requires_grad(true);
  Optimizer optimizer({p}, options);
  for (int step = 0; step < 2; ++step) {  // the first one creates the state
    p.mutable_grad() = sparse ? row_gradient(p) : at::ones_like(p);
    const auto version = p._version();
    const auto x = at::ones({2, p.size(0)}).set_requires_grad(true);
    const auto y = at::matmul(x, p);
    optimizer.step();
    EXPECT_GT(p._version(), version);
    EXPECT_ERROR(y.sum().backward(), c10::Error, "modified by an inplace operation");
  }
}

TEST(Optimizers, StepsAreNoticedByABackwardThatSavedTheParameter) {
  for (const bool gaps : {false, true}) {
    const auto values = [&] {
      return gaps ? at::randn({4, 5}).slice(1, 0, 3).detach() : at::randn({4, 3});
    };
    expect_noticed<FusedAdam>(FusedAdamOptions(), false, values());
    expect_noticed<FusedAdam>(FusedAdamOptions().amsgrad(true), false, values());
    expect_noticed<FusedAdamW>(FusedAdamWOptions(), false, values());
    expect_noticed<FusedSGD>(FusedSGDOptions(), false, values());
    expect_noticed<FusedSGD>(FusedSGDOptions().momentum(0.9), false, values());
    expect_noticed<FusedSGD>(FusedSGDOptions(), true, values());
    expect_noticed<FusedSGD>(FusedSGDOptions().momentum(0.9), true, values());
    expect_noticed<SparseAdam>(SparseAdamOptions(), true, values());
  }
}

TEST(Optimizers, WriteToNoInferenceTensorOutsideInferenceMode) {
  const auto inference = [] {
    const c10::InferenceMode guard;
    return at::ones({4, 3});
  };
  auto p = inference(), rows = inference();
  p.mutable_grad() = at::ones({4, 3});
  rows.mutable_grad() = row_gradient(rows);
  FusedAdam adam({p});
  FusedSGD sgd({p});
  SparseAdam sparse({rows});
  const auto* const refused =
      "parameter 0 of group 0, [4, 3]: a parameter that is stepped must not "
      "be an inference tensor outside InferenceMode";
  EXPECT_ERROR(adam.step(), c10::ValueError, refused);
  EXPECT_ERROR(sgd.step(), c10::ValueError, refused);
  EXPECT_ERROR(sparse.step(), c10::ValueError, refused);
  EXPECT_TRUE(bit_equal(p, at::ones({4, 3})));
  const c10::InferenceMode guard;
  adam.step();
  sparse.step();
  EXPECT_FALSE(p.eq(1).any().item<bool>());
}

TEST(Optimizers, RefuseAParameterWhoseElementsShareAPlace) {
  auto p = at::ones({1, 3}).expand({4, 3}).detach().set_requires_grad(true);
  p.mutable_grad() = at::ones({4, 3});
  FusedAdam adam({p});
  EXPECT_ERROR(adam.step(), c10::ValueError, "each element in a place of its own");
}

// ATen's kernels assume that all tensors have the first one's number of elements.
TEST(Optimizers, RefuseGradientsOfAnotherShapeOrType) {
  auto p = parameter({4, 3}), q = parameter({4, 3});
  FusedAdam adam({p});
  FusedSGD sgd({p});
  SparseAdam sparse({q});
  const auto before = p.detach().clone();
  for (const auto& wrong : {at::ones({3, 4}), at::ones({4, 2}), at::ones({1, 3}), at::ones({12})}) {
    p.mutable_grad() = wrong;
    EXPECT_ERROR(adam.step(), c10::ValueError, "[4, 3]: the gradient must have its shape. Got [");
    EXPECT_ERROR(sgd.step(), c10::ValueError, "the gradient must have its shape");
  }
  q.mutable_grad() = row_gradient(parameter({5, 3}));
  EXPECT_ERROR(sparse.step(), c10::ValueError, "the gradient must have its shape. Got [5, 3]");
  for (const auto dtype : {at::kDouble, at::kHalf}) {
    p.mutable_grad() = at::ones({4, 3}, dtype);
    EXPECT_ERROR(adam.step(), c10::TypeError, "the gradient must have its type and device, CPU");
    EXPECT_ERROR(sgd.step(), c10::TypeError, "the gradient must have its type and device");
  }
  EXPECT_TRUE(bit_equal(p.detach(), before));
  EXPECT_TRUE(adam.state().empty() && sgd.state().empty() && sparse.state().empty());
}

TEST(Optimizers, RefuseStateOfAnotherShapeOrType) {
  auto p = with_gradient(parameter({4, 3}));
  FusedAdam adam({p});
  adam.step();
  p.set_data(at::zeros({9, 3}));  // the kernel would read past the end of the state
  p.mutable_grad() = at::ones({9, 3});
  EXPECT_ERROR(adam.step(), c10::ValueError, "its state must have its shape. Got [4, 3]");
  p.mutable_grad() = at::Tensor();
  p.set_data(at::zeros({4, 3}, at::kDouble));
  p.mutable_grad() = at::ones({4, 3}, at::kDouble);
  EXPECT_ERROR(adam.step(), c10::TypeError, "make the optimiser after the module has been moved");
}

}  // namespace
}  // namespace posenc::testing
