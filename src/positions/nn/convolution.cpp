#include "positions/nn/convolution.h"

#include "core/torch_internals/cpu_generator.h"
#include "posenc/core/skip_init.h"

namespace posenc {
namespace {

template <typename Convolution, typename Options>
Convolution made_with(const Options& options) {
  using namespace torch_internals;
  if (!SkipInit::is_active()) return Convolution(options);
  const EngineState before = CpuGenerator(default_cpu_generator()).engine();
  Convolution convolution(options);
  CpuGenerator(default_cpu_generator()).set_engine(before);
  return convolution;
}

}  // namespace

torch::nn::Conv1d make_convolution(const torch::nn::Conv1dOptions& options) {
  return made_with<torch::nn::Conv1d>(options);
}

torch::nn::Conv2d make_convolution(const torch::nn::Conv2dOptions& options) {
  return made_with<torch::nn::Conv2d>(options);
}

}  // namespace posenc
