// A training step of the embedding alone: forward, dropout, backward, SGD with a sparse gradient;
// ours against LibTorch's modules and optimiser. Names end in tokens/width/threads.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <map>
#include <memory>
#include <string>

#include "benchmarks/embed_inputs.h"
#include "posenc/train/fused_sgd.h"

namespace {

using posenc::benchmarks::embed_ids;
using posenc::benchmarks::embed_models;
using posenc::benchmarks::EmbedModels;

constexpr double kRate = 0.1;

struct Step {
  Step(int64_t tokens, int64_t dim, bool ours)
      : models(embed_models(dim, at::kFloat, /*sparse=*/true)), ours(ours), ids(embed_ids(tokens)) {
    models.train(true);
    const at::Tensor weight = ours ? models.ours->token_embedding->weight : models.theirs->weight;
    torch::manual_seed(4);
    cotangent = at::randn({ids.size(0), ids.size(1), dim});
    if (ours)
      optimizer = std::make_unique<posenc::FusedSGD>(std::vector{weight}, kRate);
    else
      optimizer = std::make_unique<torch::optim::SGD>(std::vector{weight}, kRate);
  }
  void run() {
    optimizer->zero_grad();
    (ours ? models.ours->forward(ids) : models.composed(ids)).backward(cotangent);
    optimizer->step();
  }

  EmbedModels& models;
  const bool ours;
  at::Tensor ids, cotangent;
  std::unique_ptr<torch::optim::Optimizer> optimizer;
};

// LibTorch's gradient has one row per token, so its sums are rounded differently.
bool same_step(int64_t tokens, int64_t dim) {
  at::Tensor results[2];
  EmbedModels& models = embed_models(dim, at::kFloat, /*sparse=*/true);
  models.theirs->weight.set_data(models.ours->token_embedding->weight.detach().clone());
  for (const bool ours : {false, true}) {
    Step step(tokens, dim, ours);
    const at::Tensor weight = step.optimizer->param_groups()[0].params()[0];
    torch::manual_seed(5);
    step.run();
    results[ours] = weight.detach().clone();
  }
  return at::allclose(results[0], results[1], 1e-6, 1e-5);
}

void steps(benchmark::State& state, bool ours) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  static std::map<int64_t, bool> same;
  if (!same.count(state.range(0))) same[state.range(0)] = same_step(state.range(0), state.range(1));
  if (!same[state.range(0)]) state.SkipWithError("not LibTorch's step");
  Step step(state.range(0), state.range(1), ours);
  for (auto _ : state) step.run();
}

const bool registered = [] {
  for (const bool ours : {true, false}) {
    auto* const one =
        benchmark::RegisterBenchmark(ours ? "embed_step/module" : "embed_step/composed",
                                     [ours](benchmark::State& state) { steps(state, ours); });
    one->UseRealTime()->Unit(benchmark::kMillisecond);
    for (const int64_t tokens : {128, 4096}) one->Args({tokens, 512, 1});
    one->Args({4096, 512, 2});
  }
  return true;
}();

}  // namespace
