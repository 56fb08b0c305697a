#include "train/checkpoint/optimizer_state.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "base/text.h"
#include "train/checkpoint/optimizer_kinds.h"
#include "weights/common/tensor.h"

namespace posenc::io {
namespace {

using torch::optim::Optimizer;
using torch::optim::OptimizerParamState;
using Code = WeightsErrorCode;

// Whether the rule is one of LibTorch's or ours, whose states are known. An optimiser with another
// rule may implement CheckpointableOptimizer, and keep anything in its states.
bool is_known_rule(const std::string& rule) {
  return rule == "Adam" || rule == "AdamW" || rule == "SparseAdam" || rule == "SGD";
}

// The tensors that a state under the rule must have.
std::set<std::string> required_tensors(const std::string& rule, const NamedOptions& options) {
  if (!is_known_rule(rule) || rule == "SGD") return {};
  std::set<std::string> due = {"exp_avg", "exp_avg_sq"};
  const auto amsgrad = options.find("amsgrad");
  if (amsgrad != options.end() && amsgrad->second != 0.0) due.insert("max_exp_avg_sq");
  return due;
}

// The only option that LibTorch's optimisers lack: they always minimise.
constexpr const char* kMaximize = "maximize";
// The only one that a group need not have: it comes with the first schedule.
constexpr const char* kInitialRate = "initial_lr";
constexpr const char* kStateType = "optimizer.state";  // where the rule does not say it

// The recorded options of a group, for an optimiser that has those of `present`.
NamedOptions options_in(const Values& values, std::size_t group, const NamedOptions& present,
                        bool keeps_initial_rate) {
  NamedOptions found = present;
  const std::string prefix = group_key(group);
  if (keeps_initial_rate && values.count(prefix + kInitialRate) != 0) found[kInitialRate] = 0.0;
  for (auto& [name, value] : found) {
    const bool is_there = values.count(prefix + name) != 0;
    if (name == kMaximize && !is_there) {
      value = 0.0;
    } else if (name != kInitialRate || is_there) {
      read_value(values, prefix + name, value);
    }
    if (!std::isfinite(value)) {
      throw WeightsError(Code::Corrupt, "must have a finite number as the metadata " +
                                            in_quotes(prefix + name) + ". Got " + to_text(value));
    }
  }
  double maximize = 0.0;
  if (values.count(prefix + kMaximize) != 0) read_value(values, prefix + kMaximize, maximize);
  if (maximize != 0.0 && present.count(kMaximize) == 0) {
    throw WeightsError(Code::Unsupported,
                       "must be of an optimiser that minimizes: LibTorch's cannot maximize");
  }
  return found;
}

// The groups of an optimiser, exchanged for copies as long as this lives: what is set meanwhile is
// lost, and what the program refers to stays where and as it is.
class CopiedGroups {
 public:
  explicit CopiedGroups(Optimizer& optimizer)
      : optimizer_(optimizer), groups_(optimizer.param_groups()) {
    optimizer_.param_groups().swap(groups_);
  }
  ~CopiedGroups() { optimizer_.param_groups().swap(groups_); }
  CopiedGroups(const CopiedGroups&) = delete;
  CopiedGroups& operator=(const CopiedGroups&) = delete;

 private:
  Optimizer& optimizer_;
  std::vector<torch::optim::OptimizerParamGroup> groups_;
};

// Throws unless the optimiser, which rejects bad options when they are set, takes these. Its own
// may be anything, such as a rate of -1 that was written through a reference, so that they could
// not be set again.
void try_options(Optimizer& optimizer, CheckpointableOptimizer& notes,
                 const std::vector<NamedOptions>& options) {
  const CopiedGroups copied(optimizer);
  for (std::size_t i = 0; i < options.size(); ++i) {
    try {
      notes.set_named_options(i, options[i]);
    } catch (const c10::Error& error) {
      throw WeightsError(Code::Corrupt,
                         "must have options for group " + std::to_string(i) +
                             " that the optimiser takes: " + error.what_without_backtrace());
    }
  }
}

bool are_same(const NamedOptions& a, const NamedOptions& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    const bool both_nan = std::isnan(x.second) && std::isnan(y.second);
    return x.first == y.first && (x.second == y.second || both_nan);
  });
}

// The parameter and rule against which the fields of a state are checked, and its name for errors.
struct StateSlot {
  const at::Tensor& parameter;
  const std::string& rule;
  std::string prefix;  // of its fields' names

  void check(const char* name, const at::Tensor& tensor) const {
    const auto refused = [&](Code code, const std::string& what, const std::string& expected,
                             const std::string& got) {
      return WeightsError(
                 code, "must have the " + what + " of its parameter, " + expected + ". Got " + got)
          .in_tensor(prefix + name);
    };
    if (tensor.sizes() != parameter.sizes()) {
      throw refused(Code::ShapeMismatch, "shape", c10::str(parameter.sizes()),
                    c10::str(tensor.sizes()));
    }
    if (is_known_rule(rule) && tensor.scalar_type() != parameter.scalar_type()) {
      throw refused(Code::DtypeMismatch, "dtype", type_name(parameter.scalar_type()),
                    type_name(tensor.scalar_type()));
    }
  }
};

class FieldWriter {
 public:
  FieldWriter(OptimizerRecord& record, StateSlot owner)
      : record_(record), owner_(std::move(owner)) {}

  void operator()(const char* name, const at::Tensor& tensor) {
    if (!tensor.defined()) return;
    owner_.check(name, tensor);
    record_.tensors.insert(owner_.prefix + name, tensor);
  }
  void operator()(const char* name, int64_t count) {
    record_.values[owner_.prefix + name] = to_text(count);
  }

 private:
  OptimizerRecord& record_;
  StateSlot owner_;
};

class FieldReader {
 public:
  FieldReader(const OptimizerRecord& record, StateSlot owner, const std::set<std::string>& due)
      : record_(record), owner_(std::move(owner)), due_(due) {}

  void operator()(const char* name, at::Tensor& tensor) {
    const at::Tensor* found = record_.tensors.find(owner_.prefix + name);
    if (found != nullptr) {
      owner_.check(name, *found);
      tensor = found->to(owner_.parameter.device());
    } else if (due_.count(name) != 0) {
      throw WeightsError(Code::MissingKeys, "is missing, and the state of " + owner_.rule +
                                                " has it for a parameter "
                                                "that has been stepped")
          .in_tensor(owner_.prefix + name);
    }
  }
  void operator()(const char* name, int64_t& count) {
    count = read_count(record_.values, owner_.prefix + name);
  }

 private:
  const OptimizerRecord& record_;
  StateSlot owner_;
  const std::set<std::string>& due_;
};

// A state without its first tensor comes from a step that failed, or from SGD without momentum: it
// counts as no state.
template <typename Kind>
bool is_begun(const std::string& rule, const typename Kind::State& state) {
  return !is_known_rule(rule) || Kind::first(state).defined();
}

}  // namespace

OptimizerRecord record_of(Optimizer& optimizer, const ParameterNames& names) {
  OptimizerRecord record;
  visit_optimizer(optimizer, [&](CheckpointableOptimizer& notes, auto kind) {
    using Kind = decltype(kind);
    record.values["optimizer.kind"] = notes.rule();
    const auto& groups = optimizer.param_groups();
    record.values["optimizer.groups"] = to_text(static_cast<int64_t>(groups.size()));
    const std::string rule = notes.rule();
    if (!is_known_rule(rule)) record.values[kStateType] = Kind::kState;
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (const auto& [name, value] : notes.named_options(i)) {
        record.values[group_key(i) + name] = to_text(value);
      }
      record.values[group_key(i) + "parameters"] =
          to_text(static_cast<int64_t>(groups[i].params().size()));
      for (std::size_t k = 0; k < groups[i].params().size(); ++k) {
        const at::Tensor& parameter = groups[i].params()[k];
        const std::string prefix = parameter_key(index++);
        record.values[prefix + kName] = names[i][k];
        const auto* state = state_of<Kind>(optimizer, parameter, names[i][k]);
        const bool has_state = state != nullptr && is_begun<Kind>(rule, *state);
        record.values[prefix + "has_state"] = to_text(has_state);
        if (!has_state) continue;
        Kind::fields(*state, FieldWriter(record, {parameter, rule, prefix}));
      }
    }
  });
  return record;
}

struct OptimizerRestore::State {
  Optimizer& optimizer;
  std::vector<NamedOptions> options;  // one per group
  std::vector<std::pair<void*, std::unique_ptr<OptimizerParamState>>> states;
};

OptimizerRestore::OptimizerRestore(Optimizer& optimizer, const OptimizerRecord& record,
                                   const StateSlots& slots)
    : state_(std::make_unique<State>(State{optimizer, {}, {}})) {
  const auto type = record.values.find(kStateType);
  const std::string stored = type == record.values.end() ? "" : type->second;
  const auto read = [&](CheckpointableOptimizer& notes, auto kind) {
    using Kind = decltype(kind);
    const std::string rule = notes.rule();
    const auto found = record.values.find("optimizer.kind");
    if (found == record.values.end() || found->second != rule) {
      throw WeightsError(Code::Unsupported,
                         "must hold the state of the optimiser " + rule + ". Got " +
                             (found == record.values.end() ? "none" : in_quotes(found->second)));
    }
    if (!stored.empty() && stored != Kind::kState) {
      throw WeightsError(Code::Unsupported, "must hold states of the type " +
                                                std::string(Kind::kState) +
                                                ", as the optimiser has. Got " + in_quotes(stored));
    }
    auto& groups = optimizer.param_groups();
    std::vector<NamedOptions> present;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      present.push_back(notes.named_options(i));
      const bool keeps_rate = dynamic_cast<InitialLearningRate*>(&groups[i].options()) != nullptr;
      state_->options.push_back(options_in(record.values, i, present[i], keeps_rate));
    }
    const auto set_back = [&] {  // what an optimiser keeps elsewhere than in its groups
      for (std::size_t i = 0; i < present.size(); ++i)
        if (!are_same(notes.named_options(i), present[i])) notes.set_named_options(i, present[i]);
    };
    try {
      try_options(optimizer, notes, state_->options);
    } catch (...) {
      set_back();
      throw;
    }
    set_back();
    std::size_t index = 0;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const auto due = required_tensors(rule, state_->options[i]);
      for (const auto& parameter : groups[i].params()) {
        const std::string& prefix = slots[index++];
        bool has_state = false;
        read_value(record.values, prefix + "has_state", has_state);
        if (!has_state) continue;
        auto state = std::make_unique<typename Kind::State>();
        Kind::fields(*state, FieldReader(record, {parameter, rule, prefix}, due));
        if (!is_begun<Kind>(rule, *state)) continue;
        state_->states.emplace_back(parameter.unsafeGetTensorImpl(), std::move(state));
      }
    }
  };
  visit_optimizer(optimizer, read, stored);
}

OptimizerRestore::~OptimizerRestore() = default;
OptimizerRestore::OptimizerRestore(OptimizerRestore&&) noexcept = default;

void OptimizerRestore::apply() {
  visit_optimizer(state_->optimizer, [&](CheckpointableOptimizer& notes, auto) {
    for (std::size_t i = 0; i < state_->options.size(); ++i) {
      notes.set_named_options(i, state_->options[i]);
    }
  });
  auto& states = state_->optimizer.state();
  states.clear();
  for (auto& [parameter, state] : state_->states) states[parameter] = std::move(state);
}

}  // namespace posenc::io
