// Tables in fresh memory against the PyTorch recipe, and random rows out of a million positions
// against a gather from the full table. One thread; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <cmath>

#include "posenc/positions/sinusoid/factored_table.h"
#include "posenc/positions/sinusoid/table.h"

namespace {

using posenc::FactoredTable;
using posenc::Precision;
using posenc::SinusoidOptions;

// The operations of the Annotated Transformer's constructor.
at::Tensor pytorch_recipe(int64_t length, int64_t dim) {
  at::Tensor pe = at::zeros({length, dim});
  const at::Tensor position = at::arange(length).unsqueeze(1).to(at::kFloat);
  const at::Tensor rate = at::exp(at::arange(0, dim, 2).to(at::kFloat) *
                                  -(std::log(10000.0) / static_cast<double>(dim)));
  pe.slice(1, 0, dim, 2).copy_(at::sin(position * rate));
  pe.slice(1, 1, dim, 2).copy_(at::cos(position * rate));
  return pe;
}

at::Tensor reference(int64_t length, int64_t dim) {
  return posenc::sinusoid_table(SinusoidOptions(dim), length);
}

at::Tensor exact(int64_t length, int64_t dim) {
  return posenc::sinusoid_table(SinusoidOptions(dim).precision(Precision::Exact), length);
}

template <at::Tensor (*make)(int64_t, int64_t)>
void table(benchmark::State& state) {
  at::set_num_threads(1);
  const int64_t length = state.range(0), dim = state.range(1);
  const at::Tensor ours = make(512, dim), theirs = pytorch_recipe(512, dim);
  const bool equal =
      make == exact ? (ours - theirs).abs().max().item<double>() < 1e-4 : ours.equal(theirs);
  if (!equal) state.SkipWithError("the table is not the recipe's");
  for (auto _ : state) benchmark::DoNotOptimize(make(length, dim));
  state.SetBytesProcessed(state.iterations() * length * dim * 4);
}

#define POSENC_TABLE(make)   \
  BENCHMARK(table<make>)     \
      ->Name("table/" #make) \
      ->Args({5000, 512})    \
      ->Args({131072, 1024}) \
      ->Unit(benchmark::kMillisecond)
POSENC_TABLE(pytorch_recipe);
POSENC_TABLE(reference);
POSENC_TABLE(exact);

constexpr int64_t kPositions = 1000000;
constexpr int64_t kDim = 512;
constexpr int64_t kTokens = 32768;

void rows_gathered(benchmark::State& state) {
  at::set_num_threads(1);
  const at::Tensor full = exact(kPositions, kDim);  // 2 GB
  const at::Tensor ids = at::randint(kPositions, {kTokens}, at::kLong);
  for (auto _ : state) benchmark::DoNotOptimize(full.index_select(0, ids));
}
BENCHMARK(rows_gathered)->Name("rows/full_table")->Unit(benchmark::kMillisecond);

void rows_factored(benchmark::State& state) {
  at::set_num_threads(1);
  const FactoredTable factored(SinusoidOptions(kDim), kPositions);
  const at::Tensor ids = at::randint(kPositions, {kTokens}, at::kLong);
  const auto options = SinusoidOptions(kDim).precision(Precision::Exact);
  if (!factored.rows(ids).equal(posenc::sinusoid_rows(options, ids))) {
    state.SkipWithError("the factored rows are not the exact ones");
  }
  for (auto _ : state) benchmark::DoNotOptimize(factored.rows(ids));
  state.counters["MB_at_1e6x1024"] =
      static_cast<double>(FactoredTable(SinusoidOptions(1024), kPositions).bytes()) / 1e6;
}
BENCHMARK(rows_factored)->Name("rows/factored")->Unit(benchmark::kMillisecond);

}  // namespace
