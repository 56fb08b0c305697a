#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/sentencepiece_class.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

constexpr std::string_view kSiglipBlank = "\u2581";

class SiglipClass : public SentencePieceClass {
 public:
  SiglipClass(std::shared_ptr<const SentencePieceProcessor> pieces, std::string unknown,
              bool lowercases)
      : SentencePieceClass(std::move(pieces)),
        unknown_(std::move(unknown)),
        lowercases_(lowercases) {
    const auto memory = scratch();
    PythonTokens tokens;
    cut(unknown_, *memory, tokens);
    unknown_length_ = tokens.size();
  }

  void prepare(std::string& text) const override {
    replace_all(text, kSiglipBlank, " ");
    text.insert(0, kSiglipBlank);
  }

  // The text is put after the unknown token, whose pieces are then taken away, so that no blank
  // comes first.
  void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const override {
    const std::size_t before = tokens.size();
    cut(unknown_ + canonical(text), scratch, tokens);
    if (tokens.size() - before >= unknown_length_) tokens.erase(before, before + unknown_length_);
  }

  void finish(PythonTokens& tokens, const PythonAddedTokens& added) const override {
    if (tokens.size() > 1 && tokens.text(0) == kSiglipBlank && added.is_special(tokens.text(1)))
      tokens.erase(0, 1);
  }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    std::string text;
    std::vector<std::string> part;
    bool is_after_special = false;
    for (const std::string& token : tokens) {
      if (added.is_special(token)) {
        if (!is_after_special) text += ' ';
        text += pieces().decode(part) + token;
        part.clear();
      } else {
        part.push_back(token);
      }
      is_after_special = added.is_special(token);
    }
    text += pieces().decode(part);
    return std::string(python::stripped(text));
  }

 private:
  // Without ASCII punctuation, and with single blanks.
  std::string canonical(std::string_view text) const {
    constexpr std::string_view kPunctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    std::string kept = lowercases_ ? python::lower(text) : std::string(text);
    std::erase_if(kept, [&](char c) { return kPunctuation.find(c) != std::string_view::npos; });
    std::string words;
    for (const std::string_view word : python::split(kept)) {
      if (!words.empty()) words += ' ';
      words += word;
    }
    return words;
  }

  std::string unknown_;
  bool lowercases_;
  std::size_t unknown_length_ = 0;
};

}  // namespace

void construct_siglip(PythonBuilder& builder) {
  const auto pieces = builder.sentencepiece_backend("spiece.model");
  builder.named("eos_token", "</s>");
  const std::string unknown = PythonBuilder::text_of(builder.named("unk_token", "<unk>"));
  builder.named("pad_token", "</s>");
  builder.arguments.set_default("model_max_length", 64);
  builder.finish(std::make_unique<SiglipClass>(pieces, unknown,
                                               builder.arguments.flag("do_lower_case", true)));
  PythonTemplate around = builder.around("A eos_token", "A eos_token B eos_token");
  around.has_types = false;
  around.joins_last = true;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
