// Loading compared with memcpy, LibTorch's own loader, and Python's in a separate process, all from
// a warm page cache: 1 GiB in 64 tensors, ten tensors, 20,000 small ones.

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/equal.h>
#include <ATen/ops/zeros.h>
#include <benchmark/benchmark.h>
#include <malloc.h>
#include <torch/csrc/jit/serialization/import.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/container/sequential.h>
#include <torch/nn/modules/linear.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "memory.h"
#include "posenc/weights/load.h"
#include "posenc/weights/manifest.h"
#include "python_peer.h"

namespace {

// Writes the files on startup.
posenc::PythonPeer& python() {
  static posenc::PythonPeer process("load_peers.py");
  return process;
}

// Returns the file's path after reading it into the page cache, which may drop a file that is not
// read for a minute of a long run.
std::string warm(const std::string& file) {
  const auto path = python().file(file);
  std::ifstream stream(path, std::ios::binary);
  std::vector<char> block(1 << 20);
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size()))) {
  }
  return path;
}

struct Model : torch::nn::Module {
  Model(int count, int64_t size) {
    for (int i = 0; i < count; ++i) {
      register_parameter(std::string("w").append(std::to_string(i)), at::zeros({size, size}));
    }
  }
};

Model& large() {
  static Model model(64, 2048);
  return model;
}

void posenc_large(benchmark::State& state, const std::string& file) {
  const auto path = python().file(file);
  posenc::load_weights(large(), path);
  const auto expected = posenc::load_tensors(path);
  for (const auto& item : posenc::state_dict(large())) {
    if (!at::equal(item.value(), expected[item.key()])) state.SkipWithError("differs");
  }
  const double before = posenc::benchmarks::resident("VmRSS");
  posenc::benchmarks::reset_peak();
  for (auto _ : state) posenc::load_weights(large(), path);
  state.counters["extra_MB"] = posenc::benchmarks::resident("VmHWM") - before;
}

void memcpy_large(benchmark::State& state) {
  static const Model source(64, 2048);
  const auto from = source.parameters(), into = large().parameters();
  for (auto _ : state) {
    for (std::size_t i = 0; i < from.size(); ++i) {
      std::memcpy(into[i].mutable_data_ptr(), from[i].const_data_ptr(), from[i].nbytes());
    }
    benchmark::ClobberMemory();
  }
}

void jit_load(benchmark::State& state, const std::string& file) {
  const auto path = warm(file);
  for (auto _ : state) {
    state.PauseTiming();
    malloc_trim(0);  // fresh memory, as in a program that loads once
    state.ResumeTiming();
    benchmark::DoNotOptimize(torch::jit::load(path));
  }
}

void posenc_ten(benchmark::State& state) {
  const auto path = warm("ten.script.pt");
  torch::nn::Sequential model;
  for (int i = 0; i < 5; ++i) model->push_back(torch::nn::Linear(64, 64));
  for (auto _ : state) posenc::load_weights(*model, path);
}

void manifest(benchmark::State& state, const std::string& file) {
  const auto path = python().file(file);
  if (posenc::read_manifest(path).tensors.size() != 20000)
    state.SkipWithError("tensors are missing");
  for (auto _ : state) benchmark::DoNotOptimize(posenc::read_manifest(path));
}

void load_all(benchmark::State& state, const std::string& file) {
  const auto path = warm(file);
  for (auto _ : state) benchmark::DoNotOptimize(posenc::load_tensors(path));
}

void in_python(benchmark::State& state, const std::string& function) {
  for (auto _ : state) state.SetIterationTime(python().seconds(function));
}

constexpr auto kUnit = benchmark::kMillisecond;

BENCHMARK(memcpy_large)->Name("load/1GiB/memcpy")->Unit(kUnit)->UseRealTime();
BENCHMARK_CAPTURE(posenc_large, pt, "large.pt")->Name("load/1GiB/pt")->Unit(kUnit)->UseRealTime();
BENCHMARK_CAPTURE(posenc_large, safetensors, "large.safetensors")
    ->Name("load/1GiB/safetensors")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(posenc_large, script, "large.script.pt")
    ->Name("load/1GiB/script")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(jit_load, large, "large.script.pt")
    ->Name("load/1GiB/jit_load")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(in_python, torch_load, "torch_load_large")
    ->Name("load/1GiB/torch_load")
    ->Unit(kUnit)
    ->UseManualTime();
BENCHMARK_CAPTURE(in_python, load_file, "load_file_large")
    ->Name("load/1GiB/load_file")
    ->Unit(kUnit)
    ->UseManualTime();
BENCHMARK(posenc_ten)->Name("load/ten/script")->Unit(kUnit)->UseRealTime();
BENCHMARK_CAPTURE(jit_load, ten, "ten.script.pt")
    ->Name("load/ten/jit_load")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(manifest, pt, "small.pt")->Name("index/20000/pt")->Unit(kUnit)->UseRealTime();
BENCHMARK_CAPTURE(manifest, safetensors, "small.safetensors")
    ->Name("index/20000/safetensors")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(load_all, pt, "small.pt")->Name("load/20000/pt")->Unit(kUnit)->UseRealTime();
BENCHMARK_CAPTURE(load_all, safetensors, "small.safetensors")
    ->Name("load/20000/safetensors")
    ->Unit(kUnit)
    ->UseRealTime();
BENCHMARK_CAPTURE(in_python, torch_load, "torch_load_small")
    ->Name("load/20000/torch_load")
    ->Unit(kUnit)
    ->UseManualTime();
BENCHMARK_CAPTURE(in_python, load_file, "load_file_small")
    ->Name("load/20000/load_file")
    ->Unit(kUnit)
    ->UseManualTime();

}  // namespace
