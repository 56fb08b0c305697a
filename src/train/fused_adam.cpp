#include "posenc/train/fused_adam.h"

#include <ATen/Functions.h>

#include <map>
#include <tuple>

#include "train/adam_rows.h"
#include "train/dense.h"
#include "train/optimizer_base.h"

namespace posenc {

namespace train {
template <typename Options>
void AdamTraits<Options>::check(const Options& options) {
  const char* const name = OptimizerTraits<Options>::kOptimizer;
  check_not_negative(name, "lr", options.lr());
  check_betas(name, options.betas());
  check_not_negative(name, "eps", options.eps());
  check_not_negative(name, "weight_decay", options.weight_decay());
  if (!options.sparse()) return;
  TORCH_CHECK_VALUE(
      options.weight_decay() == 0.0 && !options.amsgrad() && options.eps() > 0.0, "[", name,
      "] a group with sparse(true) must have weight_decay(0), which would move "
      "every row, no amsgrad and an eps above 0. Got weight_decay ",
      options.weight_decay(), ", amsgrad ", options.amsgrad(), ", eps ", options.eps());
}

template <typename Options>
const char* AdamTraits<Options>::refusal(const Options& options, const at::Tensor& gradient) {
  if (options.sparse()) return refusal_of_rows(gradient);
  if (gradient.layout() == at::kStrided) return nullptr;
  return "the gradient must be dense. Got a sparse one; a group with sparse(true), SparseAdam and "
         "FusedSGD take those";
}

template struct AdamTraits<FusedAdamOptions>;
template struct AdamTraits<FusedAdamWOptions>;

}  // namespace train

template <typename Options>
void FusedAdamBase<Options>::step_group(const Options& options, std::vector<Entry>& entries) {
  if (options.sparse()) {
    for (const Entry& entry : entries)
      train::step_rows(options, entry.parameter, entry.gradient, *entry.state);
    return;
  }
  std::vector<train::FusedEntry> dense;
  for (const Entry& entry : entries) {
    dense.push_back({entry.parameter, entry.gradient, {}});
    dense.back().states = {&entry.state->exp_avg(), &entry.state->exp_avg_sq()};
    if (options.amsgrad()) dense.back().states.push_back(&entry.state->max_exp_avg_sq());
  }
  const auto kernel = [&](train::FusedLists& lists) {
    // The kernels read the step count from a tensor. Parameters with the same count share one,
    // which on a GPU saves a launch for each of them.
    std::map<int64_t, at::Tensor> counts;
    std::vector<at::Tensor> steps;
    for (const std::size_t entry : lists.entries) {
      const int64_t step = entries[entry].state->step() + 1;
      auto& count = counts[step];
      if (!count.defined()) {
        count = at::full({}, static_cast<double>(step),
                         lists.parameters[0].options().dtype(at::kFloat));
      }
      steps.push_back(count);
    }
    const auto betas = options.betas();  // clang 14 cannot capture structured bindings
    constexpr bool decoupled = std::is_same_v<Options, FusedAdamWOptions>;
    const auto step = [&](auto fused) {
      fused(lists.parameters, lists.gradients, lists.states[0], lists.states[1],
            options.amsgrad() ? at::TensorList(lists.states[2]) : at::TensorList(), steps,
            options.lr(), std::get<0>(betas), std::get<1>(betas), options.weight_decay(),
            options.eps(), options.amsgrad(), options.maximize());
    };
    if constexpr (decoupled) {
      step([](auto&&... arguments) { at::_fused_adamw_(arguments...); });
    } else {
      step([](auto&&... arguments) { at::_fused_adam_(arguments...); });
    }
    for (const std::size_t entry : lists.entries) {
      auto& state = *entries[entry].state;
      state.step(state.step() + 1);  // not counted if the call has thrown
    }
  };
  train::run_fused(dense, kernel);
}

template class OptimizerOptions<FusedAdamOptions>;
template class OptimizerOptions<FusedAdamWOptions>;
template class OptimizerBase<FusedAdamOptions, torch::optim::AdamParamState>;
template class OptimizerBase<FusedAdamWOptions, torch::optim::AdamParamState>;
template class FusedAdamBase<FusedAdamOptions>;
template class FusedAdamBase<FusedAdamWOptions>;

}  // namespace posenc
