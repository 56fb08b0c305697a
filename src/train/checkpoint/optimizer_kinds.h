#pragma once

#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>

#include "base/text.h"
#include "posenc/train/checkpointable.h"
#include "posenc/weights/error.h"

// The data needed to save an optimiser: its rule and options, which LibTorch's optimisers do not
// expose, and the fields of its state.

namespace posenc::io {

// Keys of an optimiser's record, and its states.

inline std::string group_key(std::size_t group) {
  return "optimizer.group." + std::to_string(group) + ".";
}

inline std::string parameter_key(std::size_t index) {
  return "optimizer." + std::to_string(index) + ".";
}

constexpr const char* kName = "name";  // below a parameter's prefix

// The state of a parameter, or null. Throws WeightsError for one of another type than the others.
template <typename Kind>
const typename Kind::State* state_of(const torch::optim::Optimizer& optimizer,
                                     const at::Tensor& parameter, const std::string& name) {
  const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
  if (found == optimizer.state().end() || found->second == nullptr) return nullptr;
  const auto* state = dynamic_cast<const typename Kind::State*>(found->second.get());
  if (state != nullptr) return state;
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "cannot hold an optimiser with states of several types. Got "
                     "another one than " +
                         std::string(Kind::kState) + " for " + in_quotes(name));
}

// Visits the tensors and counts of a state, by name.
template <typename State, typename Visit>
void adam_fields(State& state, Visit&& visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", state.max_exp_avg_sq());
}

// `first`: the tensor that a step makes before it changes anything.
struct AdamState {
  using State = torch::optim::AdamParamState;
  static constexpr const char* kState = "AdamParamState";
  static const at::Tensor& first(const State& state) { return state.exp_avg(); }
  static void fields(auto& state, auto&& visit) { adam_fields(state, visit); }
};
struct AdamWState {  // the same fields, in a type of their own
  using State = torch::optim::AdamWParamState;
  static constexpr const char* kState = "AdamWParamState";
  static const at::Tensor& first(const State& state) { return state.exp_avg(); }
  static void fields(auto& state, auto&& visit) { adam_fields(state, visit); }
};
struct SgdState {
  using State = torch::optim::SGDParamState;
  static constexpr const char* kState = "SGDParamState";
  static const at::Tensor& first(const State& state) { return state.momentum_buffer(); }
  static void fields(auto& state, auto&& visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
};

// Visits the options of LibTorch's optimisers, by name.
void adam_options(auto& options, auto&& visit) {
  visit("lr", options.lr());
  visit("beta1", std::get<0>(options.betas()));
  visit("beta2", std::get<1>(options.betas()));
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}
struct Adam : AdamState {
  using Options = torch::optim::AdamOptions;
  static constexpr const char* kRule = "Adam";
  static void options(auto& options, auto&& visit) { adam_options(options, visit); }
};
struct AdamW : AdamWState {
  using Options = torch::optim::AdamWOptions;
  static constexpr const char* kRule = "AdamW";
  static void options(auto& options, auto&& visit) { adam_options(options, visit); }
};
struct Sgd : SgdState {
  using Options = torch::optim::SGDOptions;
  static constexpr const char* kRule = "SGD";
  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("dampening", options.dampening());
    visit("weight_decay", options.weight_decay());
    visit("nesterov", options.nesterov());
  }
};

// Throws c10::ValueError for a value that the constructors of LibTorch's optimisers refuse.
template <typename Value>
void check_option(const char* rule, const std::string& name, double value) {
  if constexpr (std::is_same_v<Value, bool>) {
    TORCH_CHECK_VALUE(value == 0.0 || value == 1.0, "[", rule, "] ", name, " must be 0 or 1. Got ",
                      value);
  } else if (name == "beta1" || name == "beta2") {
    TORCH_CHECK_VALUE(value >= 0.0 && value < 1.0, "[", rule, "] ", name,
                      " must lie in [0, 1). Got ", value);
  } else {
    TORCH_CHECK_VALUE(value >= 0.0 || name == "dampening", "[", rule, "] ", name,
                      " must be at least 0. Got ", value);
  }
}

// Implements the interface for LibTorch's optimisers, which do not have it.
template <typename Kind>
class OptimizerAdapter : public CheckpointableOptimizer {
 public:
  explicit OptimizerAdapter(torch::optim::Optimizer& optimizer) : optimizer_(optimizer) {}

  std::string rule() const override { return Kind::kRule; }
  NamedOptions named_options(std::size_t group) const override {
    NamedOptions named;
    Kind::options(options(group),
                  [&](const char* name, auto& value) { named[name] = static_cast<double>(value); });
    return named;
  }
  void set_named_options(std::size_t group, const NamedOptions& named) override {
    auto changed = options(group);
    Kind::options(changed, [&](const char* name, auto& value) {
      const auto found = named.find(name);
      if (found == named.end()) return;
      using Value = std::decay_t<decltype(value)>;
      check_option<Value>(Kind::kRule, name, found->second);
      value = static_cast<Value>(found->second);
    });
    options(group) = changed;
  }

 private:
  typename Kind::Options& options(std::size_t group) const {
    return static_cast<typename Kind::Options&>(optimizer_.param_groups().at(group).options());
  }
  torch::optim::Optimizer& optimizer_;
};

// The type of the states that an optimiser has; empty before the first step.
inline std::string state_type(const torch::optim::Optimizer& optimizer, const std::string& rule) {
  for (const auto& [parameter, state] : optimizer.state()) {
    if (dynamic_cast<const AdamState::State*>(state.get())) return AdamState::kState;
    if (dynamic_cast<const AdamWState::State*>(state.get())) return AdamWState::kState;
    if (dynamic_cast<const SgdState::State*>(state.get())) return SgdState::kState;
    if (state == nullptr) continue;
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "cannot hold the states of this optimiser, " + rule +
                           ": they must be AdamParamState, AdamWParamState or SGDParamState");
  }
  return "";
}

// Calls `work` with the optimiser's checkpoint interface and the traits of its states. `stored` is
// the type of the states that an optimiser without any is to get; by default, that of its rule.
template <typename Work>
auto visit_optimizer(torch::optim::Optimizer& optimizer, Work&& work,
                     const std::string& stored = "") {
  if (auto* notes = dynamic_cast<CheckpointableOptimizer*>(&optimizer)) {
    std::string type = state_type(optimizer, notes->rule());
    if (type.empty()) type = stored;
    if (type.empty() && notes->rule() == Sgd::kRule) type = SgdState::kState;
    if (type == SgdState::kState) return work(*notes, SgdState());
    return type == AdamWState::kState ? work(*notes, AdamWState()) : work(*notes, AdamState());
  }
  const auto with = [&](auto kind) {
    OptimizerAdapter<decltype(kind)> notes(optimizer);
    return work(notes, kind);
  };
  if (dynamic_cast<torch::optim::Adam*>(&optimizer)) return with(Adam());
  if (dynamic_cast<torch::optim::AdamW*>(&optimizer)) return with(AdamW());
  if (dynamic_cast<torch::optim::SGD*>(&optimizer)) return with(Sgd());
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "cannot hold this optimiser: LibTorch's Adam, AdamW and SGD and posenc's "
                     "optimisers can be saved");
}

}  // namespace posenc::io
