// posenc-budget: transformers' processors, in their order
#include "inference/generate/logits_processors.h"

#include <ATen/ops/tensor.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

#include "kernels/dispatch.h"
#include "kernels/inference.h"

namespace posenc {
namespace {

using Tokens = std::vector<int64_t>;

constexpr float kBanned = -std::numeric_limits<float>::infinity();
constexpr float kLargest = std::numeric_limits<float>::max();

constexpr int64_t kBlock = 256;
constexpr float kNearlyEqual = 1e-4F;  // log probabilities

// Without a branch for each, so that the search for the few that are not finite costs little.
bool is_finite_block(const float* values) {
  constexpr uint32_t kExponent = 0x7F800000;
  uint32_t others = 0;
  for (int64_t i = 0; i < kBlock; ++i)
    others |= static_cast<uint32_t>((std::bit_cast<uint32_t>(values[i]) & kExponent) == kExponent);
  return others == 0;
}

float finite(float value) {
  if (std::isnan(value)) return 0.0F;
  return value > 0.0F ? kLargest : -kLargest;
}

bool contains(const Tokens& tokens, int64_t token) {
  return std::find(tokens.begin(), tokens.end(), token) != tokens.end();
}

// Whether `sequence` would be complete with its last token.
bool lacks_last_of(const Tokens& columns, const Tokens& sequence) {
  return columns.size() + 1 >= sequence.size() &&
         std::equal(sequence.rbegin() + 1, sequence.rend(), columns.rbegin());
}

Tokens distinct(Tokens tokens) {
  std::sort(tokens.begin(), tokens.end());
  tokens.erase(std::unique(tokens.begin(), tokens.end()), tokens.end());
  return tokens;
}

Tokens inside(const Tokens& tokens, int64_t vocab) {
  Tokens kept;
  for (const int64_t token : tokens)
    if (token < vocab) kept.push_back(token);
  return kept;
}

// transformers groups the biases of sequences by length.
template <typename Bias>
void in_order_of_addition(std::vector<Bias>& biases) {
  std::vector<size_t> lengths;
  for (const Bias& bias : biases)
    if (std::find(lengths.begin(), lengths.end(), bias.tokens.size()) == lengths.end())
      lengths.push_back(bias.tokens.size());
  const auto rank = [&](const Bias& bias) {
    return std::find(lengths.begin(), lengths.end(), bias.tokens.size());
  };
  std::stable_sort(biases.begin(), biases.end(),
                   [&](const Bias& a, const Bias& b) { return rank(a) < rank(b); });
}

}  // namespace

// The scores of one row. In a beam search they are log probabilities.
class LogitsProcessors::Scores {
 public:
  Scores(float* logits, float* largest, float* rest, int64_t vocab, bool are_log_probabilities)
      : logits_(logits),
        largest_(largest),
        rest_(rest),
        vocab_(vocab),
        are_log_probabilities_(are_log_probabilities) {}

  float get(int64_t token) const {
    return are_log_probabilities_ ? (logits_[token] - *largest_) - *rest_ : logits_[token];
  }
  void set(int64_t token, float value) {
    logits_[token] = are_log_probabilities_ ? (value + *rest_) + *largest_ : value;
  }
  void ban(int64_t token) { logits_[token] = kBanned; }
  void ban(const Tokens& tokens) {
    for (const int64_t token : tokens) ban(token);
  }
  // As a bias, which leaves what is NaN.
  void add_ban(int64_t token) { logits_[token] += kBanned; }
  // Only these remain, with probability 1 each.
  void force(const Tokens& tokens) {
    std::fill(logits_, logits_ + vocab_, kBanned);
    for (const int64_t token : tokens) logits_[token] = 0.0F;
    *largest_ = *rest_ = 0.0F;
  }
  // Without a finite sum no token has a log probability: each is NaN.
  void spread_nan() {
    if (has_sum()) return;
    if (are_log_probabilities_)
      std::fill(logits_, logits_ + vocab_, std::numeric_limits<float>::quiet_NaN());
    *largest_ = *rest_ = 0.0F;
  }
  void make_finite() {
    for (int64_t begin = 0; begin < vocab_; begin += kBlock) {
      const int64_t end = std::min(begin + kBlock, vocab_);
      if (end - begin == kBlock && is_finite_block(logits_ + begin)) continue;
      for (int64_t token = begin; token < end; ++token)
        if (!std::isfinite(logits_[token])) set(token, finite(logits_[token]));
    }
  }
  void ban_range(int64_t first, int64_t end) {
    if (first < end) std::fill(logits_ + first, logits_ + end, kBanned);
  }
  // Whether the tokens from `first` on are together more probable than any before them.
  bool is_likely_from(int64_t first) const {
    const auto& kernels = kernels::chosen_inference().topk;
    const auto sum = kernels.log_sum_exp(logits_ + first, vocab_ - first);
    kernels::inference::TopkEntry best = {kBanned, 0};
    kernels.topk_insert(logits_, first, /*shift=*/0.0F, /*base=*/0.0F, 0, &best, 1);
    const float above = sum.rest - (best.score - sum.largest);
    if (!(std::abs(above) < kNearlyEqual)) return above > 0.0F;
    // transformers compares log probabilities, whose rounding then decides.
    const auto all = kernels.log_sum_exp(logits_, vocab_);
    return ((sum.largest - all.largest) - all.rest) + sum.rest >
           (best.score - all.largest) - all.rest;
  }
  int64_t vocab() const { return vocab_; }
  // Multiplies negative scores by `factor` and divides the others by it.
  void scale(const Tokens& tokens, float factor) {
    for (const int64_t token : tokens) {
      const float value = get(token);
      set(token, value < 0.0F ? value * factor : value / factor);
    }
  }

 private:
  bool has_sum() const { return std::isfinite(*largest_) && std::isfinite(*rest_); }

  float *logits_, *largest_, *rest_;
  int64_t vocab_;
  bool are_log_probabilities_;
};

LogitsProcessors::LogitsProcessors(const GenerateOptions& options, TargetLengths lengths,
                                   const torch::Tensor& src, int64_t vocab)
    : options_(options),
      lengths_(std::move(lengths)),
      vocab_(vocab),
      suppressed_(inside(options.suppress_tokens(), vocab)),
      first_suppressed_(inside(options.begin_suppress_tokens(), vocab)) {
  for (const int64_t token : options.forced_bos_ids()) forced_first_.push_back({token});
  if (forced_first_.empty() && options.forced_bos_id())
    forced_first_.assign(lengths_.prefixes.size(), {*options.forced_bos_id()});
  if (options.encoder_repetition_penalty() != 1.0 || options.encoder_no_repeat_ngram_size() > 0) {
    const auto ids = src.cpu().to(at::kLong).contiguous();
    for (int64_t row = 0; row < ids.size(0); ++row) {
      const auto* const first = ids.const_data_ptr<int64_t>() + row * ids.size(1);
      src_.emplace_back(first, first + ids.size(1));
      src_tokens_.push_back(distinct(src_.back()));
    }
  }
  std::map<Tokens, float> last;  // of equal sequences
  for (const auto& [sequence, value] : options.sequence_bias())
    last[sequence] = static_cast<float>(value);
  for (const auto& [sequence, unused] : options.sequence_bias()) {
    const auto found = last.find(sequence);
    if (found == last.end()) continue;  // it has been seen
    if (sequence.size() == 1)
      token_biases_[sequence.front()] = found->second;
    else
      biases_.push_back({sequence, found->second});
    last.erase(found);
  }
  in_order_of_addition(biases_);
  for (const auto& sequence : options.bad_words_ids()) {
    if (sequence.size() > 1)
      banned_sequences_.push_back(sequence);
    else if (!contains(options.eos_ids(), sequence.front()))
      banned_.push_back(sequence.front());
  }
  Tokens always = banned_;
  always.insert(always.end(), suppressed_.begin(), suppressed_.end());
  always_banned_ = at::tensor(distinct(std::move(always)), at::kLong);
}

int64_t LogitsProcessors::generated(const TargetRow& row) const {
  return static_cast<int64_t>(row.columns->size()) - lengths_.prefixes[row.source];
}

// Whether a target begins with one column, hidden ones included.
bool LogitsProcessors::begins_with_one(int64_t source) const {
  const auto& hidden = options_.hidden_columns();
  return lengths_.prefixes[source] == 1 && (hidden.empty() || hidden[source] == 0);
}

// The tokens that are forced next, or null.
const Tokens* LogitsProcessors::forced(const TargetRow& row) const {
  if (!options_.forced_eos_ids().empty() && generated(row) == lengths_.most[row.source] - 1)
    return &options_.forced_eos_ids();
  if (!forced_first_.empty() && row.columns->size() == 1 && begins_with_one(row.source))
    return &forced_first_[row.source];
  return nullptr;
}

// Whether begin_suppress_tokens apply next.
bool LogitsProcessors::begins(const TargetRow& row) const {
  const bool after_forced = !forced_first_.empty() && begins_with_one(row.source);
  return !first_suppressed_.empty() && generated(row) == (after_forced ? 1 : 0);
}

// Whether the same tokens are banned in all rows, and nothing else happens.
bool LogitsProcessors::only_bans(const std::vector<TargetRow>& rows) const {
  if (!biases_.empty() || !token_biases_.empty() || !banned_sequences_.empty() ||
      options_.remove_invalid_values() || options_.encoder_repetition_penalty() != 1.0 ||
      options_.repetition_penalty() != 1.0 || options_.no_repeat_ngram_size() > 0 ||
      options_.encoder_no_repeat_ngram_size() > 0 || options_.exponential_decay_length_penalty() ||
      options_.timestamp_rules())
    return false;
  return std::none_of(rows.begin(), rows.end(), [&](const TargetRow& row) {
    return row.columns != nullptr &&
           (forced(row) != nullptr || begins(row) || generated(row) < lengths_.least[row.source]);
  });
}

void LogitsProcessors::apply(NextToken& next, const std::vector<TargetRow>& rows) const {
  if (only_bans(rows)) {
    if (always_banned_.numel() > 0)
      next.logits.index_fill_(1, always_banned_.to(next.logits.device()), kBanned);
    return;
  }
  const auto device = next.logits.device();
  auto logits = next.logits.cpu().contiguous(), largest = next.sum.largest.cpu().contiguous(),
       rest = next.sum.rest.cpu().contiguous();
  for (size_t row = 0; row < rows.size(); ++row) {
    if (rows[row].columns == nullptr) continue;
    Scores scores(logits.data_ptr<float>() + static_cast<int64_t>(row) * vocab_,
                  largest.data_ptr<float>() + row, rest.data_ptr<float>() + row, vocab_,
                  options_.num_beams() > 1);
    process(scores, rows[row]);
  }
  next = {logits.to(device), {largest.to(device), rest.to(device)}};
}

// In the order of transformers' _get_logits_processor.
void LogitsProcessors::process(Scores& scores, const TargetRow& row) const {
  const Tokens& columns = *row.columns;
  const int64_t length = generated(row);
  const Tokens* const forced = this->forced(row);
  if (options_.remove_invalid_values()) scores.spread_nan();
  if (forced != nullptr) {
    scores.force(*forced);
  } else {
    add_biases(scores, columns);
    if (options_.encoder_repetition_penalty() != 1.0)
      scores.scale(src_tokens_[row.source],
                   static_cast<float>(1.0 / options_.encoder_repetition_penalty()));
    if (options_.repetition_penalty() != 1.0)
      scores.scale(distinct(columns), static_cast<float>(options_.repetition_penalty()));
    ban_ngrams(scores, row);
    for (const int64_t token : banned_) scores.add_ban(token);
    for (const Tokens& sequence : banned_sequences_)
      if (lacks_last_of(columns, sequence)) scores.add_ban(sequence.back());
    if (length < lengths_.least[row.source]) scores.ban(options_.eos_ids());
  }
  if (options_.remove_invalid_values()) scores.make_finite();
  decay_ends(scores, length);
  scores.ban(suppressed_);
  if (begins(row)) scores.ban(first_suppressed_);
  if (options_.timestamp_rules()) follow_timestamps(scores, row);
}

// transformers' WhisperTimeStampLogitsProcessor.
void LogitsProcessors::follow_timestamps(Scores& scores, const TargetRow& row) const {
  const TimestampRules& rules = *options_.timestamp_rules();
  const int64_t first = rules.no_timestamps_id + 1, end = scores.vocab();
  const auto begin = row.columns->begin() + lengths_.prefixes[row.source];
  const int64_t length = row.columns->end() - begin;
  const auto is_timestamp = [&](int64_t token) { return token >= first; };
  const bool follows_one = length >= 1 && is_timestamp(begin[length - 1]);
  const bool closes = follows_one && length >= 2 && !is_timestamp(begin[length - 2]);
  scores.ban(rules.no_timestamps_id);
  if (closes)
    scores.ban_range(0, rules.eos_id);
  else if (follows_one)
    scores.ban_range(first, end);
  const auto last =
      std::find_if(row.columns->rbegin(), row.columns->rbegin() + length, is_timestamp);
  if (last != row.columns->rbegin() + length)
    scores.ban_range(first, std::min(end, closes ? *last : *last + 1));
  if (length == 0) {
    scores.ban_range(0, first);
    if (const auto& most = rules.max_initial_timestamp_index; most && *most < end - first)
      scores.ban_range(first + *most + 1, end);
  }
  if (scores.is_likely_from(first)) scores.ban_range(0, first);
}

// Sums the biases of a token before it adds them, as transformers does.
void LogitsProcessors::add_biases(Scores& scores, const Tokens& columns) const {
  std::vector<const Bias*> complete;
  for (const Bias& bias : biases_)
    if (lacks_last_of(columns, bias.tokens)) complete.push_back(&bias);
  const auto add = [&](int64_t token, float sum, std::size_t first) {
    for (std::size_t i = first; i < complete.size(); ++i)
      if (complete[i]->tokens.back() == token) sum += complete[i]->value;
    scores.set(token, scores.get(token) + sum);
  };
  for (const auto& [token, value] : token_biases_) add(token, value, 0);
  for (std::size_t i = 0; i < complete.size(); ++i) {
    const int64_t token = complete[i]->tokens.back();
    const bool was_added =
        token_biases_.count(token) > 0 ||
        std::any_of(complete.begin(), complete.begin() + static_cast<std::ptrdiff_t>(i),
                    [&](const Bias* before) { return before->tokens.back() == token; });
    if (!was_added) add(token, complete[i]->value, i + 1);
  }
}

void LogitsProcessors::ban_ngrams(Scores& scores, const TargetRow& row) const {
  const Tokens& columns = *row.columns;
  const auto ban = [&](const Tokens& text, int64_t size) {
    const int64_t before = size - 1, last = static_cast<int64_t>(text.size()) - before;
    if (size <= 0 || static_cast<int64_t>(columns.size()) < before) return;
    const auto end = columns.end() - before;
    for (int64_t i = 0; i < last; ++i)
      if (std::equal(end, columns.end(), text.begin() + i)) scores.ban(text[i + before]);
  };
  ban(columns, options_.no_repeat_ngram_size());
  if (options_.encoder_no_repeat_ngram_size() > 0)
    ban(src_[row.source], options_.encoder_no_repeat_ngram_size());
}

void LogitsProcessors::decay_ends(Scores& scores, int64_t length) const {
  const auto& decay = options_.exponential_decay_length_penalty();
  if (!decay || length <= decay->start) return;
  const auto growth =
      static_cast<float>(std::pow(decay->factor, static_cast<double>(length - decay->start)) - 1.0);
  for (const int64_t end : distinct(options_.eos_ids())) {
    const float value = scores.get(end);
    if (std::isfinite(value)) scores.set(end, value + std::abs(value) * growth);
  }
}

}  // namespace posenc
