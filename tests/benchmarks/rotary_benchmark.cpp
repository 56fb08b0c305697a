// Rotary embeddings of q and k, 32 heads of 128 channels each, against the two lines that
// transformers has (here as LibTorch's operations, in peers.py in Python), and against copying
// both. One thread; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "posenc/positions/nn/rotary_embedding.h"
#include "posenc/positions/rotary/rotary_preset.h"

namespace {

namespace F = posenc::functional;

constexpr int64_t kHeads = 32, kWidth = 128;

struct Case {
  explicit Case(const benchmark::State& state) : Case(state.range(0), state.range(1) == 16) {}
  Case(int64_t length, bool half) {
    at::set_num_threads(1);
    const auto dtype = half ? at::kBFloat16 : at::kFloat;
    q = at::randn({1, kHeads, length, kWidth}).to(dtype);
    k = at::randn({1, kHeads, length, kWidth}).to(dtype);
    q_out = at::zeros_like(q);
    k_out = at::zeros_like(k);
    table = posenc::rotary_cos_sin(options, at::arange(length), dtype);
    ids = at::arange(length);
  }
  posenc::RotaryOptions options = posenc::rotary_preset("llama", kWidth);
  at::Tensor q, k, q_out, k_out, ids;
  posenc::RotaryCosSin table;
};

at::Tensor rotate_half(const at::Tensor& x) {
  const int64_t n = x.size(-1) / 2;
  return at::cat({-x.slice(-1, n), x.slice(-1, 0, n)}, -1);
}

F::QueryKey composed_of(const Case& c) {
  const at::Tensor cos = c.table.cos.unsqueeze(0), sin = c.table.sin.unsqueeze(0);
  return {(c.q * cos) + (rotate_half(c.q) * sin), (c.k * cos) + (rotate_half(c.k) * sin)};
}
F::QueryKey rotary_of(const Case& c) { return F::rotary(c.q, c.k, c.table, c.options); }

bool is_right(const Case& c) {
  const auto [q, k] = composed_of(c);
  const auto [own_q, own_k] = rotary_of(c);
  return own_q.equal(q) && own_k.equal(k);
}

template <typename Work>
void run(benchmark::State& state, const Work& work) {
  const at::NoGradGuard no_grad;
  Case c(state);
  if (!is_right(c)) state.SkipWithError("the rotation is not PyTorch's");
  for (auto _ : state) work(c);
}

void composed(benchmark::State& state) {
  run(state, [](const Case& c) { benchmark::DoNotOptimize(composed_of(c)); });
}
void fused(benchmark::State& state) {
  run(state, [](const Case& c) { benchmark::DoNotOptimize(rotary_of(c)); });
}
void out(benchmark::State& state) {
  run(state, [](const Case& c) { F::rotary_out(c.q_out, c.k_out, c.q, c.k, c.table, c.options); });
}
void in_place(benchmark::State& state) {
  run(state, [](const Case& c) { F::rotary_(c.q, c.k, c.table, c.options); });
}
void looked_up(benchmark::State& state) {
  run(state, [](const Case& c) {
    const auto how = F::RotaryFuncOptions().position_ids(c.ids);
    benchmark::DoNotOptimize(F::rotary(c.q, c.k, c.table, c.options, how));
  });
}
void copy(benchmark::State& state) {
  run(state, [](const Case& c) {
    c.q_out.copy_(c.q);
    c.k_out.copy_(c.k);
  });
}
void module(benchmark::State& state) {
  posenc::RotaryEmbedding rotary(posenc::rotary_preset("llama", kWidth));
  run(state, [&](const Case& c) { benchmark::DoNotOptimize(rotary->forward(c.q, c.k)); });
}

template <F::QueryKey (*rotate)(const Case&)>
void backward(benchmark::State& state) {
  Case c(state);
  c.q.requires_grad_();
  c.k.requires_grad_();
  const auto [q, k] = rotate(c);
  const at::Tensor q_grad = at::randn_like(q), k_grad = at::randn_like(k);
  for (auto _ : state)
    benchmark::DoNotOptimize(
        torch::autograd::grad({q, k}, {c.q, c.k}, {q_grad, k_grad}, /*retain_graph=*/true));
}

#define POSENC_ROTARY(name, function) \
  BENCHMARK(function)                 \
      ->Name("rotary/" name)          \
      ->Args({1, 32})                 \
      ->Args({128, 32})               \
      ->Args({2048, 32})              \
      ->Args({1, 16})                 \
      ->Args({128, 16})               \
      ->Args({2048, 16})              \
      ->Unit(benchmark::kMicrosecond)
POSENC_ROTARY("composed", composed);
POSENC_ROTARY("fused", fused);
POSENC_ROTARY("out", out);
POSENC_ROTARY("in_place", in_place);
POSENC_ROTARY("looked_up", looked_up);
POSENC_ROTARY("copy", copy);
POSENC_ROTARY("module", module);
POSENC_ROTARY("backward/composed", backward<composed_of>);
POSENC_ROTARY("backward/fused", backward<rotary_of>);

// cos and sin of 131,072 positions: ours, and the operations of transformers' LlamaRotaryEmbedding.
template <posenc::Precision precision>
void cos_sin(benchmark::State& state) {
  at::set_num_threads(1);
  const auto options = posenc::rotary_preset("llama", kWidth).precision(precision);
  const at::Tensor ids = at::arange(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(posenc::rotary_cos_sin(options, ids));
}
void cos_sin_recipe(benchmark::State& state) {
  at::set_num_threads(1);
  const auto options = posenc::rotary_preset("llama", kWidth);
  const at::Tensor inv_freq = posenc::rotary_frequencies(options).inv_freq;
  const at::Tensor ids = at::arange(state.range(0)).unsqueeze(0);
  for (auto _ : state) {
    const at::Tensor angles = ids.unsqueeze(-1).to(at::kFloat) * inv_freq;
    const at::Tensor row = at::cat({angles, angles}, -1);
    benchmark::DoNotOptimize(
        std::pair((row.cos() * 1.0).to(at::kFloat), (row.sin() * 1.0).to(at::kFloat)));
  }
}
#define POSENC_COS_SIN(name, function) \
  BENCHMARK(function)->Name("rotary_cos_sin/" name)->Arg(131072)->Unit(benchmark::kMillisecond)
POSENC_COS_SIN("exact", cos_sin<posenc::Precision::Exact>);
POSENC_COS_SIN("reference", cos_sin<posenc::Precision::Reference>);
POSENC_COS_SIN("pytorch_recipe", cos_sin_recipe);

}  // namespace
