// The state of an optimiser belongs to parameters by name, and a schedule to its kind and base
// rates.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/optim/adam.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <memory>
#include <string>
#include <vector>

#include "posenc/train/checkpoint.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/weights/safetensors.h"
#include "weights/support.h"

namespace posenc::testing::checkpoint_names_test {
namespace {

using Code = WeightsErrorCode;
using Tensors = std::vector<at::Tensor>;

// Parameters of one shape, which nothing but their names tells apart.
struct Two : torch::nn::Module {
  Two() {
    a = register_parameter("a", at::zeros({2}));
    b = register_parameter("b", at::zeros({2}));
  }
  at::Tensor a, b;
};

void step(torch::optim::Optimizer& optimizer, const at::Tensor& parameter, double gradient) {
  parameter.mutable_grad() = at::full({2}, gradient);
  optimizer.step();
  parameter.mutable_grad() = at::Tensor();
}

torch::optim::AdamParamState& state_of(torch::optim::Optimizer& optimizer, const at::Tensor& p) {
  return static_cast<torch::optim::AdamParamState&>(*optimizer.state().at(p.unsafeGetTensorImpl()));
}

TEST(CheckpointNames, MomentsGoToTheParameterOfTheirName) {
  const TempDir dir;
  Two saved, resumed;
  FusedAdam first(Tensors{saved.a}, 0.1);
  first.add_parameters({saved.b});
  for (int i = 0; i < 3; ++i) step(first, saved.a, 10.0);
  step(first, saved.b, 0.1);
  save_checkpoint(dir / "c", {saved, &first});
  FusedAdam second(Tensors{resumed.b, resumed.a}, 0.1);
  load_checkpoint(dir / "c", {resumed, &second});
  EXPECT_EQ(state_of(second, resumed.a).step(), 3);
  EXPECT_EQ(state_of(second, resumed.b).step(), 1);
  EXPECT_TRUE(identical(state_of(second, resumed.b).exp_avg(), state_of(first, saved.b).exp_avg()));
}

TEST(CheckpointNames, OldFilesGoByIndex) {
  const TempDir dir;
  Two saved, resumed;
  FusedAdam first(saved.parameters(), 0.1);
  step(first, saved.b, 1.0);
  save_checkpoint(dir / "c", {saved, &first});
  auto file = load_safetensors(dir / "c");
  for (const char* key : {"optimizer.0.name", "optimizer.1.name"}) {
    EXPECT_EQ(file.metadata.erase(key), 1u);
  }
  save_safetensors(dir / "old", file.tensors, file.metadata);
  FusedAdam second(resumed.parameters(), 0.1);
  load_checkpoint(dir / "old", {resumed, &second});
  EXPECT_EQ(state_of(second, resumed.b).step(), 1);
  EXPECT_EQ(second.state().size(), 1u);
}

TEST(CheckpointNames, OtherGroupsAreRefusedByName) {
  const TempDir dir;
  Two model;
  using Group = torch::optim::OptimizerParamGroup;
  FusedAdam first(std::vector<Group>{Group({model.a}), Group({model.b})}, 0.1);
  step(first, model.a, 1.0);
  save_checkpoint(dir / "c", {model, &first});
  FusedAdam turned(std::vector<Group>{Group({model.b}), Group({model.a})}, 0.1);
  const auto error = error_of([&] { load_checkpoint(dir / "c", {model, &turned}); });
  EXPECT_EQ(error.code(), Code::ShapeMismatch);
  EXPECT_CONTAINS(std::string(error.what()),
                  "must have the parameter groups of the optimiser. Got 'a' in group 0, which the "
                  "optimiser has in group 1");
  EXPECT_TRUE(turned.state().empty());
  auto file = load_safetensors(dir / "c");
  file.metadata["optimizer.1.name"] = "gone";
  save_safetensors(dir / "bad", file.tensors, file.metadata);
  EXPECT_CONTAINS(
      std::string(error_of([&] { load_checkpoint(dir / "bad", {model, &first}); }).what()),
      "Got 'gone' in group 1, which the module does not have");
}

// An optimiser with a rule of its own, and either of the states that the interface allows.
template <typename State>
struct Lion : torch::optim::Optimizer, CheckpointableOptimizer {
  explicit Lion(const Tensors& all)
      : Optimizer({torch::optim::OptimizerParamGroup(all)},
                  std::make_unique<torch::optim::SGDOptions>(0.1)) {}
  at::Tensor step(LossClosure) override {
    for (const auto& p : param_groups_[0].params()) {
      auto state = std::make_unique<State>();
      fill(*state, at::full_like(p.detach(), 7.0));
      state_[p.unsafeGetTensorImpl()] = std::move(state);
    }
    return {};
  }
  static void fill(torch::optim::SGDParamState& state, const at::Tensor& value) {
    state.momentum_buffer(value);
  }
  static void fill(torch::optim::AdamParamState& state, const at::Tensor& value) {
    state.exp_avg(value), state.step(5);
  }
  std::string rule() const override { return "Lion"; }
  NamedOptions named_options(std::size_t) const override { return {{"lr", 0.1}}; }
  void set_named_options(std::size_t, const NamedOptions&) override {}
};

TEST(CheckpointNames, ARuleOfItsOwnMayHaveEitherState) {
  const TempDir dir;
  Two model;
  Lion<torch::optim::SGDParamState> first(model.parameters()), second(model.parameters());
  first.step(nullptr);
  save_checkpoint(dir / "c", {model, &first});
  load_checkpoint(dir / "c", {model, &second});
  auto* const sgd = dynamic_cast<torch::optim::SGDParamState*>(
      second.state().at(model.b.unsafeGetTensorImpl()).get());
  ASSERT_NE(sgd, nullptr);
  EXPECT_TRUE(at::equal(sgd->momentum_buffer(), at::full({2}, 7.0)));
  Lion<torch::optim::AdamParamState> third(model.parameters()), fourth(model.parameters());
  third.step(nullptr);
  save_checkpoint(dir / "a", {model, &third});
  load_checkpoint(dir / "a", {model, &fourth});
  EXPECT_EQ(state_of(fourth, model.a).step(), 5);
  const auto error = error_of([&] { load_checkpoint(dir / "c", {model, &fourth}); });
  EXPECT_EQ(error.code(), Code::Unsupported);
}

double rate_of(torch::optim::Optimizer& optimizer) {
  return optimizer.param_groups()[0].options().get_lr();
}

TEST(CheckpointNames, AScheduleGoesOnFromTheBaseRatesOfTheFile) {
  const TempDir dir;
  Two model;
  const auto factor = [](int64_t step) { return 1.0 / static_cast<double>(step + 1); };
  FusedSGD first(model.parameters(), 1.0), second(model.parameters(), 0.1);
  torch::optim::Adam theirs(model.parameters(), 1.0), resumed(model.parameters(), 0.1);
  for (auto [before, after] :
       std::vector<std::pair<torch::optim::Optimizer*, torch::optim::Optimizer*>>{
           {&first, &second}, {&theirs, &resumed}}) {
    LambdaLR schedule(*before, factor);
    schedule.step(), schedule.step();
    save_checkpoint(dir / "c", {model, before, &schedule});
    LambdaLR other(*after, factor);
    load_checkpoint(dir / "c", {model, after, &other});
    EXPECT_DOUBLE_EQ(rate_of(*after), 1.0 / 3);
    other.step();
    EXPECT_DOUBLE_EQ(rate_of(*after), 0.25);
  }
}

TEST(CheckpointNames, AScheduleOfAnotherKindIsRefused) {
  const TempDir dir;
  Two model;
  FusedSGD sgd(model.parameters(), 1.0);
  LambdaLR lambda(sgd, [](int64_t) { return 1.0; });
  torch::optim::StepLR steps(sgd, 2);
  save_checkpoint(dir / "lambda", {model, &sgd, &lambda});
  save_checkpoint(dir / "steps", {model, &sgd, &steps});
  const auto refused = [&](const char* file, torch::optim::LRScheduler& schedule) {
    return std::string(
        error_of([&] { load_checkpoint(dir / file, {model, &sgd, &schedule}); }).what());
  };
  EXPECT_CONTAINS(refused("lambda", steps),
                  "must hold the state of the scheduler StepLR. Got 'LambdaLR'");
  EXPECT_CONTAINS(refused("steps", lambda),
                  "must hold the state of the scheduler LambdaLR. Got 'StepLR'");
  auto file = load_safetensors(dir / "lambda");
  file.metadata.erase("scheduler.kind");  // as files were written before
  file.metadata.erase("scheduler.base_lr.0");
  save_safetensors(dir / "old", file.tensors, file.metadata);
  load_checkpoint(dir / "old", {model, &sgd, &lambda});
}

// A schedule made after the load starts from the rate at the run's beginning, as Python's.
TEST(CheckpointNames, TheFirstRateIsLoadedWithTheOptions) {
  const TempDir dir;
  Two model;
  FusedSGD first(model.parameters(), 1.0), second(model.parameters(), 0.3);
  LambdaLR schedule(first, [](int64_t step) { return 1.0 / static_cast<double>(step + 1); });
  schedule.step();
  save_checkpoint(dir / "c", {model, &first});
  load_checkpoint(dir / "c", {model, &second});
  EXPECT_EQ(rate_of(second), 0.5);
  LambdaLR later(second, [](int64_t) { return 1.0; });
  EXPECT_EQ(rate_of(second), 1.0);
}

}  // namespace
}  // namespace posenc::testing::checkpoint_names_test
