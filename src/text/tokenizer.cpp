#include "posenc/text/tokenizer.h"

#include <ATen/Parallel.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <limits>

#include "text/loaded_tokenizer.h"
#include "text/stream_state.h"
#include "text/token_batch.h"

namespace posenc {
namespace {

using text::EncodedRows;

constexpr int64_t kPart = 32;  // texts that a thread encodes at a time

// Encodes texts in parts of their own, in parallel. The error of the first text that has one is
// thrown.
template <typename Encode>
std::vector<EncodedRows> encode_parts(std::size_t texts, Encode&& encode) {
  const auto count = (static_cast<int64_t>(texts) + kPart - 1) / kPart;
  std::vector<EncodedRows> parts(static_cast<std::size_t>(count));
  std::vector<std::exception_ptr> errors(parts.size());
  at::parallel_for(0, count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t part = begin; part < end; ++part) {
      const auto index = static_cast<std::size_t>(part);
      const std::size_t last = std::min(texts, static_cast<std::size_t>((part + 1) * kPart));
      try {
        for (auto i = static_cast<std::size_t>(part * kPart); i < last; ++i)
          encode(i, parts[index]);
      } catch (...) {
        errors[index] = std::current_exception();
      }
    }
  });
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return parts;
}

uint32_t checked_id(int64_t id) {
  TORCH_CHECK_VALUE(id >= 0 && id <= std::numeric_limits<uint32_t>::max(),
                    "[Tokenizer] ids must lie in [0, 2^32). Got ", id);
  return static_cast<uint32_t>(id);
}

std::string decode_ids(const text::LoadedTokenizer& tokenizer, const int64_t* ids, int64_t count,
                       bool skip_special_tokens) {
  std::vector<uint32_t> checked;
  checked.reserve(static_cast<std::size_t>(count));
  for (int64_t i = 0; i < count; ++i) checked.push_back(checked_id(ids[i]));
  return tokenizer.decode(checked, skip_special_tokens);
}

EncodedRows encode_alone(const text::LoadedTokenizer& tokenizer, std::string_view text,
                         std::optional<std::string_view> pair, const text::EncodeRequest& request) {
  EncodedRows rows;
  tokenizer.machine().encode(text, pair, request, 0, rows);
  return rows;
}

Encoding encoding_of(EncodedRows& rows, std::size_t row) {
  Encoding encoding;
  for (std::size_t i = rows.begin(row); i < rows.ends[row]; ++i) {
    encoding.ids.push_back(rows.ids[i]);
    encoding.tokens.push_back(std::move(rows.tokens[i]));
    encoding.type_ids.push_back(rows.type_ids[i]);
    if (!rows.offsets.empty())
      encoding.offsets.emplace_back(rows.offsets[i].begin, rows.offsets[i].end);
    encoding.special_tokens_mask.push_back(rows.special_tokens_mask[i]);
  }
  return encoding;
}

// A text or a pair that is no part of a batch.
EncodedRows encode_alone(const text::LoadedTokenizer& tokenizer, std::string_view text,
                         std::optional<std::string_view> pair, const text::EncodeRequest& request) {
  const std::string& infill = tokenizer.settings().infill_token;
  TORCH_CHECK_VALUE(pair || infill.empty() || text.find(infill) == std::string_view::npos,
                    "[Tokenizer] a single text must not have ", infill,
                    ", at which CodeLlamaTokenizer would fill in");
  EncodedRows rows;
  tokenizer.machine().encode(text, pair, request, 0, rows);
  return rows;
}

}  // namespace

Tokenizer Tokenizer::from_folder(const std::string& folder, bool lowercases_first) {
  return Tokenizer(text::LoadedTokenizer::from_folder(folder, lowercases_first));
}

Tokenizer Tokenizer::from_file(const std::string& path) {
  return Tokenizer(text::LoadedTokenizer::from_file(path));
}

TokenBatch Tokenizer::encode(const std::vector<std::string>& texts,
                             const TokenizerOptions& options) const {
  const text::EncodeRequest request = text::request_of(*loaded_, options);
  const auto parts = encode_parts(texts.size(), [&](std::size_t i, EncodedRows& rows) {
    loaded_->machine().encode(texts[i], std::nullopt, request, i, rows);
  });
  return text::token_batch(*loaded_, parts, options);
}

TokenBatch Tokenizer::encode_pairs(const std::vector<std::pair<std::string, std::string>>& pairs,
                                   const TokenizerOptions& options) const {
  const text::EncodeRequest request = text::request_of(*loaded_, options);
  const auto parts = encode_parts(pairs.size(), [&](std::size_t i, EncodedRows& rows) {
    loaded_->machine().encode(pairs[i].first, pairs[i].second, request, i, rows);
  });
  return text::token_batch(*loaded_, parts, options);
}

std::vector<Encoding> Tokenizer::encode_one(std::string_view text,
                                            std::optional<std::string_view> pair,
                                            const TokenizerOptions& options) const {
  text::EncodeRequest request = text::request_of(*loaded_, options);
  request.wanted = {loaded_->machine().has_offsets(), true};
  EncodedRows rows = encode_alone(*loaded_, text, pair, request);
  std::vector<Encoding> encodings;
  for (std::size_t row = 0; row < rows.ends.size(); ++row)
    encodings.push_back(encoding_of(rows, row));
  return encodings;
}

std::vector<int64_t> Tokenizer::encode_ids(std::string_view text,
                                           std::optional<std::string_view> pair,
                                           const TokenizerOptions& options) const {
  text::EncodeRequest request = text::request_of(*loaded_, options);
  request.wanted = {};
  request.overflow = false;
  const EncodedRows rows = encode_alone(*loaded_, text, pair, request);
  return {rows.ids.begin(), rows.ids.end()};
}

std::string Tokenizer::decode(const torch::Tensor& ids, bool skip_special_tokens) const {
  TORCH_CHECK_VALUE(ids.defined() && ids.dim() == 1, "[Tokenizer] ids must be (L). Got ",
                    ids.defined() ? ids.dim() : 0, " dimensions");
  TORCH_CHECK_TYPE(at::isIntegralType(ids.scalar_type(), /*includeBool=*/false),
                   "[Tokenizer] ids must be integers. Got ", ids.scalar_type());
  const at::Tensor list = ids.to(at::kCPU, at::kLong).contiguous();
  return decode_ids(*loaded_, list.const_data_ptr<int64_t>(), list.numel(), skip_special_tokens);
}

std::string Tokenizer::decode(const std::vector<int64_t>& ids, bool skip_special_tokens) const {
  return decode_ids(*loaded_, ids.data(), static_cast<int64_t>(ids.size()), skip_special_tokens);
}

DecodeStream Tokenizer::decode_stream(bool skip_special_tokens) const {
  // As in transformers, a stream has the tokenizer's text, without what decode() does to the whole.
  const std::shared_ptr<const text::TextMachine> machine(loaded_, &loaded_->machine());
  return DecodeStream(std::make_shared<text::StreamState>(machine, skip_special_tokens));
}

std::optional<int64_t> Tokenizer::token_to_id(std::string_view token) const {
  return loaded_->machine().token_to_id(token);
}

std::optional<std::string> Tokenizer::id_to_token(int64_t id) const {
  if (id < 0 || id > std::numeric_limits<uint32_t>::max()) return std::nullopt;
  return loaded_->machine().id_to_token(static_cast<uint32_t>(id));
}

int64_t Tokenizer::vocab_size() const {
  return static_cast<int64_t>(loaded_->machine().vocab_size());
}

bool Tokenizer::has_offsets() const { return loaded_->machine().has_offsets(); }

std::optional<int64_t> Tokenizer::model_max_length() const {
  return loaded_->settings().model_max_length;
}

std::optional<int64_t> Tokenizer::special_token_id(std::string_view name) const {
  return loaded_->special_token_id(name);
}

std::optional<std::string> DecodeStream::step(int64_t id) { return state_->step(checked_id(id)); }

}  // namespace posenc
