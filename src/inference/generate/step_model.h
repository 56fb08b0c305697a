#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "inference/generate/logits_processors.h"
#include "posenc/inference/generate.h"

namespace posenc {

/// The most rows of a source: the logits of more take gigabytes.
constexpr int64_t kMostRowsPerSource = 1 << 16;

using Hypotheses = std::vector<std::vector<Hypothesis>>;  // one list per source

/// Where the tokens of a step are, in a model that numbers tokens by their ids.
struct StepPositions {
  torch::Tensor ids;  ///< (R, 1)
  int64_t past = 0;   ///< at least as many tokens as any row has before its own
};

/// Throws c10::ValueError, naming the first that is not, unless the model and all modules below it
/// are in eval mode.
void check_eval_mode(const char* caller, const torch::nn::Module& model);

/// A model that decodes token by token, one row per target. The rows of one source, or of one
/// prompt, are adjacent.
class StepModel {
 public:
  virtual ~StepModel() = default;
  /// Reads the prompts of a plan that begins_with_prompts, whole and before any step, and returns
  /// the logits (R, V) of the tokens after them. The rows of a prompt have the same logits.
  virtual torch::Tensor read_prompts() { return {}; }
  /// Appends the tokens (R, 1) to the rows and returns the logits (R, V) of the next tokens, which
  /// the caller may overwrite.
  virtual torch::Tensor step(const torch::Tensor& tokens) = 0;
  /// Gives the tokens of the next step other positions than those of their column: in a search
  /// with SearchPlan::uncounted.
  virtual void set_positions(const StepPositions& /*positions*/) {}
  /// Replaces row r with row `rows`[r], a row of the same source; rows: (R) int64, on the CPU.
  /// Fewer rows than before means that some sources have been removed, or of prompts also some of
  /// their rows.
  virtual void select(const torch::Tensor& rows) = 0;
  /// What the last step's rows attended to in their sources (R, S): the weights of the attention to
  /// the memory in the last layer, averaged over its heads. Undefined unless the plan wants them.
  virtual torch::Tensor attention() const { return {}; }
  /// Throws c10::Error if the model has changed since the search began, so that no result is made
  /// of two models. Called after each callback and at the end.
  virtual void check_unchanged() const = 0;
};

/// The same options with callbacks that run as outside of a search by a frozen model.
GenerateOptions with_callers_threads(GenerateOptions options);

/// The options of a search for the sources in `src`, with all that follows from both.
struct SearchPlan {
  GenerateOptions options;  ///< a copy: a callback may change the caller's
  int64_t sources, rows_per_source;
  std::vector<std::vector<int64_t>> prefixes;  ///< one per source
  /// Whether the model continues prompts, which are the prefixes, and has no sources: it reads them
  /// whole, and each row has the lengths that it would have alone.
  bool begins_with_prompts;
  std::vector<int64_t> most;  ///< new tokens of each source
  int64_t max_new_tokens;     ///< the largest of them
  int64_t longest_prefix;
  int64_t steps;                     ///< the most tokens that a row of the decoder takes
  std::optional<int64_t> uncounted;  ///< the id that has no position, where positions are of ids
  bool reads_attention() const {
    return options.return_attention() || options.coverage_penalty() != 0.0;
  }
  /// Whether targets begin with their whole prefixes: prompts, or those that were read.
  bool begins_with_prefixes() const { return begins_with_prompts || has_read_prefixes; }
  /// The columns of a target before the first step.
  std::vector<int64_t> first_columns(int64_t source) const {
    return begins_with_prefixes() ? prefixes[source]
                                  : std::vector<int64_t>{prefixes[source].front()};
  }
  LogitsProcessors processors;
  /// Whether the model has read the prefixes but for the last token of each, with which the search
  /// begins. Its rows then have different lengths.
  bool has_read_prefixes = false;
};

/// 0 .. count - 1.
std::vector<int64_t> all_sources(int64_t count);

/// Throws c10::ValueError unless `src` has the axes of what a model with these options encodes: ids
/// (B, S), or features (B, M, W).
void check_sources(const char* caller, const torch::Tensor& src, const TransformerOptions& model);

/// Throws c10::ValueError for targets that do not fit a model and its sources; it does not decode
/// the last `undecoded` tokens of each.
void check_targets(const char* caller, const std::vector<std::vector<int64_t>>& targets,
                   int64_t sources, const TransformerOptions& model, int64_t undecoded);

/// Throws the errors that generate() documents for its options, for as many sources as `src` has
/// rows, ids (B, S) or a tensor of more axes for features, and for the model's sizes. `max_len`
/// bounds the length where the options name none, `most_tokens` any.
SearchPlan plan_search(const GenerateOptions& options, const torch::Tensor& src, int64_t vocab,
                       int64_t max_len, int64_t most_tokens,
                       std::optional<int64_t> uncounted = std::nullopt);
/// The same for a model with these options.
SearchPlan plan_search(const GenerateOptions& options, const torch::Tensor& src,
                       const TransformerOptions& model);
/// The same for a decoder-only language model that continues prompts.
SearchPlan plan_prompts(const GenerateOptions& options,
                        const std::vector<std::vector<int64_t>>& prompts, int64_t vocab,
                        int64_t max_len, int64_t most_tokens);

/// The attention of a target's tokens to its source, where the plan wants it. Copies share the
/// weights of the tokens that they have in common.
class TargetAttention {
 public:
  /// Adds the weights (S) of the next token.
  void add(std::shared_ptr<const std::vector<float>> weights, bool is_stored);
  /// sum over the source of log(min(the sum of a position's weights, 1)); a position without any,
  /// such as padding, does not count.
  double coverage() const;
  /// The last `count` tokens' weights (count, S), if they were kept.
  torch::Tensor last(int64_t count) const;

 private:
  std::vector<std::shared_ptr<const std::vector<float>>> tokens_;
  std::vector<float> sums_;
};

/// A search in progress.
struct Search {
  StepModel& decoder;
  const SearchPlan& plan;
  torch::Tensor tokens;           ///< (R, 1), input of the next step; R counts the remaining rows
  torch::Tensor of_prompts = {};  ///< StepModel::read_prompts() before the first step
  torch::Tensor attention = {};   ///< StepModel::attention() of the last step, on the CPU
  int64_t steps = 0;              ///< that were done

  const GenerateOptions& options() const { return plan.options; }
  /// Where `tokens` are, if not where their column is: tokens of a prefix are numbered without
  /// those that do not count, and generated ones by all columns, as in transformers.
  std::optional<StepPositions> positions(const std::vector<TargetRow>& rows) const;
  /// The distribution of the tokens that follow `tokens`, the last ones of the rows' columns.
  NextToken step(const std::vector<TargetRow>& rows);
  /// Makes each of the decoder's rows r continue row `rows`[r], with the token `next`[r].
  void continue_with(const std::vector<int64_t>& rows, const std::vector<int64_t>& next);
  /// The token of the prefix that follows the columns, or null.
  const int64_t* next_of_prefix(int64_t source, const std::vector<int64_t>& columns) const;
  /// Whether the columns end with a token that ends a sequence of `length` tokens of a source.
  bool ends(int64_t source, const std::vector<int64_t>& columns, int64_t length) const;
  /// The score of a sequence of `length` tokens.
  double score(double log_probability, int64_t length, const TargetAttention& attention) const;
  /// The most that it can be when the attention to the source is complete.
  double best_score(double log_probability, int64_t length) const;
  /// Adds what row `row` of the last step attended to.
  void attend(int64_t row, TargetAttention& attention) const;
  /// A result: the columns without the source's prefix, with what they attended to.
  Hypothesis hypothesis(int64_t source, const std::vector<int64_t>& columns, double score,
                        const TargetAttention& attention, double log_probability) const;
  /// The columns without the source's prefix.
  std::vector<int64_t> generated(int64_t source, const std::vector<int64_t>& columns) const;
  /// `score` is that of the best candidate for the `length`-th token of a source. Throws
  /// c10::ValueError if there is none: the logits are NaN, or all are -inf.
  void check_choice(float score, int64_t length, int64_t source) const;
  /// Calls the caller's progress function after a step of the decoder, unless a prefix is still
  /// being read, and checks the model after it and after the stopping criteria. Returns false if
  /// the search should stop.
  bool go_on(int64_t step, int64_t finished) const;
};

/// Runs the search that the options select; the decoder already has a row for each target.
Hypotheses search(StepModel& decoder, const SearchPlan& plan, torch::Device device);

/// Beam search.
Hypotheses beam_search(Search& search);

/// Greedy search or sampling, with one row for each returned sequence.
Hypotheses row_search(Search& search);

/// The scores (R, V) with the temperature and filters of sampling: -inf for tokens that are not
/// drawn.
torch::Tensor filtered(const torch::Tensor& scores, const GenerateOptions& options);

/// The log probability of each token but the first of texts, by logits (B, L, V) that `decode`
/// returns of ids (B, L): the texts without their last tokens, with zeros after them, which no
/// token sees.
std::vector<std::vector<double>> next_log_probabilities(
    const std::vector<std::vector<int64_t>>& texts, torch::Device device,
    const std::function<torch::Tensor(const torch::Tensor& ids)>& decode);

/// Samples one id per row of scores (R, V) according to the options.
struct Drawn {
  torch::Tensor ids;                ///< (R)
  torch::Tensor log_probabilities;  ///< Hypothesis::log_probability of each, if it is wanted
};
Drawn draw(const torch::Tensor& scores, const GenerateOptions& options,
           const std::optional<at::Generator>& generator);

/// The log_softmax of scores (R, V) at the ids (R).
torch::Tensor log_probabilities_at(const torch::Tensor& scores, const torch::Tensor& ids);

}  // namespace posenc
