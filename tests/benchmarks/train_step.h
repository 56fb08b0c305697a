#pragma once

#include <ATen/ops/allclose.h>
#include <torch/optim/adam.h>

#include <memory>
#include <string>
#include <tuple>

#include "posenc/train/fused_adam.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"

namespace posenc::benchmarks {

/// `task`: the model of `make pronounce`; `base`: 60 million parameters.
inline TransformerOptions train_step_options(const std::string& model) {
  if (model == "base") {
    return TransformerOptions(32000, 32000).tie(Tying::ThreeWay).max_len(64);
  }
  return TransformerOptions(27, 42)
      .d_model(96)
      .num_heads(4)
      .num_encoder_layers(2)
      .num_decoder_layers(2)
      .d_ff(384)
      .max_len(64)
      .dropout(0.0)
      .norm_first(true);
}

/// What a training step needs, with the weights and the batch of a file that train_step_peers.py
/// wrote.
struct TrainStep {
  TrainStep(const std::string& name, const std::string& file, bool fused)
      : model(train_step_options(name)) {
    load_weights(*model, file, LoadOptions().prefix("param.").allow_unexpected(true));
    const auto tensors = load_tensors(file);
    src = tensors["src"], tgt = tensors["tgt"];
    const double lr = 1e-4;
    const std::tuple<double, double> betas(0.9, 0.98);
    if (fused) {
      optimizer = std::make_unique<FusedAdam>(model->parameters(),
                                              FusedAdamOptions(lr).betas(betas).eps(1e-9));
    } else {
      optimizer = std::make_unique<torch::optim::Adam>(
          model->parameters(), torch::optim::AdamOptions(lr).betas(betas).eps(1e-9));
    }
    model->eval();
    same = at::allclose(loss(src, tgt).detach(), tensors["loss"], 1e-5, 1e-5);
    model->train();
  }

  torch::Tensor loss(const torch::Tensor& from, const torch::Tensor& to) {
    const auto logits = model->forward(from, to.slice(1, 0, -1), {}, AttentionMask::causal());
    return functional::token_cross_entropy(
        logits, to.slice(1, 1),
        functional::TokenCrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(0));
  }

  Transformer model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::Tensor src, tgt;
  bool same = false;  ///< whether the loss is Python's
};

}  // namespace posenc::benchmarks
