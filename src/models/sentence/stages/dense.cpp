#include <torch/nn/modules/linear.h>

#include <tuple>
#include <utility>

#include "core/check.h"
#include "models/sentence/stage_settings.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"
#include "positions/nn/weights.h"

namespace posenc::stages {
namespace {

using sentence::Dense;

class DenseModule : public Cloneable<DenseModule>, public StageModule {
 public:
  explicit DenseModule(const Dense& stage) : stage_(stage) { DenseModule::reset(); }

  void reset() override {
    const torch::nn::LinearOptions sizes(stage_.in_features, stage_.out_features);
    linear =
        register_module("linear", make_linear(torch::nn::LinearOptions(sizes).bias(stage_.bias)));
    if (!stage_.use_residual || stage_.in_features == stage_.out_features) return;
    residual =
        register_module("residual", make_linear(torch::nn::LinearOptions(sizes).bias(false)));
  }
  void reset_parameters() override {
    linear->reset_parameters();
    if (residual) residual->reset_parameters();
  }

  torch::nn::Linear linear{nullptr}, residual{nullptr};

 private:
  Dense stage_;
};

// Without the setting it is Tanh.
Activation activation_of_dense(const Settings& config) {
  constexpr const char* kActivationFunction = "activation_function";
  if (!config.mentions(kActivationFunction)) return Activation::Tanh;
  return activation_at(config, kActivationFunction);
}

sentence::Stage read_dense(const Settings& config) {
  Dense dense = {config.integer("in_features", 1, kWidest),
                 config.integer("out_features", 1, kWidest)};
  dense.bias = config.flag("bias", true);
  dense.activation = activation_of_dense(config);
  dense.use_residual = config.flag("use_residual", false);
  std::tie(dense.input, dense.output) = features_in(config);
  return dense;
}

void follow_dense(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<Dense>(any);
  check_positive("SentenceStages", "out_features", stage.out_features);
  widths.check_width(stage.input, place, "in_features", stage.in_features);
  widths.of(stage.output) = stage.out_features;
}

void run_dense(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<Dense>(any);
  auto& module = *run.module->as<DenseModule>();
  const at::Tensor& x = run.features.of(stage.input);
  at::Tensor y = functional::activate(module.linear->forward(x), stage.activation);
  if (stage.use_residual) y = y + (module.residual ? module.residual->forward(x) : x);
  run.features.of(stage.output) = y;
}

std::shared_ptr<torch::nn::Module> make_dense(const sentence::Stage& any) {
  return std::make_shared<DenseModule>(std::get<Dense>(any));
}

}  // namespace

const StageKind kDense = {.name = "Dense",
                          .read = read_dense,
                          .follow = follow_dense,
                          .run = run_dense,
                          .make = make_dense,
                          .takes_rows = true};

}  // namespace posenc::stages
