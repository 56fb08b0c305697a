#include "posenc/train/schedule_factor.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>

namespace posenc {
namespace {

constexpr const char* kSchedule = "schedule_factor";

using Make = LearningRateFactor (*)(const ScheduleOptions&);

double real(int64_t number) { return static_cast<double>(number); }

// The share of the warm-up that is done, with transformers' operations.
double warmed(int64_t step, int64_t warmup) {
  return real(step) / real(std::max<int64_t>(1, warmup));
}

template <typename T>
T needed(const std::optional<T>& option, const char* name) {
  TORCH_CHECK_VALUE(option.has_value(), "[", kSchedule, "] this schedule needs ", name,
                    ". Got a ScheduleOptions without it");
  return *option;
}

int64_t training_steps(const ScheduleOptions& options) {
  const int64_t steps = needed(options.num_training_steps(), "num_training_steps");
  TORCH_CHECK_VALUE(steps > 0, "[", kSchedule, "] num_training_steps must be positive. Got ",
                    steps);
  return steps;
}

LearningRateFactor constant(const ScheduleOptions&) {
  return [](int64_t) { return 1.0; };
}

LearningRateFactor constant_with_warmup(const ScheduleOptions& options) {
  return [warmup = options.num_warmup_steps()](int64_t step) {
    return step < warmup ? warmed(step, warmup) : 1.0;
  };
}

LearningRateFactor linear(const ScheduleOptions& options) {
  return [warmup = options.num_warmup_steps(), all = training_steps(options)](int64_t step) {
    if (step < warmup) return warmed(step, warmup);
    return std::max(0.0, real(all - step) / real(std::max<int64_t>(1, all - warmup)));
  };
}

// `wave(progress)` follows the warm-up.
template <typename Wave>
LearningRateFactor after_warmup(const ScheduleOptions& options, Wave wave) {
  return [warmup = options.num_warmup_steps(), all = training_steps(options), wave](int64_t step) {
    if (step < warmup) return warmed(step, warmup);
    return std::max(0.0, wave(real(step - warmup) / real(std::max<int64_t>(1, all - warmup))));
  };
}

LearningRateFactor cosine(const ScheduleOptions& options) {
  return after_warmup(options, [cycles = options.num_cycles().value_or(0.5)](double progress) {
    return 0.5 * (1.0 + std::cos(M_PI * cycles * 2.0 * progress));
  });
}

LearningRateFactor cosine_with_restarts(const ScheduleOptions& options) {
  return after_warmup(options, [cycles = options.num_cycles().value_or(1.0)](double progress) {
    if (progress >= 1.0) return 0.0;
    return 0.5 * (1.0 + std::cos(M_PI * std::fmod(cycles * progress, 1.0)));
  });
}

LearningRateFactor polynomial(const ScheduleOptions& options) {
  const double lr = needed(options.lr(), "lr"), lr_end = options.lr_end(), power = options.power();
  const int64_t warmup = options.num_warmup_steps(), all = training_steps(options);
  TORCH_CHECK_VALUE(lr > lr_end, "[", kSchedule, "] lr_end must be smaller than lr. Got ", lr_end,
                    " and ", lr);
  TORCH_CHECK_VALUE(warmup < all, "[", kSchedule,
                    "] num_warmup_steps must be less than num_training_steps. Got ", warmup,
                    " and ", all);
  return [=](int64_t step) {
    if (step < warmup) return warmed(step, warmup);
    if (step > all) return lr_end / lr;
    const double remaining = 1 - real(step - warmup) / real(all - warmup);
    return ((lr - lr_end) * std::pow(remaining, power) + lr_end) / lr;
  };
}

LearningRateFactor inverse_sqrt(const ScheduleOptions& options) {
  const int64_t warmup = options.num_warmup_steps();
  const int64_t scale = options.timescale().value_or(warmup > 0 ? warmup : 10000);
  TORCH_CHECK_VALUE(scale > 0, "[", kSchedule, "] timescale must be positive. Got ", scale);
  return [=](int64_t step) {
    if (step < warmup) return warmed(step, warmup);
    return 1.0 / std::sqrt(real(step + scale - warmup) / real(scale));
  };
}

void check_type(const char* name, const std::string& type) {
  TORCH_CHECK_VALUE(type == "linear" || type == "cosine" || type == "1-sqrt", "[", kSchedule, "] ",
                    name, " must be linear, cosine or 1-sqrt. Got ", type);
}

LearningRateFactor warmup_stable_decay(const ScheduleOptions& options) {
  const int64_t warmup = options.num_warmup_steps();
  const int64_t decay = needed(options.num_decay_steps(), "num_decay_steps");
  const int64_t stable = options.num_stable_steps() ? *options.num_stable_steps()
                                                    : training_steps(options) - warmup - decay;
  const std::string rise = options.warmup_type(), fall = options.decay_type();
  check_type("warmup_type", rise), check_type("decay_type", fall);
  TORCH_CHECK_VALUE(decay >= 0, "[", kSchedule, "] num_decay_steps must not be negative. Got ",
                    decay);
  TORCH_CHECK_VALUE(options.min_lr_ratio() >= 0.0, "[", kSchedule,
                    "] min_lr_ratio must not be negative. Got ", options.min_lr_ratio());
  return [=, least = options.min_lr_ratio(),
          cycles = options.num_cycles().value_or(0.5)](int64_t step) {
    const auto above_least = [&](double factor) {
      return std::max(0.0, factor * (1.0 - least) + least);
    };
    if (step < warmup) {
      const double progress = warmed(step, warmup);
      if (rise == "linear") return above_least(progress);
      if (rise == "cosine") return above_least(0.5 * (1.0 - std::cos(M_PI * progress)));
      return above_least(1.0 - std::sqrt(1.0 - progress));
    }
    if (step < warmup + stable) return 1.0;
    if (step >= warmup + stable + decay) return least;
    const double progress = real(step - warmup - stable) / real(std::max<int64_t>(1, decay));
    if (fall == "linear") return above_least(1.0 - progress);
    if (fall == "cosine")
      return above_least(0.5 * (1.0 + std::cos(M_PI * cycles * 2.0 * progress)));
    return above_least(1.0 - std::sqrt(progress));
  };
}

const std::map<std::string, Make>& makers() {
  static const std::map<std::string, Make> all = {
      {"constant", constant},
      {"constant_with_warmup", constant_with_warmup},
      {"cosine", cosine},
      {"cosine_with_restarts", cosine_with_restarts},
      {"inverse_sqrt", inverse_sqrt},
      {"linear", linear},
      {"polynomial", polynomial},
      {"warmup_stable_decay", warmup_stable_decay},
  };
  return all;
}

}  // namespace

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const auto& [name, make] : makers()) names.push_back(name);
  return names;
}

LearningRateFactor schedule_factor(const std::string& name, const ScheduleOptions& options) {
  const auto found = makers().find(name);
  if (found == makers().end()) {
    std::string names;
    for (const auto& one : schedule_names()) names += (names.empty() ? "" : ", ") + one;
    TORCH_CHECK_VALUE(false, "[", kSchedule, "] a schedule must be one of ", names, ". Got ", name);
  }
  TORCH_CHECK_VALUE(options.num_warmup_steps() >= 0, "[", kSchedule,
                    "] num_warmup_steps must not be negative. Got ", options.num_warmup_steps());
  return found->second(options);
}

}  // namespace posenc
