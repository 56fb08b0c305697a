// A training step of the base Transformer (d 512, 6 + 6 layers, one matrix of 32,000 tokens: 60 M
// parameters), 16 x 64 tokens, dropout 0.1, Adam: with the fused optimiser, with LibTorch's own,
// and in Python with the fused one. By two threads.

#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/nn/functional/loss.h>
#include <torch/optim/adam.h>

#include <chrono>
#include <cmath>
#include <memory>

#include "posenc/io/load.h"
#include "posenc/models/transformer.h"
#include "posenc/train/fused_adam.h"
#include "python_peer.h"

namespace {

constexpr int64_t kVocabulary = 32000, kLength = 64;
constexpr double kRate = 1e-4, kEpsilon = 1e-9, kNear = 1e-4;
const std::tuple<double, double> kBetas = {0.9, 0.98};

struct Peer {
  posenc::PythonPeer python{"train_peers.py"};
  posenc::StateDict tensors = posenc::load_tensors(python.file("model.safetensors"));
};

Peer& peer() {
  static Peer only;
  return only;
}

// A model of its own with Python's weights.
struct Training {
  explicit Training(bool fused) {
    posenc::load_weights(*model, peer().python.file("model.safetensors"),
                         posenc::LoadOptions().prefix("param."));
    if (fused) {
      optimizer = std::make_unique<posenc::FusedAdam>(
          model->parameters(), posenc::FusedAdamOptions(kRate).betas(kBetas).eps(kEpsilon));
    } else {
      optimizer = std::make_unique<torch::optim::Adam>(
          model->parameters(), torch::optim::AdamOptions(kRate).betas(kBetas).eps(kEpsilon));
    }
    const torch::NoGradGuard no_grad;
    model->eval();
    const double expected = peer().tensors["loss"].item<double>();
    same = std::abs(loss().item<double>() - expected) < kNear * expected;
    model->train();
  }

  torch::Tensor loss() {
    const auto& tensors = peer().tensors;
    const auto logits = model->forward(tensors["src"], tensors["tgt"], {},
                                       posenc::AttentionMask::causal());  // (B, L, V)
    return torch::nn::functional::cross_entropy(
        logits.flatten(0, 1), tensors["labels"].flatten(),
        torch::nn::functional::CrossEntropyFuncOptions().label_smoothing(0.1));
  }
  void step() {
    optimizer->zero_grad();
    loss().backward();
    optimizer->step();
  }

  posenc::Transformer model{posenc::TransformerOptions(kVocabulary, kVocabulary)
                                .max_len(kLength)
                                .tie(posenc::Tying::ThreeWay)};
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  bool same = false;
};

void ours(benchmark::State& state, bool fused) {
  at::set_num_threads(static_cast<int>(state.range(0)));
  static std::unique_ptr<Training> both[2];
  auto& training = both[fused];
  if (!training) training = std::make_unique<Training>(fused);
  if (!training->same) state.SkipWithError("not Python's loss");
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    training->step();
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    state.SetIterationTime(taken.count());
  }
}

void in_python(benchmark::State& state) {
  for (auto _ : state)
    state.SetIterationTime(peer().python.seconds(std::to_string(state.range(0))));
}

const bool registered = [] {
  const auto add = [](const char* name, auto body) {
    benchmark::RegisterBenchmark(name, body)
        ->UseManualTime()
        ->Unit(benchmark::kMillisecond)
        ->Arg(2);
  };
  add("transformer/train/posenc", [](benchmark::State& state) { ours(state, true); });
  add("transformer/train/libtorch", [](benchmark::State& state) { ours(state, false); });
  add("transformer/train/python_fused", in_python);
  return true;
}();

}  // namespace
