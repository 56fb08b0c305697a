#include "inference/generate/step_model.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "posenc/positions/sinusoid/positions.h"

namespace posenc {

void check_eval_mode(const char* caller, const torch::nn::Module& model) {
  constexpr const char* kRule = "] the model must be in eval mode: model->eval(). Got ";
  TORCH_CHECK_VALUE(!model.is_training(), "[", caller, kRule, "train mode");
  for (const auto& item : model.named_modules("", /*include_self=*/false))
    TORCH_CHECK_VALUE(!item.value()->is_training(), "[", caller, kRule, item.key(),
                      " in train mode");
}

std::vector<int64_t> all_sources(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

void TargetAttention::add(std::shared_ptr<const std::vector<float>> weights, bool is_stored) {
  sums_.resize(weights->size());
  for (size_t i = 0; i < sums_.size(); ++i) sums_[i] += (*weights)[i];
  if (is_stored) tokens_.push_back(std::move(weights));
}

double TargetAttention::coverage() const {
  double sum = 0.0;
  for (const float covered : sums_)
    if (covered > 0.0F) sum += std::log(std::min(covered, 1.0F));
  return sum;
}

torch::Tensor TargetAttention::last(int64_t count) const {
  const auto width = static_cast<int64_t>(sums_.size());
  auto all = torch::empty({count, width}, torch::kFloat);
  auto* to = all.data_ptr<float>();
  for (auto one = tokens_.end() - count; one != tokens_.end(); ++one)
    to = std::copy((*one)->begin(), (*one)->end(), to);
  return all;
}

namespace {

// The names of the settings that may suppress all tokens.
std::string suppressing(const GenerateOptions& options) {
  const auto& rules = options.timestamp_rules();
  const std::pair<std::string, bool> all[] = {
      {"suppress_tokens", !options.suppress_tokens().empty()},
      {"begin_suppress_tokens", !options.begin_suppress_tokens().empty()},
      {"bad_words_ids", !options.bad_words_ids().empty()},
      {"sequence_bias", !options.sequence_bias().empty()},
      {"no_repeat_ngram_size", options.no_repeat_ngram_size() > 0},
      {"encoder_no_repeat_ngram_size", options.encoder_no_repeat_ngram_size() > 0},
      {"min_length", options.min_length() > 0},
      {"min_new_tokens", options.min_new_tokens().has_value()},
      {"timestamp_rules of no_timestamps_id " + std::to_string(rules ? rules->no_timestamps_id : 0),
       rules.has_value()}};
  std::string names;
  for (const auto& [name, is_set] : all)
    if (is_set) names += (names.empty() ? "" : ", ") + name;
  return names;
}

}  // namespace

std::optional<StepPositions> Search::positions(const std::vector<TargetRow>& rows) const {
  if (!plan.uncounted || (plan.longest_prefix == 1 && options().hidden_columns().empty()))
    return std::nullopt;
  std::vector<int64_t> before;  // each row's token
  for (const TargetRow& row : rows) {
    const auto& prefix = plan.prefixes[row.source];
    const auto length = static_cast<int64_t>(prefix.size());
    const int64_t column = (plan.begins_with_prefixes() ? length - 1 : 0) + steps;
    const auto& hidden = options().hidden_columns();
    before.push_back(column < length ? column - std::count(prefix.begin(), prefix.begin() + column,
                                                           *plan.uncounted)
                                     : column + (hidden.empty() ? 0 : hidden[row.source]));
  }
  const auto past = torch::tensor(before, torch::kLong).to(tokens.device()).unsqueeze(1);
  return StepPositions{
      positions_from_ids(tokens, *plan.uncounted) + past * tokens.ne(*plan.uncounted),
      *std::max_element(before.begin(), before.end())};
}

NextToken Search::step(const std::vector<TargetRow>& rows) {
  if (const auto other = positions(rows)) decoder.set_positions(*other);
  ++steps;
  const auto logits = (of_prompts.defined() ? std::exchange(of_prompts, {}) : decoder.step(tokens))
                          .to(torch::kFloat);
  if (plan.reads_attention())
    attention = decoder.attention().to(torch::kCPU, torch::kFloat).contiguous();
  NextToken next = {logits, functional::log_sum_exp(logits)};
  plan.processors.apply(next, rows);
  if (options().renormalize()) next.sum = functional::log_sum_exp(next.logits);
  return next;
}

void Search::continue_with(const std::vector<int64_t>& rows, const std::vector<int64_t>& next) {
  bool unchanged = static_cast<int64_t>(rows.size()) == tokens.size(0);
  for (size_t i = 0; i < rows.size(); ++i) unchanged &= rows[i] == static_cast<int64_t>(i);
  if (!unchanged) decoder.select(torch::tensor(rows, torch::kLong));
  tokens = torch::tensor(next, torch::kLong).to(tokens.device()).unsqueeze(1);
}

const int64_t* Search::next_of_prefix(int64_t source, const std::vector<int64_t>& columns) const {
  const auto& prefix = plan.prefixes[source];
  return columns.size() < prefix.size() ? &prefix[columns.size()] : nullptr;
}

bool Search::ends(int64_t source, const std::vector<int64_t>& columns, int64_t length) const {
  const auto& ends = options().eos_ids();
  if (length == plan.most[source]) return true;
  if (std::find(ends.begin(), ends.end(), columns.back()) != ends.end()) return true;
  return options().stopping_criteria() && options().stopping_criteria()(columns);
}

double Search::best_score(double log_probability, int64_t length) const {
  const auto count = static_cast<double>(length);
  const bool is_gnmt = options().length_penalty_kind() == LengthPenalty::Gnmt;
  const double base = is_gnmt ? (5.0 + count) / 6.0 : count;
  // In float32, as in transformers, since it can decide between two nearly equal sequences.
  return static_cast<float>(log_probability) /
         static_cast<float>(std::pow(base, options().length_penalty()));
}

double Search::score(double log_probability, int64_t length,
                     const TargetAttention& attention) const {
  const double best = best_score(log_probability, length);
  if (options().coverage_penalty() == 0.0) return best;
  return best + options().coverage_penalty() * attention.coverage();
}

void Search::attend(int64_t row, TargetAttention& attended) const {
  if (!attention.defined()) return;
  const auto* const first = attention.const_data_ptr<float>() + row * attention.size(1);
  attended.add(std::make_shared<std::vector<float>>(first, first + attention.size(1)),
               options().return_attention());
}

Hypothesis Search::hypothesis(int64_t source, const std::vector<int64_t>& columns, double score,
                              const TargetAttention& attention, double log_probability) const {
  Hypothesis found = {generated(source, columns), score, {}, log_probability};
  if (options().return_attention())
    found.attention = attention.last(static_cast<int64_t>(found.tokens.size()));
  return found;
}

std::vector<int64_t> Search::generated(int64_t source, const std::vector<int64_t>& columns) const {
  const auto prefix =
      static_cast<std::ptrdiff_t>(std::min(plan.prefixes[source].size(), columns.size()));
  return {columns.begin() + prefix, columns.end()};
}

void Search::check_choice(float score, int64_t length, int64_t source) const {
  constexpr double kNever = -std::numeric_limits<double>::infinity();
  if (score > kNever) return;  // false for NaN as well
  const std::string names = suppressing(options());
  const bool is_nan = std::isnan(score) && !options().renormalize();
  TORCH_CHECK_VALUE(false, "[generate] token ", length, " of source ", source,
                    " must have a logit that is a number and not suppressed. Got ",
                    is_nan          ? "NaN"
                    : names.empty() ? "-inf"
                                    : "-inf, with " + names);
}

bool Search::go_on(int64_t step, int64_t finished) const {
  if (options().stopping_criteria()) decoder.check_unchanged();  // it was called for each candidate
  const int64_t written = plan.begins_with_prefixes() ? step : step + 1 - plan.longest_prefix;
  if (!options().progress() || written <= 0) return true;
  const bool more = options().progress()({written, plan.max_new_tokens, finished, plan.sources});
  decoder.check_unchanged();
  return more;
}

Hypotheses search(StepModel& decoder, const SearchPlan& plan, torch::Device device) {
  std::vector<int64_t> first;
  for (const auto& prefix : plan.prefixes)
    first.insert(first.end(), plan.rows_per_source,
                 plan.begins_with_prefixes() ? prefix.back() : prefix.front());
  Search search{decoder, plan, torch::tensor(first, torch::kLong).to(device).unsqueeze(1)};
  if (plan.begins_with_prompts) search.of_prompts = decoder.read_prompts();
  auto found = plan.options.num_beams() > 1 ? beam_search(search) : row_search(search);
  decoder.check_unchanged();
  return found;
}

}  // namespace posenc
