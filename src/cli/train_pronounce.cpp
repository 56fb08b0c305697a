// posenc train-pronounce: teaches a Transformer to pronounce the words of a dictionary.

#include <fmt/format.h>

#include <chrono>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/pronounce/course.h"

namespace posenc::cli {
namespace {

struct TrainPronounceOptions {
  std::string dictionary, out = "build/pronounce";
  double minutes = 5.0;
  int64_t held_out = 1000, seed = 1;
  bool fresh = false;
  std::optional<int64_t> steps, rows, d_model, layers;
};

TrainingConfig course_of(const TrainPronounceOptions& options) {
  TrainingConfig course = course_for(options.minutes, options.steps);
  course.held_out = options.held_out;
  course.seed = options.seed;
  course.rows = options.rows.value_or(course.rows);
  course.model.d_model = options.d_model.value_or(course.model.d_model);
  course.model.d_ff = 4 * course.model.d_model;
  course.model.layers = options.layers.value_or(course.model.layers);
  return course;
}

}  // namespace

void add_train_pronounce(CLI::App& app, int& status) {
  auto options = std::make_shared<TrainPronounceOptions>();
  auto* sub = app.add_subcommand(
      "train-pronounce",
      "Teaches a Transformer to pronounce the words of a dictionary and measures it on words that "
      "it was not shown. Ctrl-C stops with a checkpoint (exit status 130); the same command goes "
      "on from it, as if nothing had been, also after a kill.");
  sub->add_option("--dictionary", options->dictionary,
                  "in the format of the CMU Pronouncing Dictionary: `word P1 P2 ...` a line")
      ->required()
      ->check(input_path());
  sub->add_option("--out", options->out,
                  "folder of model.safetensors, checkpoint.safetensors, curve.jsonl, curve.png; "
                  "made where it is missing")
      ->capture_default_str()
      ->check(output_path());
  sub->add_option("--minutes", options->minutes,
                  "chooses model and steps for so much time on two cores, a number of steps that "
                  "does not depend on the clock")
      ->capture_default_str()
      ->check(real(0.1, 1440.0));
  sub->add_option("--steps", options->steps, "steps, whatever the time")
      ->check(whole(1, 1'000'000'000));
  sub->add_option("--rows", options->rows, "words of a step")->check(whole(1, 1'000'000));
  sub->add_option("--d-model", options->d_model, "width of the model")->check(whole(1, 16'384));
  sub->add_option("--layers", options->layers, "layers of encoder and decoder, each")
      ->check(whole(1, 100));
  sub->add_option("--held-out", options->held_out, "words that are only measured on")
      ->capture_default_str()
      ->check(whole(1));
  sub->add_option("--seed", options->seed, "decides weights, held-out words and order")
      ->capture_default_str()
      ->check(whole(std::numeric_limits<int64_t>::min()));
  sub->add_flag("--fresh", options->fresh, "begins anew whatever is in the folder");
  sub->footer("Example:\n  posenc train-pronounce --dictionary cmudict.dict --minutes 5");
  sub->callback([options, &status] {
    status = run_training(course_of(*options), options->dictionary, options->out, options->fresh);
  });
}

}  // namespace posenc::cli
