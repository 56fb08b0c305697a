// Training checkpoints: a run that was stopped and resumed is bit-identical to an uninterrupted
// one.
#include "posenc/train/checkpoint.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/rmsprop.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"
#include "posenc/weights/load.h"
#include "posenc/weights/safetensors.h"
#include "support/seed.h"
#include "weights/support.h"

namespace posenc::testing::checkpoint_test {
namespace {

using Code = WeightsErrorCode;
using Optimizer = std::unique_ptr<torch::optim::Optimizer>;

struct Model : torch::nn::Module {
  Model() {
    embed = register_module(
        "embed", TokenAndPositionEmbedding(TokenAndPositionEmbeddingOptions(11, 6).dropout(0.2)));
    norm = register_module("norm", torch::nn::BatchNorm1d(6));  // has buffers that training changes
    out = register_module("out", torch::nn::Linear(6, 3));
  }
  at::Tensor forward(const at::Tensor& ids) {
    const auto x = norm->forward(embed->forward(ids).flatten(0, 1));
    return out->forward(at::dropout(x, 0.3, is_training()));
  }
  TokenAndPositionEmbedding embed{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Linear out{nullptr};
};

struct Kind {
  std::string name;
  std::function<Optimizer(const Model&)> make;
};

void PrintTo(const Kind& kind, std::ostream* out) { *out << kind.name; }

std::vector<Kind> kinds() {
  using namespace torch::optim;
  // Two groups of parameters with different options.
  const auto groups = [](const Model& model, auto options) {
    std::vector<OptimizerParamGroup> both;
    both.emplace_back(model.embed->parameters());
    auto rest = model.norm->parameters();
    for (const auto& parameter : model.out->parameters()) rest.push_back(parameter);
    both.emplace_back(rest, std::make_unique<decltype(options)>(options.lr(0.05)));
    return both;
  };
  return {
      {"Adam",
       [](const Model& m) { return std::make_unique<Adam>(m.parameters(), AdamOptions(0.01)); }},
      {"AdamAmsgradGroups",
       [=](const Model& m) {
         const auto options = AdamOptions(0.01).amsgrad(true).weight_decay(0.1).betas({0.8, 0.9});
         return std::make_unique<Adam>(groups(m, options), options);
       }},
      {"AdamW",
       [](const Model& m) { return std::make_unique<AdamW>(m.parameters(), AdamWOptions(0.01)); }},
      {"Sgd",
       [](const Model& m) { return std::make_unique<SGD>(m.parameters(), SGDOptions(0.1)); }},
      {"SgdMomentumGroups",
       [=](const Model& m) {
         const auto options = SGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01);
         return std::make_unique<SGD>(groups(m, options), options);
       }},
      {"FusedAdam",
       [](const Model& m) {
         return std::make_unique<FusedAdam>(m.parameters(), FusedAdamOptions(0.01).maximize(true));
       }},
      {"FusedAdamAmsgradGroups",
       [=](const Model& m) {
         auto options = FusedAdamOptions(0.01).amsgrad(true).weight_decay(0.1).betas({0.8, 0.9});
         return std::make_unique<FusedAdam>(groups(m, options), options);
       }},
      {"FusedAdamW",
       [](const Model& m) { return std::make_unique<FusedAdamW>(m.parameters(), 0.01); }},
      {"FusedSgd", [](const Model& m) { return std::make_unique<FusedSGD>(m.parameters(), 0.1); }},
      {"FusedSgdMomentumGroups",
       [=](const Model& m) {
         auto options = FusedSGDOptions(0.1).momentum(0.9).nesterov(true).weight_decay(0.01);
         return std::make_unique<FusedSGD>(groups(m, options), options);
       }},
  };
}

struct Training {
  explicit Training(const Kind& kind)
      : optimizer(kind.make(model)), scheduler(*optimizer, 3, 0.5) {}

  void train(int from, int to) {
    for (int step = from; step < to; ++step) {
      const auto ids = at::randint(0, 11, {4, 5}, at::TensorOptions(at::kLong));
      const auto labels = at::arange(20) % 3;
      optimizer->zero_grad();
      at::cross_entropy_loss(model.forward(ids), labels).backward();
      optimizer->step();
      scheduler.step();
    }
  }
  TrainingRun parts() { return {model, optimizer.get(), &scheduler}; }

  Model model;
  Optimizer optimizer;
  torch::optim::StepLR scheduler;
};

class Resume : public ::testing::TestWithParam<Kind> {};

TEST_P(Resume, IsAsIfItHadNeverStopped) {
  const TempDir dir;
  torch::manual_seed(testing::seed(5));
  Training whole(GetParam());
  whole.train(0, 4);
  save_checkpoint(dir / "c", whole.parts(), {{"epoch", 4}, {"loss", 0.1 + 0.2}});
  whole.train(4, 11);
  const auto end = at::rand({3});

  torch::manual_seed(testing::seed(77));
  Training resumed(GetParam());  // other weights, another generator state
  resumed.train(0, 1);           // and an optimiser state to be replaced
  const auto numbers = load_checkpoint(dir / "c", resumed.parts());
  EXPECT_EQ(numbers, (CheckpointScalars{{"epoch", 4}, {"loss", 0.1 + 0.2}}));
  resumed.train(4, 11);
  EXPECT_EQ(all_bits(resumed.model), all_bits(whole.model));
  EXPECT_TRUE(at::equal(at::rand({3}), end));
}

INSTANTIATE_TEST_SUITE_P(All, Resume, ::testing::ValuesIn(kinds()),
                         [](const auto& info) { return info.param.name; });

// A table that only SparseAdam updates, by rows.
struct Table {
  Table() { module->reset_parameters(); }
  void train(int from, int to) {
    for (int step = from; step < to; ++step) {
      optimizer.zero_grad();
      const auto ids = at::randint(0, 11, {4}, at::TensorOptions(at::kLong));
      module->forward(ids).square().sum().backward();
      optimizer.step();
    }
  }
  torch::nn::Embedding module{torch::nn::EmbeddingOptions(11, 6).sparse(true)};
  SparseAdam optimizer{module->parameters(), SparseAdamOptions(0.1).betas({0.7, 0.8})};
};

TEST(Checkpoint, SparseAdamGoesOnAsIfItHadNeverStopped) {
  const TempDir dir;
  torch::manual_seed(testing::seed(5));
  Table whole;
  whole.train(0, 4);
  save_checkpoint(dir / "c", {*whole.module, &whole.optimizer});
  whole.train(4, 9);
  Table resumed;
  resumed.train(0, 2);
  load_checkpoint(dir / "c", {*resumed.module, &resumed.optimizer});
  resumed.train(4, 9);
  EXPECT_EQ(all_bits(*resumed.module), all_bits(*whole.module));
}

// The kinds with these names, which have the same update rule.
std::pair<Kind, Kind> two_kinds(const std::string& one, const std::string& other) {
  const auto all = kinds();
  const auto named = [&](const std::string& name) {
    return *std::find_if(all.begin(), all.end(),
                         [&](const Kind& kind) { return kind.name == name; });
  };
  return {named(one), named(other)};
}

TEST(Checkpoint, OptimisersOfOneRuleGoOnFromEachOthersState) {
  const TempDir dir;
  for (const auto& [libtorch, fused] :
       {two_kinds("AdamAmsgradGroups", "FusedAdamAmsgradGroups"), two_kinds("AdamW", "FusedAdamW"),
        two_kinds("SgdMomentumGroups", "FusedSgdMomentumGroups")}) {
    for (const auto& [first, second] : {std::pair(libtorch, fused), std::pair(fused, libtorch)}) {
      SCOPED_TRACE(first.name + " to " + second.name);
      torch::manual_seed(testing::seed(5));
      Training before(first);
      before.train(0, 4);
      save_checkpoint(dir / "c", before.parts());
      Training after(second);
      load_checkpoint(dir / "c", after.parts());
      save_checkpoint(dir / "again", after.parts());
      auto expected = load_safetensors(dir / "c"), found = load_safetensors(dir / "again");
      for (auto* one : {&expected, &found}) {
        for (const char* group : {"0", "1"}) {  // an option of the fused ones only
          one->metadata.erase(std::string("optimizer.group.") + group + ".maximize");
        }
      }
      EXPECT_EQ(found.metadata, expected.metadata);
      for (const auto& item : expected.tensors) {
        EXPECT_TRUE(identical(item.value(), found.tensors[item.key()])) << item.key();
      }
      after.train(4, 6);
    }
  }
}

TEST(Checkpoint, RejectsAMaximizingOptimizerForLibTorchs) {
  const TempDir dir;
  const auto [libtorch, climbing] = two_kinds("Adam", "FusedAdam");
  Training up(climbing), down(libtorch);
  up.train(0, 1);
  save_checkpoint(dir / "up", up.parts());
  EXPECT_EQ(error_of([&] { load_checkpoint(dir / "up", down.parts()); }).code(), Code::Unsupported);
  down.train(0, 1);
  save_checkpoint(dir / "down", down.parts());
  load_checkpoint(dir / "down", up.parts());
  EXPECT_FALSE(dynamic_cast<FusedAdam&>(*up.optimizer).named_options(0).at("maximize"));
}

TEST(Checkpoint, BeforeTheFirstStepAndWithoutParts) {
  const TempDir dir;
  Training fresh(kinds()[0]);
  save_checkpoint(dir / "fresh", fresh.parts());
  Training trained(kinds()[0]);
  trained.train(0, 2);
  load_checkpoint(dir / "fresh", trained.parts());
  EXPECT_TRUE(trained.optimizer->state().empty());
  EXPECT_EQ(all_bits(trained.model), all_bits(fresh.model));

  save_checkpoint(dir / "model", {fresh.model});
  load_checkpoint(dir / "model", {trained.model});
  Model model;
  load_weights(model, dir / "model", LoadOptions().prefix("model."));
  EXPECT_EQ(all_bits(model), all_bits(fresh.model));
}

TEST(Checkpoint, NumbersKeepTheirBits) {
  const TempDir dir;
  Model model;
  const CheckpointScalars numbers = {{"a", 1e-310},
                                     {"b", -0.0},
                                     {"", 1.0 / 3},
                                     {"größe", std::numeric_limits<double>::infinity()}};
  save_checkpoint(dir / "c", {model}, numbers);
  const auto loaded = load_checkpoint(dir / "c", {model});
  EXPECT_EQ(loaded, numbers);
  EXPECT_TRUE(std::signbit(loaded.at("b")));
}

// Every error leaves weights, optimiser and generator unchanged.
class Refused : public ::testing::Test {
 protected:
  WeightsErrorCode code(const std::string& path, Training& run) {
    const auto weights = all_bits(run.model);
    const auto state = at::globalContext().defaultGenerator(at::kCPU).get_state();
    const auto error = error_of([&] { load_checkpoint(path, run.parts()); });
    EXPECT_EQ(all_bits(run.model), weights);
    EXPECT_TRUE(at::equal(at::globalContext().defaultGenerator(at::kCPU).get_state(), state));
    EXPECT_EQ(error.function(), "load_checkpoint");
    EXPECT_EQ(error.file(), path);
    return error.code();
  }
  const TempDir dir;
};

TEST_F(Refused, AnotherOptimizerAndOtherGroups) {
  Training adam(kinds()[0]);
  adam.train(0, 2);
  save_checkpoint(dir / "c", adam.parts());
  Training other(kinds()[2]), grouped(kinds()[1]);
  EXPECT_EQ(code(dir / "c", other), Code::Unsupported);
  EXPECT_EQ(code(dir / "c", grouped), Code::ShapeMismatch);
}

TEST_F(Refused, PartsThatOnlyOneHas) {
  Training run(kinds()[0]);
  save_checkpoint(dir / "bare", {run.model});
  EXPECT_EQ(code(dir / "bare", run), Code::MissingKeys);
  save_checkpoint(dir / "full", run.parts());
  EXPECT_EQ(error_of([&] { load_checkpoint(dir / "full", {run.model}); }).code(),
            Code::UnexpectedKeys);
}

TEST_F(Refused, DamagedStates) {
  Training run(kinds()[0]);
  run.train(0, 1);
  save_checkpoint(dir / "c", run.parts());
  const auto original = load_safetensors(dir / "c");
  const auto with = [&](const std::string& name, const at::Tensor& tensor) {
    auto tensors = original.tensors;
    tensors[name] = tensor;
    save_safetensors(dir / "bad", tensors, original.metadata);
    return code(dir / "bad", run);
  };
  EXPECT_EQ(with("optimizer.0.exp_avg", at::zeros({2})), Code::ShapeMismatch);
  EXPECT_EQ(with("generator.cpu", at::zeros({7}, at::kByte)), Code::Corrupt);
  EXPECT_EQ(with("model.out.bias", at::zeros({4})), Code::ShapeMismatch);

  for (const char* key : {"optimizer.0.step", "optimizer.group.0.lr", "scheduler.step"}) {
    auto metadata = original.metadata;
    metadata[key] = "many";
    save_safetensors(dir / "bad", original.tensors, metadata);
    EXPECT_EQ(code(dir / "bad", run), Code::Corrupt) << key;
  }
  Training fused(two_kinds("Adam", "FusedAdam").second);
  fused.train(0, 1);
  save_checkpoint(dir / "c", fused.parts());
  auto taken = load_safetensors(dir / "c");
  taken.metadata["optimizer.group.0.beta1"] = "1.5";  // a value that the optimiser rejects
  save_safetensors(dir / "bad", taken.tensors, taken.metadata);
  EXPECT_EQ(code(dir / "bad", fused), Code::Corrupt);

  auto metadata = original.metadata;
  metadata.erase("optimizer.group.0.lr");
  save_safetensors(dir / "bad", original.tensors, metadata);
  EXPECT_EQ(code(dir / "bad", run), Code::MissingKeys);
  save_safetensors(dir / "bad", original.tensors);
  EXPECT_EQ(code(dir / "bad", run), Code::Unsupported);
}

TEST_F(Refused, AnOptimizerOfAnotherKindCannotBeSaved) {
  Model model;
  torch::optim::RMSprop optimizer(model.parameters());
  const auto error = error_of([&] { save_checkpoint(dir / "c", {model, &optimizer}); });
  EXPECT_EQ(error.code(), Code::Unsupported);
  EXPECT_EQ(dir.entries(), 0u);
}

}  // namespace
}  // namespace posenc::testing::checkpoint_test
