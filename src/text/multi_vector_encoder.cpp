#include "posenc/text/multi_vector_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isin.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <map>
#include <ostream>
#include <utility>

#include "models/sentence/stages/token_rows.h"
#include "posenc/models/functional/pooling.h"
#include "text/sentence/model.h"
#include "text/sentence/query_expansion.h"

namespace posenc {
namespace text {

using sentence::MultiVectorMask;
using sentence::Task;

// What texts of a task go through besides their model.
struct TokenRules {
  std::optional<Expansion> expansion;
  std::optional<MultiVectorMask> mask;
  at::Tensor skipped, kept;  // ids of tokens without vectors, and of those that alone have any
};

struct MultiVectorParts {
  std::shared_ptr<const SentenceModel> model;
  std::map<Task, TokenRules> rules;
  bool is_mean = false;  // of similarity()
};

namespace {

constexpr const char* kMultiVectorLoader = "load_multi_vector_encoder";

at::Tensor ids_or_none(const std::vector<int64_t>& ids) {
  return ids.empty() ? at::Tensor() : at::tensor(ids, at::kLong);
}

TokenRules rules_of(const SentenceRoute& route, const TaskModel& model, Task task) {
  TokenRules rules;
  const Tokenizer& tokenizer = model.first->tokenizer;
  if (task == Task::Query && route.query_expansion)
    rules.expansion.emplace(kMultiVectorLoader, *route.query_expansion, tokenizer,
                            model.first->encoder->options());
  for (const SentenceStageFolder& stage : route.stages)
    if (const auto* mask = std::get_if<MultiVectorMask>(&stage.stage)) rules.mask = *mask;
  if (!rules.mask) return rules;
  if (applies_to(rules.mask->skiplist_tasks, task)) {
    std::vector<int64_t> ids;
    for (const std::string& word : rules.mask->skiplist_words)
      if (const auto id = tokenizer.token_to_id(word)) ids.push_back(*id);
    rules.skipped = ids_or_none(ids);
  }
  if (task != Task::Query) rules.kept = ids_or_none(rules.mask->keep_only_token_ids);
  return rules;
}

// Which tokens have vectors, bool (B, L).
at::Tensor scored_tokens(const TokenRules& rules, const ModelBatch& batch) {
  at::Tensor scored = batch.inputs.attention_mask().ne(0);
  if (!rules.mask) return scored;
  if (batch.added.defined()) scored = scored.logical_or(batch.added);
  if (rules.skipped.defined())
    scored = scored.logical_and(at::isin(batch.ids, rules.skipped).logical_not());
  if (rules.kept.defined()) scored = scored.logical_and(at::isin(batch.ids, rules.kept));
  if (rules.mask->skips_first) scored.select(1, 0).fill_(false);
  return scored;
}

// A call of encode().
class TokenEncoding {
 public:
  TokenEncoding(const MultiVectorParts& parts, const MultiVectorEncodeOptions& options,
                std::size_t count)
      : options_(options),
        model_(parts.model->of(options.task())),
        rules_(parts.rules.at(options.task())),
        texts_(count) {}

  void add(const std::vector<std::string>& texts, const std::vector<int64_t>& indices) {
    const TextRows rows(model_.first->tokenizer, texts, model_.rules.options);
    rows.tell_cut(indices, options_.on_truncated());
    TokenBatch batch = rows.batch();
    at::Tensor added;
    if (rules_.expansion) {
      check_tokens(rows, indices);
      batch = rules_.expansion->apply(batch, added);
    }
    for (ModelBatch& part : model_batches(model_.rules, batch, kAllRows, added)) add(part, indices);
  }

  // All vectors, in the order of the texts.
  MultiVectors result() const {
    std::vector<int64_t> lengths;
    for (const at::Tensor& text : texts_) lengths.push_back(text.size(0));
    return {texts_.empty() ? at::empty({0, model_.stages->width()}, at::kFloat) : at::cat(texts_),
            at::tensor(lengths, at::kLong)};
  }

 private:
  // What is added to a text sees its tokens alone.
  void check_tokens(const TextRows& rows, const std::vector<int64_t>& indices) const {
    for (std::size_t i = 0; !rules_.expansion->rule.attend && i < rows.size(); ++i) {
      TORCH_CHECK_VALUE(!rows.row(i).is_empty(),
                        "[MultiVectorEncoder] a query must have a token, which those that are "
                        "added to it see. Got an empty text at index ",
                        indices[i]);
    }
  }

  void add(ModelBatch& part, const std::vector<int64_t>& indices) {
    if (part.added.defined() && !rules_.expansion->rule.attend) {
      const at::Tensor tokens = part.inputs.attention_mask().ne(0);
      part.inputs.attention_mask(tokens.logical_and(part.added.logical_not()))
          .computed_mask(part.added);
    }
    auto& stages = *model_.stages.ptr();
    part.inputs.output_hidden_states(stages.needs_hidden_states());
    const EncoderOutput out = model_.first->encoder->forward(part.ids, part.inputs);
    MultiVectors vectors = stages.forward_tokens(
        out.last_hidden_state, part.inputs.attention_mask(), scored_tokens(rules_, part),
        options_.task(), part.ids, out.hidden_states);
    if (options_.normalize()) vectors.embeddings = functional::l2_normalize(vectors.embeddings);
    if (options_.token_pooling())
      vectors = pool_tokens(*options_.token_pooling(), options_.task(), vectors);
    const at::Tensor lengths = vectors.lengths.contiguous();
    const auto* const length = lengths.const_data_ptr<int64_t>();
    int64_t begin = 0;
    for (std::size_t i = 0; i < part.rows.size(); ++i) {
      const auto text = static_cast<std::size_t>(indices[static_cast<std::size_t>(part.rows[i])]);
      texts_[text] = vectors.embeddings.narrow(0, begin, length[i]);
      begin += length[i];
    }
  }

  const MultiVectorEncodeOptions& options_;
  const TaskModel& model_;
  const TokenRules& rules_;
  std::vector<at::Tensor> texts_;  // the vectors of each
};

void check_pooling(const MultiVectorEncodeOptions& options) {
  if (!options.token_pooling()) return;
  TORCH_CHECK_VALUE(options.token_pooling()->factor >= 1.0,
                    "[MultiVectorEncoder] factor of token_pooling must be at least 1. Got ",
                    options.token_pooling()->factor);
  TORCH_CHECK_VALUE(options.token_pooling()->protected_tokens >= 0,
                    "[MultiVectorEncoder] protected_tokens of token_pooling must not be negative. "
                    "Got ",
                    options.token_pooling()->protected_tokens);
}

}  // namespace
}  // namespace text

MultiVectors MultiVectorEncoder::encode(const std::vector<std::string>& texts,
                                        const MultiVectorEncodeOptions& options) const {
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenCall call(held->model->call);
  text::check_positive("MultiVectorEncoder", "batch_size", options.batch_size());
  text::check_pooling(options);
  const std::string prompt = text::prompt_of("MultiVectorEncoder", options, held->model->folder);
  text::TokenEncoding encoding(*held, options, texts.size());
  text::each_batch(texts, options.batch_size(), prompt,
                   [&](const auto& indices, const auto& batch) { encoding.add(batch, indices); });
  return encoding.result();
}

MultiVectors MultiVectorEncoder::encode_query(const std::vector<std::string>& texts,
                                              MultiVectorEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Query));
}

MultiVectors MultiVectorEncoder::encode_document(const std::vector<std::string>& texts,
                                                 MultiVectorEncodeOptions options) const {
  return encode(texts, options.task(sentence::Task::Document));
}

torch::Tensor MultiVectorEncoder::similarity(const MultiVectors& queries,
                                             const MultiVectors& documents) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->model->call, inference::FrozenCall::Operations::Large);
  return functional::maxsim(queries, documents, functional::MaxSimOptions().mean(held->is_mean));
}

int64_t MultiVectorEncoder::width() const { return parts_->model->width(); }
std::optional<int64_t> MultiVectorEncoder::max_seq_length(sentence::Task task) const {
  return parts_->model->of(task).max_length;
}
const SentenceFolder& MultiVectorEncoder::folder() const { return parts_->model->folder; }
const Tokenizer& MultiVectorEncoder::tokenizer(sentence::Task task) const {
  return parts_->model->of(task).first->tokenizer;
}

MultiVectorEncoder load_multi_vector_encoder(const std::string& folder,
                                             const FreezeOptions& options,
                                             const LoadOptions& load) {
  SentenceFolder read = read_sentence_folder(folder, SentenceKind::MultiVector, load.base());
  for (const SentenceRoute& route : read.routes) {
    TORCH_CHECK_VALUE(route.first == sentence::FirstStage::Encoder, "[", text::kMultiVectorLoader,
                      "] ", folder, ": the first stage must be an encoder. Got another");
  }
  auto parts = std::make_shared<text::MultiVectorParts>();
  parts->model =
      text::load_sentence_model(text::kMultiVectorLoader, std::move(read), options, load);
  const SentenceFolder& own = parts->model->folder;
  for (const SentenceRoute& route : own.routes) {
    for (const SentenceStageFolder& stage : route.stages)  // which is not the encoder's
      if (load.report() != nullptr && !stage.prefix.empty())
        std::erase(load.report()->unexpected, stage.prefix + "weight");
  }
  for (const auto& [task, model] : parts->model->tasks)
    parts->rules.emplace(task, text::rules_of(own.route(task), model, task));
  parts->is_mean = own.similarity_fn_name == "meanmaxsim";
  return MultiVectorEncoder(std::move(parts));
}

std::ostream& operator<<(std::ostream& stream, const MultiVectorEncoder& model) {
  return stream << "posenc::MultiVectorEncoder(width=" << model.width() << ")";
}

}  // namespace posenc
