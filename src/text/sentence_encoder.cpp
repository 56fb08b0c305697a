#include "posenc/text/sentence_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <ostream>
#include <utility>

#include "inference/rows/frozen_call.h"
#include "posenc/models/frozen_file.h"
#include "posenc/models/functional/pooling.h"
#include "text/sentence/text_rows.h"

namespace posenc {
namespace text {

struct SentenceEncoderParts {
  SentenceFolder folder;
  Tokenizer tokenizer;
  std::optional<FrozenEncoder> encoder;  // nothing for a static embedding
  at::Tensor table;                      // of a static embedding
  SentenceStages stages{nullptr};
  std::optional<int64_t> max_length;
  RowRules rules;
  torch_internals::CallOptions call = {};
  std::map<std::string, int64_t> prompt_lengths;  // of the folder's prompts that are not pooled
  int64_t width = 0;
};

namespace {

constexpr const char* kEncode = "[SentenceEncoder] ";
constexpr int64_t kMeanBags = 1;  // at::embedding_bag's mode
constexpr int64_t kAllRows = INT64_MAX;

// What a static embedding is given.
RowRules static_rules(const std::optional<int64_t>& max_length) {
  RowRules rules;
  rules.options.add_special_tokens(false);
  if (max_length)
    rules.options.truncation(tokenizer::Truncation::LongestFirst).max_length(*max_length);
  return rules;
}

// Tokens of the prompt alone, but for a special one at its end: whatever the template adds there
// counts unless the tokenizer calls it special, as in sentence-transformers.
int64_t tokens_of_prompt(const SentenceEncoderParts& parts, const std::string& prompt) {
  if (prompt.empty() || !parts.stages->excludes_prompt()) return 0;
  const auto ids = parts.tokenizer.encode_ids(prompt, std::nullopt, parts.rules.options);
  const auto special = parts.tokenizer.special_token_ids();
  const bool ends_specially =
      !ids.empty() && std::find(special.begin(), special.end(), ids.back()) != special.end();
  return static_cast<int64_t>(ids.size()) - (ends_specially ? 1 : 0);
}

int64_t prompt_length(const SentenceEncoderParts& parts, const std::string& prompt) {
  const auto known = parts.prompt_lengths.find(prompt);
  return known != parts.prompt_lengths.end() ? known->second : tokens_of_prompt(parts, prompt);
}

void check_tokens(const SentenceEncoderParts& parts, const TextRows& rows,
                  const std::vector<int64_t>& order) {
  if (parts.stages->defines_empty()) return;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    TORCH_CHECK_VALUE(!rows.row(i).is_empty(), kEncode,
                      "a text must have a token: cls and max pooling have no vector for none. Got "
                      "an empty text at index ",
                      order[i]);
  }
}

// The vectors of ids, of which the encoder must be there.
at::Tensor encode_ids(const SentenceEncoderParts& parts, const at::Tensor& ids,
                      const EncoderInputs& given, const at::Tensor& mask, int64_t prompt) {
  auto& stages = *parts.stages.ptr();
  EncoderInputs inputs = given;
  if (stages.needs_hidden_states()) inputs.output_hidden_states(true);
  const EncoderOutput out = parts.encoder->forward(ids, inputs);
  const inference::BesideModel pooling(out.last_hidden_state.numel());
  return stages.forward(out.last_hidden_state, mask, prompt, ids, out.hidden_states);
}

at::Tensor encode_batch(const SentenceEncoderParts& parts, const TextRows& rows,
                        const std::vector<int64_t>& order, int64_t prompt) {
  check_tokens(parts, rows, order);
  at::Tensor vectors;
  for (const ModelBatch& batch : model_batches(parts.rules, rows.batch(), kAllRows)) {
    const at::Tensor own = encode_ids(parts, batch.ids, batch.inputs, batch.mask, prompt);
    if (batch.rows.size() == rows.size()) return own;
    if (!vectors.defined())
      vectors = at::empty({static_cast<int64_t>(rows.size()), own.size(1)}, at::kFloat);
    const inference::BesideModel copying(own.numel());
    vectors.index_copy_(0, at::tensor(batch.rows, at::kLong), own);
  }
  return vectors;
}

// The mean of the rows of each text's tokens, without special ones; zeros for a text without
// tokens.
at::Tensor encode_static(const SentenceEncoderParts& parts, const TextRows& rows) {
  std::vector<int64_t> ids, offsets;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TextRows::Row row = rows.row(i);
    offsets.push_back(static_cast<int64_t>(ids.size()));
    const auto begin = row.tokens.ids.begin();
    ids.insert(ids.end(), begin + static_cast<std::ptrdiff_t>(row.begin),
               begin + static_cast<std::ptrdiff_t>(row.end));
  }
  const inference::BesideModel pooling(static_cast<int64_t>(ids.size()) * parts.width);
  const auto bags =
      at::embedding_bag(parts.table, at::tensor(ids, at::kLong), at::tensor(offsets, at::kLong),
                        /*scale_grad_by_freq=*/false, kMeanBags);
  return parts.stages.ptr()->forward(std::get<0>(bags));
}

at::Tensor encode_texts(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                        const std::vector<int64_t>& order, int64_t prompt,
                        const std::function<void(int64_t)>& on_truncated) {
  const TextRows rows(parts.tokenizer, texts, parts.rules.options);
  rows.tell_cut(order, on_truncated);
  return parts.encoder ? encode_batch(parts, rows, order, prompt) : encode_static(parts, rows);
}

at::Tensor encode_all(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                      const std::string& prompt, const SentenceEncodeOptions& options) {
  const int64_t excluded = prompt_length(parts, prompt);
  if (texts.size() == 1 && prompt.empty())
    return encode_texts(parts, texts, {0}, excluded, options.on_truncated());
  at::Tensor result = at::empty({static_cast<int64_t>(texts.size()), parts.width}, at::kFloat);
  each_batch(texts, options.batch_size(), [&](const auto& indices, auto& batch) {
    for (std::string& text : batch) text.insert(0, prompt);
    const at::Tensor own = encode_texts(parts, batch, indices, excluded, options.on_truncated());
    const inference::BesideModel copying(own.numel());
    result.index_copy_(0, at::tensor(indices, at::kLong), own);
  });
  return result;
}

// The names of the parts are those of the modules, `encoder` and `stages`.
LoadReport together(LoadReport encoder, const LoadReport& stages) {
  for (auto* names : {&encoder.loaded, &encoder.missing, &encoder.cast})
    for (std::string& name : *names) name = "encoder." + name;
  for (const std::string& name : stages.loaded) encoder.loaded.push_back("stages." + name);
  for (const std::string& name : stages.unexpected) encoder.unexpected.push_back(name);
  return encoder;
}

Tokenizer tokenizer_in(const SentenceFolder& folder) {
  if (!folder.is_static) return Tokenizer::from_folder(folder.tokenizer, folder.do_lower_case);
  return Tokenizer::from_file(
      (std::filesystem::path(folder.tokenizer) / "tokenizer.json").string());
}

}  // namespace
}  // namespace text

torch::Tensor SentenceEncoder::encode(const std::vector<std::string>& texts,
                                      const SentenceEncodeOptions& options) const {
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  const inference::FrozenCall call(held->call);
  TORCH_CHECK_VALUE(options.batch_size() > 0, text::kEncode, "batch_size must be positive. Got ",
                    options.batch_size());
  const auto kept = options.truncate_dim() ? options.truncate_dim() : held->folder.truncate_dim;
  TORCH_CHECK_VALUE(!kept || *kept > 0, text::kEncode, "truncate_dim must be positive. Got ",
                    *kept);
  const std::string prompt = text::prompt_of("SentenceEncoder", options, held->folder);
  at::Tensor vectors = text::encode_all(*held, texts, prompt, options);
  const inference::BesideModel finishing(vectors.numel());
  if (kept && *kept < vectors.size(1)) vectors = vectors.narrow(1, 0, *kept).contiguous();
  return options.normalize() ? functional::l2_normalize(vectors) : vectors;
}

// Every folder has these prompts, so that neither the default nor others are theirs.
torch::Tensor SentenceEncoder::encode_query(const std::vector<std::string>& texts,
                                            SentenceEncodeOptions options) const {
  if (!options.prompt() && !options.prompt_name()) options.prompt_name("query");
  return encode(texts, options);
}

torch::Tensor SentenceEncoder::encode_document(const std::vector<std::string>& texts,
                                               SentenceEncodeOptions options) const {
  if (!options.prompt() && !options.prompt_name()) options.prompt_name("document");
  return encode(texts, options);
}

torch::Tensor SentenceEncoder::forward(const torch::Tensor& ids, const EncoderInputs& inputs,
                                       int64_t prompt_length) const {
  const auto held = parts_;
  const inference::FrozenCall call(held->call);
  TORCH_CHECK_VALUE(held->encoder, text::kEncode,
                    "forward() must be called for a model with an encoder. Got a static embedding");
  return text::encode_ids(*held, ids, inputs, inputs.attention_mask(), prompt_length);
}

int64_t SentenceEncoder::width() const { return parts_->width; }
std::optional<int64_t> SentenceEncoder::max_seq_length() const { return parts_->max_length; }
const SentenceFolder& SentenceEncoder::folder() const { return parts_->folder; }
const Tokenizer& SentenceEncoder::tokenizer() const { return parts_->tokenizer; }

SentenceEncoder load_sentence_encoder(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load) {
  const SentenceFolder read = read_sentence_folder(folder);
  const bool converts =
      options.weights() != WeightDtype::Float32 || options.compute() != ComputeDtype::Float32;
  TORCH_CHECK_VALUE(!read.is_static || (!converts && options.weights_to_not_convert().empty()),
                    "[load_sentence_encoder] weights must be float32, without exceptions, for a "
                    "static embedding, which is looked up and not frozen. Got ",
                    converts ? "another dtype" : "weights_to_not_convert");
  text::SentenceEncoderParts parts = {.folder = read,
                                      .tokenizer = text::tokenizer_in(read),
                                      .encoder = std::nullopt,
                                      .table = {},
                                      .max_length = std::nullopt,
                                      .rules = {},
                                      .call = {.threads = options.threads()},
                                      .prompt_lengths = {}};
  LoadReport of_stages, of_encoder;
  parts.stages = load_sentence_stages(folder, LoadOptions(load).report(&of_stages));
  parts.width = parts.stages->width();
  const auto own_length = parts.tokenizer.model_max_length();
  if (read.is_static) {
    parts.table = load_static_embedding(read.encoder, LoadOptions(load).report(&of_encoder));
    parts.max_length = own_length;  // of tokenizer.json
    parts.rules = text::static_rules(parts.max_length);
  } else {
    parts.encoder =
        load_and_freeze_encoder(read.encoder, options, LoadOptions(load).report(&of_encoder));
    parts.max_length = max_tokens_of_text(read.max_seq_length, own_length, read.max_positions);
    parts.rules = text::row_rules(parts.tokenizer, parts.encoder->options(), parts.max_length);
  }
  if (load.report() != nullptr) *load.report() = text::together(of_encoder, of_stages);
  for (const auto& [name, prompt] : read.prompts)
    parts.prompt_lengths.emplace(prompt, text::tokens_of_prompt(parts, prompt));
  return SentenceEncoder(std::make_shared<const text::SentenceEncoderParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const SentenceEncoder& model) {
  return stream << "posenc::SentenceEncoder(width=" << model.width()
                << ", static=" << (model.folder().is_static ? "true" : "false") << ")";
}

}  // namespace posenc
