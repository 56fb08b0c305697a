#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr char32_t kCanineClassify = 0xE000, kCanineSeparate = 0xE001, kCanineMask = 0xE003;
constexpr uint32_t kCodePoints = 0x110000;

std::string character_text(char32_t c) {
  std::string text;
  append_character(text, c);
  return text;
}

// A token is a character, and its id the code point.
class CanineClass : public PythonClass {
 public:
  void tokenize(std::string_view text, Scratch&, PythonTokens& tokens) const override {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(text, at);
      tokens.add(text.substr(begin, at - begin), static_cast<uint32_t>(c));
    }
  }
  std::optional<uint32_t> find(std::string_view token) const override {
    if (token.empty()) return std::nullopt;
    std::size_t at = 0;
    const char32_t c = next_character(token, at);
    return at == token.size() ? std::optional<uint32_t>(c) : std::nullopt;
  }
  std::optional<uint32_t> unknown_id() const override { return std::nullopt; }
  std::optional<std::string> token(uint32_t id) const override {
    const std::pair<uint32_t, const char*> names[] = {{0, "[PAD]"},       {0xE000, "[CLS]"},
                                                      {0xE001, "[SEP]"},  {0xE002, "[BOS]"},
                                                      {0xE003, "[MASK]"}, {0xE004, "[RESERVED]"}};
    for (const auto& [special, name] : names) {
      if (id == special) return name;
    }
    const bool is_surrogate = id >= 0xD800 && id < 0xE000;
    if (id >= kCodePoints || is_surrogate) return std::nullopt;
    return character_text(id);
  }
  std::size_t size() const override { return kCodePoints; }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens&) const override {
    std::string text;
    for (const std::string& token : tokens) text += token;
    return text;
  }
};

}  // namespace

void construct_canine(PythonBuilder& builder) {
  const auto name = [&](const char* token, char32_t c) {
    builder.named(token, GivenToken(character_text(c)));
  };
  name("bos_token", kCanineClassify);
  name("eos_token", kCanineSeparate);
  name("sep_token", kCanineSeparate);
  name("cls_token", kCanineClassify);
  builder.named("pad_token", GivenToken(std::string(1, '\0')));
  name("mask_token", kCanineMask);
  builder.settings.model_input_names = {"input_ids", "attention_mask", "token_type_ids"};
  builder.arguments.set_default("model_max_length", 2048);
  builder.finish(std::make_unique<CanineClass>());
  PythonTemplate around =
      builder.around("cls_token A sep_token", "cls_token A sep_token B sep_token");
  around.has_types = false;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
