#include <algorithm>

#include "models/generate/search.h"

namespace posenc {
namespace {

struct Row {
  Hypothesis hypothesis;
  double log_probability = 0.0;
  bool done = false;
};

int64_t finished_sources(const std::vector<Row>& rows, int64_t rows_per_source) {
  int64_t count = 0;
  for (auto row = rows.begin(); row != rows.end(); row += rows_per_source) {
    count += std::all_of(row, row + rows_per_source, [](const Row& one) { return one.done; });
  }
  return count;
}

}  // namespace

Hypotheses row_search(Search& search) {
  const GenerateOptions& options = search.options;
  std::vector<Row> rows(search.sources * search.rows_per_source);
  for (int64_t length = 1; length <= options.max_length(); ++length) {
    const auto log_probabilities = search.step();  // (R, V)
    const auto chosen =
        options.sample() ? draw(log_probabilities, options) : log_probabilities.argmax(1);
    search.tokens = chosen.unsqueeze(1);
    const auto gained = log_probabilities.gather(1, search.tokens).squeeze(1).cpu();
    const auto ids = chosen.cpu();
    for (size_t i = 0; i < rows.size(); ++i) {
      if (rows[i].done) continue;  // what it goes on to write is nobody's
      const int64_t token = ids.const_data_ptr<int64_t>()[i];
      rows[i].log_probability += gained.const_data_ptr<float>()[i];
      rows[i].hypothesis.tokens.push_back(token);
      rows[i].hypothesis.score = search.score(rows[i].log_probability, length);
      rows[i].done = search.stops(token);
    }
    const int64_t finished = finished_sources(rows, search.rows_per_source);
    if (!search.go_on(length, finished) || finished == search.sources) break;
  }
  Hypotheses result(search.sources);
  for (size_t i = 0; i < rows.size(); ++i) {
    result[i / search.rows_per_source].push_back(std::move(rows[i].hypothesis));
  }
  for (auto& samples : result) {
    std::stable_sort(samples.begin(), samples.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
  }
  return result;
}

}  // namespace posenc
