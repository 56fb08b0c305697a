#include "io/checkpoint/optimizer_state.h"

#include <torch/optim/adam.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <type_traits>
#include <utility>
#include <vector>

#include "io/read/quote.h"
#include "posenc/core/optimizer_notes.h"
#include "posenc/io/error.h"

namespace posenc::io {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using Code = WeightsErrorCode;

// The tensors and counts of a state, by name.
template <typename State, typename Visit>
void adam_fields(State& state, Visit&& visit) {
  visit("step", state.step());
  visit("exp_avg", state.exp_avg());
  visit("exp_avg_sq", state.exp_avg_sq());
  visit("max_exp_avg_sq", state.max_exp_avg_sq());
}

struct AdamState {
  using State = torch::optim::AdamParamState;
  static void fields(auto& state, auto&& visit) { adam_fields(state, visit); }
};
struct AdamWState {  // the same fields in a type of its own
  using State = torch::optim::AdamWParamState;
  static void fields(auto& state, auto&& visit) { adam_fields(state, visit); }
};
struct SgdState {
  using State = torch::optim::SGDParamState;
  static void fields(auto& state, auto&& visit) {
    visit("momentum_buffer", state.momentum_buffer());
  }
};

// The options of LibTorch's optimisers, by name.
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

// LibTorch's optimisers tell nothing of themselves: this does it for them.
template <typename Kind>
class NotesOf : public OptimizerNotes {
 public:
  explicit NotesOf(Optimizer& optimizer) : optimizer_(optimizer) {}

  std::string rule() const override { return Kind::kRule; }
  NamedOptions named_options(std::size_t group) const override {
    NamedOptions named;
    Kind::options(options(group),
                  [&](const char* name, auto& value) { named[name] = static_cast<double>(value); });
    return named;
  }
  void set_named_options(std::size_t group, const NamedOptions& named) override {
    Kind::options(options(group), [&](const char* name, auto& value) {
      const auto found = named.find(name);
      if (found != named.end()) value = static_cast<std::decay_t<decltype(value)>>(found->second);
    });
  }

 private:
  auto& options(std::size_t group) const {
    return static_cast<typename Kind::Options&>(optimizer_.param_groups().at(group).options());
  }
  Optimizer& optimizer_;
};

// Calls `work` with the optimiser's notes and the traits of its state.
template <typename Work>
auto with_notes(Optimizer& optimizer, Work&& work) {
  if (auto* notes = dynamic_cast<OptimizerNotes*>(&optimizer)) {
    return notes->rule() == Sgd::kRule ? work(*notes, SgdState()) : work(*notes, AdamState());
  }
  const auto with = [&](auto kind) {
    NotesOf<decltype(kind)> notes(optimizer);
    return work(notes, kind);
  };
  if (dynamic_cast<torch::optim::Adam*>(&optimizer)) return with(Adam());
  if (dynamic_cast<torch::optim::AdamW*>(&optimizer)) return with(AdamW());
  if (dynamic_cast<torch::optim::SGD*>(&optimizer)) return with(Sgd());
  throw WeightsError(Code::Unsupported,
                     "cannot hold this optimiser: LibTorch's Adam, AdamW and SGD and posenc's "
                     "optimisers can be saved");
}

std::string group_key(std::size_t group) { return "group." + std::to_string(group) + "."; }

// The only option that LibTorch's optimisers lack: they go down.
constexpr const char* kMaximize = "maximize";

// The options of a group in the record, for an optimiser that has those of `present`.
NamedOptions options_in(const Values& values, std::size_t group, const NamedOptions& present) {
  NamedOptions found = present;
  const std::string prefix = group_key(group);
  for (auto& [name, value] : found) {
    if (name == kMaximize && values.count(prefix + name) == 0) {
      value = 0.0;
    } else {
      read_value(values, prefix + name, value);
    }
  }
  double maximize = 0.0;
  if (values.count(prefix + kMaximize) != 0) read_value(values, prefix + kMaximize, maximize);
  if (maximize != 0.0 && present.count(kMaximize) == 0) {
    throw WeightsError(Code::Unsupported,
                       "must be of an optimiser that goes down: LibTorch's cannot maximize");
  }
  return found;
}

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
  FieldReader(const OptimizerRecord& record, std::string prefix, const at::Tensor& parameter)
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

OptimizerRecord record_of(Optimizer& optimizer) {
  OptimizerRecord record;
  with_notes(optimizer, [&](OptimizerNotes& notes, auto kind) {
    using Kind = decltype(kind);
    record.values["kind"] = notes.rule();
    const auto& groups = optimizer.param_groups();
    record.values["groups"] = to_text(static_cast<int64_t>(groups.size()));
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const auto& [name, value] : notes.named_options(i)) {
        record.values[group_key(i) + name] = to_text(value);
      }
      record.values[group_key(i) + "parameters"] =
          to_text(static_cast<int64_t>(groups[i].params().size()));
      for (const auto& parameter : groups[i].params()) {
        const std::string prefix = std::to_string(index++) + ".";
        const auto found = optimizer.state().find(parameter.unsafeGetTensorImpl());
        record.values[prefix + "has_state"] = to_text(found != optimizer.state().end());
        if (found == optimizer.state().end()) continue;
        const auto& state = static_cast<const typename Kind::State&>(*found->second);
        Kind::fields(state, FieldWriter(record, prefix));
      }
    }
  });
  return record;
}

struct OptimizerRestore::State {
  Optimizer& optimizer;
  std::vector<NamedOptions> options;  // a group each
  std::vector<std::pair<void*, std::unique_ptr<OptimizerParamState>>> states;
};

OptimizerRestore::OptimizerRestore(Optimizer& optimizer, const OptimizerRecord& record)
    : state_(std::make_unique<State>(State{optimizer, {}, {}})) {
  with_notes(optimizer, [&](OptimizerNotes& notes, auto kind) {
    using Kind = decltype(kind);
    const auto found = record.values.find("kind");
    if (found == record.values.end() || found->second != notes.rule()) {
      throw WeightsError(Code::Unsupported,
                         "must hold the state of the optimiser " + notes.rule() + ". Got " +
                             (found == record.values.end() ? "none" : in_quotes(found->second)));
    }
    auto& groups = optimizer.param_groups();
    check_count("parameter groups", static_cast<int64_t>(groups.size()), record.values, "groups");
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      check_count("parameters in group " + std::to_string(i),
                  static_cast<int64_t>(groups[i].params().size()), record.values,
                  group_key(i) + "parameters");
      const auto present = notes.named_options(i);
      state_->options.push_back(options_in(record.values, i, present));
      try {  // values that the optimiser does not take show when they are set
        notes.set_named_options(i, state_->options.back());
      } catch (const c10::Error& error) {
        throw WeightsError(Code::Corrupt, error.what_without_backtrace());
      }
      notes.set_named_options(i, present);
      for (const auto& parameter : groups[i].params()) {
        const std::string prefix = std::to_string(index++) + ".";
        bool has_state = false;
        read_value(record.values, prefix + "has_state", has_state);
        if (!has_state) continue;
        auto state = std::make_unique<typename Kind::State>();
        Kind::fields(*state, FieldReader(record, prefix, parameter));
        state_->states.emplace_back(parameter.unsafeGetTensorImpl(), std::move(state));
      }
    }
  });
}

OptimizerRestore::~OptimizerRestore() = default;
OptimizerRestore::OptimizerRestore(OptimizerRestore&&) noexcept = default;

void OptimizerRestore::apply() {
  with_notes(state_->optimizer, [&](OptimizerNotes& notes, auto) {
    for (std::size_t i = 0; i < state_->options.size(); ++i) {
      notes.set_named_options(i, state_->options[i]);
    }
  });
  auto& states = state_->optimizer.state();
  states.clear();
  for (auto& [parameter, state] : state_->states) states[parameter] = std::move(state);
}

}  // namespace posenc::io
