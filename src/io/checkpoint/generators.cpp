#include "io/checkpoint/generators.h"

#include <ATen/Context.h>
#include <torch/cuda.h>

#include <mutex>
#include <utility>
#include <vector>

#include "posenc/io/error.h"
#include "torch_internals/cpu_generator.h"

namespace posenc::io {
namespace {

std::vector<std::pair<std::string, at::Generator>> default_generators() {
  std::vector<std::pair<std::string, at::Generator>> all = {
      {"generator.cpu", torch_internals::default_cpu_generator()}};
  const std::size_t count = torch::cuda::is_available() ? torch::cuda::device_count() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const at::Device device(at::kCUDA, static_cast<c10::DeviceIndex>(i));
    all.emplace_back("generator.cuda." + std::to_string(i),
                     at::globalContext().defaultGenerator(device));
  }
  return all;
}

at::Tensor state_of(at::Generator& generator) {
  const std::scoped_lock lock(generator.mutex());
  return generator.get_state();
}

void set_state(at::Generator& generator, const at::Tensor& state) {
  const std::scoped_lock lock(generator.mutex());
  generator.set_state(state);
}

}  // namespace

StateDict generator_states() {
  StateDict states;
  for (auto& [name, generator] : default_generators()) states.insert(name, state_of(generator));
  return states;
}

void set_generator_states(const StateDict& states) {
  std::vector<std::pair<at::Generator, at::Tensor>> old;
  for (auto& [name, generator] : default_generators()) {
    const at::Tensor* state = states.find(name);
    if (state == nullptr) continue;
    old.emplace_back(generator, state_of(generator));
    try {
      set_state(generator, *state);
    } catch (const c10::Error&) {
      for (auto& [changed, before] : old) set_state(changed, before);
      throw WeightsError(WeightsErrorCode::Corrupt,
                         "must be the state of a generator of this version of LibTorch")
          .in_tensor(name);
    }
  }
}

}  // namespace posenc::io
