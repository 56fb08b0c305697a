#include "posenc/positions/nn/layer_norm.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"

namespace posenc::stages {
namespace {

constexpr double kStageEps = 1e-5;  // torch.nn.LayerNorm's

class LayerNormModule : public Cloneable<LayerNormModule>, public StageModule {
 public:
  explicit LayerNormModule(int64_t dimension) : dimension_(dimension) { LayerNormModule::reset(); }

  void reset() override {
    norm = register_module("norm", posenc::LayerNorm(LayerNormOptions(dimension_).eps(kStageEps)));
  }
  void reset_parameters() override { norm->reset_parameters(); }

  posenc::LayerNorm norm{nullptr};

 private:
  int64_t dimension_;
};

sentence::Stage read_layer_norm(const Settings& config) {
  return sentence::LayerNorm{config.integer("dimension", 1, kWidest)};
}

void follow_layer_norm(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  widths.check_width(sentence::Feature::Sentence, place, "dimension",
                     std::get<sentence::LayerNorm>(any).dimension);
}

void run_layer_norm(const sentence::Stage&, const StageRun& run) {
  run.features.sentence = run.module->as<LayerNormModule>()->norm->forward(run.features.sentence);
}

std::shared_ptr<torch::nn::Module> make_layer_norm(const sentence::Stage& any) {
  return std::make_shared<LayerNormModule>(std::get<sentence::LayerNorm>(any).dimension);
}

}  // namespace

const StageKind kLayerNorm = {.name = "LayerNorm",
                              .read = read_layer_norm,
                              .follow = follow_layer_norm,
                              .run = run_layer_norm,
                              .make = make_layer_norm};

}  // namespace posenc::stages
