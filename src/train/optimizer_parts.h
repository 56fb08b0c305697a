#pragma once

#include <ATen/core/Tensor.h>
#include <c10/util/Exception.h>
#include <torch/optim/adam.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/sgd.h>

#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

#include "posenc/train/fused_adam.h"
#include "posenc/train/fused_sgd.h"
#include "posenc/train/sparse_adam.h"

namespace posenc::train {

/// The options of an optimiser, one by one.
struct OptionsAccess {
  /// Calls visit(name, pointer to member) for every option, in the order of the archives.
  template <typename Options, typename Visit>
  static void fields(Visit&& visit) {
    visit("lr", &OptimizerOptions<Options>::lr_);
    if constexpr (std::is_base_of_v<MomentsOptions<Options>, Options>) {
      visit("betas", &MomentsOptions<Options>::betas_);
      visit("eps", &MomentsOptions<Options>::eps_);
    }
    if constexpr (std::is_base_of_v<AdamOptionsBase<Options>, Options>) {
      visit("weight_decay", &AdamOptionsBase<Options>::weight_decay_);
      visit("amsgrad", &AdamOptionsBase<Options>::amsgrad_);
    }
    if constexpr (std::is_same_v<FusedSGDOptions, Options>) {
      visit("momentum", &FusedSGDOptions::momentum_);
      visit("dampening", &FusedSGDOptions::dampening_);
      visit("weight_decay", &FusedSGDOptions::weight_decay_);
      visit("nesterov", &FusedSGDOptions::nesterov_);
    }
    visit("maximize", &OptimizerOptions<Options>::maximize_);
  }

  /// Takes all options from `defaults` that were neither set nor changed in `options`.
  template <typename Options>
  static void inherit(Options& options, const Options& defaults) {
    const Options untouched;
    fields<Options>([&](const char* name, auto member) {
      const bool changed = options.given_.count(name) != 0 || options.*member != untouched.*member;
      if (!changed) options.*member = defaults.*member;
    });
  }
};

/// The names of an optimiser and what it checks: check() throws c10::ValueError for options out of
/// range, refusal() says why a gradient is not accepted, or returns nullptr.
template <typename Options>
struct OptimizerTraits;

/// What Adam and AdamW have in common.
template <typename Options>
struct AdamTraits {
  static void check(const Options& options);
  static const char* refusal(const Options& options, const at::Tensor& gradient);
};

template <>
struct OptimizerTraits<FusedAdamOptions> : AdamTraits<FusedAdamOptions> {
  static constexpr const char* kOptimizer = "FusedAdam";
  static constexpr const char* kRule = "Adam";
};

template <>
struct OptimizerTraits<FusedAdamWOptions> : AdamTraits<FusedAdamWOptions> {
  static constexpr const char* kOptimizer = "FusedAdamW";
  static constexpr const char* kRule = "AdamW";
};

template <>
struct OptimizerTraits<FusedSGDOptions> {
  static constexpr const char* kOptimizer = "FusedSGD";
  static constexpr const char* kRule = "SGD";
  static void check(const FusedSGDOptions& options);
  static const char* refusal(const FusedSGDOptions& options, const at::Tensor& gradient);
};

template <>
struct OptimizerTraits<SparseAdamOptions> {
  static constexpr const char* kOptimizer = "SparseAdam";
  static constexpr const char* kRule = "SparseAdam";
  static void check(const SparseAdamOptions& options);
  static const char* refusal(const SparseAdamOptions& options, const at::Tensor& gradient);
};

/// Throws c10::ValueError unless the value is at least 0.
inline void check_not_negative(const char* optimizer, const char* name, double value) {
  TORCH_CHECK_VALUE(value >= 0.0, "[", optimizer, "] ", name, " must be at least 0. Got ", value);
}

/// Throws c10::ValueError unless both decay rates lie in [0, 1).
inline void check_betas(const char* optimizer, const std::tuple<double, double>& betas) {
  const auto [beta1, beta2] = betas;
  TORCH_CHECK_VALUE(beta1 >= 0.0 && beta1 < 1.0 && beta2 >= 0.0 && beta2 < 1.0, "[", optimizer,
                    "] betas must lie in [0, 1). Got (", beta1, ", ", beta2, ")");
}

template <typename Options>
using Traits = OptimizerTraits<std::remove_const_t<Options>>;

/// `parameter 2 of group 0, [5, 3]`
inline std::string parameter_text(std::size_t group, std::size_t index,
                                  const at::Tensor& parameter) {
  return c10::str("parameter ", index, " of group ", group, ", ", parameter.sizes());
}

/// The tensors of a state; each has its parameter's shape or is undefined.
inline std::vector<at::Tensor*> tensors_of(torch::optim::AdamParamState& state) {
  return {&state.exp_avg(), &state.exp_avg_sq(), &state.max_exp_avg_sq()};
}
inline std::vector<at::Tensor*> tensors_of(torch::optim::SGDParamState& state) {
  return {&state.momentum_buffer()};
}

// Visits a field as numbers; betas are two.
template <typename Visit>
void numbers(const std::string& name, std::tuple<double, double>& betas, Visit&& visit) {
  visit(name == "betas" ? "beta1" : name, std::get<0>(betas));
  visit(name == "betas" ? "beta2" : name, std::get<1>(betas));
}
template <typename Value, typename Visit>
void numbers(const std::string& name, Value& value, Visit&& visit) {
  visit(name, value);
}

/// Returns the options of a group as `Options`. They may be those of another optimiser:
/// set_options() accepts any, and so does add_param_group() through a base reference, in LibTorch
/// up to 2.12.
template <typename Options, typename Base>
Options& own_options(Base& options, std::size_t group) {
  auto* const own = dynamic_cast<Options*>(&options);
  TORCH_CHECK_TYPE(own != nullptr, "[", Traits<Options>::kOptimizer, "] group ", group,
                   " must have ", Traits<Options>::kOptimizer,
                   "Options. Got those of another optimiser");
  return *own;
}

// Keys that LibTorch's archives lack.
constexpr const char* kInitialRate = "initial_lr";
constexpr const char* kArchiveRule = "posenc_rule";

/// Holds groups and states while an archive is read.
struct Loaded : torch::optim::Optimizer {
  using Optimizer::Optimizer;
  torch::Tensor step(LossClosure) override { return {}; }
};

}  // namespace posenc::train
