// posenc-pronounce: trains a Transformer to pronounce English words, and uses it. Exit status: 0
// for success, 1 for an error, 2 for wrong usage, 128 plus the signal number if a signal stopped
// training.

#include <c10/util/Exception.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <locale>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "evaluation.h"
#include "messages.h"
#include "pronouncer.h"
#include "ranks.h"
#include "training.h"

namespace pronounce {
namespace {

constexpr int64_t kMostBeams = 10'000;

struct TrainOptions {
  std::string dictionary, out = "build/pronounce";
  double minutes = 5.0;
  int64_t held_out = 1000, seed = 1, ranks = 1, reports = 20;
  bool fresh = false;
  std::optional<int64_t> steps, rows, d_model, layers;
};

struct SayOptions {
  std::vector<std::string> words;
  std::string model = "build/pronounce/model.safetensors";
  int64_t beams = 1, n_best = 1;
};

struct TestOptions {
  std::string dictionary, model = "build/pronounce/model.safetensors";
  int64_t show = 10;
  double at_most = 100.0;
};

// The whole of `text` as a number, in every locale. std::from_chars does not read floating-point
// numbers in libc++ before LLVM 20.
template <typename Number>
std::optional<Number> parse(const std::string& text) {
  std::istringstream in(text);
  in.imbue(std::locale::classic());
  Number value{};
  in >> std::noskipws >> value;
  return in && in.peek() == std::istringstream::traits_type::eof() ? std::optional(value)
                                                                   : std::nullopt;
}

// CLI11's own range check accepts `nan`, and its messages name C++ types.
template <typename Number>
CLI::Validator number(Number least, Number most) {
  const auto check = [=](const std::string& text) {
    const auto value = parse<Number>(text);
    if (value && *value >= least && *value <= most) return std::string();
    return fmt::format("must be {} from {} to {}. Got {}",
                       std::is_integral_v<Number> ? "an integer" : "a number", least, most,
                       text.empty() ? "an empty string" : text);
  };
  return {check, ""};
}

TrainingConfig config_of(const TrainOptions& options) {
  TrainingConfig config = training_config(options.minutes, options.steps);
  config.reports = options.reports;
  config.model.held_out = options.held_out;
  config.model.seed = options.seed;
  config.rows = options.rows.value_or(config.rows);
  if (options.d_model) set_width(config, *options.d_model);
  config.model.layers = options.layers.value_or(config.model.layers);
  return config;
}

CLI::App* add_train(CLI::App& app, TrainOptions& options) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr int64_t kLeast = std::numeric_limits<int64_t>::min();
  auto* train = app.add_subcommand(
      "train",
      "Trains a Transformer to pronounce the words of a dictionary, and measures it on words that "
      "it has not seen. Ctrl-C stops it with a checkpoint (exit status 130). The same command "
      "resumes, also after a kill, with the result of a run that was never interrupted.");
  train
      ->add_option("--dictionary", options.dictionary,
                   "in the format of the CMU Pronouncing Dictionary: `word P1 P2 ...` on each line")
      ->required();
  train
      ->add_option("--out", options.out,
                   "folder for model.safetensors, checkpoint.safetensors and curve.jsonl; created "
                   "where it does not exist")
      ->capture_default_str();
  train
      ->add_option("--minutes", options.minutes,
                   "chooses the model's size and a number of steps that take about this long on "
                   "two cores; the number does not depend on the clock")
      ->capture_default_str()
      ->check(number(0.1, 1440.0));
  train->add_option("--steps", options.steps, "number of steps; overrides that of --minutes")
      ->check(number<int64_t>(1, 1'000'000'000));
  train->add_option("--rows", options.rows, "words in a batch")
      ->check(number<int64_t>(1, 1'000'000));
  train->add_option("--d-model", options.d_model, "width of the model")
      ->check(number<int64_t>(1, 16'384));
  train->add_option("--layers", options.layers, "layers of the encoder, and of the decoder")
      ->check(number<int64_t>(1, 100));
  train->add_option("--held-out", options.held_out, "words to measure on, kept out of training")
      ->capture_default_str()
      ->check(number<int64_t>(1, kMost));
  train->add_option("--seed", options.seed, "determines weights, held-out words and order")
      ->capture_default_str()
      ->check(number<int64_t>(kLeast, kMost));
  train
      ->add_option("--ranks", options.ranks,
                   "number of processes that train together, each on its share of every batch; a "
                   "run may be resumed with another number")
      ->capture_default_str()
      ->check(number<int64_t>(1, 256));
  train
      ->add_option("--reports", options.reports,
                   "lines of progress where standard error is no terminal, and checkpoints")
      ->capture_default_str()
      ->check(number<int64_t>(1, 1'000'000));
  train->add_flag("--fresh", options.fresh, "starts over, even if the folder contains a run");
  train->footer("Example:\n  posenc-pronounce train --dictionary cmudict.dict --minutes 5");
  return train;
}

void add_say(CLI::App& app, SayOptions& options) {
  auto* say = app.add_subcommand(
      "say",
      "Prints how English words are pronounced, in the phonemes of the CMU Pronouncing Dictionary, "
      "according to a model that `posenc-pronounce train` has trained.");
  say->add_option("words", options.words, "words, spelt with the letters a-z")->required();
  say->add_option("--model", options.model, "the model that posenc-pronounce train has saved")
      ->capture_default_str();
  say->add_option("--beams", options.beams, "number of beams; 1: greedy search")
      ->capture_default_str()
      ->check(number<int64_t>(1, kMostBeams));
  say->add_option("--n-best", options.n_best,
                  "pronunciations of each word, best first, with their probabilities; widens the "
                  "search to at least this many beams")
      ->capture_default_str()
      ->check(number<int64_t>(1, kMostBeams));
  say->footer(
      "Example:\n  posenc-pronounce say hello transformer\n  posenc-pronounce say --n-best 3 read");
}

CLI::App* add_test(CLI::App& app, TestOptions& options) {
  auto* test =
      app.add_subcommand("test",
                         "Compares a model that `posenc-pronounce train` has trained with the "
                         "dictionary, on the words "
                         "that it has not seen. Exit status 1 if it is worse than --at-most.");
  test->add_option("--dictionary", options.dictionary, "the one that the model was trained on")
      ->required();
  test->add_option("--model", options.model, "the model that posenc-pronounce train has saved")
      ->capture_default_str();
  test->add_option("--show", options.show, "words of which both answers are printed")
      ->capture_default_str()
      ->check(number<int64_t>(0, 1'000'000));
  test->add_option("--at-most", options.at_most, "largest phoneme error rate, in per cent")
      ->capture_default_str()
      ->check(number(0.0, 1000.0));
  test->footer("Example:\n  posenc-pronounce test --dictionary cmudict.dict --show 5");
  return test;
}

void require_model(const std::string& path) {
  if (std::filesystem::exists(path)) return;
  fail("{}: no such model; train one with posenc-pronounce train, or give another one with --model",
       path);
}

void say_words(const SayOptions& options) {
  require_model(options.model);
  auto pronouncer = Pronouncer::load(options.model);
  const int64_t beams = std::max(options.beams, options.n_best);
  const auto found = pronouncer.pronounce(options.words, beams, options.n_best);
  std::size_t width = 0;
  for (const auto& word : options.words) width = std::max(width, word.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    for (const auto& [phonemes, score] : found[i]) {
      fmt::print("{:<{}}  {}", options.words[i], width, fmt::join(phonemes, " "));
      if (options.n_best > 1) fmt::print("  {:.1f} %", 100.0 * std::exp(score));
      fmt::print("\n");
    }
  }
}

// Drops LibTorch's backtrace, and control characters that may come from a file.
std::string message_of(const std::exception& error) {
  const auto* torch_error = dynamic_cast<const c10::Error*>(&error);
  std::string text = torch_error ? torch_error->what_without_backtrace() : error.what();
  const auto commands_terminal = [](unsigned char c) { return std::iscntrl(c) && c != '\n'; };
  std::replace_if(text.begin(), text.end(), commands_terminal, '?');
  return text;
}

// "posenc-pronounce train", or "posenc-pronounce" if no subcommand was given.
std::string name_of(const CLI::App& app) {
  const auto chosen = app.get_subcommands();
  return chosen.empty() ? app.get_name() : app.get_name() + " " + chosen.front()->get_name();
}

int run(int argc, char** argv) {
  CLI::App app("A Transformer that learns to pronounce English words.", "posenc-pronounce");
  app.require_subcommand(1);
  TrainOptions train_options;
  SayOptions say_options;
  const CLI::App* train = add_train(app, train_options);
  add_say(app, say_options);
  TestOptions test_options;
  const CLI::App* test = add_test(app, test_options);
  try {
    app.parse(argc, argv);
    if (*train) {
      if (starts_ranks(train_options.ranks)) return start_ranks(train_options.ranks, argv);
      return run_training(config_of(train_options), train_options.dictionary, train_options.out,
                          train_options.fresh);
    }
    if (*test) {
      require_model(test_options.model);
      return evaluate(test_options.model, test_options.dictionary, test_options.show,
                      test_options.at_most);
    }
    say_words(say_options);
    return 0;
  } catch (const CLI::Success& success) {  // --help
    return app.exit(success);
  } catch (const CLI::ParseError& error) {
    const std::string name = name_of(app);
    const auto rest = app.remaining(true);  // CLI11 would report a missing option instead
    note("{}: {}\nTry: {} --help\n", name,
         rest.empty() ? message_of(error) : "unexpected argument " + rest.front(), name);
    return 2;
  } catch (const std::exception& error) {
    note("{}: {}\n", name_of(app), message_of(error));
    return 1;
  }
}

}  // namespace
}  // namespace pronounce

int main(int argc, char** argv) {
  const int status = pronounce::run(argc, argv);
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    pronounce::note("posenc-pronounce: the output could not be written\n");
    return 1;
  }
  return status;
}
