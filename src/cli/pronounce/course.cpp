#include "cli/pronounce/course.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <torch/utils.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

#include "cli/error.h"
#include "cli/gnuplot.h"
#include "cli/pronounce/curve.h"
#include "cli/pronounce/score.h"
#include "cli/training_display.h"
#include "io/base/atomic_file.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/stop_signal.h"
#include "posenc/train/trainer.h"
#include "train/grouped.h"

namespace posenc::cli {
namespace {

namespace fs = std::filesystem;

// From here on the wider model learns more in the same time.
constexpr double kLong = 15.0;  // minutes
// On two cores that have other work too; idle ones are done in half the time or little more.
constexpr double kStepsAMinute = 450, kLongStepsAMinute = 380;
constexpr int64_t kWarmup = 200;                 // steps, or a tenth
constexpr int64_t kPoints = 12;                  // of the curve
constexpr int64_t kBeams = 4;                    // of the last measurement's wider search
constexpr const char* kMeasuring = "measuring";  // seconds that it took, in the checkpoint
constexpr const char* kSettings = "course.";

std::vector<std::string> phonemes_of(const std::vector<LexiconEntry>& entries) {
  std::set<std::string> found;
  for (const auto& entry : entries) {
    for (const auto& way : entry.pronunciations) found.insert(way.begin(), way.end());
  }
  return {found.begin(), found.end()};
}

// What makes two runs the same, as the checkpoint keeps it; the loader compares the words.
TrainingNumbers settings_of(const TrainingConfig& course) {
  const auto number = [](int64_t value) { return static_cast<double>(value); };
  const auto& model = course.model;
  TrainingNumbers settings;
  for (const auto& [name, value] : TrainingNumbers{{"steps", number(course.steps)},
                                                   {"warmup", number(course.warmup)},
                                                   {"rows", number(course.rows)},
                                                   {"learning_rate", course.learning_rate},
                                                   {"clip_norm", course.clip_norm},
                                                   {"label_smoothing", course.label_smoothing},
                                                   {"held_out", number(course.held_out)},
                                                   {"seed", number(course.seed)},
                                                   {"d_model", number(model.d_model)},
                                                   {"num_heads", number(model.num_heads)},
                                                   {"layers", number(model.layers)},
                                                   {"d_ff", number(model.d_ff)}}) {
    settings[kSettings + name] = value;
  }
  return settings;
}

std::string counted(int64_t number) { return train::grouped(static_cast<double>(number)); }

// What the best of so many beams says, held against the dictionary.
Score measured(Pronouncer& pronouncer, const std::vector<LexiconEntry>& entries, int64_t beams) {
  std::vector<std::string> words;
  for (const auto& entry : entries) words.push_back(entry.word);
  std::vector<Phonemes> said;
  for (auto& ways : pronouncer.pronounce(words, beams)) said.push_back(ways.front().phonemes);
  return score(said, entries);
}

// Where a run's files are.
struct Files {
  explicit Files(const std::string& folder_)
      : folder(folder_),
        checkpoint((folder / "checkpoint.safetensors").string()),
        model((folder / "model.safetensors").string()),
        curve((folder / "curve.jsonl").string()),
        picture((folder / "curve.png").string()) {}

  fs::path folder;
  std::string checkpoint, model, curve, picture;
};

// Whether the folder has a run to go on with; a run of another course is refused, unless this one
// would only replace a finished, shorter one.
bool goes_on(const Files& files, const TrainingNumbers& settings) {
  if (!fs::exists(files.checkpoint)) return false;
  const auto saved = Trainer::saved_run(files.checkpoint);
  TrainingNumbers theirs;
  for (const auto& [name, value] : saved.numbers) {
    if (name.rfind(kSettings, 0) == 0) theirs[name] = value;
  }
  if (theirs == settings) return true;
  const std::string key = std::string(kSettings) + "steps";
  const double steps = theirs.count(key) ? theirs.at(key) : 0.0;
  if (static_cast<double>(saved.step) >= steps && steps < settings.at(key)) return false;
  refuse(
      "{} holds another run, at step {} of {}: finish it with its own options, name another "
      "--out, or begin anew with --fresh",
      files.folder.string(), saved.step, steps);
}

void draw(const std::vector<CurvePoint>& points, const std::string& path) {
  try {
    const std::string picture = gnuplot(curve_script(points));
    io::AtomicFile file(path);
    file.write(picture.data(), picture.size());
    file.commit();
  } catch (const Refused& error) {
    complain("no picture of the curve: {}\n", error.what());
  }
}

}  // namespace

TrainingConfig course_for(double minutes, std::optional<int64_t> steps) {
  TrainingConfig course;
  const bool is_long = minutes >= kLong;
  const double pace = is_long ? kLongStepsAMinute : kStepsAMinute;
  course.steps = steps.value_or(std::max<int64_t>(1, std::llround(minutes * pace)));
  course.warmup = std::min(kWarmup, course.steps / 10);
  course.learning_rate = is_long ? 2.5e-3 : 3e-3;
  course.model.d_model = is_long ? 128 : 96;
  course.model.d_ff = 4 * course.model.d_model;
  return course;
}

int run_training(const TrainingConfig& course, const std::string& dictionary,
                 const std::string& folder, bool fresh) {
  const Files files(folder);
  const auto settings = settings_of(course);
  const auto lexicon = read_lexicon(dictionary);
  const auto split = hold_out(lexicon, course.held_out, course.seed);
  const bool resumed = !fresh && goes_on(files, settings);
  std::error_code error;
  fs::create_directories(files.folder, error);
  if (error) refuse("{}: {}", folder, error.message());

  auto options = course.model;
  options.phonemes = phonemes_of(split.train);
  torch::manual_seed(static_cast<uint64_t>(course.seed));
  Pronouncer pronouncer(options);
  std::vector<TokenPair> pairs;
  for (const auto& entry : split.train) {
    for (const auto& way : entry.pronunciations) {
      pairs.push_back(pronouncer.pair_of(entry.word, way));
    }
  }
  int64_t parameters = 0;
  for (const auto& parameter : pronouncer.model->parameters()) parameters += parameter.numel();
  complain("{} words to learn, {} held out; {} parameters, {} steps, {} threads\n",
           counted(static_cast<int64_t>(split.train.size())), counted(course.held_out),
           counted(parameters), counted(course.steps), at::get_num_threads());

  PairLoader loader(std::move(pairs), PairLoaderOptions().max_rows(course.rows).seed(course.seed));
  FusedAdam optimizer(pronouncer.model->parameters(),
                      FusedAdamOptions(course.learning_rate).betas({0.9, 0.98}).eps(1e-9));
  LambdaLR schedule(optimizer, cosine_factor(course.warmup, course.steps));
  TrainingDisplay display;
  StopSignal stop;
  double loss = 0.0;
  Trainer trainer(
      {*pronouncer.model, &optimizer, &schedule}, loader,
      [&](const PairBatch& batch) { return pronouncer.loss(batch, course.label_smoothing); },
      TrainerOptions(course.steps)
          .clip_norm(course.clip_norm)
          .checkpoint(files.checkpoint)
          .checkpoint_every(std::max<int64_t>(1, course.steps / 20))
          .report([&](const TrainingProgress& progress) {
            loss = progress.loss;
            display.show(progress);
          })
          .report_every(display.on_terminal() ? 10 : std::max<int64_t>(1, course.steps / 20))
          .stop([&] { return stop.requested(); }));
  if (resumed) {
    trainer.resume(files.checkpoint);
    complain("going on behind step {}\n", trainer.step());
  } else {
    trainer.numbers = settings;
    fs::remove(files.checkpoint, error);
    fs::remove(files.curve, error);
  }

  Curve curve(files.curve, trainer.step());
  const int64_t every = (course.steps + kPoints - 1) / kPoints;
  const auto measure = [&] {
    const auto start = std::chrono::steady_clock::now();
    const Score result = measured(pronouncer, split.held_out, 1);
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    trainer.numbers[kMeasuring] += took.count();
    curve.add({trainer.step(), trainer.seconds() + trainer.numbers[kMeasuring], loss,
               result.error_rate(), result.first_error_rate(), result.share_right()});
  };
  while (true) {
    const bool done = trainer.step() == course.steps;
    const bool due = done || (trainer.step() > 0 && trainer.step() % every == 0);
    if (due && !curve.has(trainer.step())) measure();
    if (done) break;
    if (!trainer.train((trainer.step() / every + 1) * every)) {
      display.clear();
      complain("stopped behind step {}; the same command goes on from {}\n", trainer.step(),
               files.checkpoint);
      return 128 + stop.number();
    }
  }
  display.clear();
  pronouncer.save(files.model);
  draw(curve.points(), files.picture);
  const Score wide = measured(pronouncer, split.held_out, kBeams);
  const CurvePoint& last = curve.points().back();
  fmt::print(
      "{} held-out words: phoneme error rate {:.2f} % ({:.2f} % to the first pronunciation alone), "
      "{:.1f} % of the words right; by {} beams {:.2f} %\n"
      "{} parameters, {} steps, {:.0f} s, {} threads; {}, {}\n",
      counted(course.held_out), 100.0 * last.phoneme_error_rate, 100.0 * last.first_error_rate,
      100.0 * last.words_right, kBeams, 100.0 * wide.error_rate(), counted(parameters),
      counted(course.steps), last.seconds, at::get_num_threads(), files.model, files.curve);
  return 0;
}

}  // namespace posenc::cli
