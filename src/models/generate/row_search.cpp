#include <algorithm>
#include <numeric>

#include "models/generate/step_model.h"

namespace posenc {
namespace {

struct Row {
  Hypothesis hypothesis;
  double log_probability = 0.0;
  bool done = false;
};

bool is_done(const std::vector<Row>& rows, int64_t source, int64_t rows_per_source) {
  const auto begin = rows.begin() + source * rows_per_source;
  return std::all_of(begin, begin + rows_per_source, [](const Row& row) { return row.done; });
}

struct Choice {
  torch::Tensor ids, log_probabilities;  // one per row, on the CPU
};

// `check` is called with the best log probability of each row. `ended` lists the rows that are
// still decoded only because other rows of their source are; their output is discarded.
template <typename Check>
Choice next_tokens(Search& search, int64_t length, const std::vector<int64_t>& ended, Check check) {
  const auto [logits, sum] = search.step(length);
  if (!search.options.do_sample()) {
    const auto best = functional::beam_topk(logits, sum, torch::zeros_like(sum.rest), /*group=*/1,
                                            /*count=*/1);
    const Choice choice = {best.places.cpu(), best.scores.cpu()};
    check(choice.log_probabilities);
    return choice;
  }
  const auto log_probabilities = (logits - sum.largest.unsqueeze(1)) - sum.rest.unsqueeze(1);
  check(log_probabilities.amax(1).cpu());
  for (const int64_t row : ended) log_probabilities.select(0, row).zero_();
  const auto ids = draw(log_probabilities, search.options).unsqueeze(1);
  return {ids.cpu(), log_probabilities.gather(1, ids).cpu()};
}

}  // namespace

Hypotheses row_search(Search& search) {
  const GenerateOptions& options = search.options;
  const int64_t width = search.rows_per_source;
  std::vector<Row> rows(search.sources * width);
  std::vector<int64_t> live(rows.size());  // the rows still being decoded
  std::iota(live.begin(), live.end(), 0);
  for (int64_t length = 1; length <= options.max_new_tokens(); ++length) {
    const auto check = [&](const torch::Tensor& best) {
      for (size_t i = 0; i < live.size(); ++i)
        if (!rows[live[i]].done)
          search.check_choice(best.const_data_ptr<float>()[i], length, live[i] / width);
    };
    std::vector<int64_t> ended;
    for (size_t i = 0; i < live.size(); ++i)
      if (rows[live[i]].done) ended.push_back(static_cast<int64_t>(i));
    const auto [ids, gained] = next_tokens(search, length, ended, check);
    for (size_t i = 0; i < live.size(); ++i) {
      Row& row = rows[live[i]];
      if (row.done) continue;  // its further tokens are discarded
      const int64_t token = ids.const_data_ptr<int64_t>()[i];
      row.log_probability += gained.const_data_ptr<float>()[i];
      row.hypothesis.tokens.push_back(token);
      row.hypothesis.score = search.score(row.log_probability, length);
      row.done = search.stops(token) || length == options.max_new_tokens();
    }
    std::vector<int64_t> left, places, tokens;  // of the sources that are not finished
    for (size_t i = 0; i < live.size(); ++i) {
      if (is_done(rows, live[i] / width, width)) continue;
      left.push_back(live[i]);
      places.push_back(static_cast<int64_t>(i));
      tokens.push_back(ids.const_data_ptr<int64_t>()[i]);
    }
    const int64_t finished = search.sources - static_cast<int64_t>(left.size()) / width;
    if (!search.go_on(length, finished) || left.empty()) break;
    search.continue_with(places, tokens);
    live = std::move(left);
  }
  Hypotheses result(search.sources);
  for (size_t i = 0; i < rows.size(); ++i) {
    result[i / width].push_back(std::move(rows[i].hypothesis));
  }
  for (auto& samples : result) {
    std::stable_sort(samples.begin(), samples.end(),
                     [](const auto& a, const auto& b) { return a.score > b.score; });
  }
  return result;
}

}  // namespace posenc
