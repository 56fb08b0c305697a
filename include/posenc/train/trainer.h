#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "posenc/io/checkpoint.h"
#include "posenc/train/pair_loader.h"

namespace posenc {

/// Progress of a training run. Loss and speed are those of the steps since the last report.
struct TrainingProgress {
  int64_t step = 0, steps = 0;
  int64_t epoch = 0;  ///< complete ones
  double loss = 0.0;  ///< mean
  double tokens_per_second = 0.0;
  double seconds_left = 0.0;  ///< at the speed of this process so far
};

/// `step 1200/3600  loss 1.2345  45,600 tokens/s  2:31 left`.
std::string describe(const TrainingProgress& progress);

struct TrainerOptions {
  explicit TrainerOptions(int64_t steps) : steps_(steps) {}

  /// Of the whole run.
  TORCH_ARG(int64_t, steps);
  /// Gradients, dense and sparse, are scaled down to this norm, over all parameters; 0: not at all.
  TORCH_ARG(double, clip_norm) = 0.0;
  /// Where the run is saved: when it stops, is done, and every `checkpoint_every` steps (0: not).
  /// Empty: nowhere.
  TORCH_ARG(std::string, checkpoint) = "";
  TORCH_ARG(int64_t, checkpoint_every) = 0;
  /// Called every `report_every` steps and after the last.
  TORCH_ARG(std::function<void(const TrainingProgress&)>, report) = nullptr;
  TORCH_ARG(int64_t, report_every) = 50;
  /// Asked after every step; true stops the run, with a checkpoint. See StopSignal.
  TORCH_ARG(std::function<bool()>, stop) = nullptr;
};

/// The training loop: batch, loss, gradient, clipping, optimiser, scheduler; in train mode. A
/// program that uses it: docs/pronounce.md, "Your own task".
///
/// A run that was stopped, or killed, and resumed is bit-identical to a run that was never
/// interrupted, on one machine with one number of threads: weights, optimiser, schedule, generators
/// and the place in the data are saved together. An exception, of the loss or an optimiser, leaves
/// the loader at the batch of the step that was not done; dropout has drawn for it, so that the
/// same bits need the checkpoint. After one of the scheduler the step is done, and the next train()
/// begins by asking the scheduler again.
class Trainer {
 public:
  /// The loss of a batch, a scalar that backward() takes.
  using Loss = std::function<torch::Tensor(const PairBatch&)>;

  /// Holds references to what `run` names and to the loader. Throws c10::ValueError for options out
  /// of range and a run without an optimiser.
  Trainer(const TrainingRun& run, PairLoader& loader, Loss loss, const TrainerOptions& options);

  /// Continues from a checkpoint of this run. Throws WeightsError or, for other data,
  /// c10::ValueError.
  void resume(const std::string& path);

  /// How far a run in a checkpoint is, and the numbers of its owner. Throws as resume().
  struct SavedRun {
    int64_t step = 0;
    TrainingNumbers numbers;
  };
  static SavedRun saved_run(const std::string& path);

  /// Trains to step `until`, or to the end; false when it was asked to stop. Throws c10::ValueError
  /// when a report or a checkpoint finds a loss that is not finite; nothing is saved then.
  bool train(int64_t until = -1);

  /// Steps that are done, in this process and before it.
  int64_t step() const { return step_; }
  /// Seconds that train() took, in this process and before it.
  double seconds() const { return seconds_; }

  /// Numbers of your own, kept in the checkpoint.
  TrainingNumbers numbers;

 private:
  using Clock = std::chrono::steady_clock;

  torch::Tensor learn_from(const PairBatch& batch);
  void one_step();
  double mean_loss() const;
  void report();
  void start_report();
  void save() const;

  TrainingRun run_;
  PairLoader& loader_;
  Loss loss_;
  TrainerOptions options_;
  std::vector<torch::Tensor> parameters_;
  int64_t step_ = 0;
  bool open_ = false;  // the optimiser has done step_, the scheduler has not
  double seconds_ = 0.0;

  // Since the last report.
  torch::Tensor loss_sum_;
  int64_t losses_ = 0, tokens_ = 0;
  double spent_ = 0.0;
  // Of this process.
  std::optional<Clock::time_point> began_;
  int64_t first_step_ = 0;
};

}  // namespace posenc
