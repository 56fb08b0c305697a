// A training step of a whole Transformer: forward, label-smoothed loss, backward, clipping, Adam.
// `task`: the model of `make pronounce` on 256 words of 7 letters; `base`: 60 million parameters,
// 16 x 64 tokens, dropout 0.1. Names end in the number of threads.

#include <benchmark/benchmark.h>
#include <torch/nn/utils/clip_grad.h>

#include <map>
#include <memory>
#include <string>

#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"
#include "train_step.h"

namespace {

using posenc::benchmarks::TrainStep;

posenc::PythonPeer& python() {
  static posenc::PythonPeer peer("train_step_peers.py");
  return peer;
}

// Made by Python, with its loss.
std::unique_ptr<TrainStep> made(const std::string& name, bool fused) {
  python().seconds("make " + name);
  return std::make_unique<TrainStep>(name, python().file(name + ".safetensors"), fused);
}

void ours(benchmark::State& state, const std::string& name, bool fused) {
  static std::map<std::pair<std::string, bool>, std::unique_ptr<TrainStep>> steps;
  const posenc::testing::Threads guard(static_cast<int>(state.range(0)));
  auto& step = steps[{name, fused}];
  if (!step) step = made(name, fused);
  if (!step->same) state.SkipWithError("the loss differs from Python's");
  posenc::benchmarks::timed(state, [&] {
    step->optimizer->zero_grad();
    step->loss(step->src, step->tgt).backward();
    torch::nn::utils::clip_grad_norm_(step->model->parameters(), 1.0);
    step->optimizer->step();
  });
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
