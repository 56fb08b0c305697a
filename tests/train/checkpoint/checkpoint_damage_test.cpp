// Checkpoints with an optimiser or schedule that no run could have saved: the error names the
// entry, and the run is unchanged.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/nn/modules/linear.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/schedulers/step_lr.h>
#include <torch/optim/sgd.h>

#include <cmath>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "posenc/train/checkpoint.h"
#include "posenc/train/checkpointable.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/weights/safetensors.h"
#include "weights/support.h"

namespace posenc::testing {
namespace {

using Code = WeightsErrorCode;

struct DamagedKind {
  std::string name;
  std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<at::Tensor>)> make;
};
void PrintTo(const DamagedKind& kind, std::ostream* out) { *out << kind.name; }

template <typename Optimizer, typename Options>
DamagedKind kind(const std::string& name, const Options& options) {
  return {name, [=](std::vector<at::Tensor> parameters) {
            return std::make_unique<Optimizer>(std::move(parameters), options);
          }};
}

const std::vector<DamagedKind> kAdams = {
    kind<torch::optim::Adam>("Adam", torch::optim::AdamOptions(0.1)),
    kind<torch::optim::AdamW>("AdamW", torch::optim::AdamWOptions(0.1).amsgrad(true)),
    kind<FusedAdam>("FusedAdam", FusedAdamOptions(0.1)),
    kind<FusedAdamW>("FusedAdamW", FusedAdamWOptions(0.1).amsgrad(true)),
};
const std::vector<DamagedKind> kSgds = {
    kind<torch::optim::SGD>("SGD", torch::optim::SGDOptions(0.1).momentum(0.9)),
    kind<FusedSGD>("FusedSGD", FusedSGDOptions(0.1).momentum(0.9)),
};

struct Learner {
  explicit Learner(const DamagedKind& kind)
      : optimizer(kind.make(module->parameters())), scheduler(*optimizer, 3, 0.5) {}

  void step() {
    optimizer->zero_grad();
    module->forward(at::ones({2, 3})).square().sum().backward();
    optimizer->step();
    scheduler.step();
  }
  TrainingRun parts() { return {*module, optimizer.get(), &scheduler}; }

  torch::nn::Linear module{3, 2};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::optim::StepLR scheduler;
};

class Damaged : public ::testing::TestWithParam<DamagedKind> {
 protected:
  void SetUp() override {
    run_.step();
    save_checkpoint(dir_ / "c", run_.parts());
    file_ = load_safetensors(dir_ / "c");
    run_.step();  // so that a partial load would be visible
  }

  // Returns the error for the file, which must not change anything.
  std::string refused(const SafetensorsFile& file) {
    save_safetensors(dir_ / "bad", file.tensors, file.metadata);
    save_checkpoint(dir_ / "before", run_.parts());
    const auto text = refusal([&] { load_checkpoint(dir_ / "bad", run_.parts()); });
    save_checkpoint(dir_ / "after", run_.parts());
    EXPECT_EQ(read_bytes(dir_ / "after"), read_bytes(dir_ / "before")) << text;
    EXPECT_CONTAINS(text, "[load_checkpoint] " + (dir_ / "bad") + ": ");
    return text;
  }
  std::string with_value(const std::string& key, const std::string& value) {
    auto file = file_;
    EXPECT_EQ(file.metadata.count(key), 1u) << key;
    file.metadata[key] = value;
    return refused(file);
  }
  std::string with_tensor(const std::string& name, const at::Tensor& tensor) {
    auto file = file_;
    EXPECT_TRUE(file.tensors.contains(name)) << name;
    tensor.defined() ? void(file.tensors[name] = tensor) : file.tensors.erase(name);
    return refused(file);
  }

  const TempDir dir_;
  Learner run_{GetParam()};
  SafetensorsFile file_;
};

// Without a check, as assigning to `options.lr()` does.
void set_live_rate(torch::optim::Optimizer& optimizer, double rate) {
  optimizer.param_groups()[0].options().set_lr(rate);
}

class DamagedAdam : public Damaged {};

TEST_P(DamagedAdam, WithoutAMoment) {
  std::vector<std::string> moments = {"exp_avg", "exp_avg_sq"};
  if (file_.metadata.at("optimizer.group.0.amsgrad") == "1") moments.push_back("max_exp_avg_sq");
  for (const auto& moment : moments) {
    const std::string name = "optimizer.1." + moment;
    EXPECT_CONTAINS(with_tensor(name, {}), "MissingKeys: ");
    EXPECT_CONTAINS(with_tensor(name, {}), "tensor '" + name + "' is missing");
  }
}

TEST_P(DamagedAdam, AMomentOfAnotherKind) {
  const std::string name = "optimizer.0.exp_avg_sq";
  for (const auto type : {at::kDouble, at::kHalf, at::kLong, at::kBool}) {
    const auto text = with_tensor(name, at::zeros({2, 3}, type));
    EXPECT_CONTAINS(text, "DtypeMismatch: ");
    EXPECT_CONTAINS(text,
                    "tensor '" + name + "' must have the dtype of its parameter, float32. Got");
  }
  EXPECT_CONTAINS(with_tensor(name, at::zeros({3, 2})),
                  "the shape of its parameter, [2, 3]. Got [3, 2]");
}

TEST_P(DamagedAdam, AnInvalidCount) {
  for (const char* value :
       {"-1", "9007199254740993", "1.5", "nan", "", "-0x1", "99999999999999999999"}) {
    const auto text = with_value("optimizer.0.step", value);
    EXPECT_CONTAINS(text, "Corrupt: ");
    EXPECT_CONTAINS(text, "as the metadata 'optimizer.0.step'. Got '" + std::string(value) + "'");
  }
}

TEST_P(DamagedAdam, OptionsOutOfRange) {
  for (const auto& [option, values] : std::vector<std::pair<std::string, std::vector<std::string>>>{
           {"lr", {"-0.1", "nan", "inf", "-inf"}},
           {"beta1", {"1", "-0.1", "nan"}},
           {"beta2", {"1.5", "-0.1", "inf"}},
           {"eps", {"-1e-8", "nan", "inf"}},
           {"weight_decay", {"-1", "nan", "inf"}}}) {
    for (const auto& value : values) {
      const auto text = with_value("optimizer.group.0." + option, value);
      EXPECT_CONTAINS(text, "Corrupt: ");
      EXPECT_CONTAINS(text, option.substr(0, 4));
      EXPECT_CONTAINS(text, "Got ");
    }
  }
  EXPECT_CONTAINS(with_value("optimizer.group.0.lr", "nan"),
                  "must have a finite number as the metadata 'optimizer.group.0.lr'. Got nan");
  EXPECT_CONTAINS(with_value("optimizer.group.0.lr", "-0.5"), "for group 0");
}

// As in Python, where schedules end with this rate.
TEST_P(DamagedAdam, ARateOfZeroIsValid) {
  auto file = file_;
  file.metadata["optimizer.group.0.lr"] = "0";
  save_safetensors(dir_ / "zero", file.tensors, file.metadata);
  load_checkpoint(dir_ / "zero", run_.parts());
  EXPECT_EQ(run_.optimizer->param_groups()[0].options().get_lr(), 0.0);
}

// A live rate that the optimiser would not take is written through a reference: a load that fails
// leaves it, and one of the whole file replaces it. References stay valid.
TEST_P(Damaged, AfterARateThatNoOptimizerTakes) {
  auto& options = run_.optimizer->param_groups()[0].options();
  const double rate = std::stod(file_.metadata.at("optimizer.group.0.lr"));
  for (const double live : {-1.0, std::nan("")}) {
    set_live_rate(*run_.optimizer, live);
    auto bad = file_;
    bad.metadata["optimizer.group.0.weight_decay"] = "-1";
    save_safetensors(dir_ / "bad", bad.tensors, bad.metadata);
    EXPECT_CONTAINS(refusal([&] { load_checkpoint(dir_ / "bad", run_.parts()); }),
                    "that the optimiser takes");
    EXPECT_EQ(&run_.optimizer->param_groups()[0].options(), &options);
    EXPECT_EQ(c10::str(options.get_lr()), c10::str(live));
    load_checkpoint(dir_ / "c", run_.parts());
    EXPECT_EQ(&run_.optimizer->param_groups()[0].options(), &options);
    EXPECT_EQ(options.get_lr(), rate);
  }
}

TEST_P(Damaged, AnInvalidFlag) {
  for (const char* value : {"2", "-1", "yes"}) {
    EXPECT_CONTAINS(with_value("optimizer.0.has_state", value), "'optimizer.0.has_state'. Got '");
  }
}

TEST_P(Damaged, AnotherVersion) {
  EXPECT_CONTAINS(with_value("posenc.checkpoint", "2"),
                  "must be a file of save_checkpoint(), version 1. Got version 2");
}

// Options are tried on the optimiser before the states are checked.
TEST_P(Damaged, AStateAfterOtherOptions) {
  file_.metadata["optimizer.group.0.lr"] = "0.03125";
  EXPECT_CONTAINS(with_value("optimizer.0.has_state", "2"), "'optimizer.0.has_state'. Got '2'");
}

TEST_P(Damaged, StepsOfTheScheduleOutOfRange) {
  for (const char* value : {"-1", "4294967296", "1e3", "nan"}) {
    const auto text = with_value("scheduler.step", value);
    EXPECT_CONTAINS(text, "Corrupt: ");
    EXPECT_CONTAINS(text, "as the metadata 'scheduler.step'. Got '" + std::string(value) + "'");
  }
}

class DamagedSgd : public Damaged {};

TEST_P(DamagedSgd, BufferAndOptions) {
  const std::string name = "optimizer.0.momentum_buffer";
  EXPECT_CONTAINS(with_tensor(name, at::zeros({2, 3}, at::kDouble)), "DtypeMismatch: ");
  EXPECT_CONTAINS(with_tensor(name, at::zeros({2})), "ShapeMismatch: ");
  for (const char* value : {"-0.1", "nan", "inf"}) {
    EXPECT_CONTAINS(with_value("optimizer.group.0.momentum", value), "Corrupt: ");
  }
  EXPECT_CONTAINS(with_value("optimizer.group.0.dampening", "nan"), "Corrupt: ");
}

// As in a run without momentum: the next step creates a buffer.
TEST_P(DamagedSgd, AStateWithoutABufferIsIgnored) {
  auto file = file_;
  file.tensors.erase("optimizer.0.momentum_buffer");
  save_safetensors(dir_ / "none", file.tensors, file.metadata);
  load_checkpoint(dir_ / "none", run_.parts());
  EXPECT_EQ(run_.optimizer->state().size(), 1u);
  run_.step();
  EXPECT_TRUE(run_.module->weight.isfinite().all().item<bool>());
}

const auto kName = [](const auto& info) { return info.param.name; };
INSTANTIATE_TEST_SUITE_P(All, Damaged, ::testing::Values(kAdams[0], kAdams[3], kSgds[0], kSgds[1]),
                         kName);
INSTANTIATE_TEST_SUITE_P(All, DamagedAdam, ::testing::ValuesIn(kAdams), kName);
INSTANTIATE_TEST_SUITE_P(All, DamagedSgd, ::testing::ValuesIn(kSgds), kName);

// Flags of LibTorch's optimisers are stored as numbers.
TEST(DamagedFlags, AreNeitherOnNorOff) {
  const TempDir dir;
  Learner run(kAdams[0]);
  save_checkpoint(dir / "c", run.parts());
  auto file = load_safetensors(dir / "c");
  file.metadata["optimizer.group.0.amsgrad"] = "0.5";
  save_safetensors(dir / "c", file.tensors, file.metadata);
  EXPECT_CONTAINS(refusal([&] { load_checkpoint(dir / "c", run.parts()); }),
                  "[Adam] amsgrad must be 0 or 1. Got 0.5");
}

// LibTorch's moments keep their dtype if a module is converted during a run.
TEST(Checkpoint, MomentsThatCouldNotBeLoadedAreNotSaved) {
  const TempDir dir;
  Learner run(kAdams[0]);
  run.step();
  run.module->to(at::kDouble);
  const auto text = refusal([&] { save_checkpoint(dir / "c", run.parts()); });
  EXPECT_CONTAINS(text, "DtypeMismatch: ");
  EXPECT_CONTAINS(text, "must have the dtype of its parameter, float64. Got float32");
  EXPECT_EQ(dir.entries(), 0u);
}

// An optimiser that keeps its options in a list of its own.
class WithOwnList : public torch::optim::SGD, public CheckpointableOptimizer {
 public:
  explicit WithOwnList(std::vector<at::Tensor> parameters)
      : SGD(std::move(parameters), torch::optim::SGDOptions(0.1)), rates{0.1} {}
  std::string rule() const override { return "own"; }
  NamedOptions named_options(std::size_t group) const override { return {{"rate", rates[group]}}; }
  void set_named_options(std::size_t group, const NamedOptions& options) override {
    const double rate = options.at("rate");
    TORCH_CHECK_VALUE(rate >= 0.0, "[own] rate must be at least 0. Got ", rate);
    rates[group] = rate;
  }
  std::vector<double> rates;
};

// What it takes of a file is set back where the rest of the file cannot be loaded.
TEST(Checkpoint, AnOptimisersOwnListIsAsItWasAfterAnError) {
  const TempDir dir;
  torch::nn::Linear first(3, 2), second(3, 2);
  torch::nn::ModuleList module(first, second);
  WithOwnList optimizer(first->parameters());
  optimizer.add_param_group(torch::optim::OptimizerParamGroup(second->parameters()));
  optimizer.rates = {0.1, 0.2};
  save_checkpoint(dir / "c", {*module, &optimizer});
  auto file = load_safetensors(dir / "c");
  file.metadata.at("optimizer.group.1.rate") = "-1";
  save_safetensors(dir / "bad", file.tensors, file.metadata);
  optimizer.rates = {0.3, 0.4};
  EXPECT_CONTAINS(refusal([&] { load_checkpoint(dir / "bad", {*module, &optimizer}); }),
                  "rate must be at least 0");
  EXPECT_EQ(optimizer.rates, (std::vector<double>{0.3, 0.4}));
  load_checkpoint(dir / "c", {*module, &optimizer});
  EXPECT_EQ(optimizer.rates, (std::vector<double>{0.1, 0.2}));
}

}  // namespace
}  // namespace posenc::testing
