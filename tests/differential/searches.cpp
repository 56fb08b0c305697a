#include <torch/types.h>

#include "differential/ops.h"
#include "inference/generate/step_model.h"
#include "models/seq2seq/generation_config.h"

namespace posenc::differential {
namespace {

using Tokens = std::vector<int64_t>;

// A decoder whose logits depend on the source, the last token, and how many there are: row
// `[source, token]` of `table` (B, V, V) and row `[source, columns - 1]` of `shifts` (B, L, V).
class Table : public StepModel {
 public:
  Table(const StateDict& tensors, int64_t rows_per_source)
      : table_(tensors["table"]),
        shifts_(tensors["shifts"]),
        sources_(at::arange(table_.size(0)).repeat_interleave(rows_per_source)) {}

  at::Tensor step(const at::Tensor& tokens) override {
    return table_.index({sources_, tokens.squeeze(1)}) +
           shifts_.select(1, columns_++).index_select(0, sources_);
  }
  void select(const at::Tensor& rows) override { sources_ = sources_.index_select(0, rows); }
  void check_unchanged() const override {}

 private:
  at::Tensor table_, shifts_, sources_;
  int64_t columns_ = 0;
};

// A decoder that gives the same logits each time.
class Given : public StepModel {
 public:
  explicit Given(at::Tensor logits) : logits_(std::move(logits)) {}
  at::Tensor step(const at::Tensor&) override { return logits_.clone(); }
  void select(const at::Tensor&) override {}
  void check_unchanged() const override {}

 private:
  at::Tensor logits_;
};

std::vector<Tokens> rows_of(const at::Tensor& ids) {
  std::vector<Tokens> rows;
  for (int64_t row = 0; row < ids.size(0); ++row) {
    const auto* const first = ids.const_data_ptr<int64_t>() + row * ids.size(1);
    rows.emplace_back(first, first + ids.size(1));
  }
  return rows;
}

SearchPlan plan_of(const Json& options, const StateDict& tensors, int64_t vocab) {
  const auto settings = Settings::of_object("posenc-differential", options.at("settings"));
  GenerateOptions chosen = generate_options(settings.of("generation_config"), vocab);
  chosen.prefixes(rows_of(tensors["prefix"])).return_log_probability(true);
  if (options.contains("timestamps")) {
    const Json& given = options.at("timestamps");
    TimestampRules rules = {given.at("no_timestamps_id"), given.at("eos_id")};
    if (given.contains("most")) rules.max_initial_timestamp_index = given.at("most");
    chosen.timestamp_rules(rules);
  }
  const int64_t positions = options.at("positions");
  return plan_search(chosen, tensors["src"], vocab, positions, positions);
}

// What a search finds: `sequences` (B * R, T) without the prefix, filled with -1, `scores` and
// `means` of log probabilities; a sequence that was not found has none of these.
StateDict table_search(const Json& options, const StateDict& tensors) {
  const SearchPlan plan = plan_of(options, tensors, tensors["table"].size(2));
  Table model(tensors, plan.rows_per_source);
  const Hypotheses found = search(model, plan, at::kCPU);
  Tokens flat;
  std::vector<float> scores, means;
  for (const auto& of_source : found) {
    for (int64_t i = 0; i < plan.options.num_return_sequences(); ++i) {
      const bool is_there = i < static_cast<int64_t>(of_source.size());
      Tokens tokens = is_there ? of_source[i].tokens : Tokens();
      tokens.resize(plan.max_new_tokens, -1);
      flat.insert(flat.end(), tokens.begin(), tokens.end());
      scores.push_back(is_there ? static_cast<float>(of_source[i].score) : -1e9F);
      means.push_back(is_there ? static_cast<float>(of_source[i].log_probability /
                                                    static_cast<double>(of_source[i].tokens.size()))
                               : 0.0F);
    }
  }
  StateDict results;
  results.insert("sequences", at::tensor(flat, at::kLong).view({-1, plan.max_new_tokens}));
  results.insert("scores", at::tensor(scores, at::kFloat));
  results.insert("means", at::tensor(means, at::kFloat));
  return results;
}

// The scores of the next tokens after `columns` (B * R, L) with the settings: log probabilities of
// beams, probabilities of samples, and otherwise what argmax sees.
StateDict next_scores(const Json& options, const StateDict& tensors) {
  const at::Tensor& logits = tensors["logits"];
  const SearchPlan plan = plan_of(options, tensors, logits.size(1));
  const std::vector<Tokens> columns = rows_of(tensors["columns"]);
  std::vector<TargetRow> rows;
  for (std::size_t row = 0; row < columns.size(); ++row)
    rows.push_back({static_cast<int64_t>(row) / plan.rows_per_source, &columns[row]});
  Given model(logits);
  Search search{model, plan, at::zeros({logits.size(0), 1}, at::kLong)};
  const NextToken next = search.step(rows);
  StateDict results;
  if (plan.options.do_sample()) {
    results.insert("scores", filtered(next.logits, plan.options).softmax(1));
  } else if (plan.options.num_beams() > 1 || plan.options.renormalize()) {
    results.insert("scores",
                   (next.logits - next.sum.largest.unsqueeze(1)) - next.sum.rest.unsqueeze(1));
  } else {
    results.insert("scores", next.logits);
  }
  return results;
}

}  // namespace

Ops search_ops() { return {{"table_search", table_search}, {"next_scores", next_scores}}; }

}  // namespace posenc::differential
