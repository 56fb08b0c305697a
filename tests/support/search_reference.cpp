#include "support/search_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "transformer/functional/attention_mask_internals.h"

namespace posenc::testing {
namespace {

using ::testing::AssertionFailure;
using ::testing::AssertionResult;
using ::testing::AssertionSuccess;

constexpr double kNever = -std::numeric_limits<double>::infinity();
// If many scores are tied, only few roundings lead to a given result.
constexpr unsigned kTrials = 4096;
// A model whose norms magnify roundings gives less exact log probabilities: how many times the
// largest error of the model itself, of one token, another implementation may have in a sum.
constexpr double kOwnErrors = 8.0;

// -1 or 1, depending on the seed and the tokens.
double coin(unsigned seed, const std::vector<int64_t>& tokens) {
  uint64_t hash = 0x9E3779B97F4A7C15ULL * (seed + 1);
  for (const int64_t token : tokens) {
    hash = (hash ^ static_cast<uint64_t>(token)) * 0xBF58476D1CE4E5B9ULL;
    hash ^= hash >> 29;
  }
  return (hash >> 40) % 2 == 0 ? -1.0 : 1.0;
}

std::string text(const std::vector<Hypothesis>& all) {
  std::ostringstream stream;
  stream.precision(9);
  for (const Hypothesis& one : all) {
    stream << "\n  " << one.score << " {";
    for (const int64_t token : one.tokens) stream << " " << token;
    stream << " }";
  }
  return stream.str();
}

std::multiset<std::vector<int64_t>> tokens_of(const std::vector<Hypothesis>& all) {
  std::multiset<std::vector<int64_t>> tokens;
  for (const Hypothesis& one : all) tokens.insert(one.tokens);
  return tokens;
}

}  // namespace

void expect_bit_equal(const Found& got, const Found& expected) {
  ASSERT_EQ(got.size(), expected.size());
  for (size_t b = 0; b < got.size(); ++b) {
    ASSERT_EQ(got[b].size(), expected[b].size());
    for (size_t i = 0; i < got[b].size(); ++i) {
      EXPECT_EQ(got[b][i].tokens, expected[b][i].tokens);
      EXPECT_EQ(got[b][i].score, expected[b][i].score);
      EXPECT_EQ(got[b][i].log_probability, expected[b][i].log_probability);
      ASSERT_EQ(got[b][i].attention.defined(), expected[b][i].attention.defined());
      if (got[b][i].attention.defined()) {
        EXPECT_TRUE(bit_equal(got[b][i].attention, expected[b][i].attention));
      }
    }
  }
}

SearchReference::SearchReference(const Transformer& model, torch::Tensor src, AttentionMask mask,
                                 GenerateOptions options, Op rounding)
    : own_(model),
      model_(model),
      src_(std::move(src)),
      mask_(std::move(mask)),
      options_(std::move(options)),
      rounding_(rounding) {}

double SearchReference::half_rounding(double sum) const {
  return (allowance(rounding_, torch::kFloat, std::abs(sum)) + kOwnErrors * own_error_) / 2;
}

double SearchReference::rounding(int64_t source, const Hypothesis& one) {
  return 2 * half_rounding(log_probability(source, one.tokens));
}

double SearchReference::penalty(int64_t length) const {
  return std::pow(static_cast<double>(length), options_.length_penalty());
}

double SearchReference::reported(const Hypothesis& one) const {
  return one.score * penalty(static_cast<int64_t>(one.tokens.size()));
}

bool SearchReference::stops(int64_t token) const {
  const auto& stop = options_.eos_ids();
  return std::find(stop.begin(), stop.end(), token) != stop.end();
}

// Log probabilities (V) of the `length`-th token.
std::vector<double> SearchReference::next_of(const torch::Tensor& logits, int64_t length) const {
  auto scores = options_.renormalize() ? logits.clone() : logits.log_softmax(0);
  for (const int64_t token : options_.suppress_tokens()) scores[token] = kNever;
  if (!options_.forced_eos_ids().empty() && length == longest()) {
    scores.fill_(kNever)[options_.forced_eos_ids().front()] = 0.0;
  }
  if (options_.renormalize()) scores = scores.log_softmax(0);
  return {scores.const_data_ptr<double>(), scores.const_data_ptr<double>() + scores.numel()};
}

// The mask of one source, for this many target tokens.
AttentionMask SearchReference::mask_of(int64_t source, int64_t queries) const {
  const int64_t heads = model_->decoder->options.layer().num_heads();
  const AttentionShape shape = {src_.size(0), heads, queries, src_.size(1)};
  const AttentionMask mask =
      AttentionMaskAccess::queries(mask_, 0, queries).resolved(shape, memory_);
  const auto bias = AttentionMaskAccess::resolve(mask, shape, memory_).bias;
  return bias.defined() && bias.size(0) > 1 ? AttentionMask::additive(bias.narrow(0, source, 1))
                                            : mask;
}

void SearchReference::learn(int64_t source, const std::vector<Tokens>& targets) {
  const torch::NoGradGuard no_grad;
  if (!memory_.defined()) {
    own_memory_ = own_->encode(src_, mask_);
    model_ = Transformer(std::dynamic_pointer_cast<TransformerImpl>(own_->clone()));
    model_->to(torch::kDouble);
    model_->eval();
    memory_ = model_->encode(src_, mask_);
  }
  std::vector<Tokens> rows;  // rows that are not known yet
  size_t longest = 0;
  for (const Tokens& target : targets) {
    if (next_.count({source, target}) > 0) continue;
    rows.push_back(target);
    longest = std::max(longest, target.size());
  }
  if (rows.empty()) return;
  const auto count = static_cast<int64_t>(rows.size()), length = static_cast<int64_t>(longest) + 1;
  const auto tgt = torch::full({count, length}, options_.bos_id(), torch::kLong);
  for (int64_t row = 0; row < count; ++row)
    for (size_t i = 0; i < rows[row].size(); ++i)
      tgt[row][static_cast<int64_t>(i) + 1] = rows[row][i];
  const auto mask = mask_of(source, length);
  const auto decode = [&](Transformer& model, const torch::Tensor& memory) {
    return model->decode(tgt, memory.narrow(0, source, 1).expand({count, -1, -1}),
                         AttentionMask::causal(), mask);
  };
  const auto logits = decode(model_, memory_), own = decode(own_, own_memory_);
  const auto error = own.to(torch::kDouble).log_softmax(-1) - logits.log_softmax(-1);
  own_error_ = std::max(own_error_, error.abs().max().item<double>());
  for (int64_t row = 0; row < count; ++row) {
    const Tokens& all = rows[row];
    for (size_t i = 0; i <= all.size(); ++i) {
      auto& known = next_[{source, Tokens(all.begin(), all.begin() + static_cast<long>(i))}];
      const auto position = static_cast<int64_t>(i);
      if (known.empty()) known = next_of(logits[row][position], position + 1);
    }
  }
}

double SearchReference::log_probability(int64_t source, const Tokens& tokens) {
  double sum = 0.0;
  if (tokens.empty()) return kNever;
  learn(source, {{tokens.begin(), tokens.end() - 1}});
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool last = i + 1 == tokens.size();
    const bool ends = stops(tokens[i]) || static_cast<int64_t>(i + 1) == longest();
    if (ends != last) return kNever;
    sum += next_.at({source, {tokens.begin(), tokens.begin() + static_cast<long>(i)}})
               .at(static_cast<size_t>(tokens[i]));
  }
  return sum;
}

// All continuations of the live beams, best first.
std::vector<SearchReference::Beam> SearchReference::candidates(int64_t source,
                                                               const std::vector<Beam>& live,
                                                               const Nudge& nudge) {
  std::vector<Tokens> prefixes;
  for (const Beam& beam : live) prefixes.push_back(beam.tokens);
  learn(source, prefixes);
  std::vector<Beam> all;
  for (const Beam& beam : live) {
    const auto& follow = next_.at({source, beam.tokens});
    for (size_t token = 0; token < follow.size(); ++token) {
      if (follow[token] == kNever) continue;
      Beam one = {beam.tokens, beam.sum + follow[token], 0.0};
      one.tokens.push_back(static_cast<int64_t>(token));
      one.moved = one.sum + nudge(one.tokens) * half_rounding(one.sum);
      all.push_back(std::move(one));
    }
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Beam& a, const Beam& b) { return a.moved > b.moved; });
  return all;
}

bool SearchReference::is_done(const std::vector<Beam>& live, const std::vector<Beam>& finished,
                              int64_t length) const {
  if (live.empty()) return true;
  if (static_cast<int64_t>(finished.size()) < options_.num_beams()) return false;
  if (options_.num_beams() == 1 || options_.early_stopping() == EarlyStopping::WhenFull)
    return true;
  const bool to_the_end =
      options_.early_stopping() == EarlyStopping::Never && options_.length_penalty() > 0.0;
  const Beam& worst = finished.back();
  return live.front().moved / penalty(to_the_end ? longest() : length) <=
         worst.moved / penalty(static_cast<int64_t>(worst.tokens.size()));
}

std::vector<Hypothesis> SearchReference::search(int64_t source, const Nudge& nudge) {
  const auto width = static_cast<size_t>(options_.num_beams());
  const auto score = [&](const Beam& one) {
    return one.moved / penalty(static_cast<int64_t>(one.tokens.size()));
  };
  std::vector<Beam> live = {{{}, 0.0, 0.0}}, finished;
  for (int64_t length = 1; length <= longest(); ++length) {
    const auto all = candidates(source, live, nudge);
    live.clear();
    for (size_t rank = 0; rank < all.size() && live.size() < width; ++rank) {
      const bool ends = length == longest() || stops(all[rank].tokens.back());
      if (!ends) live.push_back(all[rank]);
      if (ends && rank < width) finished.push_back(all[rank]);
    }
    std::stable_sort(finished.begin(), finished.end(),
                     [&](const Beam& a, const Beam& b) { return score(a) > score(b); });
    finished.resize(std::min(finished.size(), width));
    if (is_done(live, finished, length)) break;
  }
  std::vector<Hypothesis> found;
  const auto most = static_cast<size_t>(options_.num_return_sequences());
  for (size_t i = 0; i < std::min(finished.size(), most); ++i) {
    const auto length = static_cast<int64_t>(finished[i].tokens.size());
    found.push_back({finished[i].tokens, finished[i].sum / penalty(length)});
  }
  return found;
}

std::vector<Hypothesis> SearchReference::find(int64_t source, unsigned seed) {
  return search(source,
                [seed](const Tokens& tokens) { return seed == 0 ? 0.0 : coin(seed, tokens); });
}

AssertionResult SearchReference::is_legal(int64_t source, const std::vector<Hypothesis>& found) {
  if (found.empty() || static_cast<int64_t>(found.size()) > options_.num_return_sequences())
    return AssertionFailure() << found.size() << " hypotheses, not 1 to "
                              << options_.num_return_sequences();
  const auto all = tokens_of(found);
  if (std::set(all.begin(), all.end()).size() < all.size())
    return AssertionFailure() << "one of the hypotheses is there twice:" << text(found);
  std::vector<Tokens> before_last;
  for (const Hypothesis& one : found)
    if (!one.tokens.empty()) before_last.push_back({one.tokens.begin(), one.tokens.end() - 1});
  learn(source, before_last);
  double before = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < found.size(); ++i) {
    const double sum = log_probability(source, found[i].tokens), half = half_rounding(sum);
    if (!(std::abs(move_of(source, found[i])) <= 2 * half))
      return AssertionFailure() << "hypothesis " << i << " reports " << reported(found[i])
                                << ", and its tokens have " << sum << ":" << text(found);
    const bool is_known = !std::isnan(found[i].score);
    const double length = penalty(static_cast<int64_t>(found[i].tokens.size()));
    if ((is_known ? found[i].score : (sum - half) / length) > before)
      return AssertionFailure() << "hypothesis " << i << " is not in its place:" << text(found);
    before = is_known ? found[i].score : (sum + half) / length;
  }
  return AssertionSuccess();
}

// The difference between the reported log probability and that of the tokens.
double SearchReference::move_of(int64_t source, const Hypothesis& one) {
  const double sum = log_probability(source, one.tokens);
  return std::isnan(one.score) ? half_rounding(sum) : reported(one) - sum;
}

AssertionResult SearchReference::may_find(int64_t source, const std::vector<Hypothesis>& found) {
  if (auto legal = is_legal(source, found); !legal) return legal;
  std::map<Tokens, double> moves;  // of the found prefixes, which were kept
  for (const Hypothesis& one : found) {
    const Tokens& tokens = one.tokens;
    for (auto end = tokens.begin() + 1; end < tokens.end(); ++end) moves[{tokens.begin(), end}] = 1;
    moves[tokens] = move_of(source, one) / half_rounding(log_probability(source, tokens));
  }
  // Other prefixes were dropped, or some were kept: search by trial and error.
  for (unsigned seed = 0; seed < kTrials; ++seed) {
    const auto nudge = [&](const Tokens& tokens) {
      const auto known = moves.find(tokens);
      if (known != moves.end()) return known->second;
      return seed < 3 ? static_cast<double>(seed) - 1.0 : coin(seed, tokens);
    };
    if (tokens_of(search(source, nudge)) == tokens_of(found)) return AssertionSuccess();
  }
  return AssertionFailure() << "no rounding finds" << text(found) << "\nand without any it is"
                            << text(find(source));
}

AssertionResult found_the_same(const Found& got, const Found& expected,
                               SearchReference& reference) {
  if (got.size() != expected.size())
    return AssertionFailure() << got.size() << " sources, not " << expected.size();
  for (size_t b = 0; b < got.size(); ++b) {
    const auto source = static_cast<int64_t>(b);
    if (got[b].size() != expected[b].size())
      return AssertionFailure() << "source " << b << ": " << got[b].size() << " hypotheses, not "
                                << expected[b].size();
    bool same = true;
    for (size_t i = 0; i < got[b].size(); ++i) {
      const Hypothesis &a = got[b][i], &one = expected[b][i];
      if (std::isnan(a.score)) return AssertionFailure() << "source " << b << " has a NaN score";
      same = same && a.tokens == one.tokens;
      if (!same || std::isnan(one.score)) continue;
      const double a_sum = reference.reported(a), sum = reference.reported(one);
      const double rounding = reference.rounding(source, one);
      if (!(std::abs(a_sum - sum) <= rounding))
        return AssertionFailure() << "log probabilities " << a_sum << " and " << sum
                                  << " differ by more than " << rounding << ", hypothesis " << i
                                  << " of source " << b;
    }
    if (same) {  // both are right or both are wrong
      const bool whole = reference.is_greedy() || b + 1 == got.size();
      const auto right =
          whole ? reference.may_find(source, got[b]) : reference.is_legal(source, got[b]);
      if (!right) return AssertionFailure() << "source " << b << ", both: " << right.message();
      continue;
    }
    for (const auto& [name, found] : {std::pair("got", &got[b]), {"expected", &expected[b]}})
      if (auto right = reference.may_find(source, *found); !right)
        return AssertionFailure() << "source " << b << ", " << name << ": " << right.message();
  }
  return AssertionSuccess();
}

}  // namespace posenc::testing
