#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/sentencepiece_class.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

// The languages of a model, in the order of their tokens.
std::vector<std::string_view> m2m100_languages(const std::string& set) {
  constexpr std::string_view kM2m100 =
      "af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr "
      "fy ga gd gl gu ha he hi hr ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg "
      "ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps pt ro ru sd si sk "
      "sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu ";
  constexpr std::string_view kWmt21 = "en ha is ja cs ru zh de ";
  if (set == "m2m100") return python::split(kM2m100);
  if (set != "wmt21") refuse("language_codes", "be m2m100 or wmt21", shown(set));
  return python::split(kWmt21);
}

// The tokens of languages, such as __de__, follow the vocabulary.
class M2M100Class : public TranslatedPieces {
 public:
  M2M100Class(std::shared_ptr<const SentencePieceProcessor> pieces,
              const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& unknown,
              const std::vector<std::string_view>& languages)
      : TranslatedPieces(pieces, vocabulary, vocabulary->id(unknown)),
        pieces_(std::move(pieces)),
        unknown_(unknown) {
    for (const std::string_view language : languages)
      languages_.push_back("__" + std::string(language) + "__");
  }

  std::optional<uint32_t> convert(std::string_view token) const override {
    for (std::size_t i = 0; token.starts_with("__") && i < languages_.size(); ++i) {
      if (languages_[i] == token) return static_cast<uint32_t>(vocabulary().size() + i);
    }
    return TranslatedPieces::convert(token);
  }

  std::optional<std::string> token(uint32_t id) const override {
    if (const auto found = vocabulary().token(id)) return std::string(*found);
    const std::size_t index = id - vocabulary().size();
    return index < languages_.size() ? languages_[index] : unknown_;
  }
  VocabularyKind vocabulary_kind() const override { return VocabularyKind::ListedIds; }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    return std::string(python::stripped(join_around_specials(*pieces_, tokens, added, "")));
  }

 private:
  std::shared_ptr<const SentencePieceProcessor> pieces_;
  std::string unknown_;
  std::vector<std::string> languages_;
};

}  // namespace

void construct_m2m100(PythonBuilder& builder) {
  const std::vector<std::string_view> languages =
      m2m100_languages(builder.arguments.text("language_codes", "m2m100"));
  const auto vocabulary = builder.json_vocabulary("vocab.json");
  for (const Piece& piece : vocabulary->pieces()) {
    if (piece.id >= vocabulary->size())
      refuse("vocab.json", "have the ids from 0 to its size", std::to_string(piece.id));
  }
  const auto pieces = builder.sentencepiece("sentencepiece.bpe.model");
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  builder.named("sep_token", "</s>");
  const std::string unknown = PythonBuilder::text_of(builder.named("unk_token", "<unk>"));
  builder.named("pad_token", "<pad>");
  if (!vocabulary->id(unknown))
    refuse("vocab.json", "have the unknown token", "no id for " + shown(unknown));
  builder.finish(std::make_unique<M2M100Class>(pieces, vocabulary, unknown, languages));
  const auto around = [&](const std::string& language) {
    PythonTemplate made = builder.around("A eos_token", "A B eos_token");
    for (PythonTemplate::Items* items : {&made.single, &made.pair}) {
      const std::string token = "__" + language + "__";
      const auto index = std::ranges::find(languages, language) - languages.begin();
      const auto id = static_cast<uint32_t>(vocabulary->size() + static_cast<std::size_t>(index));
      items->insert(items->begin(), {std::nullopt, {id, token}});
    }
    return made;
  };
  const std::string source = builder.arguments.text("src_lang", "en");
  if (std::ranges::count(languages, source) == 0)
    refuse("src_lang", "be a language of M2M100", shown(source));
  builder.set_around(around(source));
  builder.require_target_language();
  const std::string target = builder.arguments.text("tgt_lang", "");
  if (std::ranges::count(languages, target) > 0) builder.set_target_around(around(target));
}

}  // namespace posenc::text
