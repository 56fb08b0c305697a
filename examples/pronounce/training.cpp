#include "training.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <posenc/train/fused_adam.h>
#include <posenc/train/lambda_lr.h>
#include <posenc/train/pair_loader.h>
#include <posenc/train/stop_signal.h>
#include <posenc/train/trainer.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <exception>
#include <filesystem>
#include <optional>
#include <set>
#include <system_error>
#include <vector>

#include "files.h"
#include "learning_curve.h"
#include "messages.h"
#include "ranks.h"
#include "score.h"
#include "training_display.h"

namespace pronounce {
namespace {

namespace fs = std::filesystem;
using posenc::CheckpointScalars;

// Above this, the wider model learns more in the same time.
constexpr double kLong = 15.0;  // minutes
// Measured on two cores shared with other work; idle cores need little more than half the time.
constexpr double kStepsPerMinute = 450, kLongStepsPerMinute = 380;
constexpr int64_t kWarmup = 200;  // steps, but at most a tenth of all
constexpr int64_t kPoints = 12;   // on the learning curve
constexpr int64_t kBeams = 4;     // for the wider search of the final evaluation

// Names in the checkpoint: the seconds spent on evaluation, and the prefix of the configuration.
constexpr const char* kMeasuring = "measuring";
constexpr const char* kSettings = "course.";

// The paths of a run's files.
struct RunFiles {
  explicit RunFiles(const std::string& folder_)
      : folder(folder_),
        checkpoint((folder / "checkpoint.safetensors").string()),
        model((folder / "model.safetensors").string()),
        curve((folder / "curve.jsonl").string()) {}

  fs::path folder;
  std::string checkpoint, model, curve;
};

// Formats 45600 as `45,600`.
std::string with_commas(int64_t number) {
  std::string text = std::to_string(number);
  for (auto at = static_cast<int64_t>(text.size()) - 3; at > 0; at -= 3) {
    text.insert(static_cast<std::size_t>(at), 1, ',');
  }
  return text;
}

std::vector<std::string> phonemes_of(const std::vector<LexiconEntry>& entries) {
  std::set<std::string> found;
  for (const auto& entry : entries) {
    for (const auto& phonemes : entry.pronunciations)
      found.insert(phonemes.begin(), phonemes.end());
  }
  return {found.begin(), found.end()};
}

// Each pronunciation is a separate example.
std::vector<posenc::TokenPair> pairs_of(const Pronouncer& pronouncer,
                                        const std::vector<LexiconEntry>& entries) {
  std::vector<posenc::TokenPair> pairs;
  for (const auto& entry : entries) {
    for (const auto& phonemes : entry.pronunciations) {
      pairs.push_back(pronouncer.pair_of(entry.word, phonemes));
    }
  }
  return pairs;
}

// The values that identify a run in its checkpoint. The words need none: PairLoader refuses to
// continue with other ones.
CheckpointScalars settings_of(const TrainingConfig& config) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const auto& model = config.model;
  CheckpointScalars settings;
  for (const auto& [name, value] : CheckpointScalars{{"steps", number(config.steps)},
                                                     {"warmup", number(config.warmup)},
                                                     {"rows", number(config.rows)},
                                                     {"learning_rate", config.learning_rate},
                                                     {"clip_norm", config.clip_norm},
                                                     {"label_smoothing", config.label_smoothing},
                                                     {"held_out", number(model.held_out)},
                                                     {"seed", number(model.seed)},
                                                     {"d_model", number(model.d_model)},
                                                     {"num_heads", number(model.num_heads)},
                                                     {"layers", number(model.layers)},
                                                     {"d_ff", number(model.d_ff)}}) {
    settings[kSettings + name] = value;
  }
  return settings;
}

// The settings that do not follow from the minutes, such as the seed.
CheckpointScalars without_budget(CheckpointScalars settings) {
  for (const char* name : {"steps", "warmup", "learning_rate", "d_model", "d_ff"})
    settings.erase(std::string(kSettings) + name);
  return settings;
}

// Whether the folder holds a run to resume. Throws for a run of another configuration that is
// unfinished, longer, or other than in what follows from the minutes; a finished, shorter one may
// be replaced.
bool can_resume(const RunFiles& files, const CheckpointScalars& settings) {
  if (!fs::exists(files.checkpoint)) return false;
  const auto saved = posenc::Trainer::saved_run(files.checkpoint);
  CheckpointScalars theirs;
  for (const auto& [name, value] : saved.numbers) {
    if (name.rfind(kSettings, 0) == 0) theirs[name] = value;
  }
  if (theirs == settings) return true;
  const std::string key = std::string(kSettings) + "steps";
  const double steps = theirs.count(key) ? theirs.at(key) : 0.0;
  const bool is_done = static_cast<double>(saved.step) >= steps;
  if (is_done && steps < settings.at(key) && without_budget(theirs) == without_budget(settings))
    return false;
  fail(
      "{} contains another run, at step {} of {}: finish it with its own options, choose another "
      "--out, or start over with --fresh",
      files.folder.string(), saved.step, steps);
}

// `2 threads`, or `3 processes of 2 threads`.
std::string workers_text(int ranks) {
  const std::string threads = fmt::format("{} threads", at::get_num_threads());
  return ranks == 1 ? threads : fmt::format("{} processes of {}", ranks, threads);
}

}  // namespace

TrainingConfig training_config(double minutes, std::optional<int64_t> steps) {
  TrainingConfig config;
  const bool is_long = minutes >= kLong;
  const double pace = is_long ? kLongStepsPerMinute : kStepsPerMinute;
  config.steps = steps.value_or(std::max<int64_t>(1, std::llround(minutes * pace)));
  config.warmup = std::min(kWarmup, config.steps / 10);
  config.learning_rate = is_long ? 2.5e-3 : 3e-3;
  config.model.d_model = is_long ? 128 : 96;
  config.model.d_ff = 4 * config.model.d_model;
  return config;
}

void set_width(TrainingConfig& config, int64_t d_model) {
  config.learning_rate *=
      std::min(1.0, static_cast<double>(config.model.d_model) / static_cast<double>(d_model));
  config.model.d_model = d_model;
  config.model.d_ff = 4 * d_model;
}

int run_training(const TrainingConfig& config, const std::string& dictionary,
                 const std::string& folder, bool fresh) {
  const posenc::RankGroup group = join_ranks();
  const bool is_first = group.rank() == 0;  // the process that measures, reports and writes
  const RunFiles files(folder);
  const auto settings = settings_of(config);
  const int64_t seed = config.model.seed;
  const Lexicon lexicon = read_lexicon(dictionary);
  const auto split = hold_out(lexicon, config.model.held_out, seed);
  const bool resumes = !fresh && can_resume(files, settings);
  std::error_code error;
  fs::create_directories(files.folder, error);
  if (error) fail("{}: {}", folder, error.message());

  auto model_options = config.model;
  model_options.phonemes = phonemes_of(split.train);
  model_options.words = static_cast<int64_t>(lexicon.entries.size());
  torch::manual_seed(static_cast<uint64_t>(seed));
  Pronouncer pronouncer(model_options);
  int64_t parameters = 0;
  for (const auto& parameter : pronouncer.model->parameters()) parameters += parameter.numel();
  const std::string workers = workers_text(group.size());
  if (is_first) {
    note("{} words to learn, {} held out\n{} parameters, {} steps, {}\n",
         with_commas(static_cast<int64_t>(split.train.size())), with_commas(model_options.held_out),
         with_commas(parameters), with_commas(config.steps), workers);
  } else {
    torch::manual_seed(static_cast<uint64_t>(seed + group.rank()));  // a dropout of its own
  }

  posenc::PairLoader loader(pairs_of(pronouncer, split.train),
                            posenc::PairLoaderOptions().max_rows(config.rows).seed(seed));
  posenc::FusedAdam optimizer(
      pronouncer.model->parameters(),
      posenc::FusedAdamOptions(config.learning_rate).betas({0.9, 0.98}).eps(1e-9));
  posenc::LambdaLR schedule(optimizer, posenc::cosine_factor(config.warmup, config.steps));
  TrainingDisplay display;
  posenc::StopSignal stop;
  double loss = 0.0;
  const int64_t report_every = std::max<int64_t>(1, config.steps / config.reports);
  posenc::Trainer trainer(
      {*pronouncer.model, &optimizer, &schedule}, loader,
      [&](const posenc::PairBatch& batch) {
        return pronouncer.loss(batch, config.label_smoothing);
      },
      posenc::TrainerOptions(config.steps)
          .clip_norm(config.clip_norm)
          .checkpoint(files.checkpoint)
          .checkpoint_every(report_every)
          .report([&](const posenc::TrainingProgress& progress) {
            loss = progress.loss;
            display.show(progress);
          })
          .report_every(display.on_terminal() ? 10 : report_every)
          .stop([&] { return stop.requested(); })
          .group(group));
  group.barrier();  // until all have looked for a checkpoint
  if (resumes) {
    trainer.resume(files.checkpoint);
    if (is_first) note("resuming after step {}\n", trainer.step());
  } else {
    trainer.numbers = settings;
    if (is_first) fs::remove(files.checkpoint, error), fs::remove(files.curve, error);
  }

  std::optional<LearningCurve> curve;
  if (is_first) curve.emplace(files.curve, trainer.step());
  const auto add_point = [&] {
    const auto start = std::chrono::steady_clock::now();
    const Score result = score(pronouncer.best(split.held_out), split.held_out);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    trainer.numbers[kMeasuring] += took.count();
    curve->add({trainer.step(), trainer.seconds() + trainer.numbers[kMeasuring], loss,
                result.error_rate(), result.first_error_rate(), result.share_right()});
  };
  const int64_t every = (config.steps + kPoints - 1) / kPoints;
  while (true) {
    const bool done = trainer.step() == config.steps;
    const bool due = done || (trainer.step() > 0 && trainer.step() % every == 0);
    if (due && curve && !curve->has(trainer.step())) add_point();
    if (done) break;
    if (!trainer.train((trainer.step() / every + 1) * every)) {
      display.clear();
      if (is_first) {
        note("stopped after step {}; the same command resumes from {}\n", trainer.step(),
             files.checkpoint);
      }
      group.barrier();
      return 128 + (stop.requested() ? stop.number() : SIGTERM);  // which another process received
    }
  }
  display.clear();
  group.barrier();
  if (!is_first) return 0;
  pronouncer.save(files.model);
  const Score wide = score(pronouncer.best(split.held_out, kBeams), split.held_out);
  const CurvePoint& last = curve->points().back();
  fmt::print(
      "{} held-out words: phoneme error rate {:.2f} % ({:.2f} % to the first pronunciation alone), "
      "{:.1f} % of the words right; by {} beams {:.2f} %\n"
      "{} parameters, {} steps, {:.0f} s, {}; {}, {}\n",
      with_commas(model_options.held_out), 100.0 * last.phoneme_error_rate,
      100.0 * last.first_error_rate, 100.0 * last.words_right, kBeams, 100.0 * wide.error_rate(),
      with_commas(parameters), with_commas(config.steps), last.seconds, workers, files.model,
      files.curve);
  return 0;
}

}  // namespace pronounce
