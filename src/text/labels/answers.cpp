// TextClassifier::answer(): QuestionAnsweringPipeline of transformers 4.57; 5.23 has none, but its
// pipeline for documents still has the search for spans.

#include <algorithm>
#include <cmath>

#include "text/labels/parts.h"
#include "tokenizers/pipeline/character_bytes.h"
#include "tokenizers/python/text.h"
#include "tokenizers/tokenizer_access.h"

namespace posenc::text {
namespace {

// A span of tokens, from the first to the last.
struct Candidate {
  std::size_t first, last;
  float score;
};

// A window on the context.
class Window {
 public:
  // `logits`: (L, 2) numbers, of the start and the end of an answer at each token. `context`: which
  // of the two texts it is.
  Window(const TextRows::Row& row, const float* logits, int context,
         std::optional<uint32_t> cls_token)
      : row_(row), context_(context) {
    for (std::size_t i = row.begin; i < row.end; ++i) {
      // Some models point to the first token where there is no answer.
      const int sequence = row.tokens.sequences[i];
      may_answer_.push_back(sequence == context ||
                            (sequence < 0 && row.tokens.ids[i] == cls_token));
    }
    if (std::find(may_answer_.begin(), may_answer_.end(), true) == may_answer_.end()) {
      // As in the pipeline, to which all are then as probable.
      starts_.assign(may_answer_.size(), 0.0F);
      ends_ = starts_;
      const float each = 1.0F / static_cast<float>(may_answer_.size());
      no_answer_ = each * each;
      return;
    }
    starts_ = probabilities(logits);
    ends_ = probabilities(logits + 1);
    no_answer_ = starts_[0] * ends_[0];
    starts_[0] = ends_[0] = 0.0F;
  }

  // The probability that the window has no answer.
  float no_answer() const { return no_answer_; }

  // The most probable spans of at most `most_tokens`, best first.
  std::vector<Candidate> best(std::size_t count, std::size_t most_tokens) const {
    std::vector<Candidate> all;
    for (std::size_t first = 0; first < starts_.size(); ++first) {
      const std::size_t end = std::min(starts_.size(), first + most_tokens);
      for (std::size_t last = first; last < end && starts_[first] > 0.0F; ++last) {
        const float score = starts_[first] * ends_[last];
        if (score > 0.0F) all.push_back({first, last, score});
      }
    }
    std::stable_sort(all.begin(), all.end(),
                     [](const Candidate& a, const Candidate& b) { return a.score > b.score; });
    if (all.size() > count) all.resize(count);
    return all;
  }

  // The characters of the context from a span's first token to its last, or from the first of their
  // words to the last.
  std::pair<int64_t, int64_t> characters(const Candidate& span, bool align_to_words) const {
    const auto& offsets = row_.tokens.offsets;
    std::size_t first = row_.begin + span.first, last = row_.begin + span.last;
    const bool are_words =
        row_.tokens.sequences[first] == context_ && row_.tokens.sequences[last] == context_;
    if (align_to_words && are_words) {
      while (first > row_.begin && is_of_same_word(first - 1, first)) --first;
      while (last + 1 < row_.end && is_of_same_word(last + 1, last)) ++last;
    }
    return {offsets[first].begin, offsets[last].end};
  }

 private:
  bool is_of_same_word(std::size_t a, std::size_t b) const {
    return row_.tokens.sequences[a] == row_.tokens.sequences[b] &&
           row_.tokens.words[a] == row_.tokens.words[b];
  }

  // The softmax of every other number, over the tokens that may be in an answer.
  std::vector<float> probabilities(const float* logits) const {
    float most = -INFINITY, sum = 0.0F;
    for (std::size_t i = 0; i < may_answer_.size(); ++i) {
      if (may_answer_[i]) most = std::max(most, logits[2 * i]);
    }
    std::vector<float> result(may_answer_.size(), 0.0F);
    for (std::size_t i = 0; i < result.size(); ++i) {
      if (may_answer_[i]) sum += result[i] = std::exp(logits[2 * i] - most);
    }
    for (float& value : result) value /= sum;
    return result;
  }

  TextRows::Row row_;
  int context_;
  std::vector<bool> may_answer_;
  std::vector<float> starts_, ends_;
  float no_answer_ = 0.0F;
};

// Answers of all windows, of which equal ones are one.
class Answers {
 public:
  explicit Answers(const std::string& context) : context_(context) {}

  void add(std::pair<int64_t, int64_t> span, float score) {
    const auto [begin, end] = span;
    const std::string text(context_.slice(begin, end));
    const std::string lowercased = python::lower(text);
    for (std::size_t i = 0; i < answers_.size(); ++i) {
      if (lowercased_[i] != lowercased) continue;
      answers_[i].score += score;
      return;
    }
    lowercased_.push_back(lowercased);
    answers_.push_back({text, score, {begin, end, context_(begin), context_(end)}});
  }

  void add_none(float score) { answers_.push_back({"", score, {0, 0, 0, 0}}); }

  std::vector<Answer> best(std::size_t count) {
    std::stable_sort(answers_.begin(), answers_.end(),
                     [](const Answer& a, const Answer& b) { return a.score > b.score; });
    if (answers_.size() > count) answers_.resize(count);
    return std::move(answers_);
  }

 private:
  CharacterBytes context_;
  std::vector<Answer> answers_;
  std::vector<std::string> lowercased_;
};

// How the question and the context become windows.
TokenizerOptions window_options(const TextClassifierParts& parts, const AnswerOptions& options,
                                bool question_first) {
  const int64_t length =
      std::min(options.max_seq_len(), parts.max_length.value_or(options.max_seq_len()));
  constexpr int64_t kDefaultStride = 128;
  const int64_t stride = options.doc_stride().value_or(std::min(length / 2, kDefaultStride));
  TORCH_CHECK_VALUE(stride >= 0 && stride <= length, kClassifier,
                    "doc_stride must be from 0 to the tokens of a window, ", length, ". Got ",
                    stride);
  return TokenizerOptions(parts.rules.options)
      .truncation(question_first ? tokenizer::Truncation::OnlySecond
                                 : tokenizer::Truncation::OnlyFirst)
      .max_length(length)
      .stride(stride)
      .overflow(true);
}

void check_options(const TextClassifierParts& parts, const std::string& question,
                   const std::string& context, const AnswerOptions& options) {
  check_kind(parts, head::Kind::Question, "answer()");
  check_positive("TextClassifier", "top_k", options.top_k());
  check_positive("TextClassifier", "max_answer_len", options.max_answer_len());
  check_positive("TextClassifier", "max_seq_len", options.max_seq_len());
  check_positive("TextClassifier", "batch_size", options.batch_size());
  TORCH_CHECK_VALUE(!question.empty(), kClassifier, "the question must not be empty");
  TORCH_CHECK_VALUE(!context.empty(), kClassifier, "the context must not be empty");
  TORCH_CHECK_VALUE(parts.tokenizer.has_offsets(), kClassifier,
                    "answer() needs a tokenizer with offsets, which find an answer in the context");
}

}  // namespace

std::vector<Answer> answer(const TextClassifierParts& parts, const std::string& question,
                           const std::string& context, const AnswerOptions& options) {
  check_options(parts, question, context, options);
  const bool question_first = !TokenizerAccess::loaded(parts.tokenizer).settings().pads_left;
  const TextPair pair = question_first ? TextPair(question, context) : TextPair(context, question);
  const TextRows rows(parts.tokenizer, std::vector<TextPair>{pair},
                      window_options(parts, options, question_first),
                      {.offsets = true, .words = true});
  TORCH_CHECK_VALUE(!rows.row(0).is_empty(), kClassifier,
                    "the question and the context must have a token. Got no token");
  std::vector<at::Tensor> logits(rows.size());
  for (const ModelBatch& batch : model_batches(parts.rules, rows.batch(), options.batch_size())) {
    const at::Tensor own = parts.model.forward(batch.ids, batch.inputs).logits;
    for (std::size_t i = 0; i < batch.rows.size(); ++i)
      logits[static_cast<std::size_t>(batch.rows[i])] = own[static_cast<int64_t>(i)].contiguous();
  }
  // Some spans are one when they are extended to words.
  const auto count = static_cast<std::size_t>(options.top_k());
  const std::size_t candidates = options.align_to_words() ? 2 * count + 10 : count;
  Answers answers(context);
  float no_answer = 1.0F;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Window window(rows.row(i), logits[i].const_data_ptr<float>(), question_first ? 1 : 0,
                        parts.tokenizer.special_token_id("cls_token"));
    no_answer = std::min(no_answer, window.no_answer());
    for (const Candidate& span :
         window.best(candidates, static_cast<std::size_t>(options.max_answer_len())))
      answers.add(window.characters(span, options.align_to_words()), span.score);
  }
  if (options.handle_impossible_answer()) answers.add_none(no_answer);
  return answers.best(count);
}

}  // namespace posenc::text
