// Relative positions against transformers' own classes (relative_peers.py): biases, and the scores
// and the weights of attention. One thread; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "posenc/catalogue/relative_preset.h"
#include "posenc/positions/relative/alibi.h"
#include "posenc/positions/relative/bias.h"
#include "posenc/positions/relative/scores.h"
#include "posenc/positions/relative/term.h"
#include "posenc/positions/relative/window.h"

namespace {

using posenc::RelativeInputs;
using posenc::relative::Buckets;

constexpr int64_t kHeads = 12;

// Runs `work` without autograd on one thread.
template <typename Work>
void run(benchmark::State& state, const Work& work) {
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  for (auto _ : state) benchmark::DoNotOptimize(work());
}

void t5_bias(benchmark::State& state) {
  const int64_t length = state.range(0);
  const at::Tensor table = at::randn({32, kHeads});
  run(state,
      [&] { return posenc::relative_position_bias(table, length, length, Buckets{32, 128}); });
}

void t5_bias_train(benchmark::State& state) {
  at::set_num_threads(1);
  const int64_t length = state.range(0);
  const at::Tensor table = at::randn({32, kHeads}).requires_grad_();
  const at::Tensor cotangent = at::randn({1, kHeads, length, length});
  for (auto _ : state) {
    const at::Tensor bias = posenc::relative_position_bias(table, length, length, Buckets{32, 128});
    benchmark::DoNotOptimize(torch::autograd::grad({bias}, {table}, {cotangent}));
  }
}

// The bias of the last of `keys` tokens.
void t5_step(benchmark::State& state) {
  const int64_t keys = state.range(0);
  const at::Tensor table = at::randn({32, kHeads});
  run(state, [&] {
    return posenc::relative_position_bias(table, 1, keys, Buckets{32, 128, false}, keys - 1);
  });
}

// A preset with the inputs of one call.
void preset(benchmark::State& state, const char* name, const RelativeInputs& inputs) {
  run(state, [&] { return posenc::relative_outputs(name, inputs); });
}

// Heads (B, H, L, D) as a projection leaves them, in the order (B, L, H, D).
at::Tensor heads_of(int64_t batch, int64_t heads, int64_t length, int64_t width) {
  return at::randn({batch, length, heads, width}).transpose(1, 2);
}

// BLOOM's weights: the slopes of the tokens' positions, scale, mask and softmax.
void alibi(benchmark::State& state) {
  const int64_t length = state.range(0), width = 64;
  const at::Tensor q = heads_of(1, kHeads, length, width), k = heads_of(1, kHeads, length, width);
  const at::Tensor is_token = at::ones({1, length}, at::kLong);
  const at::Tensor mask = at::zeros({1, 1, length, length});
  const at::Tensor slopes = posenc::alibi_slopes(kHeads).view({1, kHeads, 1, 1});
  run(state, [&] {
    const at::Tensor term = slopes * posenc::alibi_positions(is_token).view({1, 1, 1, length});
    return posenc::relative_weights(q, k, term, mask, {});
  });
}

// The scores alone, by the preset, which has BLOOM's bits.
void alibi_scores(benchmark::State& state) {
  const int64_t length = state.range(0), width = 64;
  preset(state, "bloom_scores",
         {{{"dtype", std::string("float32")}},
          {{"q", heads_of(1, kHeads, length, width)},
           {"k", heads_of(1, kHeads, length, width)},
           {"mask", at::ones({1, length}, at::kLong)},
           {"additive", at::zeros({1, 1, length, length})}}});
}

// Swin's weights, as WindowAttention computes them.
void swin(benchmark::State& state) {
  const int64_t window = state.range(0), windows = 64, heads = 3, width = 32;
  const int64_t tokens = window * window, rows = (2 * window - 1) * (2 * window - 1);
  const at::Tensor q = heads_of(windows, heads, tokens, width);
  const at::Tensor k = heads_of(windows, heads, tokens, width);
  const at::Tensor mask = at::zeros({windows, 1, tokens, tokens});
  const at::Tensor table = at::randn({rows, heads});
  const posenc::relative::Scoring scoring = {posenc::relative::ScaleOf::Scores,
                                             posenc::relative::ScaleBy::Multiply, 1, false,
                                             posenc::relative::Masking::WithTerm};
  run(state, [&] {
    const at::Tensor index = posenc::relative_window_index({window, window});
    return posenc::relative_weights(q, k, posenc::relative_bias_of_indices(table, index), mask,
                                    scoring);
  });
}

// DeBERTa v2's terms of tables that are projected once, as in a frozen model.
void deberta(benchmark::State& state) {
  using posenc::relative::Contract;
  const int64_t length = state.range(0), width = 64, buckets = 256;
  const posenc::relative::SignedLog index{buckets, 512};
  const at::Tensor q = heads_of(1, kHeads, length, width), k = heads_of(1, kHeads, length, width);
  const at::Tensor rows_k = at::randn({kHeads, 2 * buckets, width});
  const at::Tensor rows_q = at::randn({kHeads, 2 * buckets, width});
  const at::Tensor mask = at::ones({1, 1, length, length}, at::kBool);
  const posenc::relative::Scoring scoring = {posenc::relative::ScaleOf::Key,
                                             posenc::relative::ScaleBy::DivideRounded, 3, true,
                                             posenc::relative::Masking::FillLowest};
  run(state, [&] {
    const at::Tensor term = posenc::relative_term(q, rows_k, length, index) +
                            posenc::relative_term(k, rows_q, length, index, Contract::Key);
    return posenc::relative_scores(q, k, term, mask, scoring);
  });
}

// A conformer's scores of a table that is projected once, as in a frozen model;
// kWeights: up to the softmax, or with it.
template <bool kWeights>
void xl(benchmark::State& state) {
  const int64_t length = state.range(0), heads = 8, width = 64;
  const at::Tensor q = heads_of(1, heads, length, width), k = heads_of(1, heads, length, width);
  const at::Tensor u = at::randn({1, heads, 1, width}), v = at::randn({1, heads, 1, width});
  const at::Tensor rows = at::randn({heads, 2 * length - 1, width});
  const posenc::relative::Scoring scoring = {posenc::relative::ScaleOf::Scores,
                                             posenc::relative::ScaleBy::Multiply, 1, true};
  run(state, [&] {
    const posenc::relative::DistanceVectors term = {q + v, rows, {length - 1}};
    return kWeights ? posenc::relative_weights(q + u, k, term, {}, scoring)
                    : posenc::relative_scores(q + u, k, term, {}, scoring);
  });
}

// The two products of these scores as LibTorch's batched products, without what puts them together:
// what they cost at least.
void xl_products(benchmark::State& state) {
  const int64_t length = state.range(0), heads = 8, width = 64;
  const at::Tensor q = at::randn({heads, length, width}), k = at::randn({heads, width, length});
  const at::Tensor rows = at::randn({heads, width, length});
  at::Tensor out = at::empty({heads, length, length}), other = at::empty_like(out);
  run(state, [&] { return at::bmm_out(out, q, k), at::bmm_out(other, q, rows); });
}

// The product of BLOOM's scores.
void alibi_products(benchmark::State& state) {
  const int64_t length = state.range(0), width = 64;
  const at::Tensor q = at::randn({kHeads, length, width}), k = at::randn({kHeads, width, length});
  at::Tensor out = at::empty({kHeads, length, length});
  run(state, [&] { return at::bmm_out(out, q, k); });
}

#define POSENC_RELATIVE(name, function) \
  BENCHMARK(function)->Name("relative/" name "/posenc")->Unit(benchmark::kMicrosecond)
POSENC_RELATIVE("t5_bias", t5_bias)->Arg(128)->Arg(512)->Arg(1024);
POSENC_RELATIVE("t5_bias_train", t5_bias_train)->Arg(512);
POSENC_RELATIVE("t5_step", t5_step)->Arg(64)->Arg(512)->Arg(2048);
POSENC_RELATIVE("alibi", alibi)->Arg(512);
POSENC_RELATIVE("alibi_scores", alibi_scores)->Arg(512);
POSENC_RELATIVE("swin", swin)->Arg(7)->Arg(12);
POSENC_RELATIVE("deberta", deberta)->Arg(128);
POSENC_RELATIVE("xl", xl<false>)->Arg(512);
POSENC_RELATIVE("xl_weights", xl<true>)->Arg(512);
BENCHMARK(alibi_products)->Name("relative/alibi/products")->Unit(benchmark::kMicrosecond)->Arg(512);
BENCHMARK(xl_products)->Name("relative/xl/products")->Unit(benchmark::kMicrosecond)->Arg(512);

}  // namespace
