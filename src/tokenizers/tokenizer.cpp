#include "posenc/tokenizers/tokenizer.h"

#include <algorithm>
#include <limits>

#include "base/check.h"
#include "tokenizers/loaded_tokenizer.h"
#include "tokenizers/pipeline/character_bytes.h"
#include "tokenizers/pipeline/stream_state.h"
#include "tokenizers/token_batch.h"

namespace posenc {
namespace text {
namespace {

uint32_t checked_id(int64_t id) {
  base::throw_unless(id >= 0 && id <= std::numeric_limits<uint32_t>::max(),
                     "[Tokenizer] ids must lie in [0, 2^32). Got ", id);
  return static_cast<uint32_t>(id);
}

}  // namespace
}  // namespace text

namespace tokenizers {
namespace {

using text::EncodedRows;

std::vector<std::string_view> views_of(const std::vector<std::string>& texts) {
  return {texts.begin(), texts.end()};
}

text::BatchRequest request_for(const TokenizerOptions& options) {
  return {.requested = {.offsets = options.offsets(), .tokens = options.tokens()}};
}

Encoding encoding_of(EncodedRows& rows, std::size_t row,
                     const std::vector<text::CharacterBytes>& texts) {
  Encoding encoding;
  for (std::size_t i = rows.begin(row); i < rows.ends[row]; ++i) {
    encoding.ids.push_back(rows.ids[i]);
    encoding.tokens.push_back(std::move(rows.tokens[i]));
    encoding.type_ids.push_back(rows.type_ids[i]);
    if (!rows.offsets.empty()) {
      const auto [begin, end] = rows.offsets[i];
      encoding.offsets.emplace_back(begin, end);
      if (rows.sequences[i] < 0) {
        encoding.byte_offsets.emplace_back(0, 0);
      } else {
        const text::CharacterBytes& own = texts[static_cast<std::size_t>(rows.sequences[i])];
        encoding.byte_offsets.emplace_back(own(begin), own(end));
      }
    }
    encoding.special_tokens_mask.push_back(rows.special_tokens_mask[i]);
  }
  return encoding;
}

// A text or a pair that is no part of a batch.
EncodedRows encode_alone(const text::LoadedTokenizer& tokenizer, std::string_view text,
                         std::optional<std::string_view> pair, const text::EncodeRequest& request) {
  const std::string& infill = tokenizer.settings().infill_token;
  base::throw_unless(pair || infill.empty() || text.find(infill) == std::string_view::npos,
                     "[Tokenizer] a single text must not have ", infill,
                     ", at which CodeLlamaTokenizer would fill in");
  EncodedRows rows;
  tokenizer.pipeline().encode(text, pair, request, 0, rows);
  return rows;
}

}  // namespace

Tokenizer Tokenizer::from_folder(const std::string& folder, bool lowercases_first,
                                 const std::vector<std::string>& special_tokens) {
  return Tokenizer(text::LoadedTokenizer::from_folder(folder, {lowercases_first, special_tokens}));
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  return Tokenizer(text::LoadedTokenizer::from_file(path));
}

Tokenizer Tokenizer::from_memory(
    const std::vector<std::pair<std::string, std::string_view>>& files) {
  return Tokenizer(text::LoadedTokenizer::from_memory(files));
}

EncodedBatch Tokenizer::encode_rows(const std::vector<std::string_view>& texts,
                                    const std::vector<std::string_view>& seconds,
                                    const TokenizerOptions& options,
                                    const text::BatchRequest& request) const {
  return EncodedBatch(text::encode_batch(*loaded_, texts, seconds, options, request));
}

EncodedBatch Tokenizer::encode(const std::vector<std::string>& texts,
                               const TokenizerOptions& options) const {
  return encode_rows(views_of(texts), {}, options, request_for(options));
}

EncodedBatch Tokenizer::encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                     const TokenizerOptions& options) const {
  std::vector<std::string_view> texts, seconds;
  texts.reserve(pairs.size());
  seconds.reserve(pairs.size());
  for (const auto& [first, second] : pairs) {
    texts.emplace_back(first);
    seconds.emplace_back(second);
  }
  return encode_rows(texts, seconds, options, request_for(options));
}

EncodedBatch Tokenizer::encode_views(const std::vector<std::string_view>& texts,
                                     const std::vector<std::string_view>& seconds,
                                     const TokenizerOptions& options) const {
  return encode_rows(texts, seconds, options, request_for(options));
}

std::vector<Encoding> Tokenizer::encode_one(std::string_view text,
                                            std::optional<std::string_view> pair,
                                            const TokenizerOptions& options) const {
  text::EncodeRequest request = text::request_of(*loaded_, options);
  const bool has_offsets = loaded_->pipeline().has_offsets();
  request.requested = {.offsets = has_offsets, .tokens = true, .words = has_offsets};
  EncodedRows rows = encode_alone(*loaded_, text, pair, request);
  std::vector<text::CharacterBytes> texts = {text::CharacterBytes(text)};
  if (pair) texts.emplace_back(*pair);
  std::vector<Encoding> encodings;
  for (std::size_t row = 0; row < rows.ends.size(); ++row)
    encodings.push_back(encoding_of(rows, row, texts));
  return encodings;
}

std::vector<int64_t> Tokenizer::encode_ids(std::string_view text,
                                           std::optional<std::string_view> pair,
                                           const TokenizerOptions& options) const {
  text::EncodeRequest request = text::request_of(*loaded_, options);
  request.requested = {};
  request.overflow = false;
  const EncodedRows rows = encode_alone(*loaded_, text, pair, request);
  return {rows.ids.begin(), rows.ids.end()};
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids, bool skip_special_tokens) const {
  std::vector<uint32_t> checked;
  checked.reserve(ids.size());
  for (const int64_t id : ids) checked.push_back(text::checked_id(id));
  return loaded_->decode(checked, skip_special_tokens);
}

DecodeStream Tokenizer::decode_stream(bool skip_special_tokens) const {
  // As in transformers, a stream has the tokenizer's text, without what decode() does to the whole.
  const std::shared_ptr<const text::TextPipeline> pipeline(loaded_, &loaded_->pipeline());
  return DecodeStream(std::make_shared<text::StreamState>(pipeline, skip_special_tokens));
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  return loaded_->pipeline().token_to_id(token);
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  if (id < 0 || id > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return loaded_->pipeline().id_to_token(static_cast<uint32_t>(id));
}

std::string Tokenizer::token_bytes(int64_t id) const {
  if (id < 0 || id > std::numeric_limits<uint32_t>::max()) return {};
  return text::token_bytes(loaded_, static_cast<uint32_t>(id));
}

int64_t Tokenizer::vocab_size() const {
  return static_cast<int64_t>(loaded_->pipeline().vocab_size());
}

bool Tokenizer::has_types() const { return loaded_->has_types(); }

bool Tokenizer::pads_left() const { return loaded_->settings().pads_left; }

bool Tokenizer::has_offsets() const { return loaded_->pipeline().has_offsets(); }

std::optional<int64_t> Tokenizer::model_max_length() const {
  return loaded_->settings().model_max_length;
}

std::optional<int64_t> Tokenizer::special_token_id(std::string_view name) const {
  return loaded_->special_token_id(name);
}

std::map<std::string, std::string> Tokenizer::special_tokens_map() const {
  const auto& named = loaded_->settings().special_tokens;
  return {named.begin(), named.end()};
}

std::vector<int64_t> Tokenizer::special_token_ids() const {
  const std::vector<uint32_t> ids = loaded_->special_token_ids();
  return {ids.begin(), ids.end()};
}

TokenizerOptions Tokenizer::own_options() const { return text::own_options(*loaded_); }

}  // namespace tokenizers

std::optional<std::string> DecodeStream::step(int64_t id) {
  return state_->step(text::checked_id(id));
}

std::string DecodeStream::end() { return state_->end(); }

}  // namespace posenc
