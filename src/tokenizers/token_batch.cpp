#include "tokenizers/token_batch.h"

#include <algorithm>
#include <exception>
#include <limits>

#include "base/check.h"
#include "base/platform/helpers.h"

namespace posenc::text {
namespace {

using tokenizer::Padding;
using tokenizer::Side;
using tokenizer::Truncation;

std::size_t max_length_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options,
                          const char* why) {
  const auto length =
      options.max_length() ? options.max_length() : tokenizer.settings().model_max_length;
  base::throw_unless(length.has_value(), "[Tokenizer] `max_length` must be given for ", why,
                     ": the tokenizer has no model_max_length");
  base::throw_unless(*length >= 0, "[Tokenizer] `max_length` must not be negative. Got ", *length);
  return static_cast<std::size_t>(*length);
}

std::size_t pad_length_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options) {
  const auto& length = options.pad_length();
  if (!length) return max_length_of(tokenizer, options, "padding to a length");
  base::throw_unless(*length >= 0, "[Tokenizer] `pad_length` must not be negative. Got ", *length);
  return static_cast<std::size_t>(*length);
}

bool is_left(const std::optional<Side>& side, bool left_of_folder) {
  return side ? *side == Side::Left : left_of_folder;
}

constexpr std::size_t kPart = 32;       // texts that a thread encodes at a time
constexpr std::size_t kMostAlone = 64;  // texts for which no other thread is asked

int threads_of(const TokenizerOptions& options) {
  constexpr int64_t kMost = std::numeric_limits<int>::max();
  return static_cast<int>(std::min(options.threads().value_or(kMost), kMost));
}

// Encodes texts in parts of their own, on several threads. The error of the first text that has one
// is thrown.
template <typename Encode>
std::vector<EncodedRows> encode_parts(std::size_t texts, int threads, Encode&& encode) {
  std::vector<EncodedRows> parts((texts + kPart - 1) / kPart);
  if (parts.size() == 1) {  // as for most calls
    for (std::size_t i = 0; i < texts; ++i) encode(i, parts.front());
    return parts;
  }
  std::vector<std::exception_ptr> errors(parts.size());
  auto encode_part = [&](std::size_t part) {
    try {
      for (std::size_t i = part * kPart; i < std::min(texts, (part + 1) * kPart); ++i)
        encode(i, parts[part]);
    } catch (...) {
      errors[part] = std::current_exception();
    }
  };
  const auto run_part = [](void* context, int64_t part) {
    (*static_cast<decltype(encode_part)*>(context))(static_cast<std::size_t>(part));
  };
  platform::helpers().run({run_part, &encode_part, static_cast<int64_t>(parts.size())},
                          texts > kMostAlone ? threads : 1);
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
  return parts;
}

int64_t width_of(const LoadedTokenizer& tokenizer, const std::vector<EncodedRows>& parts,
                 const TokenizerOptions& options, bool needs_padding_token) {
  std::size_t longest = 0, shortest = SIZE_MAX;
  for (const EncodedRows& part : parts) {
    for (std::size_t row = 0; row < part.ends.size(); ++row) {
      longest = std::max(longest, part.length(row));
      shortest = std::min(shortest, part.length(row));
    }
  }
  std::size_t width = longest;
  const auto multiple = static_cast<std::size_t>(options.pad_to_multiple_of());
  const auto rounded = [&] { return (width + multiple - 1) / multiple * multiple; };
  if (options.padding() == Padding::None) {
    base::throw_unless(shortest >= longest,
                       "[Tokenizer] without `padding`, texts must have one number of tokens. Got ",
                       shortest, " and ", longest);
    return static_cast<int64_t>(width);
  }
  if (options.padding() == Padding::Length) {
    width = pad_length_of(tokenizer, options);
    // What is longer stays as it is, as in the package, whose rows then have several lengths.
    if (longest > rounded() && shortest == longest) return static_cast<int64_t>(longest);
    base::throw_unless(longest <= rounded(), "[Tokenizer] texts must have at most `",
                       options.pad_length() ? "pad_length" : "max_length", "` tokens, ", width,
                       ", or all one number, where they are not truncated. Got ", longest);
  }
  width = rounded();
  base::throw_unless(
      shortest >= width || tokenizer.padding() || options.pad_id() || !needs_padding_token,
      "[Tokenizer] texts must have one number of tokens: the tokenizer has no padding token, and "
      "`pad_id` is not set. Got ",
      shortest, " and a batch of ", width);
  return static_cast<int64_t>(width);
}

}  // namespace

EncodeRequest request_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options) {
  base::throw_unless(options.pad_to_multiple_of() > 0,
                     "[Tokenizer] `pad_to_multiple_of` must be positive. Got ",
                     options.pad_to_multiple_of());
  if (const auto& threads = options.threads())
    base::throw_unless(*threads > 0, "[Tokenizer] `threads` must be positive. Got ", *threads);
  base::throw_unless(options.stride() >= 0, "[Tokenizer] `stride` must not be negative. Got ",
                     options.stride());
  if (const auto& id = options.pad_id()) {
    base::throw_unless(*id >= 0 && *id <= std::numeric_limits<uint32_t>::max(),
                       "[Tokenizer] `pad_id` must lie in [0, 2^32). Got ", *id);
  }
  EncodeRequest request;
  request.add_special_tokens = options.add_special_tokens();
  request.overflow = options.overflow();
  request.target = options.target();
  if (options.truncation() == Truncation::None) return request;
  TruncationRule rule;
  rule.max_length = max_length_of(tokenizer, options, "truncation");
  rule.stride = static_cast<std::size_t>(options.stride());
  rule.from_left = is_left(options.truncation_side(), tokenizer.settings().truncates_left);
  rule.strategy =
      options.truncation() == Truncation::OnlyFirst    ? TruncationRule::Strategy::OnlyFirst
      : options.truncation() == Truncation::OnlySecond ? TruncationRule::Strategy::OnlySecond
                                                       : TruncationRule::Strategy::LongestFirst;
  request.truncation = rule;
  return request;
}

TokenizerOptions own_options(const LoadedTokenizer& tokenizer) {
  TokenizerOptions options;
  if (const auto& rule = tokenizer.own_padding()) {
    if (rule->length)
      options.padding(Padding::Length).pad_length(static_cast<int64_t>(*rule->length));
    options.pad_to_multiple_of(
        static_cast<int64_t>(std::max<uint64_t>(1, rule->multiple.value_or(1))));
  }
  if (const auto& rule = tokenizer.own_truncation()) {
    using Strategy = TruncationRule::Strategy;
    options
        .truncation(rule->strategy == Strategy::OnlyFirst    ? Truncation::OnlyFirst
                    : rule->strategy == Strategy::OnlySecond ? Truncation::OnlySecond
                                                             : Truncation::LongestFirst)
        .max_length(static_cast<int64_t>(rule->max_length))
        .stride(static_cast<int64_t>(rule->stride));
  }
  return options;
}

std::shared_ptr<const EncodedBatchParts> encode_batch(const LoadedTokenizer& tokenizer,
                                                      const std::vector<std::string_view>& texts,
                                                      const std::vector<std::string_view>& seconds,
                                                      const TokenizerOptions& options,
                                                      const BatchRequest& asked) {
  EncodeRequest request = request_of(tokenizer, options);
  request.requested = asked.requested;
  base::throw_unless(!texts.empty(), "[Tokenizer] at least one text must be given. Got 0");
  base::throw_unless(seconds.empty() || seconds.size() == texts.size(),
                     "[Tokenizer] second texts must be as many as first ones, ", texts.size(),
                     ". Got ", seconds.size());
  auto batch = std::make_shared<EncodedBatchParts>();
  batch->parts =
      encode_parts(texts.size(), threads_of(options), [&](std::size_t i, EncodedRows& rows) {
        const auto second = seconds.empty() ? std::nullopt : std::optional(seconds[i]);
        tokenizer.pipeline().encode(texts[i], second, request, i, rows);
      });
  int64_t rows = 0;
  for (const EncodedRows& part : batch->parts)
    batch->ends.push_back(rows += static_cast<int64_t>(part.ends.size()));
  batch->requested = asked.requested;
  batch->width = width_of(tokenizer, batch->parts, options, asked.needs_padding_token);
  batch->on_left = is_left(options.padding_side(), tokenizer.settings().pads_left);
  batch->has_types = tokenizer.has_types();
  const auto padding = tokenizer.padding().value_or(LoadedTokenizer::Padding{});
  batch->pad_id = options.pad_id().value_or(padding.id);
  batch->pad_type = padding.type_id;
  if (asked.requested.tokens)
    batch->pad_token =
        tokenizer.pipeline().id_to_token(static_cast<uint32_t>(batch->pad_id)).value_or("");
  return batch;
}

}  // namespace posenc::text

namespace posenc::tokenizers {
namespace {

using text::EncodedBatchParts;
using text::EncodedRows;

// Writes an array with `size` numbers for each token: `add` writes those of token `i` of a part.
template <typename Add>
void write_tokens(const EncodedBatchParts& batch, int64_t size, int64_t padding, int64_t* into,
                  Add&& add) {
  if (into == nullptr) return;
  for (const EncodedRows& rows : batch.parts) {
    std::size_t begin = 0;
    for (const std::size_t end : rows.ends) {
      const int64_t missing = size * (batch.width - static_cast<int64_t>(end - begin));
      if (batch.on_left) into = std::fill_n(into, missing, padding);
      for (; begin < end; ++begin, into += size) add(rows, begin, into);
      if (!batch.on_left) into = std::fill_n(into, missing, padding);
    }
  }
}

}  // namespace

int64_t EncodedBatch::rows() const { return parts_->ends.back(); }

int64_t EncodedBatch::columns() const { return parts_->width; }

bool EncodedBatch::has_offsets() const { return parts_->requested.offsets; }

void EncodedBatch::write(const BatchMemory& into) const {
  const EncodedBatchParts& batch = *parts_;
  base::throw_unless(into.offsets == nullptr || has_offsets(),
                     "[EncodedBatch] offsets must be asked for: TokenizerOptions().offsets(true)");
  write_tokens(batch, 1, batch.pad_id, into.ids,
               [](const EncodedRows& rows, std::size_t i, int64_t* to) { *to = rows.ids[i]; });
  write_tokens(batch, 1, 0, into.attention_mask,
               [](const EncodedRows&, std::size_t, int64_t* to) { *to = 1; });
  const bool has_types = batch.has_types;
  write_tokens(batch, 1, has_types ? batch.pad_type : 0, into.type_ids,
               [has_types](const EncodedRows& rows, std::size_t i, int64_t* to) {
                 *to = has_types ? rows.type_ids[i] : 0;
               });
  write_tokens(batch, 1, 1, into.special_tokens_mask,
               [](const EncodedRows& rows, std::size_t i, int64_t* to) {
                 *to = rows.special_tokens_mask[i];
               });
  write_tokens(batch, 2, 0, into.offsets, [](const EncodedRows& rows, std::size_t i, int64_t* to) {
    to[0] = rows.offsets[i].begin;
    to[1] = rows.offsets[i].end;
  });
  if (into.row_texts == nullptr) return;
  int64_t* to = into.row_texts;
  for (const EncodedRows& rows : batch.parts)
    to = std::copy(rows.texts.begin(), rows.texts.end(), to);
}

std::string EncodedBatch::token(int64_t row, int64_t column) const {
  const EncodedBatchParts& batch = *parts_;
  base::throw_unless(batch.requested.tokens,
                     "[EncodedBatch] tokens must be asked for: TokenizerOptions().tokens(true)");
  base::throw_unless(row >= 0 && row < rows() && column >= 0 && column < columns(),
                     "[EncodedBatch] a token must lie in ", rows(), " rows of ", columns(),
                     ". Got row ", row, ", column ", column);
  const auto index =
      std::upper_bound(batch.ends.begin(), batch.ends.end(), row) - batch.ends.begin();
  const EncodedRows& part = batch.parts[static_cast<std::size_t>(index)];
  const auto own = part.ends.size() -
                   static_cast<std::size_t>(batch.ends[static_cast<std::size_t>(index)] - row);
  const auto length = static_cast<int64_t>(part.length(own));
  if (batch.on_left) column -= batch.width - length;
  if (column < 0 || column >= length) return batch.pad_token;
  return part.tokens[part.begin(own) + static_cast<std::size_t>(column)];
}

}  // namespace posenc::tokenizers
