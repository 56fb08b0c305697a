// posenc-budget: what each option of a search may be
#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "core/check.h"
#include "inference/generate/step_model.h"

namespace posenc {
namespace {

// Bound on length ^ length_penalty and its reciprocal: far enough from the limits of float32 that
// dividing a log probability by it neither overflows nor underflows.
constexpr double kMostPenalty = 1e30;
constexpr int64_t kMostHidden = 1 << 30;   // columns
constexpr int64_t kDefaultNewTokens = 20;  // that of transformers' generate()

void check_rows(const char* name, int64_t rows) {
  check_positive("generate", name, rows);
  TORCH_CHECK_VALUE(rows <= kMostRowsPerSource, "[generate] ", name, " must be at most ",
                    kMostRowsPerSource, ". Got ", rows);
}

void check_token(const char* name, int64_t token, int64_t vocab) {
  TORCH_CHECK_VALUE(token >= 0 && token < vocab, "[generate] ", name, " must lie in [0, ", vocab,
                    "). Got ", token);
}

void check_tokens(const char* name, const std::vector<int64_t>& tokens, int64_t vocab) {
  for (const int64_t token : tokens) check_token(name, token, vocab);
}

void check_sequence(const char* name, const std::vector<int64_t>& sequence, int64_t vocab) {
  TORCH_CHECK_VALUE(!sequence.empty(), "[generate] ", name, " must not be empty");
  check_tokens(name, sequence, vocab);
}

// If each of them is suppressed, nothing could be generated.
void check_forced(const char* name, const std::vector<int64_t>& forced,
                  const GenerateOptions& options, int64_t vocab) {
  check_tokens(name, forced, vocab);
  const auto& suppressed = options.suppress_tokens();
  const auto is_suppressed = [&](int64_t token) {
    return std::find(suppressed.begin(), suppressed.end(), token) != suppressed.end();
  };
  TORCH_CHECK_VALUE(forced.empty() || !std::all_of(forced.begin(), forced.end(), is_suppressed),
                    "[generate] ", name, " must not all be among suppress_tokens. Got ", forced);
}

void check_suppressed(const char* name, const std::vector<int64_t>& tokens) {
  for (const int64_t token : tokens)
    TORCH_CHECK_VALUE(token >= 0, "[generate] each of ", name, " must not be negative. Got ",
                      token);
}

// In float32, in which it is used.
void check_positive_number(const char* name, double value) {
  const auto number = static_cast<float>(value);
  TORCH_CHECK_VALUE(number > 0.0F && std::isfinite(number), "[generate] ", name,
                    " must be above 0 and finite, in float32. Got ", value);
}

void check_between(const char* name, const char* range, bool holds, double value) {
  TORCH_CHECK_VALUE(holds, "[generate] ", name, " must lie in ", range, ". Got ", value);
}

void check_sampling(const GenerateOptions& options) {
  check_positive_number("temperature", options.temperature());
  TORCH_CHECK_VALUE(options.top_k() >= 0, "[generate] top_k must not be negative. Got ",
                    options.top_k());
  const double top_p = options.top_p(), typical_p = options.typical_p();
  check_between("top_p", "(0, 1]", top_p > 0.0 && top_p <= 1.0, top_p);
  check_between("typical_p", "(0, 1]", typical_p > 0.0 && typical_p <= 1.0, typical_p);
  if (const auto& top_h = options.top_h())
    check_between("top_h", "(0, 1]", *top_h > 0.0 && *top_h <= 1.0, *top_h);
  if (const auto& min_p = options.min_p())
    check_between("min_p", "[0, 1]", *min_p >= 0.0 && *min_p <= 1.0, *min_p);
  for (const auto& [name, cutoff] : {std::pair("epsilon_cutoff", options.epsilon_cutoff()),
                                     {"eta_cutoff", options.eta_cutoff()}})
    check_between(name, "[0, 1)", cutoff >= 0.0 && cutoff < 1.0, cutoff);
}

void check_beams(const GenerateOptions& options, int64_t most) {
  check_rows("num_beams", options.num_beams());
  check_rows("num_return_sequences", options.num_return_sequences());
  TORCH_CHECK_VALUE(!options.do_sample() || options.num_beams() == 1,
                    "[generate] do_sample needs num_beams 1. Got ", options.num_beams());
  TORCH_CHECK_VALUE(
      !options.return_alternatives() || (options.num_beams() == 1 && !options.do_sample()),
      "[generate] return_alternatives needs num_beams 1 and no do_sample. Got ",
      options.num_beams(), options.do_sample() ? " and do_sample" : "");
  TORCH_CHECK_VALUE(options.do_sample() || options.return_alternatives() ||
                        options.num_return_sequences() <= options.num_beams(),
                    "[generate] num_return_sequences must be at most num_beams ",
                    options.num_beams(), ". Got ", options.num_return_sequences());
  TORCH_CHECK_VALUE(!options.on_token() || options.num_beams() == 1,
                    "[generate] on_token needs num_beams 1, since beams may be replaced. Got ",
                    options.num_beams());
  TORCH_CHECK_VALUE(options.coverage_penalty() >= 0.0 && options.coverage_penalty() <= kMostPenalty,
                    "[generate] coverage_penalty must lie between 0 and ", kMostPenalty, ". Got ",
                    options.coverage_penalty());
  TORCH_CHECK_VALUE(std::isfinite(options.length_penalty()),
                    "[generate] length_penalty must be finite. Got ", options.length_penalty());
  TORCH_CHECK_VALUE(
      std::pow(static_cast<double>(most), std::abs(options.length_penalty())) <= kMostPenalty,
      "[generate] max_new_tokens ^ length_penalty must lie between ", 1 / kMostPenalty, " and ",
      kMostPenalty, ", or scores would overflow. Got ", most, " ^ ", options.length_penalty());
}

void check_timestamps(const TimestampRules& rules, int64_t vocab) {
  check_token("no_timestamps_id of timestamp_rules", rules.no_timestamps_id, vocab);
  check_token("eos_id of timestamp_rules", rules.eos_id, vocab);
  const auto& most = rules.max_initial_timestamp_index;
  TORCH_CHECK_VALUE(!most || *most >= 0,
                    "[generate] max_initial_timestamp_index of timestamp_rules must not be "
                    "negative. Got ",
                    *most);
}

// The settings that read the ids of sources.
void check_reads_ids(const GenerateOptions& options, const torch::Tensor& src, int64_t vocab) {
  const bool penalises = options.encoder_repetition_penalty() != 1.0;
  if (!penalises && options.encoder_no_repeat_ngram_size() <= 0) return;
  TORCH_CHECK_VALUE(
      src.dim() == 2, "[generate] ",
      penalises ? "encoder_repetition_penalty must be 1" : "encoder_no_repeat_ngram_size must be 0",
      " for sources that are features, without ids. Got ",
      penalises ? options.encoder_repetition_penalty()
                : static_cast<double>(options.encoder_no_repeat_ngram_size()));
  if (src.numel() == 0) return;
  const char* const kName = "each id of src, with a setting that reads them,";
  check_token(kName, src.min().item<int64_t>(), vocab);
  check_token(kName, src.max().item<int64_t>(), vocab);
}

void check_processors(const GenerateOptions& options, const torch::Tensor& src, int64_t vocab) {
  for (const auto& [sequence, value] : options.sequence_bias()) {
    check_sequence("each sequence of sequence_bias", sequence, vocab);
    TORCH_CHECK_VALUE(!std::isnan(value), "[generate] a value of sequence_bias must be a number");
  }
  check_positive_number("encoder_repetition_penalty", options.encoder_repetition_penalty());
  check_positive_number("repetition_penalty", options.repetition_penalty());
  for (const auto& sequence : options.bad_words_ids())
    check_sequence("each of bad_words_ids", sequence, vocab);
  if (options.forced_bos_id())
    check_forced("forced_bos_id", {*options.forced_bos_id()}, options, vocab);
  const auto& first = options.forced_bos_ids();
  TORCH_CHECK_VALUE(first.empty() || static_cast<int64_t>(first.size()) == src.size(0),
                    "[generate] forced_bos_ids must have one token for each of the ", src.size(0),
                    " sources. Got ", first.size());
  for (const int64_t token : first) check_forced("forced_bos_ids", {token}, options, vocab);
  check_forced("forced_eos_ids", options.forced_eos_ids(), options, vocab);
  check_suppressed("suppress_tokens", options.suppress_tokens());
  check_suppressed("begin_suppress_tokens", options.begin_suppress_tokens());
  if (const auto& decay = options.exponential_decay_length_penalty())
    TORCH_CHECK_VALUE(
        std::isfinite(decay->factor),
        "[generate] the factor of exponential_decay_length_penalty must be finite. Got ",
        decay->factor);
  if (options.timestamp_rules()) check_timestamps(*options.timestamp_rules(), vocab);
  check_reads_ids(options, src, vocab);
}

std::vector<std::vector<int64_t>> prefixes_of(const GenerateOptions& options, int64_t sources,
                                              int64_t vocab) {
  check_token("bos_id", options.bos_id(), vocab);
  const auto& given = options.prefixes();
  const auto rows = static_cast<size_t>(sources);
  if (given.empty()) return std::vector<std::vector<int64_t>>(rows, {options.bos_id()});
  TORCH_CHECK_VALUE(given.size() == 1 || given.size() == rows,
                    "[generate] prefixes must have one list, or one for each of the ", sources,
                    " sources. Got ", given.size());
  for (const auto& prefix : given) check_sequence("each of prefixes", prefix, vocab);
  return given.size() == rows ? given : std::vector<std::vector<int64_t>>(rows, given.front());
}

void check_hidden(const GenerateOptions& options, int64_t sources) {
  const auto& hidden = options.hidden_columns();
  TORCH_CHECK_VALUE(hidden.empty() || static_cast<int64_t>(hidden.size()) == sources,
                    "[generate] hidden_columns must have one number for each of the ", sources,
                    " sources. Got ", hidden.size());
  for (const int64_t count : hidden)
    TORCH_CHECK_VALUE(count >= 0 && count <= kMostHidden,
                      "[generate] hidden_columns must lie in [0, ", kMostHidden, "]. Got ", count);
}

void check_generators(const GenerateOptions& options, int64_t sources) {
  const auto& generators = options.generators();
  TORCH_CHECK_VALUE(generators.empty() || static_cast<int64_t>(generators.size()) == sources,
                    "[generate] generators must have one for each of the ", sources,
                    " sources. Got ", generators.size());
  for (const auto& one : generators)
    TORCH_CHECK_VALUE(one.defined(), "[generate] each of generators must be defined");
}

// The limit that applies, in tokens after `columns`, those of `what`.
int64_t most_new_tokens(const GenerateOptions& options, int64_t columns, int64_t max_len,
                        const char* what = "the longest prefix") {
  if (options.max_new_tokens()) {
    check_positive("generate", "max_new_tokens", *options.max_new_tokens());
    return *options.max_new_tokens();
  }
  const int64_t most =
      options.max_length() ? *options.max_length() : std::min(columns + kDefaultNewTokens, max_len);
  TORCH_CHECK_VALUE(most > columns, "[generate] max_length must exceed the ", columns,
                    " columns of ", what, ". Got ", most);
  return most - columns;
}

int64_t least_new_tokens(const GenerateOptions& options, int64_t columns) {
  return options.min_new_tokens().value_or(options.min_length() - columns);
}

// What a model without an encoder does not read.
void check_has_no_source(const GenerateOptions& options) {
  const auto check = [](const char* name, const auto& value, const auto& initial) {
    TORCH_CHECK_VALUE(value == initial, "[generate] ", name,
                      " must be its default for a model without an encoder. Got ", value);
  };
  check("encoder_repetition_penalty", options.encoder_repetition_penalty(), 1.0);
  check("encoder_no_repeat_ngram_size", options.encoder_no_repeat_ngram_size(), 0);
  check("coverage_penalty", options.coverage_penalty(), 0.0);
  check("return_attention", options.return_attention() ? "true" : "false",
        std::string_view("false"));
  check("hidden_columns", options.hidden_columns(), std::vector<int64_t>());
  check("prefixes", options.prefixes().size(), 0U);
}

// The plan for the lengths of each source.
SearchPlan plan_of(const GenerateOptions& options, const torch::Tensor& src, int64_t vocab,
                   std::vector<std::vector<int64_t>> prefixes, std::vector<int64_t> most,
                   std::vector<int64_t> least, std::optional<int64_t> uncounted) {
  std::vector<int64_t> columns;
  int64_t longest = 1, largest = 1, steps = 1;
  for (size_t i = 0; i < prefixes.size(); ++i) {
    columns.push_back(static_cast<int64_t>(prefixes[i].size()));
    longest = std::max(longest, columns[i]);
    largest = std::max(largest, most[i]);
    steps = std::max(steps, columns[i] - 1 + most[i]);
  }
  check_beams(options, largest);
  check_sampling(options);
  check_generators(options, src.size(0));
  check_tokens("each of eos_ids", options.eos_ids(), vocab);
  check_processors(options, src, vocab);
  const bool are_rows = options.do_sample() || options.return_alternatives();
  TargetLengths lengths = {most, std::move(least), std::move(columns)};
  return {options,
          src.size(0),
          are_rows ? options.num_return_sequences() : options.num_beams(),
          std::move(prefixes),
          /*begins_with_prompts=*/false,
          std::move(most),
          largest,
          longest,
          steps,
          uncounted,
          LogitsProcessors(options, std::move(lengths), src, vocab)};
}

}  // namespace

void check_sources(const char* caller, const torch::Tensor& src, const TransformerOptions& model) {
  const bool are_features = model.src_features().has_value();
  const char* const rule = are_features ? "features (B, M, W), floating-point" : "ids (B, S)";
  TORCH_CHECK_VALUE(src.defined(), "[", caller, "] src must be ", rule,
                    ". Got an undefined tensor");
  const bool fits = are_features ? src.dim() == 3 && src.is_floating_point() : src.dim() == 2;
  TORCH_CHECK_VALUE(fits, "[", caller, "] src must be ", rule, ". Got ",
                    are_features ? src.toString() + " " : "", src.sizes());
}

void check_targets(const char* caller, const std::vector<std::vector<int64_t>>& targets,
                   int64_t sources, const TransformerOptions& model, int64_t undecoded) {
  TORCH_CHECK_VALUE(static_cast<int64_t>(targets.size()) == sources, "[", caller,
                    "] there must be one target for each of the ", sources, " sources. Got ",
                    targets.size());
  for (size_t i = 0; i < targets.size(); ++i) {
    const auto length = static_cast<int64_t>(targets[i].size());
    TORCH_CHECK_VALUE(length > 0, "[", caller, "] target ", i,
                      " must have the token that begins it");
    TORCH_CHECK_VALUE(length - undecoded <= model.most_tokens(), "[", caller, "] target ", i,
                      " must have at most the model's max_len ", model.most_tokens(), " tokens",
                      undecoded > 0 ? " after its first" : "", ". Got ", length - undecoded);
    for (const int64_t token : targets[i])
      TORCH_CHECK_VALUE(token >= 0 && token < model.tgt_vocab(), "[", caller,
                        "] the tokens of target ", i, " must lie in [0, ", model.tgt_vocab(),
                        "). Got ", token);
  }
}

SearchPlan plan_search(const GenerateOptions& options, const torch::Tensor& src,
                       const TransformerOptions& model) {
  const bool are_of_ids = model.position_ids() == embeddings::PositionIds::FromIds;
  return plan_search(options, src, model.tgt_vocab(), model.max_len(), model.most_tokens(),
                     are_of_ids ? model.padding_idx() : std::nullopt);
}

SearchPlan plan_search(const GenerateOptions& options, const torch::Tensor& src, int64_t vocab,
                       int64_t max_len, int64_t most_tokens, std::optional<int64_t> uncounted) {
  TORCH_CHECK_VALUE(options.unsupported().empty(), options.unsupported());
  auto prefixes = prefixes_of(options, src.size(0), vocab);
  check_hidden(options, src.size(0));
  int64_t longest = 1;
  for (const auto& prefix : prefixes)
    longest = std::max(longest, static_cast<int64_t>(prefix.size()));
  const int64_t most = most_new_tokens(options, longest, max_len);
  const bool fits = most <= most_tokens - (longest - 1);  // their sum could overflow
  TORCH_CHECK_VALUE(fits || options.max_new_tokens(),
                    "[generate] max_length must be at most one more than the model's max_len ",
                    most_tokens, ". Got ", longest + most);
  TORCH_CHECK_VALUE(fits, "[generate] max_new_tokens must be at most the model's max_len ",
                    most_tokens, longest > 1 ? " with the prefix" : "", ". Got ", most,
                    longest > 1 ? " after " + std::to_string(longest) : "");
  // In a batch the longest prefix counts.
  const std::vector<int64_t> all_most(prefixes.size(), most),
      all_least(prefixes.size(), least_new_tokens(options, longest));
  return plan_of(options, src, vocab, std::move(prefixes), all_most, all_least, uncounted);
}

SearchPlan plan_prompts(const GenerateOptions& options,
                        const std::vector<std::vector<int64_t>>& prompts, int64_t vocab,
                        int64_t max_len, int64_t most_tokens) {
  TORCH_CHECK_VALUE(options.unsupported().empty(), options.unsupported());
  check_has_no_source(options);
  std::vector<int64_t> most, least;
  for (size_t i = 0; i < prompts.size(); ++i) {
    const auto columns = static_cast<int64_t>(prompts[i].size());
    TORCH_CHECK_VALUE(columns > 0,
                      "[generate] each prompt must have a token. Got no token in prompt ", i);
    check_tokens("each token of a prompt", prompts[i], vocab);
    TORCH_CHECK_VALUE(columns <= most_tokens, "[generate] a prompt must have at most ", most_tokens,
                      " tokens, as the model's positions. Got ", columns, " in prompt ", i);
    most.push_back(most_new_tokens(options, columns, max_len, "a prompt"));
    least.push_back(least_new_tokens(options, columns));
    TORCH_CHECK_VALUE(most.back() - 1 <= most_tokens - columns, "[generate] ",
                      options.max_new_tokens() ? "max_new_tokens" : "max_length",
                      " must leave a prompt and its tokens, but for the last, in the model's ",
                      most_tokens, " positions. Got ", columns, " and ", most.back());
  }
  SearchPlan plan =
      plan_of(options, torch::zeros({static_cast<int64_t>(prompts.size()), 0}, at::kLong), vocab,
              prompts, std::move(most), std::move(least), std::nullopt);
  plan.begins_with_prompts = true;
  return plan;
}

}  // namespace posenc
