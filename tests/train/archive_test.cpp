// torch::save and torch::load of posenc's optimisers, and loading from LibTorch's.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/optim/adam.h>
#include <torch/serialize.h>

#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"
#include "support/compare.h"
#include "support/seed.h"

namespace posenc::testing::archive_test {
namespace {

using Parameters = std::vector<torch::Tensor>;
using OptimizerPtr = std::unique_ptr<torch::optim::Optimizer>;

struct Kind {
  std::string name;
  bool sparse;
  std::function<OptimizerPtr(const Parameters&, double lr)> make;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

template <typename Optimizer, typename Options>
Kind kind(const std::string& name, bool sparse, const Options& options) {
  const auto make = [options](const Parameters& parameters, double lr) -> OptimizerPtr {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    groups.emplace_back(Parameters{parameters[0]});
    groups.emplace_back(Parameters{parameters[1]}, std::make_unique<Options>(lr / 2));
    auto all = options;
    return std::make_unique<Optimizer>(groups, all.lr(lr));
  };
  return {name, sparse, make};
}

std::vector<Kind> kinds() {
  return {
      kind<FusedAdam>("Adam", false, FusedAdamOptions()),
      kind<FusedAdam>("AdamAmsgrad", false, FusedAdamOptions().amsgrad(true).maximize(true)),
      kind<FusedAdamW>("AdamW", false, FusedAdamWOptions()),
      kind<FusedSGD>("Sgd", false, FusedSGDOptions()),
      kind<FusedSGD>("SgdMomentum", false, FusedSGDOptions().momentum(0.9).nesterov(true)),
      kind<FusedSGD>("SgdRows", true, FusedSGDOptions().momentum(0.5)),
      kind<SparseAdam>("SparseAdam", true, SparseAdamOptions()),
  };
}

Parameters parameters(at::ScalarType dtype = at::kFloat) {
  Parameters made;
  for (int i = 0; i < 2; ++i) made.push_back(at::randn({6, 5}, dtype).set_requires_grad(true));
  return made;
}

void steps(torch::optim::Optimizer& optimizer, const Parameters& all, bool sparse, int from,
           int to) {
  for (int step = from; step < to; ++step) {
    torch::manual_seed(testing::seed(step));
    for (const auto& p : all) {
      const auto rows = at::randint(6, {1, 4}, at::kLong);
      const auto gradient = at::randn({6, 5}).to(p.scalar_type());
      p.mutable_grad() =
          sparse ? at::sparse_coo_tensor(rows, gradient.slice(0, 0, 4), {6, 5}) : gradient;
    }
    optimizer.step();
  }
}

std::string saved(const torch::optim::Optimizer& optimizer) {
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

class ResumedOptimizer : public ::testing::TestWithParam<Kind> {};

TEST_P(ResumedOptimizer, IsAsIfItHadNeverStopped) {
  const auto& [name, sparse, make] = GetParam();
  const auto whole = parameters();
  const auto optimizer = make(whole, 0.1);
  steps(*optimizer, whole, sparse, 0, 4);
  const std::string bytes = saved(*optimizer);
  Parameters resumed;
  for (const auto& p : whole) resumed.push_back(p.detach().clone().set_requires_grad(true));
  steps(*optimizer, whole, sparse, 4, 9);

  const auto other = make(resumed, 0.7);  // the archive has the rate
  const auto start = Parameters{resumed[0].detach().clone(), resumed[1].detach().clone()};
  steps(*other, resumed, sparse, 0, 2);  // creates state to be replaced
  const at::NoGradGuard no_grad;
  for (int i = 0; i < 2; ++i) resumed[i].copy_(start[i]);
  load(*other, bytes);
  steps(*other, resumed, sparse, 4, 9);
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(bit_equal(resumed[i], whole[i]));
}

INSTANTIATE_TEST_SUITE_P(All, ResumedOptimizer, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

// At the end of a schedule, a run's last checkpoint has a rate of 0, in either format.
TEST_P(ResumedOptimizer, FromARateOfZero) {
  const auto& [name, sparse, make] = GetParam();
  const auto all = parameters();
  const auto optimizer = make(all, 0.1);
  const auto before = all[0].detach().clone();
  optimizer->param_groups()[0].options().set_lr(0.0);
  steps(*optimizer, all, sparse, 0, 1);
  EXPECT_TRUE(bit_equal(all[0].detach(), before));
  const auto rate = [](torch::optim::Optimizer& one) {
    return dynamic_cast<CheckpointableOptimizer&>(one).named_options(0).at("lr");
  };
  const auto other = make(all, 0.7), third = make(all, 0.7);
  load(*other, saved(*optimizer));
  EXPECT_EQ(rate(*other), 0.0);
  auto& named = dynamic_cast<CheckpointableOptimizer&>(*third);
  named.set_named_options(0, dynamic_cast<CheckpointableOptimizer&>(*optimizer).named_options(0));
  EXPECT_EQ(rate(*third), 0.0);
}

TEST(Archive, ContinuesFromLibTorchsAdam) {
  const auto all = parameters();
  torch::optim::Adam theirs(all, torch::optim::AdamOptions(0.25).weight_decay(0.5));
  steps(theirs, all, false, 0, 3);
  FusedAdam ours(all, FusedAdamOptions().maximize(true));
  load(ours, saved(theirs));
  const auto options = ours.named_options(0);
  EXPECT_EQ(options.at("lr"), 0.25);
  EXPECT_EQ(options.at("weight_decay"), 0.5);
  EXPECT_EQ(options.at("maximize"), 0.0);  // LibTorch's optimisers minimise
  const auto key = all[0].unsafeGetTensorImpl();
  const auto& a = static_cast<torch::optim::AdamParamState&>(*ours.state().at(key));
  const auto& b = static_cast<torch::optim::AdamParamState&>(*theirs.state().at(key));
  EXPECT_EQ(a.step(), 3);
  EXPECT_TRUE(bit_equal(a.exp_avg(), b.exp_avg()));
}

TEST(Archive, TakesTheParametersDtype) {
  const auto all = parameters(), halves = parameters(at::kBFloat16);
  FusedAdam first(all), second(halves);
  steps(first, all, false, 0, 2);
  load(second, saved(first));
  const auto& state = static_cast<torch::optim::AdamParamState&>(
      *second.state().at(halves[0].unsafeGetTensorImpl()));
  EXPECT_EQ(state.exp_avg_sq().scalar_type(), at::kBFloat16);
  steps(second, halves, false, 2, 3);
}

TEST(Archive, ThatDoesNotFitChangesNothing) {
  const auto all = parameters();
  FusedAdam adam(all, 0.5);
  steps(adam, all, false, 0, 2);
  const auto bytes = saved(adam);
  const Parameters others = {all[0].detach().clone().set_requires_grad(true),
                             at::randn({7, 5}).set_requires_grad(true)};
  FusedAdam wider(others, 0.125);
  EXPECT_ERROR(
      load(wider, bytes), c10::ValueError,
      "[FusedAdam] parameter 1 of group 0, [7, 5]: the archive has state of another shape");
  EXPECT_ERROR(load(*kinds()[0].make(all, 1.0), bytes), c10::Error, "number of parameter groups");
  FusedSGD sgd(all, 0.125);
  EXPECT_ERROR(load(sgd, bytes), c10::ValueError,
               "must be of the same rule. Got one without momentum");
  EXPECT_EQ(wider.named_options(0).at("lr"), 0.125);
  EXPECT_EQ(sgd.named_options(0).at("lr"), 0.125);
  EXPECT_TRUE(wider.state().empty());
  EXPECT_TRUE(sgd.state().empty());
}

}  // namespace
}  // namespace posenc::testing::archive_test
