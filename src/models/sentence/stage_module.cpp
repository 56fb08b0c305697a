#include "models/sentence/stage_module.h"

#include <ATen/ops/ones.h>
#include <torch/nn/modules/conv.h>

#include <utility>

#include "positions/nn/weights.h"

namespace posenc {
namespace {

constexpr double kStageEps = 1e-5;  // torch.nn.LayerNorm's

// The buffer is the weight of an embedding in sentence-transformers.
class WordWeightBuffer : public Cloneable<WordWeightBuffer> {
 public:
  explicit WordWeightBuffer(int64_t vocab_size) : vocab_size_(vocab_size) {
    WordWeightBuffer::reset();
  }

  void reset() override { weight = register_buffer("weight", at::ones({vocab_size_, 1})); }

  at::Tensor weight;

 private:
  int64_t vocab_size_;
};

}  // namespace

struct StageModule::Register {
  StageModule& module;

  template <typename Other>
  void operator()(const Other&) const {}  // has no weights
  void operator()(const sentence::Dense& stage) const {
    const torch::nn::LinearOptions sizes(stage.in_features, stage.out_features);
    module.linear = module.register_module(
        "linear", make_linear(torch::nn::LinearOptions(sizes).bias(stage.bias)));
    if (!stage.use_residual || stage.in_features == stage.out_features) return;
    module.residual = module.register_module(
        "residual", make_linear(torch::nn::LinearOptions(sizes).bias(false)));
  }
  void operator()(const sentence::LayerNorm& stage) const {
    module.norm = module.register_module(
        "norm", posenc::LayerNorm(LayerNormOptions(stage.dimension).eps(kStageEps)));
  }
  void operator()(const sentence::WeightedLayerPooling& stage) const {
    module.layer_weights = module.register_parameter(
        "layer_weights", at::ones({stage.num_hidden_layers + 1 - stage.layer_start}));
  }
  void operator()(const sentence::WordWeights& stage) const {
    const auto table = std::make_shared<WordWeightBuffer>(stage.vocab_size);
    module.register_module("emb_layer", table);
    module.word_weights = table->weight;
  }
  void operator()(const sentence::CNN& stage) const {
    torch::nn::ModuleList convolutions;
    for (std::size_t i = 0; i < stage.kernel_sizes.size(); ++i) {
      const int64_t kernel = stage.kernel_sizes[i];
      convolutions->push_back(torch::nn::Conv1d(
          torch::nn::Conv1dOptions(stage.in_embedding_dimension, stage.out_channels, kernel)
              .stride(stage.stride_sizes.empty() ? 1 : stage.stride_sizes[i])
              .padding((kernel - 1) / 2)));
    }
    module.convs = module.register_module("convs", convolutions);
  }
};

StageModule::StageModule(sentence::Stage stage) : stage_(std::move(stage)) { StageModule::reset(); }

bool StageModule::is_needed(const sentence::Stage& stage) {
  using namespace sentence;
  return std::holds_alternative<Dense>(stage) ||
         std::holds_alternative<sentence::LayerNorm>(stage) ||
         std::holds_alternative<WeightedLayerPooling>(stage) ||
         std::holds_alternative<WordWeights>(stage) || std::holds_alternative<CNN>(stage);
}

void StageModule::reset() { std::visit(Register{*this}, stage_); }

void StageModule::reset_parameters() {
  const torch::NoGradGuard no_grad;
  for (const auto& part : modules(/*include_self=*/false)) {
    if (auto* of_dense = part->as<torch::nn::LinearImpl>()) of_dense->reset_parameters();
    if (auto* of_norm = part->as<LayerNormImpl>()) of_norm->reset_parameters();
    if (auto* convolution = part->as<torch::nn::Conv1dImpl>()) convolution->reset_parameters();
  }
  if (layer_weights.defined()) layer_weights.fill_(1.0);
}

}  // namespace posenc
