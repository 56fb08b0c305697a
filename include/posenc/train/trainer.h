// posenc-budget: the options and the contract of one loop, for one process and for several
#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/checkpoint.h"
#include "posenc/train/group.h"
#include "posenc/train/pair_loader.h"

namespace posenc::train {
class Modes;  // private
}

namespace posenc POSENC_EXPORT {

class DataParallel;

/// Progress of a training run. Loss and speed are those of the steps since the last report.
struct TrainingProgress {
  int64_t step = 0;                ///< number of steps done
  int64_t steps = 0;               ///< number of steps of the whole run
  int64_t epoch = 0;               ///< number of complete epochs
  double loss = 0.0;               ///< mean loss
  double tokens_per_second = 0.0;  ///< speed, without padding
  double seconds_left = 0.0;       ///< estimated from the average speed of this process

  /// Returns `step 1200/3600  loss 1.2345  45,600 tokens/s  2:31 left`.
  std::string to_string() const;
};

/// Options of Trainer.
struct TrainerOptions {
  /// The default options for a run of `steps` steps.
  explicit TrainerOptions(int64_t steps) : steps_(steps) {}

  /// Number of steps of the whole run.
  TORCH_ARG(int64_t, steps);
  /// Scales gradients down to this norm; 0: no clipping. With sparse ones it waits for a GPU.
  TORCH_ARG(double, clip_norm) = 0.0;
  /// The file that the run is saved to when it stops, when it ends and every `checkpoint_every`
  /// steps. Empty: it is not saved. A file of another run is not replaced.
  TORCH_ARG(std::string, checkpoint) = "";
  /// Number of steps between checkpoints; 0: none between.
  TORCH_ARG(int64_t, checkpoint_every) = 0;
  /// Replaces whatever file is at `checkpoint`.
  TORCH_ARG(bool, overwrite) = false;
  /// resume() takes a checkpoint of a run with another clip_norm or micro_batches.
  TORCH_ARG(bool, changed_options) = false;
  /// Called every `report_every` steps and after the last step, on rank 0 only. The modes of the
  /// modules and the generators are put back after it; what it does to the optimiser's options
  /// holds on all processes. In a group it must not write weights or the optimiser's state, not
  /// even to put them back, nor change requires_grad; writes through data() or raw memory go
  /// unnoticed.
  TORCH_ARG(std::function<void(const TrainingProgress&)>, report) = nullptr;
  /// Number of steps between reports, which wait for a GPU, as checkpoints and groups do.
  TORCH_ARG(int64_t, report_every) = 50;
  /// Called after every step; returning true saves and stops the run. With a group it is called
  /// before the step's update, with whose gradients its result is sent. The modes of the modules
  /// are put back after it. Options of the optimiser that it sets, or the loss, have to be the same
  /// on all processes. See StopSignal.
  TORCH_ARG(std::function<bool()>, stop) = nullptr;
  /// The processes that train together, each on its share() of every batch; gradients, reports,
  /// stops and checkpoints are those of the whole. By default one process.
  TORCH_ARG(RankGroup, group);
  /// The weight of a share in the mean of the losses; by default its number of targets that are not
  /// padding, which is right for token_cross_entropy().
  TORCH_ARG(std::function<double(const PairBatch&)>, weight) = nullptr;
  /// Number of batches in a step: their gradients accumulate, by weight, and are exchanged once.
  TORCH_ARG(int64_t, micro_batches) = 1;
};

/// The training loop: batch, loss, backward, clipping, optimiser step and scheduler step, in train
/// mode (a part that is in eval mode while the whole is not stays in it). docs/training.md has a
/// complete program.
///
/// A run owns what it trains: train() first checks that each parameter of the optimiser is one of
/// the module's, listed once, that the scheduler is of the optimiser, and that the run can be
/// saved. A checkpoint that is due is written whatever `report` or `stop` throws, and where it
/// could not be written, the next train() begins with it. One that is not finite replaces no file:
/// weights, buffers, the optimiser's state and options. Tensors that are not trained and were not
/// finite before the first step, such as a mask, are allowed.
///
/// A run that was stopped or killed and then resumed is bit-identical to a run that was never
/// interrupted, on the same machine with the same number of threads: weights, optimiser, schedule,
/// generators, the position in the data and which parameters require a gradient are saved together,
/// and resume() restores them all; freeze or unfreeze a part otherwise after resume(). If the loss
/// or the optimiser throws, the step is not done and the loader stays at its batch; since dropout
/// has already drawn for it, only resuming from the checkpoint is bit-identical. If the scheduler
/// throws, the step is done, and the next train() first calls the scheduler again.
///
/// With a group, all processes stop, throw or report at the same step, and all of that travels with
/// the gradients. An exception on one process is a GroupError (PeerFailed) on the others; that of
/// the optimiser, the scheduler or `report` is thrown by the next exchange, a step later. After one
/// of the loss or of `report`, train() may be called again; after one of the optimiser or the
/// scheduler, or a `report` that wrote weights, only after resume(). The optimiser's options are
/// compared in every step, before it is done; what callbacks do to weights is not, but for
/// `report`.
class Trainer {
 public:
  /// Computes the loss of a batch, a scalar on which backward() is called.
  using Loss = std::function<torch::Tensor(const PairBatch&)>;

  /// Keeps references to the loader and to the objects of `run`.
  ///
  /// Errors: c10::ValueError for options out of range, checkpoint_every without a file, and a run
  /// without an optimiser.
  Trainer(const TrainingRun& run, PairLoader& loader, Loss loss, const TrainerOptions& options);

  /// Continues from a checkpoint of this run.
  ///
  /// Errors: WeightsError; c10::ValueError for a checkpoint of a run with other data, clip_norm or
  /// micro_batches, and for a call by the loss, `report` or `stop` of this Trainer.
  void resume(const std::string& path);

  /// The step count and the application's numbers of a run in a checkpoint.
  struct SavedRun {
    int64_t step = 0;           ///< number of steps done
    CheckpointScalars numbers;  ///< Trainer::numbers
  };
  /// Reads how far the run in a checkpoint is.
  ///
  /// Errors: those of resume().
  static SavedRun saved_run(const std::string& path);

  /// Trains up to step `until`, by default to the end. Returns false if it was stopped.
  ///
  /// Errors: c10::ValueError for a run that does not fit together or would replace another one's
  /// file; for a loss that is no real scalar with a gradient; if the loss or the norm of the
  /// gradients is found not to be finite at a report or checkpoint, what is saved at a checkpoint
  /// or the end, or an option of the optimiser at any of these; nothing is saved then; and for a
  /// call by the loss, `report` or `stop` of this Trainer. GroupError (Disagree) if the processes'
  /// data, options, states or steps differ.
  bool train(int64_t until = -1);

  /// Number of steps done, including those before a resume.
  int64_t step() const { return step_; }
  /// Time spent in train() in seconds, including that before a resume.
  double seconds() const { return seconds_; }

  CheckpointScalars numbers;  ///< numbers of the application, saved in checkpoints

 private:
  void check_not_training(const char* function) const;
  void begin(int64_t end);
  void begin_group(const std::string& text);
  void end_group() noexcept;
  torch::Tensor gradients(const std::vector<PairBatch>& batches);
  torch::Tensor agreed_gradients(const std::vector<PairBatch>& batches);
  torch::Tensor train_step(const std::vector<PairBatch>& batches);
  void one_step();
  bool asks_to_stop();
  bool follow_step(int64_t end);
  void check_sums();
  void defer_failure(bool tears, const std::function<void()>& work);
  void throw_deferred();
  void share_changed_options();
  void share_options();
  void report(bool is_last);
  void start_report();
  void save();

  // What has to follow the last step before another one.
  struct Due {
    bool schedule = false, callbacks = false, save = false;
    bool any() const { return schedule || callbacks || save; }
  };

  TrainingRun run_;
  PairLoader& loader_;
  Loss loss_;
  TrainerOptions options_;
  std::shared_ptr<DataParallel> parallel_;  // of a group, during train()
  std::map<std::string, int> histories_;    // of its exchange, from call to call
  bool stop_ = false, torn_ = false;        // torn_: weights may differ
  std::exception_ptr pending_;              // of this process, to be thrown on all
  bool pending_tears_ = false;              // it was the optimiser's or the scheduler's
  bool options_changed_ = false;            // by `report`, on this process alone
  bool training_ = false;                   // in train()
  std::shared_ptr<train::Modes> modes_;
  std::set<std::string> not_finite_;   // what was not, before the first step, and is not trained
  int64_t step_ = 0, first_step_ = 0;  // first_step_: of this process
  Due due_;
  double seconds_ = 0.0, run_id_;

  // Since the last report.
  torch::Tensor loss_sum_, norm_sum_;  // norm_sum_: of the gradients, if they are clipped
  int64_t losses_ = 0, tokens_ = 0;
  double spent_ = 0.0;
  std::optional<std::chrono::steady_clock::time_point> began_;
};

}  // namespace posenc
