#include "text/token_batch.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <exception>
#include <limits>

namespace posenc::text {
namespace {

using tokenizer::Padding;
using tokenizer::Side;
using tokenizer::Truncation;

std::size_t max_length_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options,
                          const char* why) {
  const auto length =
      options.max_length() ? options.max_length() : tokenizer.settings().model_max_length;
  TORCH_CHECK_VALUE(length.has_value(), "[Tokenizer] `max_length` must be given for ", why,
                    ": the tokenizer has no model_max_length");
  TORCH_CHECK_VALUE(*length >= 0, "[Tokenizer] `max_length` must not be negative. Got ", *length);
  return static_cast<std::size_t>(*length);
}

std::size_t pad_length_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options) {
  const auto& length = options.pad_length();
  if (!length) return max_length_of(tokenizer, options, "padding to a length");
  TORCH_CHECK_VALUE(*length >= 0, "[Tokenizer] `pad_length` must not be negative. Got ", *length);
  return static_cast<std::size_t>(*length);
}

bool is_left(const std::optional<Side>& side, bool left_of_folder) {
  return side ? *side == Side::Left : left_of_folder;
}

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

// What the rows of a batch share.
struct Layout {
  int64_t rows = 0, width = 0;
  bool on_left = false;
  bool has_types = false;
  int64_t pad_id = 0, pad_type = 0;
};

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
    TORCH_CHECK_VALUE(shortest >= longest,
                      "[Tokenizer] without `padding`, texts must have one number of tokens. Got ",
                      shortest, " and ", longest);
    return static_cast<int64_t>(width);
  }
  if (options.padding() == Padding::Length) {
    width = pad_length_of(tokenizer, options);
    // What is longer stays as it is, as in the package, whose rows then have several lengths.
    if (longest > rounded() && shortest == longest) return static_cast<int64_t>(longest);
    TORCH_CHECK_VALUE(longest <= rounded(), "[Tokenizer] texts must have at most `",
                      options.pad_length() ? "pad_length" : "max_length", "` tokens, ", width,
                      ", or all one number, where they are not truncated. Got ", longest);
  }
  width = rounded();
  TORCH_CHECK_VALUE(
      shortest >= width || tokenizer.padding() || options.pad_id() || !needs_padding_token,
      "[Tokenizer] texts must have one number of tokens: the tokenizer has no padding token, and "
      "`pad_id` is not set. Got ",
      shortest, " and a batch of ", width);
  return static_cast<int64_t>(width);
}

class BatchWriter {
 public:
  BatchWriter(const Layout& layout, bool with_offsets) : layout_(layout) {
    const auto type = at::TensorOptions().dtype(at::kLong);
    batch_.input_ids = at::empty({layout.rows, layout.width}, type);
    batch_.attention_mask = at::empty({layout.rows, layout.width}, type);
    batch_.token_type_ids = at::empty({layout.rows, layout.width}, type);
    batch_.row_texts = at::empty({layout.rows}, type);
    if (with_offsets) batch_.offsets = at::empty({layout.rows, layout.width, 2}, type);
    ids_ = batch_.input_ids.mutable_data_ptr<int64_t>();
    mask_ = batch_.attention_mask.mutable_data_ptr<int64_t>();
    types_ = batch_.token_type_ids.mutable_data_ptr<int64_t>();
    texts_ = batch_.row_texts.mutable_data_ptr<int64_t>();
    offsets_ = with_offsets ? batch_.offsets.mutable_data_ptr<int64_t>() : nullptr;
  }

  void add(const EncodedRows& part, std::size_t row) {
    const std::size_t begin = part.begin(row), end = part.ends[row];
    const int64_t missing = layout_.width - static_cast<int64_t>(end - begin);
    if (layout_.on_left) pad(missing);
    for (std::size_t i = begin; i < end; ++i) {
      *ids_++ = part.ids[i];
      *mask_++ = 1;
      *types_++ = layout_.has_types ? part.type_ids[i] : 0;
      if (offsets_ != nullptr) {
        *offsets_++ = part.offsets[i].begin;
        *offsets_++ = part.offsets[i].end;
      }
    }
    if (!layout_.on_left) pad(missing);
    *texts_++ = static_cast<int64_t>(part.texts[row]);
  }

  TokenBatch batch() { return std::move(batch_); }

 private:
  void pad(int64_t count) {
    ids_ = std::fill_n(ids_, count, layout_.pad_id);
    mask_ = std::fill_n(mask_, count, 0);
    types_ = std::fill_n(types_, count, layout_.has_types ? layout_.pad_type : 0);
    if (offsets_ != nullptr) offsets_ = std::fill_n(offsets_, 2 * count, 0);
  }

  Layout layout_;
  TokenBatch batch_;
  int64_t *ids_, *mask_, *types_, *texts_, *offsets_;
};

}  // namespace

EncodeRequest request_of(const LoadedTokenizer& tokenizer, const TokenizerOptions& options) {
  TORCH_CHECK_VALUE(options.pad_to_multiple_of() > 0,
                    "[Tokenizer] `pad_to_multiple_of` must be positive. Got ",
                    options.pad_to_multiple_of());
  TORCH_CHECK_VALUE(options.stride() >= 0, "[Tokenizer] `stride` must not be negative. Got ",
                    options.stride());
  if (const auto& id = options.pad_id()) {
    TORCH_CHECK_VALUE(*id >= 0 && *id <= std::numeric_limits<uint32_t>::max(),
                      "[Tokenizer] `pad_id` must lie in [0, 2^32). Got ", *id);
  }
  EncodeRequest request;
  request.add_special_tokens = options.add_special_tokens();
  request.overflow = options.overflow();
  request.target = options.target();
  request.wanted.places = options.offsets();
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

std::vector<EncodedRows> encode_rows(const LoadedTokenizer& tokenizer,
                                     const std::vector<std::string>& texts,
                                     const EncodeRequest& request) {
  return encode_parts(texts.size(), [&](std::size_t i, EncodedRows& rows) {
    tokenizer.machine().encode(texts[i], std::nullopt, request, i, rows);
  });
}

std::vector<EncodedRows> encode_rows(const LoadedTokenizer& tokenizer,
                                     const std::vector<std::pair<std::string, std::string>>& pairs,
                                     const EncodeRequest& request) {
  return encode_parts(pairs.size(), [&](std::size_t i, EncodedRows& rows) {
    tokenizer.machine().encode(pairs[i].first, pairs[i].second, request, i, rows);
  });
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

TokenBatch token_batch(const LoadedTokenizer& tokenizer, const std::vector<EncodedRows>& parts,
                       const TokenizerOptions& options, bool needs_padding_token) {
  Layout layout;
  for (const EncodedRows& part : parts) layout.rows += static_cast<int64_t>(part.ends.size());
  TORCH_CHECK_VALUE(layout.rows > 0, "[Tokenizer] at least one text must be given. Got 0");
  layout.width = width_of(tokenizer, parts, options, needs_padding_token);
  layout.on_left = is_left(options.padding_side(), tokenizer.settings().pads_left);
  layout.has_types = tokenizer.has_types();
  const auto padding = tokenizer.padding().value_or(LoadedTokenizer::Padding{});
  layout.pad_id = options.pad_id().value_or(padding.id);
  layout.pad_type = padding.type_id;
  BatchWriter writer(layout, options.offsets());
  for (const EncodedRows& part : parts) {
    for (std::size_t row = 0; row < part.ends.size(); ++row) writer.add(part, row);
  }
  return writer.batch();
}

}  // namespace posenc::text
