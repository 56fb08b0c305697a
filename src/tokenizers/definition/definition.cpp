#include "tokenizers/definition/definition.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/definition/component.h"
#include "tokenizers/definition/json_cursor.h"

namespace posenc::text {
namespace {

using nlohmann::json;

constexpr std::size_t kLongest = 1'000'000'000;  // in bytes; offsets are 32 bits wide
constexpr std::size_t kStringBlock = 1 << 16;

AddedToken added_token(const json& entry) {
  const Component token("added_tokens", entry);
  const uint64_t id = token.number("id");
  if (id > UINT32_MAX) token.refuse("id", "below 2^32");
  return {token.string("content"),
          token.boolean("single_word"),
          token.boolean("lstrip"),
          token.boolean("rstrip"),
          token.boolean("normalized"),
          token.boolean("special"),
          id};
}

JsonCursor checked_cursor(std::string_view text) {
  if (text.size() > kLongest) {
    throw TokenizerError("must have at most " + std::to_string(kLongest) + " bytes. Got " +
                         std::to_string(text.size()));
  }
  JsonCursor cursor(text, "the tokenizer");
  if (!io::is_utf8(text)) cursor.fail();
  return cursor;
}

}  // namespace

std::string_view Strings::keep(std::string_view text) {
  if (text.empty()) return {};
  if (text.size() > left_) {
    left_ = std::max(kStringBlock, text.size());
    blocks_.push_back(std::make_unique<char[]>(left_));
    next_ = blocks_.back().get();
  }
  char* stored = next_;
  std::memcpy(stored, text.data(), text.size());
  next_ += text.size();
  left_ -= text.size();
  return {stored, text.size()};
}

std::vector<AddedToken> read_added_tokens(std::string_view text) {
  JsonCursor cursor = checked_cursor(text);
  std::vector<AddedToken> tokens;
  cursor.object([&](std::string_view key) {
    if (key != "added_tokens") return static_cast<void>(cursor.raw());
    cursor.array([&] { tokens.push_back(added_token(cursor.value())); });
  });
  cursor.end();
  return tokens;
}

Definition read_definition(std::string_view text) {
  JsonCursor cursor = checked_cursor(text);

  Definition definition;
  std::set<std::string, std::less<>> seen;
  cursor.object([&](std::string_view key) {
    if (!seen.emplace(key).second) {
      throw TokenizerError("must have each name once. Got " + io::in_quotes(key) + " twice");
    }
    if (key == "model") return read_model(cursor, definition);
    json* const component = key == "normalizer"       ? &definition.normalizer
                            : key == "pre_tokenizer"  ? &definition.pre_tokenizer
                            : key == "post_processor" ? &definition.post_processor
                            : key == "decoder"        ? &definition.decoder
                            : key == "truncation"     ? &definition.truncation
                            : key == "padding"        ? &definition.padding
                                                      : nullptr;
    if (component != nullptr) {
      *component = cursor.value();
    } else if (key == "added_tokens") {
      cursor.array([&] { definition.added_tokens.push_back(added_token(cursor.value())); });
    } else if (key == "version") {
      const std::string_view version = cursor.string();
      if (version != "1.0")
        throw TokenizerError("version: must be '1.0'. Got " + io::in_quotes(version));
    } else {
      throw TokenizerError("must have only the parts that tokenizers 0.23 knows. Got " +
                           io::in_quotes(key));
    }
  });
  cursor.end();
  if (!seen.contains("model")) throw TokenizerError("must have a 'model'");
  return definition;
}

}  // namespace posenc::text
