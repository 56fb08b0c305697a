#include <ATen/TensorOperators.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/util/Exception.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "core/check.h"
#include "models/sentence/stages/stage_kind.h"
#include "posenc/core/cloneable.h"
#include "positions/nn/weights.h"

namespace posenc::stages {
namespace {

using sentence::SparseAutoEncoder;

constexpr double kStdEps = 1e-5;

class SparseAutoEncoderModule : public Cloneable<SparseAutoEncoderModule>, public StageModule {
 public:
  explicit SparseAutoEncoderModule(const SparseAutoEncoder& stage) : stage_(stage) {
    SparseAutoEncoderModule::reset();
  }

  void reset() override {
    pre_bias = register_parameter("pre_bias", at::zeros({stage_.input_dim}));
    encoder = register_module(
        "encoder",
        make_linear(torch::nn::LinearOptions(stage_.input_dim, stage_.hidden_dim).bias(false)));
    latent_bias = register_parameter("latent_bias", at::zeros({stage_.hidden_dim}));
    register_buffer("stats_last_nonzero", at::zeros({stage_.hidden_dim}, at::kLong));
  }
  void reset_parameters() override {
    const torch::NoGradGuard no_grad;
    pre_bias.zero_();
    latent_bias.zero_();
    encoder->reset_parameters();
  }

  at::Tensor pre_bias, latent_bias;
  torch::nn::Linear encoder{nullptr};

 private:
  SparseAutoEncoder stage_;
};

sentence::Stage read_auto_encoder(const Settings& config) {
  SparseAutoEncoder stage = {config.integer("input_dim", 1, kWidest)};
  stage.hidden_dim = config.integer("hidden_dim", stage.hidden_dim, 1, kWidest);
  stage.k = config.integer("k", stage.k, 1, kWidest);
  stage.normalize = config.flag("normalize", false);
  return stage;
}

void follow_auto_encoder(const sentence::Stage& any, const StagePlace& place, StageWidths& widths) {
  const auto& stage = std::get<SparseAutoEncoder>(any);
  check_positive("SentenceStages", "hidden_dim", stage.hidden_dim);
  check_positive("SentenceStages", "k", stage.k);
  widths.check_width(sentence::Feature::Sentence, place, "input_dim", stage.input_dim);
  widths.sentence = stage.hidden_dim;
}

void run_auto_encoder(const sentence::Stage& any, const StageRun& run) {
  const auto& stage = std::get<SparseAutoEncoder>(any);
  const auto& module = *run.module->as<SparseAutoEncoderModule>();
  at::Tensor x = run.features.sentence;
  if (stage.normalize) {
    x = x - x.mean(-1, /*keepdim=*/true);
    x = x / (x.std(-1, /*unbiased=*/true, /*keepdim=*/true) + kStdEps);
  }
  const at::Tensor z = at::linear(x - module.pre_bias, module.encoder->weight, module.latent_bias);
  const int64_t kept = run.inputs.max_active_dims.value_or(stage.k);
  TORCH_CHECK_VALUE(kept <= stage.hidden_dim, run.place,
                    ": k, or max_active_dims in its place, must be at most hidden_dim, ",
                    stage.hidden_dim, ". Got ", kept);
  const auto [values, indices] = z.topk(kept, -1);
  run.features.sentence = at::zeros_like(z).scatter(-1, indices, values.relu());
}

std::shared_ptr<torch::nn::Module> make_auto_encoder(const sentence::Stage& any) {
  return std::make_shared<SparseAutoEncoderModule>(std::get<SparseAutoEncoder>(any));
}

// The decoder, which training alone has, is the encoder's weight once more; of both names a file of
// safetensors has one.
KeyMap key_map_of_auto_encoder(const std::vector<std::string>& names) {
  const bool has_both = std::find(names.begin(), names.end(), "encoder.weight") != names.end();
  return {{"decoder.linear.weight", has_both ? "" : "encoder.weight"}};
}

}  // namespace

const StageKind kSparseAutoEncoder = {.name = "SparseAutoEncoder",
                                      .read = read_auto_encoder,
                                      .follow = follow_auto_encoder,
                                      .run = run_auto_encoder,
                                      .make = make_auto_encoder,
                                      .key_map = key_map_of_auto_encoder};

}  // namespace posenc::stages
