// The C interface.
//
// posenc-budget: one short function each

#include "posenc/tokenizers/c_api.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/check.h"
#include "posenc/tokenizers/tokenizer.h"
#include "tokenizers/c_guard.h"

struct posenc_tokenizer {
  posenc::tokenizers::Tokenizer tokenizer;
};

struct posenc_encoding {
  std::size_t rows = 0, columns = 0;
  std::vector<int64_t> ids, mask, type_ids, special_mask, row_texts, offsets;
  std::vector<std::string> tokens;
};

struct posenc_stream {
  posenc::DecodeStream stream;
  std::string text;  // what the last call has returned
};

namespace posenc::text {
namespace {

using base::throw_unless;

template <typename Pointer>
Pointer required(const char* function, const char* name, Pointer pointer) {
  throw_unless(pointer != nullptr, "[", function, "] `", name, "` must not be null");
  return pointer;
}

std::string_view view_of(const char* function, const char* name, const posenc_text& text) {
  throw_unless(text.bytes != nullptr || text.size == 0, "[", function, "] `", name,
               "` must not be null unless its size is 0. Got ", text.size, " bytes");
  return text.size == 0 ? std::string_view() : std::string_view(text.bytes, text.size);
}

std::vector<std::string_view> views_of(const char* name, const posenc_text* texts,
                                       std::size_t count) {
  std::vector<std::string_view> views;
  if (texts == nullptr) return views;
  views.reserve(count);
  for (std::size_t i = 0; i < count; ++i) views.push_back(view_of("posenc_encode", name, texts[i]));
  return views;
}

// A copy that posenc_text_free() frees.
char* copy_of(const std::string& text) {
  auto* const copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

void return_text(const std::string& text, char** into, std::size_t* size) {
  *into = copy_of(text);
  if (size != nullptr) *size = text.size();
}

// The value of an option that has enumerators [0, count); nothing for -1.
std::optional<int32_t> choice(const char* name, int32_t value, int32_t count) {
  throw_unless(value >= -1 && value < count, "[posenc_encode] `", name, "` must be from -1 to ",
               count - 1, ". Got ", value);
  return value < 0 ? std::nullopt : std::optional(value);
}

std::optional<int64_t> number(const char* name, int64_t value, int64_t least) {
  throw_unless(value == -1 || value >= least, "[posenc_encode] `", name,
               "` must be -1 or at least ", least, ". Got ", value);
  return value < 0 ? std::nullopt : std::optional(value);
}

TokenizerOptions options_of(const tokenizers::Tokenizer& tokenizer,
                            const posenc_encode_options* given) {
  TokenizerOptions options = tokenizer.own_options();
  if (given == nullptr) return options;
  constexpr std::size_t kSize = sizeof(posenc_encode_options);
  throw_unless(given->size == kSize, "[posenc_encode] `options` must be a struct of ", kSize,
               " bytes, which posenc_encode_options_init() begins. Got ", given->size);
  using tokenizer::Padding;
  using tokenizer::Side;
  using tokenizer::Truncation;
  const auto flag = [](const char* name, int32_t value) { return choice(name, value, 2); };
  const auto side = [](int32_t value) { return value == POSENC_LEFT ? Side::Left : Side::Right; };
  if (const auto x = flag("add_special_tokens", given->add_special_tokens))
    options.add_special_tokens(*x == 1);
  if (const auto x = choice("padding", given->padding, 3)) {
    options.pad_length(std::nullopt)
        .padding(*x == POSENC_PAD_NONE      ? Padding::None
                 : *x == POSENC_PAD_LONGEST ? Padding::Longest
                                            : Padding::Length);
  }
  if (const auto x = choice("truncation", given->truncation, 4)) {
    options.truncation(*x == POSENC_CUT_NONE            ? Truncation::None
                       : *x == POSENC_CUT_LONGEST_FIRST ? Truncation::LongestFirst
                       : *x == POSENC_CUT_FIRST         ? Truncation::OnlyFirst
                                                        : Truncation::OnlySecond);
  }
  if (const auto x = flag("padding_side", given->padding_side)) options.padding_side(side(*x));
  if (const auto x = flag("truncation_side", given->truncation_side))
    options.truncation_side(side(*x));
  options.overflow(flag("overflow", given->overflow) == 1)
      .target(flag("target", given->target) == 1)
      .offsets(flag("offsets", given->offsets) == 1)
      .tokens(flag("tokens", given->tokens) == 1)
      .threads(number("threads", given->threads, 1));
  if (const auto x = number("max_length", given->max_length, 0)) options.max_length(x);
  if (const auto x = number("pad_to_multiple_of", given->pad_to_multiple_of, 1))
    options.pad_to_multiple_of(*x);
  if (const auto x = number("stride", given->stride, 0)) options.stride(*x);
  return options;
}

std::unique_ptr<posenc_encoding> encoding_of(const tokenizers::EncodedBatch& batch,
                                             bool has_tokens) {
  auto encoding = std::make_unique<posenc_encoding>();
  encoding->rows = static_cast<std::size_t>(batch.rows());
  encoding->columns = static_cast<std::size_t>(batch.columns());
  constexpr std::size_t kMost = SIZE_MAX / (2 * sizeof(int64_t));  // offsets are two numbers each
  if (encoding->columns > 0 && encoding->rows > kMost / encoding->columns) throw std::bad_alloc();
  const std::size_t slots = encoding->rows * encoding->columns;
  for (auto* const list :
       {&encoding->ids, &encoding->mask, &encoding->type_ids, &encoding->special_mask})
    list->resize(slots);
  encoding->row_texts.resize(encoding->rows);
  if (batch.has_offsets()) encoding->offsets.resize(2 * slots);
  tokenizers::BatchMemory memory;
  memory.ids = encoding->ids.data();
  memory.attention_mask = encoding->mask.data();
  memory.type_ids = encoding->type_ids.data();
  memory.special_tokens_mask = encoding->special_mask.data();
  memory.row_texts = encoding->row_texts.data();
  if (batch.has_offsets()) memory.offsets = encoding->offsets.data();
  batch.write(memory);
  if (!has_tokens) return encoding;
  encoding->tokens.reserve(slots);
  for (int64_t row = 0; row < batch.rows(); ++row) {
    for (int64_t column = 0; column < batch.columns(); ++column)
      encoding->tokens.push_back(batch.token(row, column));
  }
  return encoding;
}

template <typename Make>
posenc_status make_tokenizer(const char* function, posenc_tokenizer** out, Make&& make) {
  return guarded([&] {
    required(function, "out", out);
    *out = new posenc_tokenizer{make()};
  });
}

posenc_text text_of(const std::string& text) { return {text.c_str(), text.size()}; }

// What a function that cannot fail returns, or `otherwise` for null and where it runs out of
// memory.
template <typename Handle, typename Read>
auto read_of(const Handle* handle, decltype(std::declval<Read>()(*handle)) otherwise,
             Read&& read) noexcept {
  if (handle == nullptr) return otherwise;
  try {
    return read(*handle);
  } catch (...) {
    return otherwise;
  }
}

const int64_t* numbers_of(const posenc_encoding* encoding,
                          std::vector<int64_t> posenc_encoding::*list) {
  return encoding == nullptr || (encoding->*list).empty() ? nullptr : (encoding->*list).data();
}

}  // namespace

std::string& last_error() {
  thread_local std::string message;
  return message;
}

posenc_status failed(posenc_status status, const char* message) noexcept {
  try {
    last_error() = message;
  } catch (...) {  // there is no memory for it
    last_error().clear();
  }
  return status;
}

}  // namespace posenc::text

using namespace posenc;
using namespace posenc::text;

int32_t posenc_tokenizers_abi(void) { return 1; }

const char* posenc_last_error(void) { return last_error().c_str(); }

posenc_status posenc_tokenizer_from_folder(const char* path, posenc_tokenizer** out) {
  return make_tokenizer(__func__, out, [&] {
    return tokenizers::Tokenizer::from_folder(
        required("posenc_tokenizer_from_folder", "path", path));
  });
}

posenc_status posenc_tokenizer_from_file(const char* path, posenc_tokenizer** out) {
  return make_tokenizer(__func__, out, [&] {
    return tokenizers::Tokenizer::from_file(required("posenc_tokenizer_from_file", "path", path));
  });
}

posenc_status posenc_tokenizer_from_memory(const posenc_file* files, size_t count,
                                           posenc_tokenizer** out) {
  const char* const function = __func__;
  return make_tokenizer(function, out, [&] {
    throw_unless(count > 0, "[", function, "] at least one file must be given. Got 0");
    required(function, "files", files);
    std::vector<std::pair<std::string, std::string_view>> all;
    for (std::size_t i = 0; i < count; ++i)
      all.emplace_back(required(function, "name", files[i].name),
                       view_of(function, "content", files[i].content));
    return tokenizers::Tokenizer::from_memory(all);
  });
}

void posenc_tokenizer_free(posenc_tokenizer* tokenizer) { delete tokenizer; }

void posenc_encode_options_init(posenc_encode_options* options, size_t size) {
  if (options == nullptr) return;
  const posenc_encode_options unset = {size, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
  std::memcpy(options, &unset, std::min(size, sizeof(unset)));
}

posenc_status posenc_encode(const posenc_tokenizer* tokenizer, const posenc_text* texts,
                            const posenc_text* pairs, size_t count,
                            const posenc_encode_options* options, posenc_encoding** out) {
  const char* const function = __func__;
  return guarded([&] {
    const tokenizers::Tokenizer& own = required(function, "tokenizer", tokenizer)->tokenizer;
    required(function, "out", out);
    if (count > 0) required(function, "texts", texts);
    const TokenizerOptions asked = options_of(own, options);
    *out = encoding_of(own.encode_views(views_of("texts", texts, count),
                                        views_of("pairs", pairs, count), asked),
                       asked.tokens())
               .release();
  });
}

size_t posenc_encoding_rows(const posenc_encoding* encoding) {
  return encoding == nullptr ? 0 : encoding->rows;
}

size_t posenc_encoding_columns(const posenc_encoding* encoding) {
  return encoding == nullptr ? 0 : encoding->columns;
}

const int64_t* posenc_encoding_ids(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::ids);
}

const int64_t* posenc_encoding_mask(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::mask);
}

const int64_t* posenc_encoding_type_ids(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::type_ids);
}

const int64_t* posenc_encoding_special_mask(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::special_mask);
}

const int64_t* posenc_encoding_row_texts(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::row_texts);
}

const int64_t* posenc_encoding_offsets(const posenc_encoding* encoding) {
  return numbers_of(encoding, &posenc_encoding::offsets);
}

posenc_text posenc_encoding_token(const posenc_encoding* encoding, size_t row, size_t column) {
  if (encoding == nullptr || encoding->tokens.empty() || row >= encoding->rows ||
      column >= encoding->columns)
    return {nullptr, 0};
  return text_of(encoding->tokens[row * encoding->columns + column]);
}

void posenc_encoding_free(posenc_encoding* encoding) { delete encoding; }

posenc_status posenc_decode(const posenc_tokenizer* tokenizer, const int64_t* ids, size_t count,
                            int32_t skip_special_tokens, char** text, size_t* size) {
  const char* const function = __func__;
  return guarded([&] {
    required(function, "tokenizer", tokenizer);
    required(function, "text", text);
    if (count > 0) required(function, "ids", ids);
    std::vector<int64_t> list;
    if (count > list.max_size()) throw std::bad_alloc();  // `ids + count` would be another address
    if (count > 0) list.assign(ids, ids + count);
    return_text(tokenizer->tokenizer.decode(list, skip_special_tokens != 0), text, size);
  });
}

void posenc_text_free(char* text) { std::free(text); }

posenc_status posenc_stream_new(const posenc_tokenizer* tokenizer, int32_t skip_special_tokens,
                                posenc_stream** out) {
  const char* const function = __func__;
  return guarded([&] {
    required(function, "tokenizer", tokenizer);
    required(function, "out", out);
    *out = new posenc_stream{tokenizer->tokenizer.decode_stream(skip_special_tokens != 0), {}};
  });
}

posenc_status posenc_stream_step(posenc_stream* stream, int64_t id, posenc_text* out) {
  const char* const function = __func__;
  return guarded([&] {
    required(function, "stream", stream);
    required(function, "out", out);
    stream->text = stream->stream.step(id).value_or("");
    *out = text_of(stream->text);
  });
}

posenc_status posenc_stream_end(posenc_stream* stream, posenc_text* out) {
  const char* const function = __func__;
  return guarded([&] {
    required(function, "stream", stream);
    required(function, "out", out);
    stream->text = stream->stream.end();
    *out = text_of(stream->text);
  });
}

void posenc_stream_free(posenc_stream* stream) { delete stream; }

int64_t posenc_token_to_id(const posenc_tokenizer* tokenizer, posenc_text token) {
  return read_of(tokenizer, int64_t{-1}, [&](const posenc_tokenizer& own) -> int64_t {
    return own.tokenizer.token_to_id(view_of("posenc_token_to_id", "token", token)).value_or(-1);
  });
}

int64_t posenc_special_token_id(const posenc_tokenizer* tokenizer, const char* name) {
  return read_of(tokenizer, int64_t{-1}, [&](const posenc_tokenizer& own) -> int64_t {
    return name == nullptr ? -1 : own.tokenizer.special_token_id(name).value_or(-1);
  });
}

posenc_status posenc_id_to_token(const posenc_tokenizer* tokenizer, int64_t id, char** text,
                                 size_t* size) {
  const char* const function = __func__;
  return guarded([&] {
    required(function, "tokenizer", tokenizer);
    required(function, "text", text);
    const auto token = tokenizer->tokenizer.id_to_token(id);
    throw_unless(token.has_value(), "[", function, "] `id` must be that of a token. Got ", id);
    return_text(*token, text, size);
  });
}

int64_t posenc_vocab_size(const posenc_tokenizer* tokenizer) {
  return read_of(tokenizer, int64_t{-1},
                 [](const posenc_tokenizer& own) { return own.tokenizer.vocab_size(); });
}

int64_t posenc_model_max_length(const posenc_tokenizer* tokenizer) {
  return read_of(tokenizer, int64_t{-1}, [](const posenc_tokenizer& own) -> int64_t {
    return own.tokenizer.model_max_length().value_or(-1);
  });
}
