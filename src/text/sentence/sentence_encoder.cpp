#include "posenc/text/sentence_encoder.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/embedding_bag.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <numeric>
#include <ostream>
#include <utility>

#include "core/one_thread.h"
#include "posenc/functional/pooling.h"
#include "posenc/inference/frozen_encoder.h"

namespace posenc {
namespace text {

struct SentenceEncoderParts {
  SentenceFolder folder;
  Tokenizer tokenizer;
  std::optional<FrozenEncoder> encoder;  // nothing for a static embedding
  at::Tensor table;                      // of a static embedding
  SentenceStages stages{nullptr};
  std::optional<int64_t> max_length;
  TokenizerOptions tokenizer_options;
  std::map<std::string, int64_t> prompt_lengths;  // of the folder's prompts that are not pooled
  int64_t width = 0;
};

namespace {

constexpr const char* kEncode = "[SentenceEncoder] ";
constexpr int64_t kMeanBags = 1;  // at::embedding_bag's mode
constexpr int64_t kFewToPool = int64_t{1} << 19;

std::string prompt_of(const SentenceEncoderParts& parts, const SentenceEncodeOptions& options) {
  TORCH_CHECK_VALUE(!options.prompt() || !options.prompt_name(), kEncode,
                    "prompt and prompt_name must not both be set");
  if (options.prompt()) return *options.prompt();
  const auto& name =
      options.prompt_name() ? options.prompt_name() : parts.folder.default_prompt_name;
  return name ? named_prompt(parts.folder.prompts, *name) : "";
}

TokenizerOptions options_of_texts(const std::optional<int64_t>& max_length) {
  TokenizerOptions options;
  options.padding_side(tokenizer::Side::Right);  // as if each text were alone
  if (max_length) options.truncation(tokenizer::Truncation::LongestFirst).max_length(*max_length);
  return options;
}

// Whether an id is that of a token that the tokenizer names.
bool is_named_token(const Tokenizer& tokenizer, int64_t id) {
  for (const char* name : {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token",
                           "cls_token", "mask_token"}) {
    if (tokenizer.special_token_id(name) == id) return true;
  }
  return false;
}

// Tokens of the prompt alone, but for a special one at its end.
int64_t tokens_of_prompt(const SentenceEncoderParts& parts, const std::string& prompt) {
  if (prompt.empty() || !parts.stages->excludes_prompt()) return 0;
  const auto rows = parts.tokenizer.encode_one(prompt, std::nullopt, parts.tokenizer_options);
  const Encoding& row = rows.front();
  const auto length = static_cast<int64_t>(row.ids.size());
  const bool ends_specially = length > 0 && (row.special_tokens_mask.back() != 0 ||
                                             is_named_token(parts.tokenizer, row.ids.back()));
  return ends_specially ? length - 1 : length;
}

int64_t prompt_length(const SentenceEncoderParts& parts, const std::string& prompt) {
  const auto known = parts.prompt_lengths.find(prompt);
  return known != parts.prompt_lengths.end() ? known->second : tokens_of_prompt(parts, prompt);
}

void check_tokens(const SentenceEncoderParts& parts, const at::Tensor& mask,
                  const std::vector<int64_t>& order) {
  if (parts.stages->defines_empty()) return;
  const auto* is_token = mask.const_data_ptr<int64_t>();
  for (std::size_t i = 0; i < order.size(); ++i) {
    const bool has_token =
        mask.size(1) > 0 && is_token[static_cast<int64_t>(i) * mask.size(1)] != 0;
    TORCH_CHECK_VALUE(has_token, kEncode,
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
  // Beside other programs, threads would wait for each other longer than they pool.
  const OneThreadIfFew threads(out.last_hidden_state.numel(), kFewToPool);
  return stages.forward(out.last_hidden_state, mask, prompt, ids, out.hidden_states);
}

// Where tokens see padding, texts of one length are encoded at a time, without any.
at::Tensor encode_as_if_alone(const SentenceEncoderParts& parts, const at::Tensor& ids,
                              const EncoderInputs& inputs, const at::Tensor& mask, int64_t prompt) {
  if (!mask.defined() || !sees_padding(parts.encoder->options()))
    return encode_ids(parts, ids, inputs, mask, prompt);
  const at::Tensor lengths = mask.sum(1);
  const auto* length = lengths.const_data_ptr<int64_t>();
  std::map<int64_t, std::vector<int64_t>> rows_of;
  for (int64_t row = 0; row < ids.size(0); ++row) rows_of[length[row]].push_back(row);
  at::Tensor vectors;
  for (const auto& [count, rows] : rows_of) {
    const at::Tensor index = at::tensor(rows, at::kLong);
    const int64_t columns = std::max<int64_t>(count, 1);  // a text without tokens is all padding
    const auto own = [&](const at::Tensor& x) {
      return x.defined() ? x.index_select(0, index).narrow(1, 0, columns) : x;
    };
    const at::Tensor part =
        encode_ids(parts, own(ids), EncoderInputs().token_type_ids(own(inputs.token_type_ids())),
                   count == 0 ? own(mask) : at::Tensor(), prompt);
    if (!vectors.defined()) vectors = at::zeros({ids.size(0), part.size(1)});
    vectors.index_copy_(0, index, part);
  }
  return vectors;
}

at::Tensor encode_batch(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                        const std::vector<int64_t>& order, int64_t prompt) {
  TokenBatch batch = parts.tokenizer.encode(texts, parts.tokenizer_options);
  check_tokens(parts, batch.attention_mask, order);
  const auto rows = static_cast<int64_t>(texts.size());
  const bool is_empty = batch.input_ids.size(1) == 0;  // the encoder takes no sequence of none
  if (is_empty) {
    batch.input_ids = at::zeros({rows, 1}, at::kLong);
    batch.attention_mask = at::zeros({rows, 1}, at::kLong);
    batch.token_type_ids = at::Tensor();
  }
  EncoderInputs inputs;
  inputs.attention_mask(batch.attention_mask);
  if (batch.token_type_ids.defined() &&
      parts.encoder->options().embeddings()->type_vocab_size() > 0) {
    inputs.token_type_ids(batch.token_type_ids);
  }
  const bool is_full = rows == 1 && !is_empty;  // nothing is padded
  return encode_as_if_alone(parts, batch.input_ids, inputs,
                            is_full ? at::Tensor() : batch.attention_mask, prompt);
}

// The mean of the rows of each text's tokens, without special ones; zeros for a text without
// tokens.
at::Tensor encode_static(const SentenceEncoderParts& parts, const std::vector<std::string>& texts) {
  std::vector<int64_t> ids, offsets;
  for (const std::string& text : texts) {
    offsets.push_back(static_cast<int64_t>(ids.size()));
    const auto rows = parts.tokenizer.encode_one(text, std::nullopt, parts.tokenizer_options);
    ids.insert(ids.end(), rows.front().ids.begin(), rows.front().ids.end());
  }
  const auto bags =
      at::embedding_bag(parts.table, at::tensor(ids, at::kLong), at::tensor(offsets, at::kLong),
                        /*scale_grad_by_freq=*/false, kMeanBags);
  return parts.stages.ptr()->forward(std::get<0>(bags));
}

at::Tensor encode_texts(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                        const std::vector<int64_t>& order, int64_t prompt) {
  return parts.encoder ? encode_batch(parts, texts, order, prompt) : encode_static(parts, texts);
}

// Long texts first, so that those of a batch have about one length.
std::vector<int64_t> by_length(const std::vector<std::string>& texts) {
  std::vector<int64_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return texts[static_cast<std::size_t>(a)].size() > texts[static_cast<std::size_t>(b)].size();
  });
  return order;
}

at::Tensor encode_all(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                      const std::string& prompt, int64_t batch_size) {
  const int64_t excluded = prompt_length(parts, prompt);
  if (texts.size() == 1 && prompt.empty()) return encode_texts(parts, texts, {0}, excluded);
  const std::vector<int64_t> order = by_length(texts);
  const auto count = static_cast<int64_t>(texts.size());
  at::Tensor result = at::empty({count, parts.width}, at::kFloat);
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const std::vector<int64_t> part(order.begin() + begin,
                                    order.begin() + std::min(begin + batch_size, count));
    std::vector<std::string> batch;
    batch.reserve(part.size());
    for (const int64_t i : part) batch.push_back(prompt + texts[static_cast<std::size_t>(i)]);
    const at::Tensor vectors = encode_texts(parts, batch, part, excluded);
    result.index_copy_(0, at::tensor(part, at::kLong), vectors);
  }
  return result;
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
  const torch::NoGradGuard no_grad;
  const auto held = parts_;  // keeps it alive: another may be assigned to the handle meanwhile
  TORCH_CHECK_VALUE(options.batch_size() > 0, text::kEncode, "batch_size must be positive. Got ",
                    options.batch_size());
  const auto kept = options.truncate_dim() ? options.truncate_dim() : held->folder.truncate_dim;
  TORCH_CHECK_VALUE(!kept || *kept > 0, text::kEncode, "truncate_dim must be positive. Got ",
                    *kept);
  const std::string prompt = text::prompt_of(*held, options);
  at::Tensor vectors = text::encode_all(*held, texts, prompt, options.batch_size());
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
  const torch::NoGradGuard no_grad;
  const auto held = parts_;
  TORCH_CHECK_VALUE(held->encoder, text::kEncode,
                    "forward() must be called for a model with an encoder. Got a static embedding");
  return text::encode_ids(*held, ids, inputs, inputs.attention_mask(), prompt_length);
}

int64_t SentenceEncoder::width() const { return parts_->width; }
std::optional<int64_t> SentenceEncoder::max_seq_length() const { return parts_->max_length; }
const SentenceFolder& SentenceEncoder::folder() const { return parts_->folder; }
const Tokenizer& SentenceEncoder::tokenizer() const { return parts_->tokenizer; }

SentenceEncoder load_sentence_encoder(const std::string& folder, const FreezeOptions& options) {
  const SentenceFolder read = read_sentence_folder(folder);
  const bool converts = options.weights() != WeightDtype::Float32;
  TORCH_CHECK_VALUE(!read.is_static || (!converts && options.weights_to_not_convert().empty()),
                    "[load_sentence_encoder] weights must be float32, without exceptions, for a "
                    "static embedding, which is looked up and not frozen. Got ",
                    converts ? "another dtype" : "weights_to_not_convert");
  text::SentenceEncoderParts parts = {.folder = read,
                                      .tokenizer = text::tokenizer_in(read),
                                      .encoder = std::nullopt,
                                      .table = {},
                                      .max_length = std::nullopt,
                                      .tokenizer_options = {},
                                      .prompt_lengths = {}};
  parts.stages = load_sentence_stages(folder);
  parts.width = parts.stages->width();
  const auto own_length = parts.tokenizer.model_max_length();
  if (read.is_static) {
    parts.table = load_static_embedding(read.encoder);
    parts.max_length = own_length;  // of tokenizer.json
  } else {
    parts.encoder = freeze(load_encoder(read.encoder), options);
    parts.max_length = max_tokens_of_text(read.max_seq_length, own_length, read.max_positions);
  }
  parts.tokenizer_options = text::options_of_texts(parts.max_length);
  parts.tokenizer_options.add_special_tokens(!read.is_static);
  for (const auto& [name, prompt] : read.prompts) {
    parts.prompt_lengths.emplace(prompt, text::tokens_of_prompt(parts, prompt));
  }
  return SentenceEncoder(std::make_shared<const text::SentenceEncoderParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const SentenceEncoder& model) {
  return stream << "posenc::SentenceEncoder(width=" << model.width()
                << ", static=" << (model.folder().is_static ? "true" : "false") << ")";
}

}  // namespace posenc
