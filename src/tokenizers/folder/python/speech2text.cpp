#include <algorithm>

#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/sentencepiece_class.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

class Speech2TextClass : public TranslatedPieces {
 public:
  Speech2TextClass(std::shared_ptr<const SentencePieceProcessor> pieces,
                   const std::shared_ptr<const Vocabulary>& vocabulary, const std::string& unknown)
      : TranslatedPieces(pieces, vocabulary, vocabulary->id(unknown)),
        pieces_(std::move(pieces)),
        unknown_(unknown) {}

  std::optional<std::string> token(uint32_t id) const override {
    const auto found = vocabulary().token(id);
    return found ? std::string(*found) : unknown_;
  }
  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    return std::string(python::stripped(join_around_specials(*pieces_, tokens, added, " ")));
  }

 private:
  std::shared_ptr<const SentencePieceProcessor> pieces_;
  std::string unknown_;
};

}  // namespace

void construct_speech2text(PythonBuilder& builder) {
  if (builder.arguments.flag("do_upper_case", false))
    refuse("do_upper_case", "be false for Speech2TextTokenizer", "true");
  const auto vocabulary = builder.json_vocabulary("vocab.json");
  const auto pieces = builder.sentencepiece("sentencepiece.bpe.model");
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  const std::string unknown = PythonBuilder::text_of(builder.named("unk_token", "<unk>"));
  builder.named("pad_token", "<pad>");
  if (!vocabulary->id(unknown))
    refuse("vocab.json", "have the unknown token", "no id for " + shown(unknown));

  std::optional<PythonTemplate::Item> prefix;
  if (const std::string codes = builder.arguments.text("lang_codes", ""); !codes.empty()) {
    if (codes != "mustc") refuse("lang_codes", "be mustc or absent", shown(codes));
    const std::vector<std::string> languages = {"pt", "fr", "ru", "nl", "ro", "it", "es", "de"};
    std::vector<GivenToken> extra;
    for (const std::string& language : languages) extra.emplace_back("<lang:" + language + ">");
    const std::string target = builder.arguments.text("tgt_lang", languages.front());
    if (std::ranges::count(languages, target) == 0)
      refuse("tgt_lang", "be a language of MuST-C", shown(target));
    const std::string token = "<lang:" + target + ">";
    prefix = {std::nullopt, {static_cast<uint32_t>(pieces->id(token)), token}};
    const auto given = builder.arguments.tokens("additional_special_tokens");
    if (given) extra.insert(extra.end(), given->begin(), given->end());
    builder.set_extra(extra);
  }
  builder.finish(std::make_unique<Speech2TextClass>(pieces, vocabulary, unknown));
  PythonTemplate around = builder.around("A eos_token", "A B eos_token");
  for (PythonTemplate::Items* items : {&around.single, &around.pair}) {
    if (prefix) items->insert(items->begin(), *prefix);
  }
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
