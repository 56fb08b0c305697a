#pragma once

#include <torch/arg.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"

namespace posenc POSENC_EXPORT {

namespace labels {

/// What is applied to the logits of a text: `function_to_apply` of transformers' pipeline.
enum class Function {
  Default,  ///< what the folder stores (CrossEncoderFolder::activation), else class_probabilities()
  None,     ///< nothing
  Sigmoid,  ///< the sigmoid of each
  Softmax,  ///< their softmax
};

/// How labels of tokens become labels of words and phrases: `aggregation_strategy` of transformers'
/// pipeline. `B-` and `I-` before a label begin and continue a phrase; a label without either
/// continues one of the same label.
enum class Aggregation {
  None,     ///< not at all: a label for each token
  Simple,   ///< tokens of one label in a row are one phrase
  First,    ///< a word has the label of its first token; then as Simple
  Average,  ///< a word has the label of its tokens' mean probabilities; then as Simple
  Max,      ///< a word has the label of its most certain token; then as Simple
};

}  // namespace labels

/// A part of a text.
struct TextSpan {
  int64_t begin;       ///< its first character (code point), as in Python
  int64_t end;         ///< the character after its last
  int64_t byte_begin;  ///< its first byte, as in `text.substr(byte_begin, byte_end - byte_begin)`
  int64_t byte_end;    ///< the byte after its last
};

/// A label and its score.
struct LabelScore {
  std::string label;  ///< the name of the label
  float score;        ///< its probability, or what labels::Function makes of the logit
};

/// The label of a token, or of several that were joined.
struct TokenLabel {
  std::string label;  ///< without `B-` and `I-` where tokens were joined
  float score;        ///< the label's probability; of a phrase the mean of its words
  /// How the tokenizer spells the token, such as `##ing`; of a phrase the text that it makes of the
  /// tokens. `span` is where to find the words of the text itself.
  std::string word;
  int64_t index;                 ///< of the (first) token in its sequence, `[CLS]` being 0
  std::optional<TextSpan> span;  ///< nothing unless Tokenizer::has_offsets()
};

/// An answer to a question.
struct Answer {
  std::string text;  ///< the answer as the context has it; empty: there is none
  float score;       ///< its probability
  TextSpan span;     ///< its place in the context
};

/// A token for a mask.
struct MaskedToken {
  std::string token;     ///< the token's text
  int64_t id;            ///< its id
  float score;           ///< its probability
  std::string sequence;  ///< the text with the token in place of the mask; other masks stay
};

/// Options of TextClassifier::classify() and scores().
struct TextClassifyOptions {
  /// How many labels are returned, best first; all unless set.
  TORCH_ARG(std::optional<int64_t>, top_k) = std::nullopt;
  /// What is applied to the logits.
  TORCH_ARG(labels::Function, function) = labels::Function::Default;
  /// Name of one of the folder's prompts; empty: none. The folder's default unless this or `prompt`
  /// is set.
  TORCH_ARG(std::optional<std::string>, prompt_name) = std::nullopt;
  /// The text of a prompt, put before each text, of a pair before the first, as it is.
  TORCH_ARG(std::optional<std::string>, prompt) = std::nullopt;
  /// How many texts are computed at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// Options of TextClassifier::label_tokens().
struct TokenLabelOptions {
  /// Which tokens are joined; First, Average and Max need Tokenizer::has_offsets().
  TORCH_ARG(labels::Aggregation, aggregation) = labels::Aggregation::None;
  /// The labels that are left out.
  TORCH_ARG(std::vector<std::string>, ignore_labels) = { "O" };
  /// With it a text that is too long for the model is read in windows, each of which repeats this
  /// many tokens of the one before it, and of labels that overlap the longest is kept; otherwise it
  /// is cut. Needs an aggregation and Tokenizer::has_offsets().
  TORCH_ARG(std::optional<int64_t>, stride) = std::nullopt;
  /// How many texts, or windows of one, are computed at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text that is cut.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// Options of TextClassifier::answer().
struct AnswerOptions {
  /// How many answers are returned at most, best first.
  TORCH_ARG(int64_t, top_k) = 1;
  /// Most tokens of an answer.
  TORCH_ARG(int64_t, max_answer_len) = 15;
  /// Most tokens of a window, the question and special tokens included; no more than the model
  /// takes.
  TORCH_ARG(int64_t, max_seq_len) = 384;
  /// Tokens of the context that each window repeats of the one before it; half of a window, but no
  /// more than 128, unless set.
  TORCH_ARG(std::optional<int64_t>, doc_stride) = std::nullopt;
  /// Whether "no answer" is one of the answers, as an empty text.
  TORCH_ARG(bool, handle_impossible_answer) = false;
  /// Extends answers to whole words.
  TORCH_ARG(bool, align_to_words) = true;
  /// How many windows are computed at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
};

/// Options of TextClassifier::fill().
struct FillMaskOptions {
  /// How many tokens are returned for each mask, best first.
  TORCH_ARG(int64_t, top_k) = 5;
  /// The only tokens that are considered, unless it is empty. One that is not in the vocabulary
  /// stands for the first token of it as a text.
  TORCH_ARG(std::vector<std::string>, targets) = {};
  /// How many texts are computed at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

}  // namespace posenc
