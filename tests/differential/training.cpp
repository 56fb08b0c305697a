// Training runs with any parameters, groups, schedules, callbacks, errors, stops and ranks, beside
// the uninterrupted loop that PyTorch's user writes.

#include <torch/utils.h>

#include <filesystem>

#include "differential/training_plan.h"
#include "posenc/train/trainer.h"
#include "posenc/weights/load.h"
#ifdef POSENC_DIFFERENTIAL_RANKS
#include "support/rank_threads.h"
#endif
#include "support/temp_dir.h"

namespace posenc::differential {
namespace {

// One process: trains, once more after each exception, and resumes where the plan says so.
struct Outcomes {
  std::vector<at::Tensor> weights;
  std::string error;  // of the last call, if the run never ended
  std::vector<std::string> seen;
};

Outcomes train(const Plan& plan, Run* run, const std::string& path, const RankGroup& group,
               int rank, const std::function<std::unique_ptr<Run>()>& again) {
  bool reported = false, stopped = false, lost = false, threw = false;
  std::unique_ptr<Run> resumed;
  Outcomes outcomes;
  const auto make = [&] {
    TrainerOptions options(plan.steps);
    options.clip_norm(plan.clip).micro_batches(plan.micro).report_every(plan.report_every);
    if (!path.empty()) options.checkpoint(path).checkpoint_every(plan.save_every);
    if (plan.ranks > 1) options.group(group);
    options.report([&](const TrainingProgress& progress) {
      if (progress.step == plan.eval_at) run->net.eval();
      if (progress.step == plan.draw_at) torch::rand({3});
      if (progress.step == plan.rate_at) {
        auto& own = run->optimizer->param_groups()[0].options();
        own.set_lr(plan.schedule || plan.groups[0].lr
                       ? plan.groups[0].lr.value_or(plan.lr) *
                             (plan.schedule ? factor(progress.step) : 1.0) * 0.1
                       : plan.lr * 0.1);
      }
      if (progress.step == plan.report_throws && !reported)
        reported = true, throw std::runtime_error("of the report");
    });
    return options;
  };
  std::unique_ptr<Trainer> trainer;
  const auto start = [&] {
    auto options = make();
    options.stop([&] {
      const int64_t done =
          trainer->step() + (plan.ranks > 1 ? 1 : 0);  // with a group it is asked before the update
      if (done == plan.stop_throws && !threw && rank == 0)
        threw = true, throw std::runtime_error("of stop");
      if (done == plan.stop_at && !stopped) return stopped = true;
      return false;
    });
    trainer = std::make_unique<Trainer>(
        TrainingRun{run->net, run->optimizer.get(), run->schedule.get()}, run->loader,
        [&](const PairBatch& batch) {
          const int64_t now = trainer->step() + 1;
          if (now == plan.loss_throws && !lost)
            lost = true, throw std::runtime_error("of the loss");
          return loss_of(run->net, run->head, batch, plan.nan_at == now);
        },
        options);
  };
  start();
  for (int attempt = 0; attempt < 6; ++attempt) {
    bool done = false;
    outcomes.error =
        outcome_of([&] { return done = trainer->train(), std::vector<at::Tensor>(); }).error;
    if (!outcomes.error.empty()) outcomes.seen.push_back(outcomes.error);
    if (done || (outcomes.error.empty() && trainer->step() == plan.steps)) break;
    if (outcomes.error.empty() ? plan.resumes
                               : plan.resumes && outcomes.error.find("of ") != std::string::npos) {
      if (plan.ranks == 1 && std::filesystem::exists(path)) {
        resumed = again();
        run = resumed.get();
        start();
        torch::manual_seed(999);
        trainer->resume(path);
      }
    }
  }
  if (outcomes.error.empty() && trainer->step() != plan.steps)
    outcomes.error = "error: train() ends before the last step";
  outcomes.weights = run->weights();
  return outcomes;
}

// Pairs with an id that is the padding's: refused, or all of their tokens are seen.
void pad_case(Drawn& drawn, const Plan& plan) {
  int64_t seen = 0, all = 0;
  const auto loaded = outcome_of([&] {
    auto loader = loader_of(plan);
    do {
      const auto batch = loader.next();
      const auto kept = batch.src_mask().padding_keys();
      seen += kept.defined() ? kept.sum().item<int64_t>() : batch.src.numel();
    } while (loader.batch_in_epoch() > 0 && loader.epoch() == 0);
    return std::vector<at::Tensor>();
  });
  for (const auto& pair : pairs_of(plan)) all += static_cast<int64_t>(pair.src.size());
  if (loaded.error.empty() && seen != all)
    drawn.fail("masks leave " + std::to_string(seen) + " of " + std::to_string(all) +
               " source tokens");
}

StateDict training(const Json& options, const StateDict&) {
  Drawn drawn(options);
  const Plan plan = any_plan(drawn);
  if (plan.pads) return pad_case(drawn, plan), StateDict();
  const testing::TempDir folder;
  const std::string path = plan.save_every > 0 || drawn.coin(0.3) ? folder / "run.safetensors" : "";
  const auto expected = reference(plan);
  const auto again = [&] { return std::make_unique<Run>(plan, plan.reorders); };
  std::vector<std::unique_ptr<Run>> runs;
  std::string refused;
  refused = outcome_of([&] {
              for (int64_t rank = 0; rank < plan.ranks; ++rank)
                runs.push_back(std::make_unique<Run>(plan, false));
              return std::vector<at::Tensor>();
            }).error;
  if (!refused.empty()) drawn.fail("the optimiser: " + refused);
  std::vector<Outcomes> got(static_cast<size_t>(plan.ranks));
  if (plan.ranks == 1) {
    got[0] = train(plan, runs[0].get(), path, {}, 0, again);
  } else {
#ifdef POSENC_DIFFERENTIAL_RANKS
    testing::run_ranks(
        static_cast<int>(plan.ranks),
        [&](const RankGroup& group) {
          const auto rank = static_cast<size_t>(group.rank());
          got[rank] = train(plan, runs[rank].get(), path, group, static_cast<int>(rank), again);
        },
        std::chrono::seconds(10));
#endif
  }
  const bool irregular = plan.head || plan.twice;
  for (size_t rank = 0; rank < got.size(); ++rank) {
    const auto& own = got[rank];
    const std::string who = "rank " + std::to_string(rank) + ": ";
    const bool finite =
        difference(expected, expected, 0.0).empty() && at::isfinite(expected[0]).all().item<bool>();
    if (!own.error.empty()) {
      if (irregular || !finite || plan.nan_at > 0) continue;  // refused, or noticed
      drawn.fail(who + own.error);
    }
    if (plan.nan_at > 0)
      drawn.fail(who + "the run ended with weights that are not finite, without an error");
    const bool redrawn =
        plan.loss_throws > 0 && !plan.resumes;  // dropout has drawn for the lost step
    if (redrawn && plan.dropout > 0) continue;
    const auto why = difference(own.weights, expected, 2e-3);
    if (!why.empty())
      drawn.fail(who + "weights: " + why + (own.seen.empty() ? "" : " after " + own.seen[0]));
  }
  if (path.empty()) return StateDict();
  const bool ended = got[0].error.empty();
  if (!std::filesystem::exists(path)) {
    if (ended) drawn.fail("the run has ended and there is no checkpoint");
    return StateDict();
  }
  Net saved(plan.dropout);
  load_weights(saved, path, LoadOptions().prefix("model.").allow_unexpected(true));
  const auto parameters = saved.parameters();
  for (size_t i = 0; i < parameters.size(); ++i) {
    if (!at::isfinite(parameters[i]).all().item<bool>())
      drawn.fail("the checkpoint has weights that are not finite");
    const bool redrawn = plan.dropout > 0 && plan.loss_throws > 0 && !plan.resumes;
    if (!ended || redrawn) continue;
    const auto why = difference(parameters[i].detach(), expected[i], 2e-3);
    if (!why.empty()) drawn.fail("the checkpoint of the ended run: " + why);
  }
  return StateDict();
}

}  // namespace

Ops training_ops() { return {{"training", training}}; }

}  // namespace posenc::differential
