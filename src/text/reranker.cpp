#include "posenc/text/reranker.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <ostream>
#include <string_view>

#include "inference/rows/frozen_call.h"
#include "models/config/model_folder.h"
#include "models/frozen/frozen_folder.h"
#include "models/lora/adapted_folder.h"
#include "models/sentence/modules.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/inspect_folder.h"
#include "posenc/models/sentence_folder.h"
#include "text/chat_template/pairs.h"
#include "text/sentence/text_rows.h"

namespace posenc {
namespace text {

struct RerankerParts {
  CrossEncoderFolder folder;
  Tokenizer tokenizer;
  std::optional<FrozenClassifier> classifier = {};  // or else an encoder with stages
  std::optional<FrozenEncoder> encoder = {};
  SentenceStages stages{nullptr};                // after it
  std::optional<FrozenTokenLogits> causal = {};  // or else a causal model
  std::optional<ChatPairs> chat = {};
  std::optional<int64_t> max_length = {};
  RowRules rules = {};
  torch_internals::CallOptions call = {};
};

namespace {

constexpr const char* kReranker = "[Reranker] ";
constexpr const char* kLoader = "[load_reranker] ";

using Ids = std::vector<int64_t>;

// The score of each row before the activation, (B).
at::Tensor logits_of(const RerankerParts& parts, const ModelBatch& batch) {
  if (parts.classifier) return parts.classifier->forward(batch.ids, batch.inputs).logits.squeeze(1);
  EncoderInputs inputs = batch.inputs;
  if (parts.stages->needs_hidden_states()) inputs.output_hidden_states(true);
  const EncoderOutput out = parts.encoder->forward(batch.ids, inputs);
  return parts.stages.ptr()
      ->forward(out.last_hidden_state, batch.mask, 0, batch.ids, out.hidden_states)
      .squeeze(1);
}

// The indices of the pairs of each query.
std::vector<Ids> groups_by_query(const std::vector<TextPair>& pairs) {
  std::map<std::string_view, std::size_t> places;
  std::vector<Ids> groups;
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto [place, is_new] = places.emplace(pairs[i].first, groups.size());
    if (is_new) groups.emplace_back();
    groups[place->second].push_back(static_cast<int64_t>(i));
  }
  return groups;
}

// The same of pairs by a causal model, of their tokens.
at::Tensor causal_logits(const RerankerParts& parts, const std::vector<TextPair>& pairs,
                         const std::vector<Ids>& texts, int64_t batch_size) {
  const at::Tensor logits = parts.causal->after(texts, groups_by_query(pairs), batch_size),
                   of_true = logits.select(1, 0);
  return logits.size(1) == 1 ? of_true : of_true - logits.select(1, 1);
}

void check_pairs(const TextRows& rows, const std::vector<int64_t>& indices) {
  for (std::size_t i = 0; i < rows.size(); ++i)
    TORCH_CHECK_VALUE(!rows.row(i).is_empty(), kReranker,
                      "a pair must have a token. Got an empty one at index ", indices[i]);
}

// Writes the last tokens of a chat template over those of the rows that are as long as a text may
// be, which may have been cut.
void restore_tail(const RerankerParts& parts, const TextRows& rows, const std::string& prompt) {
  std::vector<int64_t> tail;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TextRows::Row row = rows.row(i);
    const auto length = static_cast<int64_t>(row.end - row.begin);
    if (!parts.max_length || length < *parts.max_length) continue;
    if (tail.empty()) tail = parts.chat->tail(parts.tokenizer, prompt);
    const int64_t kept = std::min(static_cast<int64_t>(tail.size()), length);
    rows.batch()
        .input_ids.select(0, static_cast<int64_t>(i))
        .narrow(0, length - kept, kept)
        .copy_(at::tensor(std::vector<int64_t>(tail.end() - kept, tail.end()), at::kLong));
  }
}

// The rows of pairs, which have the prompt unless a chat template puts it elsewhere.
TextRows rows_of(const RerankerParts& parts, const std::vector<TextPair>& pairs,
                 const std::string& prompt) {
  if (!parts.chat) return {parts.tokenizer, pairs, parts.rules.options};
  std::vector<std::string> texts;
  for (const TextPair& pair : pairs)
    texts.push_back(parts.chat->render(prompt, pair.first, pair.second));
  TextRows rows(parts.tokenizer, texts, parts.rules.options);
  restore_tail(parts, rows, prompt);
  return rows;
}

// The tokens of a row.
Ids ids_of(const TextRows& rows, std::size_t i) {
  const at::Tensor& ids = rows.batch().input_ids;
  const auto* const own = ids.const_data_ptr<int64_t>() + static_cast<int64_t>(i) * ids.size(1);
  return {own, own + (rows.row(i).end - rows.row(i).begin)};
}

at::Tensor scores_of(const RerankerParts& parts, const std::vector<TextPair>& pairs,
                     const RankOptions& options) {
  check_positive("Reranker", "batch_size", options.batch_size());
  const std::string prompt = prompt_of("Reranker", options, parts.folder);
  at::Tensor logits = at::empty({std::ssize(pairs)}, at::kFloat);
  std::vector<Ids> texts(parts.causal ? pairs.size() : 0);
  const std::string in_front = parts.chat ? "" : prompt;
  each_batch(pairs, options.batch_size(), in_front, [&](const auto& indices, const auto& some) {
    const TextRows rows = rows_of(parts, some, prompt);
    check_pairs(rows, indices);
    if (parts.causal) {
      for (std::size_t i = 0; i < rows.size(); ++i)
        texts[static_cast<std::size_t>(indices[i])] = ids_of(rows, i);
    } else {
      for (const ModelBatch& batch :
           model_batches(parts.rules, rows.batch(), options.batch_size())) {
        const at::Tensor own = logits_of(parts, batch).contiguous();
        for (std::size_t i = 0; i < batch.rows.size(); ++i)
          logits.data_ptr<float>()[indices[static_cast<std::size_t>(batch.rows[i])]] =
              own.const_data_ptr<float>()[i];
      }
    }
    rows.tell_cut(indices, options.on_truncated());
  });
  if (parts.causal) logits = causal_logits(parts, pairs, texts, options.batch_size());
  return functional::activate(logits, parts.folder.activation.value_or(Activation::Sigmoid));
}

void check_one(int64_t labels, const std::string& folder) {
  TORCH_CHECK_VALUE(labels == 1, kLoader, folder, ": a model that ranks must have one label. Got ",
                    labels);
}

// The tokens whose logits make the score: those of the folder, or yes and no.
std::vector<int64_t> tokens_of_score(const CrossEncoderFolder& folder, const Tokenizer& tokenizer) {
  if (folder.logit_score) {
    std::vector<int64_t> tokens = {folder.logit_score->true_token_id};
    if (folder.logit_score->false_token_id) tokens.push_back(*folder.logit_score->false_token_id);
    return tokens;
  }
  std::vector<int64_t> tokens;
  for (const char* word : {"yes", "no"}) {
    const auto id = tokenizer.token_to_id(word);
    TORCH_CHECK_VALUE(id, kLoader, folder.model,
                      ": the vocabulary must have the tokens yes and no, by which a causal "
                      "language model without a LogitScore answers. Got no token ",
                      word);
    tokens.push_back(*id);
  }
  return tokens;
}

void load_stages_of(RerankerParts& parts, const FreezeOptions& options, const LoadOptions& load) {
  const std::string& model = parts.folder.model;
  LoadReport report;
  parts.stages = load_sentence_stages({SentenceKind::CrossEncoder,
                                       {{{sentence::Task::None},
                                         sentence::FirstStage::Encoder,
                                         model,
                                         parts.folder.base,
                                         parts.folder.stages}}},
                                      LoadOptions(load).report(&report))
                     .front();
  check_one(parts.stages->width(), model);
  TORCH_CHECK_VALUE(!parts.stages->excludes_prompt(), kLoader, model,
                    ": include_prompt must be true in a model that ranks");
  parts.encoder = load_and_freeze_encoder(model, options, load);
  if (load.report() == nullptr) return;
  for (const std::string& name : report.loaded) load.report()->loaded.push_back("stages." + name);
  for (const std::string& name : report.unexpected) load.report()->unexpected.push_back(name);
}

// Whether an adapter has the head of a classifier, whatever its model is for.
bool adapter_classifies(const std::string& folder, const LoadOptions& load) {
  if (has_modules(folder)) return false;
  const AdaptedFolder place = adapted_folder("load_reranker", folder, load);
  return !place.options.adapters().empty() && inspect_head(folder, load) == head::Kind::Sequence;
}

}  // namespace
}  // namespace text

std::vector<RankedDocument> ranked_documents(const torch::Tensor& scores,
                                             std::optional<int64_t> top_k) {
  constexpr const char* kName = "[ranked_documents] ";
  TORCH_CHECK_VALUE(scores.dim() == 1, kName, "scores must be (N). Got ", scores.sizes());
  TORCH_CHECK_VALUE(!top_k || *top_k > 0, kName, "top_k must be positive. Got ", *top_k);
  const at::Tensor values = scores.detach().to(at::kCPU, at::kDouble).contiguous();
  const auto* const value = values.const_data_ptr<double>();
  std::vector<RankedDocument> all;
  all.reserve(static_cast<std::size_t>(values.numel()));
  for (int64_t i = 0; i < values.numel(); ++i) all.push_back({i, value[i]});
  const auto count = static_cast<std::ptrdiff_t>(
      std::min<int64_t>(top_k.value_or(values.numel()), values.numel()));
  const auto is_before = [](const RankedDocument& a, const RankedDocument& b) {
    const bool has_a = !std::isnan(a.score), has_b = !std::isnan(b.score);
    if (has_a != has_b) return has_a;
    return has_a && a.score != b.score ? a.score > b.score : a.corpus_id < b.corpus_id;
  };
  if (count == std::ssize(all)) {
    std::sort(all.begin(), all.end(), is_before);
  } else {
    std::partial_sort(all.begin(), all.begin() + count, all.end(), is_before);
  }
  all.resize(static_cast<std::size_t>(count));
  return all;
}

torch::Tensor Reranker::score(const std::vector<std::pair<std::string, std::string>>& pairs,
                              const RankOptions& options) const {
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenCall call(held->call);
  return text::scores_of(*held, pairs, options);
}

std::vector<RankedDocument> Reranker::rank(const std::string& query,
                                           const std::vector<std::string>& documents,
                                           const RankOptions& options) const {
  std::vector<text::TextPair> pairs;
  pairs.reserve(documents.size());
  for (const std::string& document : documents) pairs.emplace_back(query, document);
  return ranked_documents(score(pairs, options), options.top_k());
}

std::optional<int64_t> Reranker::max_seq_length() const { return parts_->max_length; }
const CrossEncoderFolder& Reranker::folder() const { return parts_->folder; }
const Tokenizer& Reranker::tokenizer() const { return parts_->tokenizer; }

bool is_reranker(const std::string& folder, const LoadOptions& load) {
  check_is_folder("is_reranker", folder);
  return inspect_sentence_kind(folder, load.base()) == SentenceKind::CrossEncoder ||
         text::adapter_classifies(folder, load);
}

Reranker load_reranker(const std::string& folder, const FreezeOptions& options,
                       const LoadOptions& load) {
  TORCH_CHECK_VALUE(is_reranker(folder, load), text::kLoader, folder,
                    ": must be a CrossEncoder, or a ...ForSequenceClassification or ...ForCausalLM "
                    "alone. Got a model that makes vectors, or one without a head");
  CrossEncoderFolder read = read_cross_encoder_folder(folder, load.base());
  if (text::adapter_classifies(folder, load)) read.is_causal = false;
  text::RerankerParts parts = {
      .folder = read,
      .tokenizer = Tokenizer::from_folder(read.tokenizer, read.do_lower_case),
      .call = {.threads = options.threads()}};
  parts.max_length = max_tokens_of_text(read.max_seq_length, parts.tokenizer.model_max_length(),
                                        read.max_positions);
  if (read.chat_template) parts.chat.emplace(*read.chat_template, parts.tokenizer);
  const auto rules_of = [&](const auto& model) {
    return text::row_rules(parts.tokenizer, model, parts.max_length);
  };
  if (read.is_causal) {
    parts.causal = load_token_logits("load_reranker", read.model,
                                     text::tokens_of_score(read, parts.tokenizer), options, load);
    parts.rules = rules_of(parts.causal->model.options().model());
  } else if (read.has_head()) {
    parts.classifier = load_and_freeze_classifier(read.model, options, load, head::Kind::Sequence);
    text::check_one(parts.classifier->options().head().outputs(), read.model);
    parts.rules = rules_of(parts.classifier->options());
  } else {
    text::load_stages_of(parts, options, load);
    parts.rules = rules_of(parts.encoder->options());
  }
  if (parts.chat) parts.rules.options.add_special_tokens(false);
  return Reranker(std::make_shared<const text::RerankerParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const Reranker& model) {
  const CrossEncoderFolder& folder = model.folder();
  return stream << "posenc::Reranker(causal=" << (folder.is_causal ? "true" : "false")
                << ", chat_template=" << (folder.chat_template ? "true" : "false") << ")";
}

}  // namespace posenc
