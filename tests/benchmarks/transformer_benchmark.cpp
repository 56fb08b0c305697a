// The encoder's forward against torch.nn.TransformerEncoder in eval mode, d 512, 8 heads, d_ff
// 2048, 6 layers, float32: B sequences of L tokens, on one thread and on two.

#include <ATen/ops/allclose.h>
#include <benchmark/benchmark.h>

#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/weights/load.h"
#include "python_peer.h"
#include "support/threads.h"
#include "timed.h"

namespace {

struct Encoders {
  Encoders() {
    const auto file = python.file("encoder.safetensors");
    ours->eval();
    posenc::load_weights(*ours, file,
                         posenc::LoadOptions().prefix("param.").allow_unexpected(true));
    tensors = posenc::load_tensors(file);
  }

  posenc::PythonPeer python{"transformer_peers.py"};
  posenc::TransformerEncoder ours{posenc::TransformerEncoderOptions({512, 8}, 6)};
  posenc::StateDict tensors;
};

Encoders& encoders() {
  static Encoders both;
  return both;
}

std::string shape_of(const benchmark::State& state) {
  return std::to_string(state.range(0)) + "x" + std::to_string(state.range(1));
}

void ours(benchmark::State& state) {
  const torch::NoGradGuard no_grad;
  const auto shape = shape_of(state);
  const auto x = encoders().tensors["in." + shape];
  const posenc::testing::Threads guard(static_cast<int>(state.range(2)));
  if (!at::allclose(encoders().ours->forward(x), encoders().tensors["out." + shape], 1e-4, 1e-5)) {
    state.SkipWithError("the encoder differs from torch.nn.TransformerEncoder");
  }
  posenc::benchmarks::timed(state, [&] { benchmark::DoNotOptimize(encoders().ours->forward(x)); });
}

void torch_nn(benchmark::State& state) {
  const auto call = "encode " + shape_of(state) + " " + std::to_string(state.range(2));
  for (auto _ : state) state.SetIterationTime(encoders().python.seconds(call));
}

void shapes(benchmark::internal::Benchmark* one) {
  for (const int64_t threads : {1, 2}) {
    for (const auto& [batch, length] : {std::pair{1, 16}, {1, 128}, {8, 128}}) {
      one->Args({batch, length, threads});
    }
  }
  one->UseManualTime()->Unit(benchmark::kMillisecond);
}

BENCHMARK(ours)->Name("transformer/encoder/posenc")->Apply(shapes);
BENCHMARK(torch_nn)->Name("transformer/encoder/torch_nn")->Apply(shapes);

}  // namespace
