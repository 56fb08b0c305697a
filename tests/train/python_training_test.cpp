// Twenty training steps of the Transformer against Python's, which run live, and the parts of a
// step: cross entropy with its gradient, the learning rates.
#include <gtest/gtest.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/utils.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/compare.h"
#include "support/python.h"
#include "support/threads.h"
#include "weights/files.h"

namespace posenc::testing {
namespace {

namespace F = posenc::functional;

class PythonTraining : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_TRUE(python_has("torch, safetensors.torch")) << POSENC_PYTHON;
    folder_ = new TempDir;
    const std::string command = std::string("'") + POSENC_PYTHON +
                                "' -B -W ignore '" POSENC_TESTS_DIR
                                "/train/training_runs.py' '" POSENC_SOURCE_DIR "/notebooks_ref' '" +
                                folder_->path().string() + "' > '" + (*folder_ / "log") + "' 2>&1";
    ASSERT_EQ(std::system(command.c_str()), 0) << read_bytes(*folder_ / "log");
  }
  static void TearDownTestSuite() {
    delete folder_;
    folder_ = nullptr;
  }

  static SafetensorsFile file(const std::string& name) {
    return load_safetensors(*folder_ / (name + ".safetensors"));
  }
  static std::string path(const std::string& name) { return *folder_ / (name + ".safetensors"); }

  static TempDir* folder_;
};

TempDir* PythonTraining::folder_ = nullptr;

// The losses of the run in `file`, with Python's weights, batches and seed.
torch::Tensor losses_of(const SafetensorsFile& file, const std::string& path) {
  const auto made = nlohmann::json::parse(file.metadata.at("case"));
  const int64_t vocab = made.at("vocab"), layers = made.at("layers"), pad = made.at("pad");
  Transformer model(TransformerOptions(vocab, vocab)
                        .d_model(made.at("width"))
                        .num_heads(made.at("heads"))
                        .num_encoder_layers(layers)
                        .num_decoder_layers(layers)
                        .d_ff(made.at("wide"))
                        .max_len(made.at("max_len"))
                        .dropout(made.at("dropout"))
                        .norm_first(made.at("norm_first"))
                        .tie(tying_of(made.at("tying")))
                        .python_dropout_order(true));
  load_weights(*model, path, LoadOptions().prefix("start."));
  FusedAdam optimizer(model->parameters(), FusedAdamOptions(1.0).betas({0.9, 0.98}).eps(1e-9));
  LambdaLR schedule(optimizer, warmup_factor(made.at("width"), made.at("warmup")));
  const auto options =
      F::TokenCrossEntropyFuncOptions().label_smoothing(made.at("smoothing")).ignore_index(pad);
  const auto expected = file.tensors["losses"].size(0);
  std::vector<torch::Tensor> losses;
  torch::manual_seed(made.at("seed").get<uint64_t>());
  for (int64_t i = 0; i < expected; ++i) {
    const auto src = file.tensors["src." + std::to_string(i)];
    const auto tgt = file.tensors["tgt." + std::to_string(i)];
    optimizer.zero_grad();
    const auto logits = model->forward(src, tgt.slice(1, 0, -1), AttentionMask::padding(src, pad),
                                       AttentionMask::causal());
    const auto loss = F::token_cross_entropy(logits, tgt.slice(1, 1), options);
    loss.backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), made.at("clip"));
    optimizer.step();
    schedule.step();
    losses.push_back(loss.detach());
  }
  return torch::stack(losses);
}

// The first loss is from identical weights; later ones may drift apart by what `op` allows.
void expect_followed(const SafetensorsFile& run, const std::string& path, Op op) {
  const Threads one(1);
  const auto ours = losses_of(run, path), python = run.tensors["losses"];
  EXPECT_TRUE(within(Op::FirstLoss, ours.slice(0, 0, 1), python.slice(0, 0, 1)));
  EXPECT_TRUE(within(op, ours, python));
}

TEST_F(PythonTraining, TwentyStepsFollowItsLosses) {
  for (const char* name : {"run_post_norm", "run_pre_norm"}) {
    SCOPED_TRACE(name);
    expect_followed(file(name), path(name), Op::Losses);
  }
}

TEST_F(PythonTraining, TwentyStepsWithDropoutFollowItsLosses) {
  for (const char* name : {"run_dropout_post_norm", "run_dropout_pre_norm"}) {
    SCOPED_TRACE(name);
    expect_followed(file(name), path(name), Op::DropoutLosses);
  }
}

TEST_F(PythonTraining, CrossEntropyAndItsGradient) {
  const auto all = file("cross_entropy");
  for (const auto& [name, options] :
       nlohmann::json::parse(all.metadata.at("cases")).get<nlohmann::json::object_t>()) {
    SCOPED_TRACE(name);
    const auto logits = all.tensors[name + ".logits"].clone().set_requires_grad(true);
    const auto loss =
        F::token_cross_entropy(logits, all.tensors[name + ".targets"],
                               F::TokenCrossEntropyFuncOptions()
                                   .label_smoothing(options.value("label_smoothing", 0.0))
                                   .ignore_index(options.value("ignore_index", -100)));
    loss.backward();
    if (name == "nothing_counts" || name == "no_tokens") {
      EXPECT_TRUE(loss.isnan().item<bool>());
      EXPECT_TRUE(all.tensors[name + ".loss"].isnan().item<bool>());
      EXPECT_EQ(logits.grad().numel(), all.tensors[name + ".gradient"].numel());
      continue;
    }
    EXPECT_TRUE(within(Op::Layers, loss.detach(), all.tensors[name + ".loss"]));
    EXPECT_TRUE(within(Op::Layers, logits.grad(), all.tensors[name + ".gradient"]));
  }
}

TEST_F(PythonTraining, LearningRatesAreLambdaLRs) {
  const auto all = file("schedules");
  const auto made = nlohmann::json::parse(all.metadata.at("case"));
  const auto rates_of = [&](const LearningRateFactor& factor, int64_t steps) {
    std::vector<torch::optim::OptimizerParamGroup> groups;
    for (const double lr : {1.0, 0.25}) {
      groups.emplace_back(std::vector{torch::zeros({1}, torch::requires_grad())},
                          std::make_unique<FusedSGDOptions>(lr));
    }
    FusedSGD optimizer(groups);
    LambdaLR schedule(optimizer, factor);
    std::vector<torch::Tensor> rates;
    for (int64_t step = 0; step < steps; ++step) {
      std::vector<double> row;
      for (const auto& group : optimizer.param_groups()) row.push_back(group.options().get_lr());
      rates.push_back(torch::tensor(row, torch::kDouble));
      optimizer.step();
      schedule.step();
    }
    return torch::stack(rates);
  };
  const auto& warmup = all.tensors["warmup"];
  const auto& cosine = all.tensors["cosine"];
  EXPECT_TRUE(within(Op::Linear,
                     rates_of(warmup_factor(made.at("width"), made.at("warmup")), warmup.size(0)),
                     warmup));
  EXPECT_TRUE(within(Op::Linear,
                     rates_of(cosine_factor(made.at("warmup"), cosine.size(0)), cosine.size(0)),
                     cosine));
}

}  // namespace
}  // namespace posenc::testing
