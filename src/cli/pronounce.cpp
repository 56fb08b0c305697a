// posenc pronounce: how words are said, by a model that posenc train-pronounce has trained.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/arguments.h"
#include "cli/command.h"
#include "cli/error.h"
#include "cli/pronounce/pronouncer.h"

namespace posenc::cli {
namespace {

struct PronounceOptions {
  std::vector<std::string> words;
  std::string model = "build/pronounce/model.safetensors";
  int64_t beams = 1, n_best = 1;
};

void pronounce(const PronounceOptions& options) {
  if (!std::filesystem::exists(options.model)) {
    refuse(
        "{}: there is no model; posenc train-pronounce trains one in five minutes, --model names "
        "one that is elsewhere",
        options.model);
  }
  auto pronouncer = Pronouncer::load(options.model);
  const int64_t beams = std::max(options.beams, options.n_best);
  const auto said = pronouncer.pronounce(options.words, beams, options.n_best);
  std::size_t width = 0;
  for (const auto& word : options.words) width = std::max(width, word.size());
  for (std::size_t i = 0; i < said.size(); ++i) {
    for (const auto& one : said[i]) {
      fmt::print("{:<{}}  {}", options.words[i], width, fmt::join(one.phonemes, " "));
      if (options.n_best > 1) fmt::print("  {:.1f} %", 100.0 * std::exp(one.score));
      fmt::print("\n");
    }
  }
}

}  // namespace

void add_pronounce(CLI::App& app) {
  auto options = std::make_shared<PronounceOptions>();
  auto* sub = app.add_subcommand(
      "pronounce",
      "How English words are said, in the phonemes of the CMU Pronouncing Dictionary, by a "
      "Transformer that `posenc train-pronounce` has trained.");
  sub->add_option("words", options->words, "words, letters a-z")->required();
  sub->add_option("--model", options->model, "what posenc train-pronounce has saved")
      ->check(input_path())
      ->capture_default_str();
  sub->add_option("--beams", options->beams, "width of the search; 1 is greedy")
      ->capture_default_str()
      ->check(whole(1, kMostBeams));
  sub->add_option("--n-best", options->n_best,
                  "ways to say each word, best first, with their probabilities; widens the search "
                  "to as many beams")
      ->capture_default_str()
      ->check(whole(1, kMostBeams));
  sub->footer("Example:\n  posenc pronounce hello transformer\n  posenc pronounce --n-best 3 read");
  sub->callback([options] { pronounce(*options); });
}

}  // namespace posenc::cli
