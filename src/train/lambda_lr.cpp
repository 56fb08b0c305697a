#include "posenc/train/lambda_lr.h"

#include <c10/util/Exception.h>
#include <torch/optim/optimizer.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "posenc/train/checkpointable.h"

namespace posenc {
namespace {

std::string name_of(std::size_t group) { return "base_lr." + std::to_string(group); }

// Null for the options of LibTorch's optimisers.
InitialLearningRate* initial_rate_of(torch::optim::OptimizerParamGroup& group) {
  return dynamic_cast<InitialLearningRate*>(&group.options());
}

std::vector<double> base_rates(torch::optim::Optimizer& optimizer) {
  std::vector<double> rates;
  for (auto& group : optimizer.param_groups()) {
    const auto* const stored = initial_rate_of(group);
    rates.push_back(stored != nullptr ? stored->initial_lr().value_or(group.options().get_lr())
                                      : group.options().get_lr());
  }
  const bool some =
      std::any_of(rates.begin(), rates.end(), [](double rate) { return rate != 0.0; });
  TORCH_CHECK_VALUE(rates.empty() || some,
                    "[LambdaLR] some group must have a rate above 0 when the schedule is made. Got "
                    "0 for all, as after another schedule; set_lr() first");
  return rates;
}

}  // namespace

LearningRateFactor warmup_factor(int64_t d_model, int64_t warmup) {
  check_positive("warmup_factor", "d_model", d_model);
  check_positive("warmup_factor", "warmup", warmup);
  const double width = std::pow(static_cast<double>(d_model), -0.5);
  const double slope = std::pow(static_cast<double>(warmup), -1.5);
  return [width, slope](int64_t step) {
    const auto s = static_cast<double>(step + 1);
    return width * std::min(std::pow(s, -0.5), s * slope);
  };
}

LearningRateFactor cosine_factor(int64_t warmup, int64_t steps) {
  TORCH_CHECK_VALUE(0 <= warmup && warmup < steps,
                    "[cosine_factor] warmup must lie in [0, steps). Got ", warmup, " and steps ",
                    steps);
  return [warmup, steps](int64_t step) {
    if (step < warmup) return static_cast<double>(step + 1) / static_cast<double>(warmup);
    const double done =
        static_cast<double>(std::min(step, steps) - warmup) / static_cast<double>(steps - warmup);
    return 0.5 * (1.0 + std::cos(M_PI * done));
  };
}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, LearningRateFactor factor)
    : LambdaLR(optimizer, std::vector<LearningRateFactor>(optimizer.param_groups().size(),
                                                          std::move(factor))) {}

LambdaLR::LambdaLR(torch::optim::Optimizer& optimizer, std::vector<LearningRateFactor> factors)
    : LRScheduler(optimizer), base_lrs_(base_rates(optimizer)), factors_(std::move(factors)) {
  TORCH_CHECK_VALUE(factors_.size() == base_lrs_.size(),
                    "[LambdaLR] each parameter group must have a factor. Got ", factors_.size(),
                    " factors for ", base_lrs_.size(), " groups");
  step();
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) {
    if (auto* const stored = initial_rate_of(optimizer.param_groups()[i]))
      stored->set_initial_lr(base_lrs_[i]);
  }
}

std::string LambdaLR::kind() const { return "LambdaLR"; }

std::map<std::string, double> LambdaLR::numbers() const {
  std::map<std::string, double> named;
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) named[name_of(i)] = base_lrs_[i];
  return named;
}

void LambdaLR::set_numbers(const std::map<std::string, double>& numbers) {
  TORCH_CHECK_VALUE(numbers.size() == base_lrs_.size(),
                    "[LambdaLR] each parameter group must have a base rate. Got ", numbers.size(),
                    " for ", base_lrs_.size(), " groups");
  std::vector<double> rates;
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) {
    const auto found = numbers.find(name_of(i));
    TORCH_CHECK_VALUE(found != numbers.end(), "[LambdaLR] the number ", name_of(i), " is missing");
    TORCH_CHECK_VALUE(found->second >= 0.0 && std::isfinite(found->second),
                      "[LambdaLR] a base rate must be finite and not negative. Got ", found->second,
                      " for group ", i);
    rates.push_back(found->second);
  }
  base_lrs_ = std::move(rates);
}

// step_count_ is the number of rates set so far, which is the index of the next one.
std::vector<double> LambdaLR::get_lrs() {
  std::vector<double> lrs;
  for (std::size_t i = 0; i < base_lrs_.size(); ++i) {
    const double factor = factors_[i](step_count_);
    // A negative rate would ascend the gradient, and optimisers would refuse to load it.
    TORCH_CHECK_VALUE(factor >= 0.0 && std::isfinite(factor),
                      "[LambdaLR] the factor must be finite and not negative. Got ", factor,
                      " for step ", step_count_);
    lrs.push_back(base_lrs_[i] * factor);
  }
  return lrs;
}

}  // namespace posenc
