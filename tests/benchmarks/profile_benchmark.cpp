// The time of a forward and of each of its parts, which run separately in a loop. One thread,
// float32, D = 512, measured in the thread's CPU time, which other programs disturb least.
// tools/docs.py makes tables from the results.

#include <ATen/EmptyTensor.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>
#include <torch/utils.h>

#include <functional>
#include <optional>
#include <string>
#include <type_traits>

#include "benchmarks/embed_inputs.h"
#include "core/torch_internals/fresh_memory.h"
#include "core/torch_internals/profiled.h"
#include "kernels/dispatch.h"
#include "posenc/positions/functional/embed.h"
#include "positions/functional/embed/fusable.h"

namespace {

using posenc::benchmarks::embed_ids;
using posenc::benchmarks::embed_models;
using posenc::functional::EmbedFuncOptions;
using posenc::functional::EmbedPlan;
using posenc::torch_internals::fresh_output;
namespace kernel = posenc::kernels::embed;

constexpr int64_t kDim = 512, kPage = 4096;

struct Profiled {
  explicit Profiled(int64_t tokens) : ids(embed_ids(tokens)) { models.train(false); }

  at::Tensor forward() { return models.ours->forward(ids); }
  at::Tensor composed() { return models.composed(ids); }
  at::Tensor result() const { return fresh_output({ids.size(0), ids.size(1), kDim}, at::kFloat); }
  at::Tensor libtorch_result() const {
    return at::Tensor(at::detail::empty_cpu({ids.size(0), ids.size(1), kDim}, at::kFloat));
  }
  /// The first touch of each page of the result, with the system's default page size.
  at::Tensor touched() const {
    at::Tensor fresh = result();
    auto* const bytes = static_cast<char*>(fresh.data_ptr());
    for (size_t i = 0; i < fresh.nbytes(); i += kPage) bytes[i] = 0;
    return fresh;
  }
  bool plan() {
    EmbedPlan made;
    return is_fusable(ids, models.ours->token_embedding->weight, models.pe, options, made);
  }
  void kernel_alone() {
    if (!ready.defined()) {
      ready = result().zero_();
      is_fusable(ids, models.ours->token_embedding->weight, models.pe, options, planned);
      planned.request.out = ready.data_ptr();
      planned.request.stream = false;
    }
    posenc::kernels::chosen().gather.gather[static_cast<int>(planned.type)](planned.request, 0,
                                                                            ids.numel());
  }
  at::Tensor out() {
    if (!ready.defined()) ready = result().zero_();
    return posenc::functional::embed_out(ready, ids, models.ours->token_embedding->weight,
                                         models.pe, options);
  }
  static void profiler() { const posenc::torch_internals::Profiled asked("nobody"); }

  posenc::benchmarks::EmbedModels& models = embed_models(kDim, at::kFloat);
  at::Tensor ids, ready;
  EmbedFuncOptions options = EmbedFuncOptions().scale(posenc::Scale::SqrtDim);
  EmbedPlan planned;
};

enum class Mode { NoGrad, Inference, Grad };

template <typename Work>
void add(const std::string& name, int64_t tokens, Work work, Mode mode = Mode::NoGrad) {
  const auto body = [tokens, work, mode](benchmark::State& state) {
    at::set_num_threads(1);
    Profiled in(tokens);
    const torch::AutoGradMode recording(mode == Mode::Grad);
    std::optional<c10::InferenceMode> inference;
    if (mode == Mode::Inference) inference.emplace();
    std::invoke(work, in);
    for (auto _ : state) {
      if constexpr (std::is_void_v<std::invoke_result_t<Work, Profiled&>>) {
        std::invoke(work, in);
      } else {
        benchmark::DoNotOptimize(std::invoke(work, in));
      }
    }
  };
  benchmark::RegisterBenchmark(("profile/" + std::to_string(tokens) + "/" + name).c_str(), body)
      ->Unit(benchmark::kMicrosecond);
}

const bool registered = [] {
  add("forward", 1, &Profiled::forward);
  add("inference_mode", 1, &Profiled::forward, Mode::Inference);
  add("recorded", 1, &Profiled::forward, Mode::Grad);
  add("composed", 1, &Profiled::composed);
  add("result", 1, &Profiled::result);
  add("libtorch_result", 1, &Profiled::libtorch_result);
  add("kernel", 1, &Profiled::kernel_alone);
  add("checks", 1, &Profiled::plan);
  add("profiler", 1, [](Profiled&) { Profiled::profiler(); });
  add("forward", 32768, &Profiled::forward);
  add("touched", 32768, &Profiled::touched);
  add("out", 32768, &Profiled::out);
  add("composed", 32768, &Profiled::composed);
  return true;
}();

}  // namespace
