// A step of Adam on an embedding table, with dense and sparse gradients, and of SGD with sparse
// ones. Names end in rows of the table or tokens/width/threads.

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/optim/adam.h>
#include <torch/optim/sgd.h>
#include <torch/utils.h>

#include <memory>
#include <string>

#include "benchmarks/fingerprint.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"

namespace {

using posenc::benchmarks::fingerprint;
using posenc::benchmarks::once;

constexpr int64_t kVocabulary = 32000;

at::Tensor new_table(int64_t dim) {
  torch::manual_seed(1);
  return at::randn({kVocabulary, dim}).mul_(0.02).set_requires_grad(true);
}

at::Tensor dense_gradient(const at::Tensor& table) {
  torch::manual_seed(2);
  return at::randn(table.sizes());
}

// A coalesced gradient, like an embedding's for this many tokens.
at::Tensor row_gradient(const at::Tensor& table, int64_t tokens) {
  torch::manual_seed(3);
  const auto ids = at::randint(kVocabulary, {1, tokens}, at::kLong);
  const auto values = at::randn({tokens, table.size(1)});
  return at::sparse_coo_tensor(ids, values, table.sizes()).coalesce();
}

// Three steps from the start; other processes compare their bits.
template <typename Optimizer>
std::string three_steps(int64_t dim, const at::Tensor& gradient) {
  const auto table = new_table(dim);
  Optimizer optimizer({table}, 1e-3);
  for (int i = 0; i < 3; ++i) {
    table.mutable_grad() = gradient;
    optimizer.step();
  }
  return fingerprint(table);
}

template <typename Optimizer>
void steps(benchmark::State& state, const std::string& name, bool sparse) {
  const int64_t size = state.range(0), dim = state.range(1);
  at::set_num_threads(static_cast<int>(state.range(2)));
  const auto table = new_table(dim);
  const auto gradient = sparse ? row_gradient(table, size) : dense_gradient(table);
  state.SetLabel(
      once(name + std::to_string(size), [&] { return three_steps<Optimizer>(dim, gradient); }));
  Optimizer optimizer({table}, 1e-3);
  table.mutable_grad() = gradient;
  optimizer.step();  // creates the state
  for (auto _ : state) optimizer.step();
}

// LibTorch's Adam rounds differently from the fused kernels, so its bits have no peer.
void libtorch_adam(benchmark::State& state) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  const auto table = new_table(state.range(1)),
             ours = table.detach().clone().set_requires_grad(true);
  table.mutable_grad() = ours.mutable_grad() = dense_gradient(table);
  torch::optim::Adam optimizer({table}, 1e-3);
  posenc::FusedAdam fused({ours}, 1e-3);
  optimizer.step();
  fused.step();
  if (!at::allclose(table, ours, 0, 1e-6)) state.SkipWithError("not FusedAdam's step");
  for (auto _ : state) optimizer.step();
}

const bool registered = [] {
  const auto add = [](const std::string& name, auto body) {
    return benchmark::RegisterBenchmark(name.c_str(), body)
        ->UseRealTime()
        ->Unit(benchmark::kMillisecond);
  };
  const auto dense = [&](const std::string& name, auto body) {
    for (const int64_t threads : {1, 2}) add(name, body)->Args({kVocabulary, 512, threads});
  };
  dense("adam/fused", [](benchmark::State& s) { steps<posenc::FusedAdam>(s, "adam", false); });
  dense("adam/libtorch", libtorch_adam);
  const auto rows = [&](const std::string& name, auto body) {
    for (const int64_t tokens : {128, 4096}) add(name, body)->Args({tokens, 512, 1});
    add(name, body)->Args({4096, 512, 2});
  };
  rows("sparse_adam/rows",
       [](benchmark::State& s) { steps<posenc::SparseAdam>(s, "sparse_adam", true); });
  rows("sgd_rows/rows", [](benchmark::State& s) { steps<posenc::FusedSGD>(s, "sgd", true); });
  rows("sgd_rows/libtorch",
       [](benchmark::State& s) { steps<torch::optim::SGD>(s, "their", true); });
  return true;
}();

}  // namespace
