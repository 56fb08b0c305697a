#include "evaluation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

#include "lexicon.h"
#include "messages.h"
#include "pronouncer.h"
#include "score.h"

namespace pronounce {
namespace {

using Row = std::array<std::string, 3>;

// The answers to a word: the model's, and the dictionary's first one unless the model's is correct.
// A model that has learnt nothing may repeat phonemes endlessly: the beginning shows it.
Row row(const LexiconEntry& entry, const Phonemes& answer) {
  const auto& ways = entry.pronunciations;
  const bool right = std::find(ways.begin(), ways.end(), answer) != ways.end();
  constexpr std::size_t kMostShown = 30;
  std::string shown = fmt::format("{}", fmt::join(answer, " "));
  if (shown.size() > kMostShown) shown = shown.substr(0, kMostShown - 4) + " ...";
  return {entry.word, shown, right ? "the same" : fmt::format("{}", fmt::join(ways.front(), " "))};
}

void print(const std::vector<Row>& rows) {
  std::size_t words = 0, answers = 0;
  for (const auto& [word, answer, expected] : rows) {
    words = std::max(words, word.size());
    answers = std::max(answers, answer.size());
  }
  for (const auto& [word, answer, expected] : rows) {
    fmt::print("{:<{}}  {:<{}}  {}\n", word, words, answer, answers, expected);
  }
  fmt::print("\n");
}

}  // namespace

int evaluate(const std::string& model, const std::string& dictionary, int64_t shown,
             double at_most) {
  auto pronouncer = Pronouncer::load(model);
  const auto& options = pronouncer.options();
  const auto lexicon = read_lexicon(dictionary);
  const auto words = static_cast<int64_t>(lexicon.entries.size());
  if (words != options.words) {
    fail("{}: must be the dictionary that the model was trained on, with {} words. Got {}",
         dictionary, options.words, words);
  }
  const auto held_out = hold_out(lexicon, options.held_out, options.seed).held_out;
  const auto answers = pronouncer.best(held_out);
  std::vector<Row> rows = {{"word", "the model", "the dictionary"}};
  for (std::size_t i = 0; i < std::min(held_out.size(), static_cast<std::size_t>(shown)); ++i) {
    rows.push_back(row(held_out[i], answers[i]));
  }
  if (shown > 0) print(rows);
  const Score result = score(answers, held_out);
  const double rate = 100.0 * result.error_rate();
  fmt::print("{} held-out words: {:.1f} % of the phonemes wrong, {:.1f} % of the words right\n",
             result.words, rate, 100.0 * result.share_right());
  if (rate <= at_most) return 0;
  note("posenc-pronounce test: the phoneme error rate must be at most {} %. Got {:.1f} %\n",
       at_most, rate);
  return 1;
}

}  // namespace pronounce
