// Tokens to the first layer's input, V = 32,000: ours (module, function, into a ready tensor)
// against the same composed of LibTorch modules, and against the floor, a copy of as many bytes
// into a ready tensor. Names end in tokens/width; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/utils.h>

#include <cmath>
#include <string>

#include "posenc/functional/embed.h"
#include "posenc/nn/token_and_position_embedding.h"

namespace {

using posenc::TokenAndPositionEmbedding;
using posenc::TokenAndPositionEmbeddingOptions;
namespace F = posenc::functional;

constexpr int64_t kVocabulary = 32000;
constexpr int64_t kLength = 512;  // more tokens are a batch

struct Inputs {
  Inputs(int64_t tokens, int64_t dim, at::ScalarType dtype, double p = 0.1)
      : ours(TokenAndPositionEmbeddingOptions(kVocabulary, dim, kLength).dropout(p)),
        dropout(p),
        scale(std::sqrt(static_cast<double>(dim))) {
    torch::manual_seed(1);
    ours->to(dtype);
    theirs = torch::nn::Embedding(torch::nn::EmbeddingOptions(kVocabulary, dim));
    theirs->to(dtype);
    theirs->weight.set_data(ours->token_embedding->weight.detach().clone());
    ids =
        at::randint(kVocabulary,
                    {std::max<int64_t>(1, tokens / kLength), std::min(tokens, kLength)}, at::kLong);
    pe = ours->position_encoding->pe;
  }
  void train(bool on) {
    ours->train(on);
    theirs->train(on);
    dropout->train(on);
  }

  at::Tensor composed() {
    return dropout->forward(theirs->forward(ids) * scale + pe.slice(1, 0, ids.size(1)));
  }
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

  TokenAndPositionEmbedding ours;
  torch::nn::Embedding theirs{nullptr};
  torch::nn::Dropout dropout;
  double scale;
  at::Tensor ids, pe, ready, source;
};

using Forward = at::Tensor (Inputs::*)();

bool same_forward(Inputs& in, Forward forward) {
  torch::manual_seed(7);
  const at::Tensor a = (in.*forward)();
  torch::manual_seed(7);
  return forward == &Inputs::copy || a.equal(in.composed());
}

void evaluate(benchmark::State& state, Forward forward, at::ScalarType dtype) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  const torch::NoGradGuard no_grad;
  Inputs in(state.range(0), state.range(1), dtype);
  in.train(false);
  if (!same_forward(in, forward)) state.SkipWithError("not the composition's result");
  for (auto _ : state) benchmark::DoNotOptimize((in.*forward)());
  state.SetItemsProcessed(state.iterations() * in.ids.numel());
}

void train(benchmark::State& state, Forward forward) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  Inputs in(state.range(0), state.range(1), at::kFloat);
  in.train(true);
  if (!same_forward(in, forward)) state.SkipWithError("not the composition's result");
  for (auto _ : state) benchmark::DoNotOptimize((in.*forward)());
}

// The backward pass alone: into no gradient, or onto one that is there.
void backward(benchmark::State& state, Forward forward, bool existing) {
  at::set_num_threads(static_cast<int>(state.range(2)));
  Inputs in(state.range(0), state.range(1), at::kFloat);
  in.train(true);
  at::Tensor& weight =
      forward == &Inputs::composed ? in.theirs->weight : in.ours->token_embedding->weight;
  const at::Tensor grad = at::randn({in.ids.size(0), in.ids.size(1), state.range(1)});
  const auto gradient = [&](Forward of, at::Tensor& w) {
    w.mutable_grad() = existing ? at::ones_like(w) : at::Tensor();
    torch::manual_seed(3);
    (in.*of)().backward(grad);
    return w.grad();
  };
  if (!gradient(forward, weight).equal(gradient(&Inputs::composed, in.theirs->weight)))
    state.SkipWithError("not the composition's gradient");
  for (auto _ : state) {
    state.PauseTiming();
    if (!existing) weight.mutable_grad() = at::Tensor();
    const at::Tensor out = (in.*forward)();
    state.ResumeTiming();
    out.backward(grad);
  }
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
