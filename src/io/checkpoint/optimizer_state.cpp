#include "io/checkpoint/optimizer_state.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "io/read/quote.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerOptions;
using torch::optim::OptimizerParamState;
using Code = WeightsErrorCode;

// Every field of the options and of the state, by name. `Options` may be const.
template <typename Options, typename Visit>
void adam_options(Options& options, Visit&& visit) {
  visit("lr", options.lr());
  visit("beta1", std::get<0>(options.betas()));
  visit("beta2", std::get<1>(options.betas()));
  visit("eps", options.eps());
  visit("weight_decay", options.weight_decay());
  visit("amsgrad", options.amsgrad());
}

template <typename State, typename Visit>
void adam_state(State& state, Visit&& visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", state.max_exp_avg_sq());
}

template <typename Options_, typename State_>
struct AdamLike {
  using Options = Options_;
  using State = State_;
  static void options(auto& options, auto&& visit) { adam_options(options, visit); }
  static void state(auto& state, auto&& visit) { adam_state(state, visit); }
};
struct Adam : AdamLike<torch::optim::AdamOptions, torch::optim::AdamParamState> {
  static constexpr const char* kName = "Adam";
};
struct AdamW : AdamLike<torch::optim::AdamWOptions, torch::optim::AdamWParamState> {
  static constexpr const char* kName = "AdamW";
};
struct Sgd {
  using Options = torch::optim::SGDOptions;
  using State = torch::optim::SGDParamState;
  static constexpr const char* kName = "SGD";
  static void options(auto& options, auto&& visit) {
    visit("lr", options.lr());
    visit("momentum", options.momentum());
    visit("dampening", options.dampening());
    visit("weight_decay", options.weight_decay());
    visit("nesterov", options.nesterov());
  }
  static void state(auto& state, auto&& visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
};

// Calls `work` with the traits of the optimiser's kind.
template <typename Work>
auto with_kind(const Optimizer& optimizer, Work&& work) {
  if (dynamic_cast<const torch::optim::Adam*>(&optimizer)) return work(Adam());
  if (dynamic_cast<const torch::optim::AdamW*>(&optimizer)) return work(AdamW());
  if (dynamic_cast<const torch::optim::SGD*>(&optimizer)) return work(Sgd());
  throw WeightsError(Code::Unsupported,
                     "cannot hold this optimiser: Adam, AdamW and SGD can be saved");
}

std::string group_key(std::size_t group) { return "group." + std::to_string(group) + "."; }

class FieldWriter {
 public:
  FieldWriter(OptimizerRecord& record, std::string prefix)
      : record_(record), prefix_(std::move(prefix)) {}

  void operator()(const char* name, const at::Tensor& tensor) {
    if (tensor.defined()) record_.tensors.insert(prefix_ + name, tensor);
  }
  template <typename Value>
  void operator()(const char* name, const Value& value) {
    record_.values[prefix_ + name] = to_text(value);
  }

 private:
  OptimizerRecord& record_;
  std::string prefix_;
};

class FieldReader {
 public:
  FieldReader(const OptimizerRecord& record, std::string prefix, const at::Tensor& parameter = {})
      : record_(record), prefix_(std::move(prefix)), parameter_(parameter) {}

  void operator()(const char* name, at::Tensor& tensor) {
    const at::Tensor* found = record_.tensors.find(prefix_ + name);
    if (found == nullptr) return;
    if (found->sizes() != parameter_.sizes()) {
      throw WeightsError(Code::ShapeMismatch, "must have the shape of its parameter " +
                                                  c10::str(parameter_.sizes()) + ". Got " +
                                                  c10::str(found->sizes()))
          .in_tensor("optimizer." + prefix_ + name);
    }
    tensor = found->to(parameter_.device());
  }
  template <typename Value>
  void operator()(const char* name, Value& value) {
    read_value(record_.values, prefix_ + name, value);
  }

 private:
  const OptimizerRecord& record_;
  std::string prefix_;
  at::Tensor parameter_;
};

void check_count(const std::string& what, int64_t wanted, const Values& values,
                 const std::string& key) {
  int64_t count = 0;
  read_value(values, key, count);
  if (count == wanted) return;
  throw WeightsError(Code::ShapeMismatch, "must have " + std::to_string(wanted) + " " + what +
                                              ", as the optimiser has. Got " +
                                              std::to_string(count));
}

}  // namespace

OptimizerRecord record_of(const Optimizer& optimizer) {
  OptimizerRecord record;
  const auto write = [&](auto kind) {
    using Kind = decltype(kind);
    record.values["kind"] = Kind::kName;
    const auto& groups = optimizer.param_groups();
    record.values["groups"] = to_text(static_cast<int64_t>(groups.size()));
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto& options = static_cast<const typename Kind::Options&>(groups[i].options());
      Kind::options(options, FieldWriter(record, group_key(i)));
      record.values[group_key(i) + "parameters"] =
          to_text(static_cast<int64_t>(groups[i].params().size()));
      for (const auto& parameter : groups[i].params()) {
        const std::string prefix = std::to_string(index++) + ".";
        const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
        record.values[prefix + "has_state"] = to_text(found != optimizer.state().end());
        if (found == optimizer.state().end()) continue;
        const auto& state = static_cast<const typename Kind::State&>(*found->second);
        Kind::state(state, FieldWriter(record, prefix));
      }
    }
  };
  with_kind(optimizer, write);
  return record;
}

struct OptimizerRestore::State {
  Optimizer& optimizer;
  std::vector<std::function<void()>> set_options;
  std::vector<std::pair<void*, std::unique_ptr<OptimizerParamState>>> states;
};

OptimizerRestore::OptimizerRestore(Optimizer& optimizer, const OptimizerRecord& record)
    : state_(std::make_unique<State>(State{optimizer, {}, {}})) {
  const auto read = [&](auto kind) {
    using Kind = decltype(kind);
    const auto found = record.values.find("kind");
    if (found == record.values.end() || found->second != Kind::kName) {
      throw WeightsError(Code::Unsupported,
                         std::string("must hold the state of the optimiser ") + Kind::kName +
                             ". Got " +
                             (found == record.values.end() ? "none" : in_quotes(found->second)));
    }
    auto& groups = optimizer.param_groups();
    check_count("parameter groups", static_cast<int64_t>(groups.size()), record.values, "groups");
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      check_count("parameters in group " + std::to_string(i),
                  static_cast<int64_t>(groups[i].params().size()), record.values,
                  group_key(i) + "parameters");
      auto& present = static_cast<typename Kind::Options&>(groups[i].options());
      auto options = present;
      Kind::options(options, FieldReader(record, group_key(i)));
      state_->set_options.push_back([&present, options] { present = options; });
      for (const auto& parameter : groups[i].params()) {
        const std::string prefix = std::to_string(index++) + ".";
        bool has_state = false;
        read_value(record.values, prefix + "has_state", has_state);
        if (!has_state) continue;
        auto state = std::make_unique<typename Kind::State>();
        Kind::state(*state, FieldReader(record, prefix, parameter));
        state_->states.emplace_back(parameter.unsafeGetTensorImpl(), std::move(state));
      }
    }
  };
  with_kind(optimizer, read);
}

OptimizerRestore::~OptimizerRestore() = default;
OptimizerRestore::OptimizerRestore(OptimizerRestore&&) noexcept = default;

void OptimizerRestore::apply() {
  for (const auto& set : state_->set_options) set();
  auto& states = state_->optimizer.state();
  states.clear();
  for (auto& [parameter, state] : state_->states) states[parameter] = std::move(state);
}

}  // namespace posenc::io
