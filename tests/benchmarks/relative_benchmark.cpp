// Relative positions against transformers' own classes (relative_peers.py): biases, and the scores
// of attention up to the softmax. One thread; tools/bench.py prints the ratios.

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <torch/csrc/autograd/autograd.h>

#include "posenc/relative/alibi.h"
#include "posenc/relative/bias.h"
#include "posenc/relative/preset.h"

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

void alibi(benchmark::State& state) {
  const int64_t length = state.range(0), width = 64;
  preset(state, "bloom_scores",
         {{{"dtype", std::string("float32")}},
          {{"q", at::randn({1, kHeads, length, width})},
           {"k", at::randn({1, kHeads, length, width})},
           {"mask", at::ones({1, length}, at::kLong)},
           {"additive", at::zeros({1, 1, length, length})}}});
}

void swin(benchmark::State& state) {
  const int64_t window = state.range(0), windows = 64, heads = 3, width = 32;
  const int64_t tokens = window * window, rows = (2 * window - 1) * (2 * window - 1);
  const RelativeInputs inputs = {
      {{"dtype", std::string("float32")}, {"window", window}, {"masked", true}},
      {{"q", at::randn({windows, heads, tokens, width})},
       {"k", at::randn({windows, heads, tokens, width})},
       {"mask", at::zeros({windows, tokens, tokens})},
       {"w.relative_position_bias.relative_position_bias_table", at::randn({rows, heads})}}};
  run(state,
      [&] { return posenc::relative_outputs("swin_scores", inputs).at("scores").softmax(-1); });
}

void deberta(benchmark::State& state) {
  const int64_t length = state.range(0), width = 64, channels = kHeads * width, buckets = 256;
  preset(state, "deberta_v2",
         {{{"dtype", std::string("float32")},
           {"terms", std::vector<std::string>{"c2p", "p2c"}},
           {"max_relative", int64_t{512}},
           {"buckets", buckets},
           {"share_key", true}},
          {{"q", at::randn({1, kHeads, length, width})},
           {"k", at::randn({1, kHeads, length, width})},
           {"mask", at::ones({1, 1, length, length}, at::kBool)},
           {"relative", at::randn({2 * buckets, channels})},
           {"w.query_proj.weight", at::randn({channels, channels})},
           {"w.query_proj.bias", at::randn({channels})},
           {"w.key_proj.weight", at::randn({channels, channels})},
           {"w.key_proj.bias", at::randn({channels})}}});
}

void xl(benchmark::State& state) {
  const int64_t length = state.range(0), heads = 8, width = 64, channels = heads * width;
  preset(state, "wav2vec2_conformer_relative",
         {{{"dtype", std::string("float32")}, {"masked", false}},
          {{"q", at::randn({1, heads, length, width})},
           {"k", at::randn({1, heads, length, width})},
           {"pe", at::randn({1, 2 * length - 1, channels})},
           {"w.pos_bias_u", at::randn({heads, width})},
           {"w.pos_bias_v", at::randn({heads, width})},
           {"w.linear_pos.weight", at::randn({channels, channels})}}});
}

#define POSENC_RELATIVE(name, function) \
  BENCHMARK(function)->Name("relative/" name "/posenc")->Unit(benchmark::kMicrosecond)
POSENC_RELATIVE("t5_bias", t5_bias)->Arg(128)->Arg(512)->Arg(1024);
POSENC_RELATIVE("t5_bias_train", t5_bias_train)->Arg(512);
POSENC_RELATIVE("t5_step", t5_step)->Arg(64)->Arg(512)->Arg(2048);
POSENC_RELATIVE("alibi", alibi)->Arg(512);
POSENC_RELATIVE("swin", swin)->Arg(7)->Arg(12);
POSENC_RELATIVE("deberta", deberta)->Arg(128);
POSENC_RELATIVE("xl", xl)->Arg(512);

}  // namespace
