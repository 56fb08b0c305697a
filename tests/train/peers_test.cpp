// The schedules of transformers and the label smoothings of other systems, beside them.
#include <gtest/gtest.h>
#include <torch/types.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/train/fused_sgd.h"
#include "posenc/train/schedule_factor.h"
#include "posenc/train/token_cross_entropy.h"
#include "support/compare.h"
#include "support/python.h"
#include "support/seed.h"
#include "support/temp_dir.h"
#include "weights/files.h"

namespace posenc::testing::peers_test {
namespace {

using nlohmann::json;

const json& cases() {
  static const json all = [] {
    const TempDir dir;
    const std::string command = std::string("'") + POSENC_PYTHON +
                                "' -B -W ignore '" POSENC_TESTS_DIR "/train/schedules.py' " +
                                std::to_string(testing::seed(11)) + " > '" + (dir / "cases") +
                                "' 2> '" + (dir / "log") + "'";
    if (std::system(command.c_str()) != 0) throw std::runtime_error(read_bytes(dir / "log"));
    return json::parse(read_bytes(dir / "cases"));
  }();
  return all;
}

ScheduleOptions options_of(const json& one) {
  ScheduleOptions options;
  options.lr(one.at("lr").get<double>());
  for (const auto& [name, value] : one.at("options").items()) {
    if (name == "num_warmup_steps") options.num_warmup_steps(value);
    if (name == "num_training_steps") options.num_training_steps(value.get<int64_t>());
    if (name == "num_cycles") options.num_cycles(value.get<double>());
    if (name == "lr_end") options.lr_end(value);
    if (name == "power") options.power(value);
    if (name == "timescale") options.timescale(value.get<int64_t>());
    if (name == "num_stable_steps") options.num_stable_steps(value.get<int64_t>());
    if (name == "num_decay_steps") options.num_decay_steps(value.get<int64_t>());
    if (name == "warmup_type") options.warmup_type(value);
    if (name == "decay_type") options.decay_type(value);
    if (name == "min_lr_ratio") options.min_lr_ratio(value);
  }
  return options;
}

TEST(ScheduleFactor, IsTransformersInEveryStep) {
  ASSERT_TRUE(python_has("torch, transformers")) << POSENC_PYTHON;
  for (const json& one : cases().at("schedules")) {
    SCOPED_TRACE(one.at("name").get<std::string>() + " " + one.at("options").dump());
    FusedSGD sgd({torch::zeros({1}).set_requires_grad(true)}, one.at("lr").get<double>());
    const auto factor = schedule_factor(one.at("name"), options_of(one));
    LambdaLR schedule(sgd, factor);
    const auto factors = one.at("factors").get<std::vector<double>>();
    const auto rates = one.at("rates").get<std::vector<double>>();
    for (size_t step = 0; step < factors.size(); ++step) {
      ASSERT_EQ(factor(static_cast<int64_t>(step)), factors[step]) << step;
      ASSERT_EQ(sgd.named_options(0).at("lr"), rates[step]) << step;
      schedule.step();
    }
  }
}

TEST(ScheduleFactor, SaysWhatIsWrong) {
  EXPECT_ERROR(
      schedule_factor("lineal"), c10::ValueError,
      "[schedule_factor] a schedule must be one of constant, constant_with_warmup, cosine, "
      "cosine_with_restarts, inverse_sqrt, linear, polynomial, warmup_stable_decay. Got "
      "lineal");
  EXPECT_ERROR(schedule_factor("linear"), c10::ValueError, "needs num_training_steps");
  EXPECT_ERROR(schedule_factor("warmup_stable_decay"), c10::ValueError, "needs num_decay_steps");
  const auto all = ScheduleOptions().num_training_steps(9);
  EXPECT_ERROR(schedule_factor("polynomial", all), c10::ValueError, "needs lr");
  EXPECT_ERROR(schedule_factor("polynomial", ScheduleOptions(all).lr(1e-8)), c10::ValueError,
               "lr_end must be smaller than lr. Got 1e-07 and 1e-08");
  EXPECT_ERROR(schedule_factor("linear", ScheduleOptions(all).num_warmup_steps(-1)),
               c10::ValueError, "num_warmup_steps must not be negative. Got -1");
  EXPECT_ERROR(schedule_factor("warmup_stable_decay",
                               ScheduleOptions(all).num_decay_steps(2).decay_type("sqrt")),
               c10::ValueError, "decay_type must be linear, cosine or 1-sqrt. Got sqrt");
}

TEST(LambdaLR, MayHaveAFactorForEachGroup) {
  const auto p = [] { return torch::zeros({1}).set_requires_grad(true); };
  FusedSGD sgd({p()}, 0.5);
  sgd.add_param_group(std::vector<torch::Tensor>{p()});
  LambdaLR schedule(
      sgd, {[](int64_t) { return 1.0; }, [](int64_t step) { return static_cast<double>(step); }});
  EXPECT_EQ(sgd.named_options(1).at("lr"), 0.0);
  schedule.step(), schedule.step();
  EXPECT_EQ(sgd.named_options(0).at("lr"), 0.5);
  EXPECT_EQ(sgd.named_options(1).at("lr"), 1.0);
  EXPECT_ERROR(LambdaLR(sgd, std::vector<LearningRateFactor>{[](int64_t) { return 1.0; }}),
               c10::ValueError, "each parameter group must have a factor. Got 1 factors for 2");
}

TEST(LabelSmoothing, IsThatOfItsSystem) {
  ASSERT_TRUE(python_has("torch, transformers")) << POSENC_PYTHON;
  for (const json& one : cases().at("smoothings")) {
    const auto rows = one.at("logits").get<std::vector<std::vector<double>>>();
    const auto targets = torch::tensor(one.at("targets").get<std::vector<int64_t>>());
    const auto made = [&](const std::vector<std::vector<double>>& values) {
      std::vector<torch::Tensor> all;
      for (const auto& row : values) all.push_back(torch::tensor(row, torch::kDouble));
      return torch::stack(all);
    };
    for (const auto& [system, smoothing] : std::vector<std::pair<std::string, LabelSmoothing>>{
             {"fairseq", LabelSmoothing::Fairseq},
             {"opennmt", LabelSmoothing::OpenNMT},
             {"joeynmt", LabelSmoothing::OpenNMT}}) {
      SCOPED_TRACE(system + " " + one.at("e").dump() + " " + std::to_string(rows[0].size()));
      const auto logits = made(rows).set_requires_grad(true);
      const auto loss = functional::token_cross_entropy(logits, targets,
                                                        functional::TokenCrossEntropyFuncOptions()
                                                            .label_smoothing(one.at("e"))
                                                            .smoothing(smoothing)
                                                            .ignore_index(one.at("pad")));
      loss.backward();
      const json& expected = one.at(system);
      EXPECT_NEAR(loss.item<double>(), expected.at("value").get<double>(), 1e-12);
      const auto gradient = made(expected.at("gradient").get<std::vector<std::vector<double>>>());
      EXPECT_TRUE(torch::allclose(logits.grad(), gradient, 1e-12, 1e-14));
    }
  }
}

TEST(LabelSmoothing, SaysWhatItNeeds) {
  const auto options = functional::TokenCrossEntropyFuncOptions().label_smoothing(0.1);
  const auto loss = [&](int64_t vocab, LabelSmoothing smoothing, int64_t ignored) {
    return functional::token_cross_entropy(
        torch::zeros({2, vocab}), torch::zeros({2}, torch::kLong),
        functional::TokenCrossEntropyFuncOptions(options).smoothing(smoothing).ignore_index(
            ignored));
  };
  EXPECT_ERROR(loss(1, LabelSmoothing::Fairseq, -100), c10::ValueError,
               "LabelSmoothing::Fairseq needs at least 2 tokens. Got 1");
  EXPECT_ERROR(loss(2, LabelSmoothing::OpenNMT, 1), c10::ValueError, "at least 3 tokens. Got 2");
  EXPECT_ERROR(loss(5, LabelSmoothing::OpenNMT, -100), c10::ValueError,
               "needs the padding id as ignore_index, in [0, 5), which gets no share. Got -100");
  EXPECT_TRUE(loss(5, LabelSmoothing::Fairseq, -100).item<double>() > 0);
  const auto half = functional::token_cross_entropy(
      torch::zeros({2, 5}, torch::kHalf), torch::zeros({2}, torch::kLong),
      functional::TokenCrossEntropyFuncOptions(options).smoothing(LabelSmoothing::Fairseq));
  EXPECT_EQ(half.scalar_type(), torch::kHalf);
}

}  // namespace
}  // namespace posenc::testing::peers_test
