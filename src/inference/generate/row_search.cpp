#include <algorithm>
#include <limits>
#include <numeric>

#include "inference/generate/step_model.h"

namespace posenc {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

struct Row {
  std::vector<int64_t> columns;
  double log_probability = 0.0;
  double of_choices = 0.0;  // Hypothesis::log_probability
  TargetAttention attention;
  bool done = false;
};

bool is_done(const std::vector<Row>& rows, int64_t source, int64_t rows_per_source) {
  const auto begin = rows.begin() + source * rows_per_source;
  return std::all_of(begin, begin + rows_per_source, [](const Row& row) { return row.done; });
}

struct Choice {
  torch::Tensor ids, log_probabilities;  // one per row, on the CPU
  torch::Tensor of_choices = {};         // the terms of Hypothesis::log_probability, if wanted

  // Of a row, or 0.
  double of_choice(int64_t row) const {
    return of_choices.defined() ? of_choices.const_data_ptr<float>()[row] : 0.0;
  }
};

// The token of each row's rank among its most probable ones; a rank beyond those that are allowed
// has the log probability -inf.
Choice ranked(const NextToken& next, const std::vector<int64_t>& ranks) {
  const int64_t most = *std::max_element(ranks.begin(), ranks.end()) + 1;
  const auto best = functional::beam_topk(next.logits, next.sum, torch::zeros_like(next.sum.rest),
                                          /*group=*/1, std::min(most, next.logits.size(1)));
  const Choice all = {best.indices.cpu(), best.scores.cpu()};
  if (most == 1) return all;
  const auto rank = torch::tensor(ranks, torch::kLong).unsqueeze(1);
  const auto inside = rank.clamp_max(best.indices.size(1) - 1);
  return {all.ids.gather(1, inside),
          all.log_probabilities.gather(1, inside).masked_fill(rank.ne(inside), kNone)};
}

// With generators a source's rows are drawn by themselves, and no numbers for those without
// columns.
Drawn draw_rows(const Search& search, const std::vector<TargetRow>& rows,
                const torch::Tensor& logits) {
  const auto& options = search.options();
  if (options.generators().empty()) return draw(logits, options, options.generator());
  const auto count = static_cast<int64_t>(rows.size());
  Drawn all = {torch::zeros({count}, torch::kLong).to(logits.device()), {}};
  if (options.return_log_probability())
    all.log_probabilities = torch::zeros_like(logits.select(1, 0));
  for (int64_t row = 0, end = 0; row < count; row = end) {
    while (end < count && rows[end].source == rows[row].source) ++end;
    std::vector<int64_t> own;
    for (int64_t i = row; i < end; ++i)
      if (rows[i].columns != nullptr) own.push_back(i);
    if (own.empty()) continue;
    const auto index = torch::tensor(own, torch::kLong).to(logits.device());
    const auto drawn =
        draw(logits.index_select(0, index), options, options.generators()[rows[row].source]);
    all.ids.index_copy_(0, index, drawn.ids);
    if (drawn.log_probabilities.defined())
      all.log_probabilities.index_copy_(0, index, drawn.log_probabilities);
  }
  return all;
}

// `check` is called with the best log probability of each row. Rows without columns are decoded
// only because others are; their output is discarded.
template <typename Check>
Choice next_tokens(Search& search, const std::vector<TargetRow>& rows,
                   const std::vector<int64_t>& ranks, Check check) {
  const auto next = search.step(rows);
  const auto& [logits, sum] = next;
  const bool adds = search.options().return_log_probability();
  if (!search.options().do_sample()) {
    Choice choice = ranked(next, ranks);
    check(choice.log_probabilities);
    if (adds)
      choice.of_choices =
          log_probabilities_at(logits, choice.ids.to(logits.device()).view({-1})).cpu();
    return choice;
  }
  const auto log_probabilities = (logits - sum.largest.unsqueeze(1)) - sum.rest.unsqueeze(1);
  check(log_probabilities.amax(1).cpu());
  for (size_t row = 0; row < rows.size(); ++row)
    if (rows[row].columns == nullptr) logits.select(0, static_cast<int64_t>(row)).zero_();
  const Drawn drawn = draw_rows(search, rows, logits);
  const auto ids = drawn.ids.unsqueeze(1);
  Choice choice = {ids.cpu(), log_probabilities.gather(1, ids).cpu()};
  if (adds) choice.of_choices = drawn.log_probabilities.cpu();
  return choice;
}

// Appends the chosen token to a row and tells the caller.
void extend(const Search& search, int64_t index, int64_t token, double log_probability, Row& row) {
  const int64_t source = index / search.plan.rows_per_source;
  row.columns.push_back(token);
  row.log_probability += log_probability;
  const auto length =
      static_cast<int64_t>(row.columns.size() - search.plan.prefixes[source].size());
  row.done = search.ends(source, row.columns, length);
  if (!search.options().on_token()) return;
  const bool more = search.options().on_token()(
      {source, index % search.plan.rows_per_source, token, log_probability, row.done});
  search.decoder.check_unchanged();
  row.done |= !more;
}

}  // namespace

Hypotheses row_search(Search& search) {
  const SearchPlan& plan = search.plan;
  const int64_t width = plan.rows_per_source;
  std::vector<Row> rows(plan.sources * width);
  for (size_t i = 0; i < rows.size(); ++i)
    rows[i].columns = plan.first_columns(static_cast<int64_t>(i) / width);
  std::vector<int64_t> live(rows.size());  // the rows still being decoded
  std::iota(live.begin(), live.end(), 0);
  for (int64_t step = 1; !live.empty(); ++step) {
    std::vector<TargetRow> views;
    std::vector<int64_t> ranks;
    for (const int64_t index : live) {
      const Row& row = rows[index];
      const bool chooses =
          !row.done && search.next_of_prefix(index / width, row.columns) == nullptr;
      views.push_back({index / width, chooses ? &row.columns : nullptr});
      const bool branches = plan.options.return_alternatives() &&
                            row.columns.size() == plan.prefixes[index / width].size();
      ranks.push_back(branches ? index % width : 0);
    }
    const auto check = [&](const torch::Tensor& best) {
      for (size_t i = 0; i < live.size(); ++i)
        if (views[i].columns != nullptr && ranks[i] == 0)
          search.check_choice(best.const_data_ptr<float>()[i], step, live[i] / width);
    };
    const Choice choice = next_tokens(search, views, ranks, check);
    const auto &ids = choice.ids, &gained = choice.log_probabilities;
    for (size_t i = 0; i < live.size(); ++i) {
      Row& row = rows[live[i]];
      if (!row.done) search.attend(static_cast<int64_t>(i), row.attention);
      if (ranks[i] > 0 && !(gained.const_data_ptr<float>()[i] > kNone)) {
        row.done = true;  // fewer tokens are allowed than alternatives wanted
      } else if (views[i].columns != nullptr) {
        row.of_choices += choice.of_choice(static_cast<int64_t>(i));
        extend(search, live[i], ids.const_data_ptr<int64_t>()[i], gained.const_data_ptr<float>()[i],
               row);
      } else if (!row.done) {
        row.columns.push_back(*search.next_of_prefix(live[i] / width, row.columns));
      }
    }
    std::vector<int64_t> left, indices, tokens;  // of the sources, or prompts, that need them
    int64_t unfinished = 0;
    for (size_t i = 0; i < live.size(); ++i) {
      if (is_done(rows, live[i] / width, width)) continue;
      if (plan.begins_with_prompts && rows[live[i]].done) continue;
      if (left.empty() || left.back() / width != live[i] / width) ++unfinished;
      left.push_back(live[i]);
      indices.push_back(static_cast<int64_t>(i));
      tokens.push_back(rows[live[i]].columns.back());
    }
    if (!search.go_on(step, plan.sources - unfinished) || left.empty()) break;
    search.continue_with(indices, tokens);
    live = std::move(left);
  }
  Hypotheses result(plan.sources);
  for (size_t i = 0; i < rows.size(); ++i) {
    const int64_t source = static_cast<int64_t>(i) / width;
    const Row& row = rows[i];
    const auto length = static_cast<int64_t>(search.generated(source, row.columns).size());
    if (length == 0 && plan.options.return_alternatives()) continue;
    const double score =
        length == 0 ? 0.0 : search.score(row.log_probability, length, row.attention);
    result[source].push_back(
        search.hypothesis(source, row.columns, score, row.attention, row.of_choices));
  }
  return result;
}

}  // namespace posenc
