// posenc-budget: the training loop of one process and that of several are the same loop
#include "posenc/train/trainer.h"

#include <torch/nn/module.h>
#include <torch/optim/optimizer.h>
#include <torch/optim/schedulers/lr_scheduler.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <utility>

#include "core/check.h"
#include "posenc/train/data_parallel.h"
#include "train/callbacks.h"
#include "train/check_run.h"
#include "train/checkpoint/optimizer_options.h"
#include "train/checkpoint/run_checks.h"
#include "train/parallel/collectives.h"
#include "train/parallel/gradient_exchange.h"
#include "train/shares.h"

namespace posenc {
namespace {

using Clock = std::chrono::steady_clock;
using train::kExchange, train::kLoader, train::kOption, train::kOwn, train::kRanks,
    train::kRequiresGrad, train::kRun;
using train::kSeconds, train::kStep;

constexpr const char* kName = "Trainer";
constexpr int kDefault = parallel::GradientExchange::History::kDefault;  // not saved

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

// The options without which a resumed run would be another one.
CheckpointScalars options_of(const TrainerOptions& options) {
  return {{"clip_norm", options.clip_norm()},
          {"micro_batches", static_cast<double>(options.micro_batches())}};
}

// Files of older versions have no options.
void check_options(const CheckpointScalars& saved, const TrainerOptions& options,
                   const std::string& path) {
  for (const auto& [name, value] : options_of(options)) {
    const auto found = saved.find(kOption + name);
    TORCH_CHECK_VALUE(found == saved.end() || found->second == value || options.changed_options(),
                      "[Trainer] ", path, ": a run must be resumed with its own ", name, ", ",
                      found == saved.end() ? value : found->second, ". Got ", value,
                      "; allow it by changed_options(true)");
  }
}

CheckpointScalars requires_grad_of(const torch::nn::Module& module) {
  CheckpointScalars found;
  for (const auto& item : module.named_parameters())
    found[item.key()] = item.value().requires_grad() ? 1.0 : 0.0;
  return found;
}

// Leaves parameters for which LibTorch refuses a change, and those that are not in `saved`.
void set_requires_grad(const torch::nn::Module& module, const CheckpointScalars& saved) {
  for (const auto& item : module.named_parameters()) {
    const torch::Tensor& parameter = item.value();
    const auto found = saved.find(item.key());
    if (found == saved.end() || !parameter.is_leaf() || parameter.is_inference()) continue;
    const bool requires_grad = found->second != 0.0;
    if (requires_grad == parameter.requires_grad()) continue;
    const auto type = parameter.scalar_type();
    if (requires_grad && !at::isFloatingType(type) && !at::isComplexType(type)) continue;
    parameter.set_requires_grad(requires_grad);
  }
}

// The sums of up to 2^24 bits are exact.
std::vector<float> bits_of(const std::string& text) {
  constexpr int kBits = 32;
  const auto hash = static_cast<uint64_t>(parallel::fingerprint(text));
  std::vector<float> bits;
  for (int i = 0; i < kBits; ++i)
    bits.push_back(static_cast<float>((hash >> i ^ hash >> (i + kBits)) & 1));
  return bits;
}

bool are_equal(const torch::Tensor& sums_of_bits, int processes) {
  return ((sums_of_bits == 0) | (sums_of_bits == processes)).all().item<bool>();
}

void check_loss(const torch::Tensor& loss) {
  TORCH_CHECK_VALUE(loss.defined(), "[Trainer] the loss must be a tensor. Got an undefined one");
  TORCH_CHECK_VALUE(loss.numel() == 1 && at::isFloatingType(loss.scalar_type()),
                    "[Trainer] the loss must be a real scalar. Got ", loss.toString(), " ",
                    loss.sizes());
  TORCH_CHECK_VALUE(loss.requires_grad(),
                    "[Trainer] the loss must have a gradient: something that it is computed from "
                    "must require one, without a NoGradGuard or detach(). Got one without");
}

}  // namespace

Trainer::Trainer(const TrainingRun& run, PairLoader& loader, Loss loss,
                 const TrainerOptions& options)
    : run_(run),
      loader_(loader),
      loss_(std::move(loss)),
      options_(options),
      run_id_(train::new_run_id()) {
  TORCH_CHECK_VALUE(run.optimizer != nullptr, "[Trainer] a run must have an optimizer");
  TORCH_CHECK_VALUE(loss_ != nullptr, "[Trainer] a loss is required");
  check_positive(kName, "steps", options.steps());
  check_positive(kName, "report_every", options.report_every());
  check_positive(kName, "micro_batches", options.micro_batches());
  TORCH_CHECK_VALUE(options.clip_norm() >= 0.0, "[Trainer] clip_norm must not be negative. Got ",
                    options.clip_norm());
  TORCH_CHECK_VALUE(options.checkpoint_every() >= 0,
                    "[Trainer] checkpoint_every must not be negative. Got ",
                    options.checkpoint_every());
  TORCH_CHECK_VALUE(options.checkpoint_every() == 0 || !options.checkpoint().empty(),
                    "[Trainer] checkpoint_every needs a file, checkpoint(path). Got "
                    "checkpoint_every ",
                    options.checkpoint_every(), " and no file");
  TORCH_CHECK_VALUE(!run.group || run.group.get() == options.group().get(),
                    "[Trainer] a run's group must be the one of TrainerOptions");
  run_.group = options.group();
}

Trainer::SavedRun Trainer::saved_run(const std::string& path) {
  const auto saved = checkpoint_numbers(path);
  return {step_of(saved, path), below(saved, kOwn)};
}

void Trainer::check_not_training(const char* function) const {
  TORCH_CHECK_VALUE(
      !training_, "[Trainer] ", function,
      "() must not be called by the loss, `report` or `stop` of the same Trainer. Got "
      "a call after step ",
      step_);
}

void Trainer::resume(const std::string& path) {
  check_not_training("resume");
  CheckpointScalars saved;
  int64_t step = 0;
  double seconds = 0.0;
  const auto loader_state = loader_.state();
  try {
    parallel::all_or_none(
        run_.group,
        [&] {
          saved = checkpoint_numbers(path);
          step = step_of(saved, path);
          seconds = number_of(saved, path, kSeconds);
          loader_.restore(below(saved, kLoader));
          check_options(saved, options_, path);
        },
        kName);
    load_checkpoint(path, run_);
  } catch (...) {
    loader_.restore(loader_state);
    throw;
  }
  set_requires_grad(*run_.module, below(saved, kRequiresGrad));
  step_ = step;
  due_ = {};
  torn_ = options_changed_ = false;
  pending_ = nullptr;
  pending_tears_ = false;
  seconds_ = seconds;
  const auto id = saved.find(kRun);
  run_id_ = id == saved.end() ? 0.0 : id->second;
  numbers = below(saved, kOwn);
  histories_.clear();
  const auto ranks = saved.find(kRanks);
  if (ranks != saved.end() && ranks->second == run_.group.size()) {
    for (const auto& item : run_.module->named_parameters()) histories_[item.key()] = kDefault;
    for (const auto& [name, history] : below(saved, kExchange))
      if (history >= 0.0 && history < kDefault) histories_[name] = static_cast<int>(history);
  }
  start_report();  // discard the report of the previous run
  began_.reset();
}

// A file is replaced by a later state of its own run only, and only by a finite one.
void Trainer::save() {
  const std::string& path = options_.checkpoint();
  const auto check = [&] {
    io::check_options(*run_.optimizer, kName);
    const std::string lost = io::first_not_finite(run_, not_finite_);
    TORCH_CHECK_VALUE(lost.empty(),
                      "[Trainer] a checkpoint must be finite. Got NaN or infinity in ", lost,
                      " after step ", step_, "; resume() from an earlier one");
    if (!path.empty() && run_.group.rank() == 0 && !options_.overwrite())
      train::check_owner(path, run_id_);
  };
  parallel::all_or_none(run_.group, check, kName);
  if (path.empty()) return;
  const double id = run_id_ == 0.0 ? train::new_run_id() : run_id_;
  CheckpointScalars all = {{kStep, static_cast<double>(step_)}, {kSeconds, seconds_}, {kRun, id}};
  add(all, kOption, options_of(options_));
  add(all, kLoader, loader_.state());
  add(all, kRequiresGrad, requires_grad_of(*run_.module));
  add(all, kOwn, numbers);
  if (parallel_) {
    all[kRanks] = run_.group.size();
    for (const auto& [name, history] : parallel_->histories())
      if (history != kDefault) all[kExchange + name] = history;
  }
  save_checkpoint(path, run_, all);
  run_id_ = id;
}

// Looks at the run before its next step. Nothing has changed if it does not fit together.
void Trainer::begin(int64_t end) {
  io::ParameterNames names;
  const auto check = [&] {
    names = train::check_run(run_, options_.checkpoint());
    if (!began_) not_finite_ = io::untrained_not_finite(run_);
    if (!options_.checkpoint().empty() && run_.group.rank() == 0 && !options_.overwrite())
      train::check_owner(options_.checkpoint(), run_id_);
  };
  parallel::all_or_none(run_.group, check, kName);
  if (run_.group.size() > 1) share_changed_options();
  modes_ = train::start_training(*run_.module, modes_.get());
  if (run_.group.size() > 1)
    begin_group(train::run_text(run_, names, loader_, options_, step_, end) + modes_->text());
}

// Agrees on what the processes of a group do next.
void Trainer::begin_group(const std::string& text) {
  TORCH_CHECK_VALUE(
      !torn_,
      "[Trainer] the optimiser or scheduler of a process failed, or `report` wrote weights, so "
      "those of the processes may differ; resume() from the checkpoint");
  parallel::agree_on(run_.group, text, kName);
  parallel_.reset(new DataParallel(run_.module, run_.group, histories_));
}

// Between calls of train() a program may use the model as it likes.
void Trainer::end_group() noexcept {
  try {
    if (parallel_) histories_ = parallel_->histories();
  } catch (...) {
    histories_.clear();  // the others keep theirs: the next train() says that the processes differ
  }
  parallel_.reset();
}

// Computes the gradients of this process's share; with a group, they are complete only after the
// exchange. Returns the share's part of the mean loss; undefined if the share is empty.
torch::Tensor Trainer::gradients(const std::vector<PairBatch>& batches) {
  run_.optimizer->zero_grad();
  // Clear gradients outside the optimiser too: they count in the norm, and no checkpoint has them.
  run_.module->zero_grad();
  const auto shares = train::shares_of(batches, {run_.group, options_.weight()});
  torch::Tensor sum;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const auto& [batch, factor] = shares[i];
    if (factor == 0.0) continue;
    std::optional<DataParallelPause> pause;
    if (parallel_ && i + 1 < shares.size()) pause.emplace(parallel_->pause());
    const torch::Tensor loss = loss_(batch);
    check_loss(loss);
    (factor == 1.0 ? loss : loss * factor).backward();
    // Summed on its device, so that only report() waits for a GPU, and in float64, because half
    // types cannot represent the sum of a few hundred losses.
    const torch::Tensor part = loss.detach().to(torch::kDouble) * factor;
    sum = sum.defined() ? sum + part : part;
  }
  return sum;
}

// The exchange carries a few numbers more than the gradients: the loss, which is not finite if any
// process's is not, whether one wants to stop, has failed, did so in the last optimiser step,
// whether its buffers have changed, of which rank 0's count, whether rank 0's options have, and the
// bits of a hash of the options, of which each sum is 0 or the number of processes if all are
// equal.
torch::Tensor Trainer::agreed_gradients(const std::vector<PairBatch>& batches) {
  std::exception_ptr failure = std::exchange(pending_, nullptr);
  const bool tore = std::exchange(pending_tears_, false);
  torch::Tensor loss;
  bool stop = false;
  std::string options;
  try {
    if (!failure) loss = gradients(batches), stop = asks_to_stop();
    options = io::options_text(*run_.optimizer);
  } catch (const GroupError& error) {
    if (error.code() == GroupErrorCode::PeerLost || error.code() == GroupErrorCode::TimedOut) throw;
    failure = std::current_exception();
  } catch (...) {
    failure = std::current_exception();
  }
  const double part = failure || !loss.defined() ? 0.0 : loss.item<double>();
  std::vector<float> own = {static_cast<float>(part),
                            stop ? 1.0F : 0.0F,
                            failure ? 1.0F : 0.0F,
                            tore ? 1.0F : 0.0F,
                            parallel_->buffers_have_changed() ? 1.0F : 0.0F,
                            options_changed_ ? 1.0F : 0.0F};
  const std::size_t bits_begin = own.size();
  for (const float bit : bits_of(options)) own.push_back(bit);
  torch::Tensor numbers = torch::tensor(own);
  try {
    parallel_->finish(numbers);
  } catch (...) {
    if (failure) std::rethrow_exception(failure);  // it came first
    throw;
  }
  if (numbers[2].item<float>() > 0.0F) {
    torn_ = numbers[3].item<float>() > 0.0F;
    parallel::all_or_none(
        run_.group,
        [&] {
          if (failure) std::rethrow_exception(failure);
        },
        kName);
  }
  if (numbers[4].item<float>() > 0.0F) parallel_->broadcast_buffers();
  if (numbers[5].item<float>() > 0.0F) {
    share_options();
  } else if (!are_equal(numbers.slice(0, static_cast<int64_t>(bits_begin)), run_.group.size())) {
    parallel::agree_on(run_.group, options, kName);
  }
  stop_ = numbers[1].item<float>() > 0.0F;
  return numbers[0].to(torch::kDouble);
}

torch::Tensor Trainer::train_step(const std::vector<PairBatch>& batches) {
  const torch::Tensor loss = parallel_ ? agreed_gradients(batches) : gradients(batches);
  if (options_.clip_norm() > 0.0) {
    const torch::Tensor norm = parallel::clip_norm(*run_.module, options_.clip_norm(), kName);
    norm_sum_ = norm_sum_.defined() ? norm_sum_ + norm : norm;
  }
  defer_failure(/*tears=*/true, [&] { run_.optimizer->step(); });
  return loss;
}

// Keeps an exception of this process alone for the next exchange, which throws on all of them. What
// `tears` leaves the processes with different weights.
void Trainer::defer_failure(bool tears, const std::function<void()>& work) {
  try {
    work();
  } catch (...) {
    if (!parallel_) throw;
    if (!pending_) pending_ = std::current_exception();
    pending_tears_ |= tears;
  }
}

// Throws on every process if something of one has failed. Called where no exchange follows.
void Trainer::throw_deferred() {
  if (!parallel_) return;
  torn_ = true;
  parallel::all_or_none(
      run_.group,
      [&] {
        pending_tears_ = false;
        if (pending_) std::rethrow_exception(std::exchange(pending_, nullptr));
      },
      kName);
  torn_ = false;
}

void Trainer::one_step() {
  const auto loader_state = loader_.state();
  torch::Tensor loss;
  int64_t tokens = 0;
  try {
    std::vector<PairBatch> batches;
    for (int64_t i = 0; i < options_.micro_batches(); ++i) batches.push_back(loader_.next());
    for (const PairBatch& batch : batches) tokens += batch.tokens;
    loss = train_step(batches);
  } catch (...) {
    loader_.restore(loader_state);  // the step is not done: give its batches back
    throw;
  }
  ++step_;
  loss_sum_ = loss_sum_.defined() ? loss_sum_ + loss : loss;
  ++losses_;
  tokens_ += tokens;
  due_.schedule = true;
}

bool Trainer::asks_to_stop() {
  if (!options_.stop()) return false;
  struct Restore {
    train::Modes& modes;
    ~Restore() { modes.restore(); }
  } const restore{*modes_};
  modes_->record();
  return options_.stop()();
}

// Throws, once, if a loss or a norm since the last report was not finite.
void Trainer::check_sums() {
  if (losses_ == 0) return;
  const double mean = loss_sum_.item<double>() / static_cast<double>(losses_);
  const double norm = norm_sum_.defined() ? norm_sum_.item<double>() : 0.0;
  if (!std::isfinite(mean) || !std::isfinite(norm)) start_report();
  TORCH_CHECK_VALUE(std::isfinite(mean),
                    "[Trainer] the loss must be a finite number; a lower learning rate, clip_norm "
                    "or a longer warm-up may help. Got ",
                    mean, " before step ", step_);
  TORCH_CHECK_VALUE(std::isfinite(norm),
                    "[Trainer] the norm of the gradients must be finite: no weight is, after one "
                    "that is not; resume() from a checkpoint. Got ",
                    norm, " up to step ", step_);
}

// Copies rank 0's options to all processes if `report` has changed them there. All learn of weights
// that it wrote.
void Trainer::share_changed_options() {
  constexpr int64_t kChanged = 1, kTorn = 2;
  const auto left = parallel::all_gather_numbers(
      run_.group, (options_changed_ ? kChanged : 0) | (torn_ ? kTorn : 0), kName);
  for (const int64_t of_rank : left) torn_ |= (of_rank & kTorn) != 0;
  if ((left[0] & kChanged) != 0) share_options();
}

void Trainer::share_options() {
  train::share_options(run_, kName);
  options_changed_ = false;
}

// With `is_last` no exchange follows that could throw what `report` throws.
void Trainer::report(bool is_last) {
  if (losses_ == 0) return;
  TrainingProgress progress;
  progress.step = step_, progress.steps = options_.steps();
  progress.epoch = loader_.epoch();
  progress.loss = loss_sum_.item<double>() / static_cast<double>(losses_);
  progress.tokens_per_second = static_cast<double>(tokens_) / std::max(spent_, 1e-9);
  const std::chrono::duration<double> running = Clock::now() - *began_;
  progress.seconds_left = running.count() / static_cast<double>(step_ - first_step_) *
                          static_cast<double>(options_.steps() - step_);
  start_report();
  const auto call = [&] {
    if (!options_.report() || run_.group.rank() != 0) return;
    const auto reported = train::call_report(run_, *modes_, [&] { options_.report()(progress); });
    options_changed_ |= reported.options_changed;
    if (reported.wrote) torn_ = pending_tears_ = true;
    if (reported.thrown) std::rethrow_exception(reported.thrown);
  };
  is_last ? parallel::all_or_none(run_.group, call, kName) : defer_failure(/*tears=*/false, call);
}

void Trainer::start_report() {
  loss_sum_.reset(), norm_sum_.reset();
  losses_ = tokens_ = 0;
  spent_ = 0.0;
}

// Does what is due after a step, whatever is thrown: a report that fails costs no checkpoint.
// Returns whether the run is to stop.
bool Trainer::follow_step(int64_t end) {
  std::exception_ptr thrown;
  const auto keep = [&](const auto& work) { train::keep_first(thrown, work); };
  bool stopped = false;
  if (std::exchange(due_.callbacks, false)) {
    keep([&] { stopped = parallel_ ? stop_ : asks_to_stop(); });
    const bool ends = step_ == options_.steps(), last = stopped || ends;
    const bool reports = last || step_ % options_.report_every() == 0;
    const bool every = options_.checkpoint_every() > 0 && step_ % options_.checkpoint_every() == 0;
    const bool is_saved = !options_.checkpoint().empty();
    const bool saves = ends || (is_saved && (stopped || every));
    due_.save = ends || (is_saved && stopped);  // even if the losses are not finite
    const bool is_last = saves || stopped || step_ == end;
    if (is_last) {
      throw_deferred();
      parallel::all_or_none(run_.group, [&] { io::check_options(*run_.optimizer, kName); }, kName);
    }
    if (reports || saves) check_sums();
    due_.save = saves;
    if (reports) keep([&] { report(is_last); });
    if (is_last && parallel_) keep([&] { share_changed_options(); });
  }
  if (due_.save && !torn_) {
    keep([&] {
      save();
      due_.save = false;
    });
  }
  if (thrown) std::rethrow_exception(thrown);
  return stopped;
}

bool Trainer::train(int64_t until) {
  check_not_training("train");
  const int64_t end = until < 0 ? options_.steps() : std::min(until, options_.steps());
  begin(end);
  if (!began_) began_ = Clock::now(), first_step_ = step_;
  struct End {
    Trainer& trainer;
    explicit End(Trainer& own) : trainer(own) { trainer.training_ = true; }
    ~End() {
      trainer.training_ = false;
      trainer.end_group();
    }
  } const at_end(*this);
  bool stopped = false;
  while ((due_.any() || step_ < end) && !stopped) {
    const auto start = Clock::now();
    if (!due_.any()) one_step();
    if (due_.schedule) {
      defer_failure(/*tears=*/true, [&] {
        if (run_.scheduler != nullptr) run_.scheduler->step();
      });
      due_ = {/*schedule=*/false, /*callbacks=*/true, /*save=*/false};
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    spent_ += took.count(), seconds_ += took.count();
    stopped = follow_step(end);
  }
  return !stopped || step_ == options_.steps();
}

}  // namespace posenc
