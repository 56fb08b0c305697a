#include "posenc/train/trainer.h"

#include <fmt/format.h>
#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/check.h"
#include "train/clip_norm.h"
#include "train/grouped.h"

namespace posenc {
namespace {

constexpr const char* kStep = "step";
constexpr const char* kSeconds = "seconds";
constexpr const char* kLoader = "loader.";
constexpr const char* kOwn = "own.";

void add(CheckpointScalars& all, const std::string& prefix, const CheckpointScalars& some) {
  for (const auto& [name, value] : some) all[prefix + name] = value;
}

CheckpointScalars below(const CheckpointScalars& all, const std::string& prefix) {
  CheckpointScalars found;
  for (const auto& [name, value] : all) {
    if (name.rfind(prefix, 0) == 0) found[name.substr(prefix.size())] = value;
  }
  return found;
}

double number_of(const CheckpointScalars& all, const std::string& path, const char* name) {
  const auto found = all.find(name);
  TORCH_CHECK_VALUE(found != all.end(), "[Trainer] ", path,
                    ": a checkpoint must be a Trainer's, with the number ", name);
  TORCH_CHECK_VALUE(found->second >= 0.0 && std::isfinite(found->second), "[Trainer] ", path,
                    ": the number ", name, " must be finite and at least 0. Got ", found->second);
  return found->second;
}

int64_t step_of(const CheckpointScalars& all, const std::string& path) {
  constexpr double kMost = 9007199254740992.0;  // 2^53: a double counts no further
  const double step = number_of(all, path, kStep);
  TORCH_CHECK_VALUE(step <= kMost && step == std::floor(step), "[Trainer] ", path, ": the number ",
                    kStep, " must be a count of steps. Got ", step);
  return static_cast<int64_t>(step);
}

// Formats seconds as 1:02:03, 2:31 or 0:09.
std::string clock_text(double seconds) {
  const auto whole = static_cast<int64_t>(std::llround(std::max(seconds, 0.0)));
  const int64_t hours = whole / 3600, minutes = whole / 60 % 60, rest = whole % 60;
  return hours > 0 ? fmt::format("{}:{:02}:{:02}", hours, minutes, rest)
                   : fmt::format("{}:{:02}", minutes, rest);
}

}  // namespace

std::string TrainingProgress::to_string() const {
  return fmt::format("step {}/{}  loss {:.4f}  {} tokens/s  {} left", step, steps, loss,
                     train::grouped(tokens_per_second), clock_text(seconds_left));
}

Trainer::Trainer(const TrainingRun& run, PairLoader& loader, Loss loss,
                 const TrainerOptions& options)
    : run_(run),
      loader_(loader),
      loss_(std::move(loss)),
      options_(options),
      parameters_(run.module->parameters()) {
  const char* name = "Trainer";
  TORCH_CHECK_VALUE(run.optimizer != nullptr, "[Trainer] a run must have an optimizer");
  TORCH_CHECK_VALUE(loss_ != nullptr, "[Trainer] a loss is required");
  check_positive(name, "steps", options.steps());
  check_positive(name, "report_every", options.report_every());
  TORCH_CHECK_VALUE(options.clip_norm() >= 0.0, "[Trainer] clip_norm must not be negative. Got ",
                    options.clip_norm());
  TORCH_CHECK_VALUE(options.checkpoint_every() >= 0,
                    "[Trainer] checkpoint_every must not be negative. Got ",
                    options.checkpoint_every());
}

Trainer::SavedRun Trainer::saved_run(const std::string& path) {
  const auto saved = checkpoint_numbers(path);
  return {step_of(saved, path), below(saved, kOwn)};
}

void Trainer::resume(const std::string& path) {
  const auto saved = checkpoint_numbers(path);
  const int64_t step = step_of(saved, path);
  const double seconds = number_of(saved, path, kSeconds);
  const auto place = loader_.state();
  loader_.restore(below(saved, kLoader));
  try {
    load_checkpoint(path, run_);
  } catch (...) {
    loader_.restore(place);
    throw;
  }
  step_ = step;
  open_ = false;
  seconds_ = seconds;
  numbers = below(saved, kOwn);
  start_report();  // discard the report of the previous run
  began_.reset();
}

void Trainer::save() const {
  if (losses_ > 0) mean_loss();  // throws if the loss is no longer finite
  CheckpointScalars all = {{kStep, static_cast<double>(step_)}, {kSeconds, seconds_}};
  add(all, kLoader, loader_.state());
  add(all, kOwn, numbers);
  save_checkpoint(options_.checkpoint(), run_, all);
}

torch::Tensor Trainer::train_step(const PairBatch& batch) {
  run_.optimizer->zero_grad();
  // Clear gradients outside the optimiser too: they count in the norm, and no checkpoint has them.
  run_.module->zero_grad();
  const torch::Tensor loss = loss_(batch);
  loss.backward();
  if (options_.clip_norm() > 0.0) train::clip_norm(parameters_, options_.clip_norm());
  run_.optimizer->step();
  return loss.detach();
}

void Trainer::one_step() {
  const auto place = loader_.state();
  const PairBatch batch = loader_.next();
  torch::Tensor loss;
  try {
    loss = train_step(batch);
  } catch (...) {
    loader_.restore(place);  // the step is not done: give its batch back
    throw;
  }
  ++step_;
  // Summed on its device, so that only report() waits for a GPU, and in float64, because half types
  // cannot represent the sum of a few hundred losses.
  const torch::Tensor value = loss.to(torch::kDouble);
  loss_sum_ = loss_sum_.defined() ? loss_sum_ + value : value;
  ++losses_;
  tokens_ += batch.tokens;
  open_ = true;
}

double Trainer::mean_loss() const {
  const double mean = loss_sum_.item<double>() / static_cast<double>(losses_);
  TORCH_CHECK_VALUE(std::isfinite(mean),
                    "[Trainer] the loss must be a finite number; a lower learning rate, clip_norm "
                    "or a longer warm-up may help. Got ",
                    mean, " before step ", step_);
  return mean;
}

void Trainer::report() {
  if (losses_ == 0) return;
  TrainingProgress progress;
  progress.step = step_;
  progress.steps = options_.steps();
  progress.epoch = loader_.epoch();
  progress.loss = mean_loss();
  progress.tokens_per_second = static_cast<double>(tokens_) / std::max(spent_, 1e-9);
  const std::chrono::duration<double> running = Clock::now() - *began_;
  progress.seconds_left = running.count() / static_cast<double>(step_ - first_step_) *
                          static_cast<double>(options_.steps() - step_);
  start_report();
  if (options_.report()) options_.report()(progress);
}

void Trainer::start_report() {
  loss_sum_.reset();
  losses_ = tokens_ = 0;
  spent_ = 0.0;
}

bool Trainer::train(int64_t until) {
  const int64_t end = until < 0 ? options_.steps() : std::min(until, options_.steps());
  if (!began_) began_ = Clock::now(), first_step_ = step_;
  run_.module->train();
  bool stopped = false;
  while ((open_ || step_ < end) && !stopped) {
    const auto start = Clock::now();
    if (!open_) one_step();
    if (run_.scheduler != nullptr) run_.scheduler->step();
    open_ = false;
    const std::chrono::duration<double> took = Clock::now() - start;
    spent_ += took.count(), seconds_ += took.count();
    stopped = options_.stop() && options_.stop()();
    const bool last = stopped || step_ == options_.steps();
    if (last || step_ % options_.report_every() == 0) report();
    const bool due = options_.checkpoint_every() > 0 && step_ % options_.checkpoint_every() == 0;
    if (!options_.checkpoint().empty() && (last || due)) save();
  }
  return !stopped;
}

}  // namespace posenc
