#include "score.h"

#include <algorithm>
#include <numeric>

namespace pronounce {
namespace {

int64_t levenshtein(const Phonemes& a, const Phonemes& b) {
  std::vector<int64_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), 0);
  for (std::size_t i = 0; i < a.size(); ++i) {
    int64_t diagonal = row[0];  // in the previous row
    row[0] = static_cast<int64_t>(i) + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const int64_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

double share(int64_t part, int64_t whole) {
  return static_cast<double>(part) / static_cast<double>(whole);
}

}  // namespace

double Score::error_rate() const { return share(errors, phonemes); }
double Score::first_error_rate() const { return share(first_errors, first_phonemes); }
double Score::share_right() const { return share(right, words); }

Score score(const std::vector<Phonemes>& predicted, const std::vector<LexiconEntry>& entries) {
  Score total;
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const auto& ways = entries[i].pronunciations;
    const auto distance = [&](const Phonemes& way) { return levenshtein(predicted[i], way); };
    const Phonemes* nearest = &ways.front();
    for (const auto& way : ways) {
      if (distance(way) < distance(*nearest)) nearest = &way;
    }
    ++total.words;
    total.right += distance(*nearest) == 0 ? 1 : 0;
    total.errors += distance(*nearest);
    total.phonemes += static_cast<int64_t>(nearest->size());
    total.first_errors += distance(ways.front());
    total.first_phonemes += static_cast<int64_t>(ways.front().size());
  }
  return total;
}

}  // namespace pronounce
