// From tokens to the first layer's input, V = 32,000: ours (module, function, into a preallocated
// tensor) against the composition of LibTorch modules, and against the lower bound, a copy of the
// same number of bytes into a preallocated tensor. Names end in tokens/width; tools/bench.py prints
// the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/utils.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>

#include "benchmarks/embed_inputs.h"
#include "benchmarks/fingerprint.h"
#include "posenc/positions/functional/embed.h"

namespace {

using posenc::benchmarks::embed_ids;
using posenc::benchmarks::embed_models;
using posenc::benchmarks::EmbedModels;
using posenc::benchmarks::fingerprint;
using posenc::benchmarks::once;
namespace F = posenc::functional;

struct Inputs {
  Inputs(int64_t tokens, int64_t dim, at::ScalarType dtype)
      : models(embed_models(dim, dtype)),
        ours(models.ours),
        pe(models.pe),
        ids(embed_ids(tokens)) {}

  at::Tensor composed() { return models.composed(ids); }
  at::Tensor module() { return ours->forward(ids); }
  at::Tensor function() {
    return F::embed(ids, ours->token_embedding->weight, pe,
                    F::EmbedFuncOptions().scale(posenc::Scale::SqrtDim));
  }
  at::Tensor out() {
    if (!ready.defined()) ready = at::zeros({ids.size(0), ids.size(1), pe.size(2)}, pe.options());
    return F::embed_out(ready, ids, ours->token_embedding->weight, pe,
                        F::EmbedFuncOptions().scale(posenc::Scale::SqrtDim));
  }
  at::Tensor copy() {
    if (!source.defined()) {
      ready = at::zeros({ids.size(0), ids.size(1), pe.size(2)}, pe.options());
      source = at::ones_like(ready);
    }
    return ready.copy_(source);
  }

  EmbedModels& models;
  posenc::TokenAndPositionEmbedding ours;
  at::Tensor pe, ids, ready, source;
};

using Forward = at::Tensor (Inputs::*)();

// Labels a case with the fingerprint of its result, which must be that of the composition; "-" for
// the copy. Computed once per case.
void compare(benchmark::State& state, const std::string& family, Forward forward,
             const std::function<at::Tensor(Forward)>& result) {
  if (forward == &Inputs::copy) return;
  static const Forward kinds[] = {&Inputs::composed, &Inputs::module, &Inputs::function,
                                  &Inputs::out};
  const auto kind = std::find(std::begin(kinds), std::end(kinds), forward) - std::begin(kinds);
  const std::string name = family + std::to_string(kind) + "/" + std::to_string(state.range(0)) +
                           "/" + std::to_string(state.range(2));
  const std::string& label = once(name, [&] {
    const at::Tensor ours = result(forward);
    return ours.equal(result(&Inputs::composed)) ? fingerprint(ours) : "";
  });
  if (label.empty()) state.SkipWithError("not the composition's result");
  state.SetLabel(label);
}

void evaluate(benchmark::State& state, Forward forward, at::ScalarType dtype) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  const torch::NoGradGuard no_grad;
  Inputs in(state.range(0), state.range(1), dtype);
  in.models.train(false);
  compare(state, std::string("eval") + c10::toString(dtype), forward,
          [&](Forward of) { return (in.*of)(); });
  (in.*forward)();  // touch the pages of the preallocated tensor
  for (auto _ : state) benchmark::DoNotOptimize((in.*forward)());
  state.SetItemsProcessed(state.iterations() * in.ids.numel());
}

void train(benchmark::State& state, Forward forward) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  Inputs in(state.range(0), state.range(1), at::kFloat);
  in.models.train(true);
  compare(state, "train", forward, [&](Forward of) {
    torch::manual_seed(7);
    return (in.*of)().detach();
  });
  for (auto _ : state) benchmark::DoNotOptimize((in.*forward)());
}

// The backward pass alone, with and without an existing gradient.
void backward(benchmark::State& state, Forward forward, bool existing) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  Inputs in(state.range(0), state.range(1), at::kFloat);
  in.models.train(true);
  const auto weight_of = [&](Forward of) {
    return of == &Inputs::composed ? in.models.theirs->weight : in.ours->token_embedding->weight;
  };
  torch::manual_seed(4);
  const at::Tensor grad = at::randn({in.ids.size(0), in.ids.size(1), state.range(1)});
  compare(state, existing ? "onto" : "backward", forward, [&](Forward of) {
    const at::Tensor weight = weight_of(of);
    weight.mutable_grad() = existing ? at::ones_like(weight) : at::Tensor();
    torch::manual_seed(3);
    (in.*of)().backward(grad);
    const at::Tensor gradient = weight.grad();
    weight.mutable_grad() = at::Tensor();
    return gradient;
  });
  const at::Tensor weight = weight_of(forward);
  if (existing) weight.mutable_grad() = at::ones_like(weight);
  for (auto _ : state) {
    state.PauseTiming();
    if (!existing) weight.mutable_grad() = at::Tensor();
    const at::Tensor out = (in.*forward)();
    state.ResumeTiming();
    out.backward(grad);
  }
  weight.mutable_grad() = at::Tensor();
}

const struct {
  const char* name;
  Forward forward;
} kForwards[] = {{"composed", &Inputs::composed},
                 {"module", &Inputs::module},
                 {"function", &Inputs::function},
                 {"out", &Inputs::out},
                 {"copy", &Inputs::copy}};

const bool registered = [] {
  const auto add = [](const std::string& name, auto body) {
    return benchmark::RegisterBenchmark(name.c_str(), body)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const auto& [name, forward] : kForwards) {
    const auto f = forward;
    auto* const eval = add(std::string("embed/") + name,
                           [f](benchmark::State& state) { evaluate(state, f, at::kFloat); });
    for (const int64_t tokens : {1, 16, 128, 4096, 32768}) eval->Args({tokens, 512, 1});
    for (const int64_t tokens : {4096, 32768}) eval->Args({tokens, 512, 2});
    auto* const half = add(std::string("embed_bf16/") + name,
                           [f](benchmark::State& state) { evaluate(state, f, at::kBFloat16); });
    for (const int64_t tokens : {1, 128, 4096}) half->Args({tokens, 512, 1});
    if (f != &Inputs::composed && f != &Inputs::module) continue;
    auto* const training =
        add(std::string("embed_train/") + name, [f](benchmark::State& state) { train(state, f); });
    for (const int64_t tokens : {1, 16, 128, 4096, 32768}) training->Args({tokens, 512, 1});
    training->Args({4096, 512, 2});
    for (const bool existing : {false, true}) {
      auto* const back =
          add(std::string(existing ? "embed_backward_existing/" : "embed_backward/") + name,
              [f, existing](benchmark::State& state) { backward(state, f, existing); });
      for (const int64_t tokens : {128, 4096}) back->Args({tokens, 512, 1});
      back->Args({4096, 512, 2});
    }
  }
  return true;
}();

}  // namespace
