#include "posenc/text/text_classifier.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <numeric>
#include <ostream>

#include "inference/rows/frozen_call.h"
#include "models/sentence/modules.h"
#include "posenc/models/frozen_file.h"
#include "text/labels/parts.h"

namespace posenc {
namespace text {

namespace {

using head::Kind;

// What a model with a head of a kind is called.
const char* model_with(Kind kind) {
  switch (kind) {
    case Kind::Sequence: return "a model with labels for texts (...ForSequenceClassification)";
    case Kind::Token: return "a model with labels for tokens (...ForTokenClassification)";
    case Kind::Question: return "a model for questions (...ForQuestionAnswering)";
    case Kind::Masked: return "a model for masks (...ForMaskedLM)";
    case Kind::Image: return "a model of images (...ForImageClassification)";
    case Kind::Choice: break;
  }
  return "a model for choices (...ForMultipleChoice)";
}

}  // namespace

void check_kind(const TextClassifierParts& parts, Kind kind, const char* function) {
  TORCH_CHECK_VALUE(parts.model.options().kind() == kind, kClassifier, function, " needs ",
                    model_with(kind), ". Got ", model_with(parts.model.options().kind()));
}

namespace {

at::Tensor scores_of_logits(const TextClassifierParts& parts, const at::Tensor& logits,
                            labels::Function function) {
  switch (function) {
    case labels::Function::None: return logits;
    case labels::Function::Sigmoid: return at::sigmoid(logits);
    case labels::Function::Softmax: return at::softmax(logits, -1);
    case labels::Function::Default: break;
  }
  const auto& stored = parts.folder.activation;
  return stored ? functional::activate(logits, *stored)
                : class_probabilities(parts.model.options(), logits);
}

// A head takes a row of each sequence.
void check_tokens(const TextRows& rows, const std::vector<int64_t>& indices) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TORCH_CHECK_VALUE(!rows.row(i).is_empty(), kClassifier,
                      "a text must have a token. Got an empty text at index ", indices[i]);
  }
}

// The logits (N, outputs) of all rows.
at::Tensor logits_of(const TextClassifierParts& parts, const TextRows& rows, int64_t batch_size) {
  at::Tensor result;
  for (const ModelBatch& batch : model_batches(parts.rules, rows.batch(), batch_size)) {
    const at::Tensor logits = parts.model.forward(batch.ids, batch.inputs).logits;
    if (batch.rows.size() == rows.size()) return logits;
    if (!result.defined())
      result = at::empty({static_cast<int64_t>(rows.size()), logits.size(1)}, at::kFloat);
    result.index_copy_(0, at::tensor(batch.rows, at::kLong), logits);
  }
  return result;
}

// The scores (N, labels) of texts or pairs.
template <typename Text>
at::Tensor scores_of(const TextClassifierParts& parts, const std::vector<Text>& texts,
                     const TextClassifyOptions& options, const char* function) {
  check_kind(parts, Kind::Sequence, function);
  check_positive("TextClassifier", "batch_size", options.batch_size());
  const std::string prompt = prompt_of("TextClassifier", options, parts.folder);
  at::Tensor result = at::empty(
      {static_cast<int64_t>(texts.size()), parts.model.options().head().outputs()}, at::kFloat);
  each_batch(texts, options.batch_size(), prompt, [&](const auto& indices, const auto& batch) {
    const TextRows rows(parts.tokenizer, batch, parts.rules.options);
    check_tokens(rows, indices);
    const at::Tensor logits = logits_of(parts, rows, options.batch_size());
    result.index_copy_(0, at::tensor(indices, at::kLong),
                       scores_of_logits(parts, logits, options.function()));
    rows.tell_cut(indices, options.on_truncated());
  });
  return result;
}

std::vector<std::vector<LabelScore>> best_labels(const TextClassifierParts& parts,
                                                 const at::Tensor& scores,
                                                 const TextClassifyOptions& options) {
  const auto& names = parts.model.options().labels();
  const at::Tensor values = scores.contiguous();
  const auto* value = values.const_data_ptr<float>();
  std::vector<std::vector<LabelScore>> all;
  for (int64_t row = 0; row < values.size(0); ++row) {
    std::vector<LabelScore> list;
    for (const std::string& name : names) list.push_back({name, *value++});
    std::stable_sort(list.begin(), list.end(),
                     [](const LabelScore& a, const LabelScore& b) { return a.score > b.score; });
    if (options.top_k() && static_cast<std::size_t>(*options.top_k()) < list.size())
      list.resize(static_cast<std::size_t>(*options.top_k()));
    all.push_back(std::move(list));
  }
  return all;
}

void check_top(const TextClassifyOptions& options) {
  if (options.top_k()) check_positive("TextClassifier", "top_k", *options.top_k());
}

}  // namespace
}  // namespace text

std::vector<std::vector<LabelScore>> TextClassifier::classify(
    const std::vector<std::string>& texts, const TextClassifyOptions& options) const {
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenCall call(held->call);
  text::check_top(options);
  return text::best_labels(*held, text::scores_of(*held, texts, options, "classify()"), options);
}

std::vector<std::vector<LabelScore>> TextClassifier::classify_pairs(
    const std::vector<std::pair<std::string, std::string>>& pairs,
    const TextClassifyOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  text::check_top(options);
  return text::best_labels(*held, text::scores_of(*held, pairs, options, "classify_pairs()"),
                           options);
}

torch::Tensor TextClassifier::scores(const std::vector<std::string>& texts,
                                     const TextClassifyOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  return text::scores_of(*held, texts, options, "scores()");
}

torch::Tensor TextClassifier::pair_scores(
    const std::vector<std::pair<std::string, std::string>>& pairs,
    const TextClassifyOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  return text::scores_of(*held, pairs, options, "pair_scores()");
}

torch::Tensor TextClassifier::choose(const std::string& text,
                                     const std::vector<std::string>& choices) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  text::check_kind(*held, head::Kind::Choice, "choose()");
  if (choices.empty()) return at::empty({0}, at::kFloat);
  std::vector<text::TextPair> pairs;
  for (const std::string& choice : choices) pairs.emplace_back(text, choice);
  const text::TextRows rows(held->tokenizer, pairs, held->rules.options);
  std::vector<int64_t> indices(choices.size());
  std::iota(indices.begin(), indices.end(), 0);
  text::check_tokens(rows, indices);
  constexpr int64_t kMostRows = 32;
  const at::Tensor logits = text::logits_of(*held, rows, kMostRows);
  return class_probabilities(held->model.options(), logits).squeeze(1);
}

std::vector<std::vector<TokenLabel>> TextClassifier::label_tokens(
    const std::vector<std::string>& texts, const TokenLabelOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  return text::label_tokens(*held, texts, options);
}

std::vector<Answer> TextClassifier::answer(const std::string& question, const std::string& context,
                                           const AnswerOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  return text::answer(*held, question, context, options);
}

std::vector<std::vector<std::vector<MaskedToken>>> TextClassifier::fill(
    const std::vector<std::string>& texts, const FillMaskOptions& options) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  return text::fill(*held, texts, options);
}

head::Kind TextClassifier::kind() const { return parts_->model.options().kind(); }
const std::vector<std::string>& TextClassifier::labels() const {
  return parts_->model.options().labels();
}
std::optional<int64_t> TextClassifier::max_seq_length() const { return parts_->max_length; }
const CrossEncoderFolder& TextClassifier::folder() const { return parts_->folder; }
const FrozenClassifier& TextClassifier::model() const { return parts_->model; }
const Tokenizer& TextClassifier::tokenizer() const { return parts_->tokenizer; }

TextClassifier load_text_classifier(const std::string& folder, const FreezeOptions& options,
                                    const LoadOptions& load, std::optional<head::Kind> kind) {
  const CrossEncoderFolder read = read_cross_encoder_folder(folder, load.base());
  TORCH_CHECK_VALUE(read.has_head() && !(has_modules(folder) && read.chat_template),
                    "[load_text_classifier] ", folder,
                    ": must have a head that makes its labels of plain texts. Got a CrossEncoder ",
                    read.has_head() ? "with a chat template" : "whose scores are made otherwise",
                    ", which load_reranker() loads");
  FrozenClassifier model = load_and_freeze_classifier(read.model, options, load, kind);
  TORCH_CHECK_VALUE(model.options().encoder().embeddings().has_value(),
                    "[load_text_classifier] the model must be one of texts. Got ", folder,
                    ", a model of images");
  text::TextClassifierParts parts = {
      .folder = read,
      .model = std::move(model),
      .tokenizer = Tokenizer::from_folder(read.tokenizer, read.do_lower_case),
      .max_length = std::nullopt,
      .rules = {},
      .call = {.threads = options.threads()}};
  parts.max_length = max_tokens_of_text(read.max_seq_length, parts.tokenizer.model_max_length(),
                                        read.max_positions);
  parts.rules = text::row_rules(parts.tokenizer, parts.model.options(), parts.max_length);
  return TextClassifier(std::make_shared<const text::TextClassifierParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const TextClassifier& model) {
  return stream << "posenc::TextClassifier(labels=" << model.labels().size() << ", "
                << model.model() << ")";
}

}  // namespace posenc
