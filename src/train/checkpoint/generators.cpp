#include "train/checkpoint/generators.h"

#include <ATen/Context.h>
#include <torch/cuda.h>

#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/torch_internals/cpu_generator.h"
#include "posenc/weights/error.h"
#include "train/parallel/collectives.h"
#include "train/parallel/fingerprint.h"

namespace posenc::io {
namespace {

constexpr const char* kCpu = "generator.cpu";

std::vector<std::pair<std::string, at::Generator>> default_generators() {
  std::vector<std::pair<std::string, at::Generator>> all = {
      {kCpu, torch_internals::default_cpu_generator()}};
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

std::string name_of(const std::string& generator, int64_t rank) {
  return rank == 0 ? generator : generator + "." + std::to_string(rank);
}

// A number that differs for each state and rank.
uint64_t new_seed(const at::Tensor& state, int32_t rank) {
  const at::Tensor bytes = state.contiguous();
  Fingerprint hash;
  hash.add({static_cast<const char*>(bytes.const_data_ptr()), bytes.nbytes()});
  hash.add(rank);
  return hash.value();
}

}  // namespace

StateDict generator_states(const RankGroup& group, const char* caller) {
  const StateDict own = generator_states();
  if (group.size() == 1) return own;
  std::string names;
  for (const auto& item : own) names += item.key() + "\n";
  parallel::agree_on(group, names, caller);
  StateDict all = own;
  for (const auto& item : own) {
    const at::Tensor states = parallel::all_gather(group, item.value().contiguous(), caller);
    for (int64_t rank = 0; rank < group.size(); ++rank) {
      const std::string name = name_of(item.key(), rank);
      if (rank == 0) {
        all[name] = states[rank].clone();
      } else {
        all.insert(name, states[rank].clone());
      }
    }
  }
  return all;
}

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

StateDict generator_states_of(const StateDict& saved, int64_t saved_by, int rank, int ranks) {
  StateDict own;
  for (auto& [name, generator] : default_generators()) {
    const bool is_same_run = saved_by == ranks;
    const std::string key = name_of(name, is_same_run ? rank : 0);
    const at::Tensor* state = saved.find(key);
    if (state == nullptr && ranks > 1 && name == kCpu) {
      throw WeightsError(
          WeightsErrorCode::MissingKeys,
          "is missing, and a checkpoint of " + std::to_string(saved_by) + " processes has it")
          .in_tensor(key);
    }
    if (state == nullptr) continue;
    if (is_same_run) {
      own.insert(name, *state);
    } else {
      auto seeded = generator.clone();
      seeded.set_current_seed(new_seed(*state, rank));
      own.insert(name, seeded.get_state());
    }
  }
  return own;
}

}  // namespace posenc::io
