#include <ATen/TensorOperators.h>
#include <ATen/ops/ones.h>
#include <c10/util/Exception.h>

#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"

namespace posenc::stages {
namespace {

using sentence::WeightedLayerPooling;

constexpr int64_t kMostLayers = 1 << 16;

class WeightedLayerPoolingModule : public Cloneable<WeightedLayerPoolingModule>,
                                   public StageModule {
 public:
  explicit WeightedLayerPoolingModule(const WeightedLayerPooling& stage) : stage_(stage) {
    WeightedLayerPoolingModule::reset();
  }

  void reset() override {
    layer_weights = register_parameter(
        "layer_weights", at::ones({stage_.num_hidden_layers + 1 - stage_.layer_start}));
  }
  void reset_parameters() override {
    const torch::NoGradGuard no_grad;
    layer_weights.fill_(1.0);
  }

  at::Tensor layer_weights;

 private:
  WeightedLayerPooling stage_;
};

sentence::Stage read_weighted_layers(const Settings& config) {
  WeightedLayerPooling stage;
  stage.num_hidden_layers =
      config.integer("num_hidden_layers", stage.num_hidden_layers, 1, kMostLayers);
  stage.layer_start = config.integer("layer_start", stage.layer_start, 0, stage.num_hidden_layers);
  return stage;
}

void follow_weighted_layers(const sentence::Stage& any, const StagePlace& place,
                            StageWidths& widths) {
  const auto& stage = std::get<WeightedLayerPooling>(any);
  widths.check_there(sentence::Feature::Tokens, place);
  TORCH_CHECK_VALUE(stage.layer_start >= 0 && stage.layer_start <= stage.num_hidden_layers, place,
                    ": layer_start must be from 0 to num_hidden_layers, ", stage.num_hidden_layers,
                    ". Got ", stage.layer_start);
  widths.tokens = widths.d_model;
}

void run_weighted_layers(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<WeightedLayerPooling>(any);
  const StageInputs& inputs = run.inputs;
  const auto count = static_cast<int64_t>(inputs.hidden_states.size());
  TORCH_CHECK_VALUE(count == stage.num_hidden_layers + 1, run.place,
                    ": hidden_states must be the embeddings and the output of each of its "
                    "num_hidden_layers, ",
                    stage.num_hidden_layers, ". Got ", count, " hidden states");
  const at::Tensor weights = run.module->as<WeightedLayerPoolingModule>()->layer_weights;
  at::Tensor sum;
  for (int64_t i = stage.layer_start; i < count; ++i) {
    const at::Tensor& state = inputs.hidden_states[static_cast<std::size_t>(i)];
    TORCH_CHECK_VALUE(state.sizes() == inputs.sizes, "[SentenceStages] each of hidden_states ",
                      "must be of the size of hidden, ", inputs.sizes, ". Got ", state.sizes());
    const at::Tensor part = state * weights[i - stage.layer_start];
    sum = sum.defined() ? sum + part : part;
  }
  run.features.tokens = sum / weights.sum();
  run.features.mask = inputs.mask;
  run.features.ids = inputs.ids;
}

std::shared_ptr<torch::nn::Module> make_weighted_layers(const sentence::Stage& any) {
  return std::make_shared<WeightedLayerPoolingModule>(std::get<WeightedLayerPooling>(any));
}

// Averages of layers act only if the encoder returns all of its layers.
bool weighted_layers_act(const Settings& encoder) {
  return encoder.flag("output_hidden_states", false);
}

}  // namespace

const StageKind kWeightedLayerPooling = {.name = "WeightedLayerPooling",
                                         .read = read_weighted_layers,
                                         .follow = follow_weighted_layers,
                                         .run = run_weighted_layers,
                                         .make = make_weighted_layers,
                                         .acts = weighted_layers_act,
                                         .may_lack_settings = true};

}  // namespace posenc::stages
