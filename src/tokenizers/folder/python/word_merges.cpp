#include "tokenizers/python/word_merges.h"

#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/text.h"
#include "tokenizers/python/vocabulary_class.h"
#include "tokenizers/unicode/unicode.h"
#include "tokenizers/unicode/utf8.h"

// The classes that cut at white space, and mark all parts of a word but the last with "@@".
namespace posenc::text {
namespace {

class MarkedPartsClass : public VocabularyClass {
 public:
  /// What ends a word: the packages `re` and `regex` of Python differ in four controls.
  using IsSpace = bool (*)(char32_t);

  MarkedPartsClass(std::shared_ptr<const Vocabulary> vocabulary, std::optional<std::string> unknown,
                   WordMerges merges, IsSpace is_space)
      : VocabularyClass(std::move(vocabulary), std::move(unknown)),
        merges_(std::move(merges)),
        is_space_(is_space) {}

  // A word takes the end of its line with it.
  void tokenize(std::string_view text, Scratch&, PythonTokens& tokens) const override {
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t begin = at;
      std::size_t end = at;
      while (end < text.size()) {
        std::size_t next = end;
        if (is_space_(next_character(text, next))) break;
        end = next;
      }
      if (end == begin) {
        next_character(text, at);
        continue;
      }
      at = end < text.size() && text[end] == '\n' ? end + 1 : end;
      add_word(text.substr(begin, at - begin), tokens);
    }
  }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    std::string text = VocabularyClass::join(tokens, added);
    replace_all(text, "@@ ", "");
    return std::string(python::stripped(text));
  }

 private:
  void add_word(std::string_view word, PythonTokens& tokens) const {
    std::size_t at = 0;
    next_character(word, at);
    if (at == word.size()) return tokens.add(word);  // a character is never looked up with its end
    std::string with_suffix(word);
    with_suffix += WordMerges::kSuffix;
    std::vector<std::string_view> symbols;
    merges_.split(with_suffix, symbols);
    std::string token;
    for (std::size_t i = 0; i + 1 < symbols.size(); ++i) {
      token = symbols[i];
      tokens.add(token += "@@");
    }
    const std::string_view last = symbols.back();
    tokens.add(last.substr(0, last.size() - WordMerges::kSuffix.size()));
  }

  WordMerges merges_;
  IsSpace is_space_;
};

// The pairs in the lines of a file, but for what is before and after them.
WordMerges merges_in(const PythonBuilder& builder, const char* file, std::size_t lines_before,
                     std::size_t columns_after) {
  WordMerges merges;
  const std::string text = builder.text_file(file);
  std::size_t number = 0;
  for (std::size_t begin = 0, end; (end = text.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    if (number++ < lines_before) continue;
    const auto columns = python::split(std::string_view(text).substr(begin, end - begin));
    if (columns.size() == 2 + columns_after) {
      merges.add(columns[0], columns[1]);
    } else {
      merges.skip();
    }
  }
  return merges;
}

}  // namespace

void construct_ctrl(PythonBuilder& builder) {
  const auto vocabulary = builder.json_vocabulary("vocab.json");
  WordMerges merges = merges_in(builder, "merges.txt", 1, 0);
  const PythonBuilder::Named unknown = builder.named("unk_token", "<unk>");
  builder.finish(std::make_unique<MarkedPartsClass>(
      vocabulary, unknown ? std::optional(unknown->content) : std::nullopt, std::move(merges),
      unicode::is_white_space));
  PythonTemplate around = builder.around("A", "A B");
  around.has_types = false;
  builder.set_around(std::move(around));
}

void construct_phobert(PythonBuilder& builder) {
  Definition words;
  const auto add = [&](std::string_view text) {
    words.model.vocab.push_back(
        {words.strings->keep(text), static_cast<uint32_t>(words.model.vocab.size())});
  };
  add(PythonBuilder::text_of(builder.named("bos_token", "<s>")));
  add(PythonBuilder::text_of(builder.named("pad_token", "<pad>")));
  add(PythonBuilder::text_of(builder.named("eos_token", "</s>")));
  const PythonBuilder::Named unknown = builder.named("unk_token", "<unk>");
  add(PythonBuilder::text_of(unknown));
  const std::string text = builder.text_file("vocab.txt");
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line =
        python::stripped(std::string_view(text).substr(begin, end - begin));
    const std::size_t blank = line.rfind(' ');
    if (blank == std::string_view::npos)
      refuse("vocab.txt", "have a token, a blank and a number in each line", shown(line));
    add(line.substr(0, blank));
    begin = end + 1;
  }
  const auto vocabulary = std::make_shared<Vocabulary>(words);
  if (vocabulary->size() != words.model.vocab.size())
    refuse("vocab.txt", "have each token once, and no special one", "one twice");
  WordMerges merges = merges_in(builder, "bpe.codes", 0, 1);
  builder.named("sep_token", "</s>");
  builder.named("cls_token", "<s>");
  builder.named("mask_token", "<mask>");
  builder.finish(std::make_unique<MarkedPartsClass>(
      vocabulary, unknown ? std::optional(unknown->content) : std::nullopt, std::move(merges),
      python::is_space));
  PythonTemplate around =
      builder.around("cls_token A sep_token", "cls_token A sep_token sep_token B sep_token");
  around.has_types = false;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
