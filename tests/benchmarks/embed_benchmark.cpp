// The fused look-up, scale and position against the plain ATen composition.

#include <ATen/Functions.h>
#include <benchmark/benchmark.h>

#include <cmath>

#include "posenc/functional/embed.h"

namespace {

constexpr int64_t kVocabulary = 32000;
constexpr int64_t kBatch = 8;

struct Case {
  explicit Case(int64_t length, int64_t dim)
      : scale(std::sqrt(static_cast<double>(dim))),
        ids(at::randint(kVocabulary, {kBatch, length}, at::kLong)),
        weight(at::randn({kVocabulary, dim})),
        table(at::randn({length, dim})) {}

  at::Tensor composed() const { return at::embedding(weight, ids) * scale + table; }
  at::Tensor fused() const { return posenc::functional::embed(ids, weight, table, options); }

  double scale;
  at::Tensor ids, weight, table;  // (B, L), (V, D), (L, D)
  posenc::functional::EmbedFuncOptions options =
      posenc::functional::EmbedFuncOptions().scale(posenc::Scale::SqrtDim);
};

template <at::Tensor (Case::*forward)() const>
void embed(benchmark::State& state) {
  const Case inputs(state.range(0), state.range(1));
  if (!inputs.fused().equal(inputs.composed())) {
    state.SkipWithError("embed differs from the ATen composition");
  }
  for (auto _ : state) {
    benchmark::DoNotOptimize((inputs.*forward)());
  }
  state.SetItemsProcessed(state.iterations() * inputs.ids.numel());
}

BENCHMARK(embed<&Case::fused>)->Name("embed/fused")->Args({512, 512})->UseRealTime();
BENCHMARK(embed<&Case::composed>)->Name("embed/composed")->Args({512, 512})->UseRealTime();

}  // namespace
