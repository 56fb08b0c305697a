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
};

namespace {

constexpr const char* kEncode = "[SentenceEncoder] ";
constexpr int64_t kMeanBags = 1;  // at::embedding_bag's mode

std::string prompt_of(const SentenceEncoderParts& parts, const SentenceEncodeOptions& options) {
  TORCH_CHECK_VALUE(!options.prompt() || !options.prompt_name(), kEncode,
                    "prompt and prompt_name must not both be set");
  if (options.prompt()) return *options.prompt();
  const auto& prompts = parts.folder.prompts;
  const auto name =
      options.prompt_name() ? options.prompt_name() : parts.folder.default_prompt_name;
  if (!name || name->empty()) return "";
  const auto found = prompts.find(*name);
  std::string known;
  for (const auto& [one, text] : prompts) known += (known.empty() ? "" : ", ") + one;
  TORCH_CHECK_VALUE(found != prompts.end(), kEncode, "prompt_name must be one of the folder's (",
                    known, "). Got ", *name);
  return found->second;
}

TokenizerOptions tokenizer_options(const SentenceEncoderParts& parts) {
  TokenizerOptions options;
  options.padding_side(tokenizer::Side::Right);  // as if each text were alone
  if (parts.max_length) {
    options.truncation(tokenizer::Truncation::LongestFirst).max_length(*parts.max_length);
  }
  return options;
}

// Tokens of the prompt alone, but for a special one at its end.
int64_t prompt_length(const SentenceEncoderParts& parts, const std::string& prompt) {
  if (prompt.empty() || !parts.stages->excludes_prompt()) return 0;
  const auto rows = parts.tokenizer.encode_one(prompt, std::nullopt, tokenizer_options(parts));
  const auto& mask = rows.front().special_tokens_mask;
  const auto length = static_cast<int64_t>(mask.size());
  return length > 0 && mask.back() != 0 ? length - 1 : length;
}

void check_tokens(const SentenceEncoderParts& parts, const at::Tensor& counts,
                  const std::vector<int64_t>& order) {
  if (parts.stages->defines_empty()) return;
  const auto* count = counts.const_data_ptr<int64_t>();
  for (std::size_t i = 0; i < order.size(); ++i) {
    TORCH_CHECK_VALUE(count[i] > 0, kEncode,
                      "a text must have a token: cls and max pooling have no vector for none. Got "
                      "an empty text at index ",
                      order[i]);
  }
}

at::Tensor hidden_of(const SentenceEncoderParts& parts, const at::Tensor& ids,
                     const EncoderInputs& inputs) {
  TORCH_CHECK_VALUE(parts.encoder, kEncode,
                    "forward() must be called for a model with an encoder. Got a static embedding");
  return parts.encoder->forward(ids, inputs).last_hidden_state;
}

// Where tokens see padding, texts of one length are encoded at a time, without any.
at::Tensor hidden_as_if_alone(const SentenceEncoderParts& parts, const at::Tensor& ids,
                              const EncoderInputs& inputs) {
  if (!sees_padding(parts.encoder->options())) return hidden_of(parts, ids, inputs);
  const at::Tensor lengths = inputs.attention_mask().sum(1);
  const auto* length = lengths.const_data_ptr<int64_t>();
  std::map<int64_t, std::vector<int64_t>> rows_of;
  for (int64_t row = 0; row < ids.size(0); ++row) rows_of[length[row]].push_back(row);
  at::Tensor hidden;
  for (const auto& [count, rows] : rows_of) {
    if (count == 0) continue;
    const at::Tensor index = at::tensor(rows, at::kLong);
    const auto own = [&, count = count](const at::Tensor& x) {
      return x.defined() ? x.index_select(0, index).narrow(1, 0, count) : x;
    };
    const at::Tensor part =
        hidden_of(parts, own(ids), EncoderInputs().token_type_ids(own(inputs.token_type_ids())));
    if (!hidden.defined()) hidden = at::zeros({ids.size(0), ids.size(1), part.size(2)});
    hidden.narrow(1, 0, count).index_copy_(0, index, part);
  }
  return hidden;
}

at::Tensor encode_batch(const SentenceEncoderParts& parts, const std::vector<std::string>& texts,
                        const std::vector<int64_t>& order, int64_t prompt) {
  const TokenBatch batch = parts.tokenizer.encode(texts, tokenizer_options(parts));
  check_tokens(parts, batch.attention_mask.sum(1), order);
  auto& stages = *parts.stages.ptr();
  if (batch.input_ids.size(1) == 0) {
    const auto rows = static_cast<int64_t>(texts.size());
    return stages.forward(at::zeros({rows, 1, stages.options.d_model()}),
                          at::zeros({rows, 1}, at::kLong), prompt);
  }
  EncoderInputs inputs;
  inputs.attention_mask(batch.attention_mask);
  if (batch.token_type_ids.defined() &&
      parts.encoder->options().embeddings()->type_vocab_size() > 0) {
    inputs.token_type_ids(batch.token_type_ids);
  }
  return stages.forward(hidden_as_if_alone(parts, batch.input_ids, inputs), batch.attention_mask,
                        prompt);
}

// The mean of the rows of each text's tokens; zeros for a text without tokens.
at::Tensor encode_static(const SentenceEncoderParts& parts, const std::vector<std::string>& texts) {
  std::vector<int64_t> ids, offsets;
  const auto options = TokenizerOptions().add_special_tokens(false);
  for (const std::string& text : texts) {
    offsets.push_back(static_cast<int64_t>(ids.size()));
    const auto rows = parts.tokenizer.encode_one(text, std::nullopt, options);
    ids.insert(ids.end(), rows.front().ids.begin(), rows.front().ids.end());
  }
  const auto bags =
      at::embedding_bag(parts.table, at::tensor(ids, at::kLong), at::tensor(offsets, at::kLong),
                        /*scale_grad_by_freq=*/false, kMeanBags);
  return parts.stages.ptr()->forward(std::get<0>(bags));
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
  const std::vector<int64_t> order = by_length(texts);
  const auto count = static_cast<int64_t>(texts.size());
  at::Tensor result = at::empty({count, parts.stages->width()}, at::kFloat);
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    const std::vector<int64_t> part(order.begin() + begin,
                                    order.begin() + std::min(begin + batch_size, count));
    std::vector<std::string> batch;
    batch.reserve(part.size());
    for (const int64_t i : part) batch.push_back(prompt + texts[static_cast<std::size_t>(i)]);
    const at::Tensor vectors =
        parts.encoder ? encode_batch(parts, batch, part, excluded) : encode_static(parts, batch);
    result.index_copy_(0, at::tensor(part, at::kLong), vectors);
  }
  return result;
}

std::optional<int64_t> longest(const SentenceFolder& folder, const Tokenizer& tokenizer) {
  if (folder.is_static) return std::nullopt;
  if (folder.max_seq_length) return folder.max_seq_length;
  const auto own = tokenizer.model_max_length();
  if (!own || !folder.max_positions) return own ? own : folder.max_positions;
  return std::min(*own, *folder.max_positions);
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

// Neither the default prompt nor others are theirs.
torch::Tensor SentenceEncoder::encode_query(const std::vector<std::string>& texts,
                                            SentenceEncodeOptions options) const {
  if (!options.prompt() && !options.prompt_name()) {
    options.prompt_name(folder().prompts.count("query") != 0 ? "query" : "");
  }
  return encode(texts, options);
}

torch::Tensor SentenceEncoder::encode_document(const std::vector<std::string>& texts,
                                               SentenceEncodeOptions options) const {
  if (!options.prompt() && !options.prompt_name()) {
    options.prompt_name(folder().prompts.count("document") != 0 ? "document" : "");
  }
  return encode(texts, options);
}

torch::Tensor SentenceEncoder::forward(const torch::Tensor& ids, const EncoderInputs& inputs,
                                       int64_t prompt_length) const {
  const torch::NoGradGuard no_grad;
  const auto held = parts_;
  return held->stages.ptr()->forward(text::hidden_of(*held, ids, inputs), inputs.attention_mask(),
                                     prompt_length);
}

int64_t SentenceEncoder::width() const { return parts_->stages->width(); }
std::optional<int64_t> SentenceEncoder::max_seq_length() const { return parts_->max_length; }
const SentenceFolder& SentenceEncoder::folder() const { return parts_->folder; }
const Tokenizer& SentenceEncoder::tokenizer() const { return parts_->tokenizer; }

SentenceEncoder load_sentence_encoder(const std::string& folder, const FreezeOptions& options) {
  const SentenceFolder read = read_sentence_folder(folder);
  text::SentenceEncoderParts parts = {.folder = read,
                                      .tokenizer = text::tokenizer_in(read),
                                      .encoder = std::nullopt,
                                      .table = {},
                                      .max_length = std::nullopt};
  parts.stages = load_sentence_stages(folder);
  if (read.is_static) {
    parts.table = load_static_embedding(read.encoder);
  } else {
    parts.encoder = freeze(load_encoder(read.encoder), options);
  }
  parts.max_length = text::longest(read, parts.tokenizer);
  return SentenceEncoder(std::make_shared<const text::SentenceEncoderParts>(std::move(parts)));
}

std::ostream& operator<<(std::ostream& stream, const SentenceEncoder& model) {
  return stream << "posenc::SentenceEncoder(width=" << model.width()
                << ", static=" << (model.folder().is_static ? "true" : "false") << ")";
}

}  // namespace posenc
