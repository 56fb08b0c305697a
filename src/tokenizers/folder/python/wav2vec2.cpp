#include <algorithm>

#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/text.h"
#include "tokenizers/python/vocabulary_class.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// Characters, which a model for speech writes one for each moment: equal neighbours are one.
class Wav2Vec2CTCClass : public VocabularyClass {
 public:
  Wav2Vec2CTCClass(std::shared_ptr<const Vocabulary> vocabulary, std::optional<std::string> unknown,
                   std::optional<std::string> padding, std::string delimiter, std::string blank)
      : VocabularyClass(std::move(vocabulary), std::move(unknown)),
        padding_(std::move(padding)),
        delimiter_(std::move(delimiter)),
        blank_(std::move(blank)) {}

  void tokenize(std::string_view text, Scratch&, PythonTokens& tokens) const override {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      const char32_t c = next_character(text, at);
      if (c == ' ') {
        add_characters(delimiter_, tokens);
      } else {
        tokens.add(text.substr(begin, at - begin));
      }
    }
  }
  bool precedes_added() const override { return true; }
  bool knows(uint32_t id) const override { return vocabulary().token(id).has_value(); }
  std::optional<std::string> kept_where_skipped_by_text() const override { return delimiter_; }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens&) const override {
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      if ((i > 0 && tokens[i] == tokens[i - 1]) || tokens[i] == padding_) continue;
      text += tokens[i] == delimiter_ ? blank_ : tokens[i];
    }
    return std::string(python::stripped(text));
  }

 private:
  static void add_characters(std::string_view text, PythonTokens& tokens) {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      next_character(text, at);
      tokens.add(text.substr(begin, at - begin));
    }
  }

  std::optional<std::string> padding_;
  std::string delimiter_, blank_;
};

bool has_several_characters(std::string_view text) {
  if (text.empty()) return false;
  std::size_t at = 0;
  next_character(text, at);
  return at < text.size();
}

}  // namespace

void construct_wav2vec2_ctc(PythonBuilder& builder) {
  const Arguments& arguments = builder.arguments;
  if (arguments.flag("do_lower_case", false))
    refuse("do_lower_case", "be false for Wav2Vec2CTCTokenizer", "true");
  if (const Settings* const language = arguments.find("target_lang");
      language && !language->is_null()) {
    refuse("target_lang", "be null: vocabularies of several languages are not supported",
           shown(*language));
  }
  const auto vocabulary = builder.json_vocabulary("vocab.json");
  const auto text_of = [](const PythonBuilder::Named& token) {
    return token ? std::optional(token->content) : std::nullopt;
  };
  const auto unknown = text_of(builder.named("unk_token", "<unk>"));
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  const auto padding = text_of(builder.named("pad_token", "<pad>"));
  const PythonBuilder::Named delimiter = builder.named("word_delimiter_token", "|");
  if (!delimiter) refuse("word_delimiter_token", "be a token of Wav2Vec2CTCTokenizer", "null");
  builder.finish(
      std::make_unique<Wav2Vec2CTCClass>(vocabulary, unknown, padding, delimiter->content,
                                         arguments.text("replace_word_delimiter_char", " ")));
  for (const Piece& piece : vocabulary->pieces()) {
    if (!has_several_characters(piece.text)) continue;
    AddedToken token;
    token.content = piece.text;
    token.lstrip = token.rstrip = true;
    token.normalized = false;
    builder.add_known(token);
  }
  builder.set_around(builder.around("A", "A B"));
}

}  // namespace posenc::text
