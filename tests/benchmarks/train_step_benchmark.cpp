// A training step of a whole Transformer: forward, label-smoothed loss, backward, clipping, Adam.
// `task`: the model of `make pronounce` on 256 words of 7 letters; `base`: 60 million parameters,
// 16 x 64 tokens, dropout 0.1. Names end in the number of threads.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>
#include <torch/nn/utils/clip_grad.h>
#include <torch/optim/adam.h>

#include <map>
#include <memory>
#include <string>

#include "posenc/functional/token_cross_entropy.h"
#include "posenc/io/load.h"
#include "posenc/models/transformer.h"
#include "posenc/train/fused_adam.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

using posenc::TransformerOptions;

TransformerOptions options_of(const std::string& model) {
  if (model == "base") {
    return TransformerOptions(32000, 32000).tie(posenc::Tying::ThreeWay).max_len(64);
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

posenc::PythonPeer& python() {
  static posenc::PythonPeer peer("train_step_peers.py");
  return peer;
}

struct Step {
  Step(const std::string& name, bool fused) : model(options_of(name)) {
    python().seconds("make " + name);
    const auto file = python().file(name + ".safetensors");
    posenc::load_weights(*model, file,
                         posenc::LoadOptions().prefix("param.").allow_unexpected(true));
    const auto tensors = posenc::load_tensors(file);
    src = tensors["src"], tgt = tensors["tgt"];
    const double lr = 1e-4;
    const std::tuple<double, double> betas(0.9, 0.98);
    if (fused) {
      optimizer = std::make_unique<posenc::FusedAdam>(
          model->parameters(), posenc::FusedAdamOptions(lr).betas(betas).eps(1e-9));
    } else {
      optimizer = std::make_unique<torch::optim::Adam>(
          model->parameters(), torch::optim::AdamOptions(lr).betas(betas).eps(1e-9));
    }
    model->eval();
    same = at::allclose(loss().detach(), tensors["loss"], 1e-5, 1e-5);
    model->train();
  }

  torch::Tensor loss() {
    const auto logits =
        model->forward(src, tgt.slice(1, 0, -1), {}, posenc::AttentionMask::causal());
    return posenc::functional::token_cross_entropy(
        logits, tgt.slice(1, 1),
        posenc::functional::TokenCrossEntropyFuncOptions().label_smoothing(0.1).ignore_index(0));
  }

  void run() {
    optimizer->zero_grad();
    loss().backward();
    torch::nn::utils::clip_grad_norm_(model->parameters(), 1.0);
    optimizer->step();
  }

  posenc::Transformer model;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  torch::Tensor src, tgt;
  bool same = false;
};

void ours(benchmark::State& state, const std::string& name, bool fused) {
  static std::map<std::pair<std::string, bool>, std::unique_ptr<Step>> made;
  const posenc::testing::Threads guard(static_cast<int>(state.range(0)));
  auto& step = made[{name, fused}];
  if (!step) step = std::make_unique<Step>(name, fused);
  if (!step->same) state.SkipWithError("the loss differs from Python's");
  posenc::benchmarks::timed(state, [&] { step->run(); });
}

void eager(benchmark::State& state, const std::string& name) {
  const auto call = "step " + name + " " + std::to_string(state.range(0));
  for (auto _ : state) state.SetIterationTime(python().seconds(call));
}

const bool registered = [] {
  for (const std::string name : {"task", "base"}) {
    const auto add = [&](const std::string& who, auto work) {
      benchmark::RegisterBenchmark(("train_step/" + who + "/" + name).c_str(), work)
          ->Arg(2)
          ->UseManualTime()
          ->Unit(benchmark::kMillisecond);
    };
    add("posenc", [name](benchmark::State& state) { ours(state, name, true); });
    add("eager", [name](benchmark::State& state) { eager(state, name); });
    if (name == "base")
      add("libtorch", [name](benchmark::State& state) { ours(state, name, false); });
  }
  return true;
}();

}  // namespace
