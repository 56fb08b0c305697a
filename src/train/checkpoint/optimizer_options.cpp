#include "train/checkpoint/optimizer_options.h"

#include <c10/util/Exception.h>

#include <cmath>

#include "train/checkpoint/optimizer_kinds.h"
#include "train/checkpoint/values.h"

namespace posenc::io {
namespace {

using torch::optim::Optimizer;

// ` step 3 exp_avg exp_avg_sq`
template <typename Kind>
std::string fields_text(const typename Kind::State& state) {
  struct Visit {
    std::string text;
    void operator()(const char* name, const at::Tensor& tensor) {
      if (tensor.defined()) text += std::string(" ") + name;
    }
    void operator()(const char* name, int64_t count) {
      text += std::string(" ") + name + " " + to_text(count);
    }
  } visit;
  Kind::fields(state, visit);
  return visit.text;
}

std::string group_line(std::size_t group, const std::string& rest) {
  return "parameter group " + std::to_string(group) + ": " + rest + "\n";
}

void set_group(Optimizer& optimizer, std::size_t group, const NamedOptions& options) {
  if (!is_savable(optimizer)) {
    optimizer.param_groups()[group].options().set_lr(options.at("lr"));
    return;
  }
  visit_optimizer(optimizer, [&](CheckpointableOptimizer& notes, auto) {
    notes.set_named_options(group, options);
  });
}

// The base class of LibTorch's options throws where a class of one's own has no learning rate.
bool has_rates(Optimizer& optimizer) {
  try {
    options_of(optimizer);
  } catch (const c10::Error&) {
    return false;
  }
  return true;
}

}  // namespace

std::vector<NamedOptions> options_of(Optimizer& optimizer) {
  std::vector<NamedOptions> options(optimizer.param_groups().size());
  if (!is_savable(optimizer)) {
    for (std::size_t i = 0; i < options.size(); ++i)
      options[i]["lr"] = optimizer.param_groups()[i].options().get_lr();
    return options;
  }
  visit_optimizer(optimizer, [&](CheckpointableOptimizer& notes, auto) {
    for (std::size_t i = 0; i < options.size(); ++i) options[i] = notes.named_options(i);
  });
  return options;
}

void set_options(Optimizer& optimizer, const std::vector<NamedOptions>& options) {
  for (std::size_t i = 0; i < options.size(); ++i) set_group(optimizer, i, options[i]);
}

void check_options(Optimizer& optimizer, const char* caller) {
  if (!is_savable(optimizer) && !has_rates(optimizer)) return;
  const auto options = options_of(optimizer);
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (const auto& [name, value] : options[i])
      TORCH_CHECK_VALUE(std::isfinite(value), "[", caller,
                        "] the options of the optimiser must be finite. Got ", name, " ", value,
                        " in parameter group ", i);
    try {  // the optimiser rejects bad values when they are set
      set_group(optimizer, i, options[i]);
    } catch (const c10::ValueError& error) {
      TORCH_CHECK_VALUE(false, "[", caller, "] the optimiser must accept the options of parameter ",
                        "group ", i, ": ", error.what_without_backtrace());
    }
  }
}

bool is_savable(const Optimizer& optimizer) {
  return dynamic_cast<const CheckpointableOptimizer*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::Adam*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::AdamW*>(&optimizer) != nullptr ||
         dynamic_cast<const torch::optim::SGD*>(&optimizer) != nullptr;
}

std::string options_text(Optimizer& optimizer) {
  std::string text;
  const auto options = options_of(optimizer);
  for (std::size_t i = 0; i < options.size(); ++i) {
    for (const auto& [name, value] : options[i]) text += group_line(i, name + " " + to_text(value));
  }
  return text;
}

std::string optimizer_text(Optimizer& optimizer, const ParameterNames& names) {
  std::string text = options_text(optimizer);
  const auto line = [&](std::size_t group, const std::string& rest) {
    text += group_line(group, rest);
  };
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (const std::string& name : names[i]) line(i, name);
  }
  if (!is_savable(optimizer)) return text;
  visit_optimizer(optimizer, [&](CheckpointableOptimizer& notes, auto kind) {
    using Kind = decltype(kind);
    text = "optimizer " + notes.rule() + "\n" + text;
    const auto& groups = optimizer.param_groups();
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t k = 0; k < names[i].size(); ++k) {
        const auto* state = state_of<Kind>(optimizer, groups[i].params()[k], names[i][k]);
        if (state != nullptr) line(i, names[i][k] + " with" + fields_text<Kind>(*state));
      }
    }
  });
  return text;
}

}  // namespace posenc::io
