#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/sentencepiece_class.h"
#include "tokenizers/python/text.h"

namespace posenc::text {
namespace {

// A Marian model's files. target.spm joins tokens, which are those of targets: with one vocabulary
// transformers 5 joins by source.spm unless decode() has use_source_tokenizer=False, which leaves
// pieces of bytes as they are where that file has none.
struct MarianFiles {
  std::shared_ptr<const SentencePieceProcessor> source, target;
  std::shared_ptr<const Vocabulary> vocabulary, target_vocabulary;

  bool has_two() const { return target_vocabulary != nullptr; }
  const Vocabulary& decoded() const { return has_two() ? *target_vocabulary : *vocabulary; }
};

class MarianClass : public TranslatedPieces {
 public:
  MarianClass(const MarianFiles& files, bool is_target, const std::string& unknown)
      : TranslatedPieces(is_target ? files.target : files.source,
                         is_target && files.has_two() ? files.target_vocabulary : files.vocabulary,
                         (is_target && files.has_two() ? files.target_vocabulary : files.vocabulary)
                             ->id(unknown)),
        files_(files) {}

  // Takes the language, such as >>de<<, off first.
  void tokenize(std::string_view text, Scratch& scratch, PythonTokens& tokens) const override {
    if (const auto end = text.find("<<"); text.starts_with(">>") && end != std::string_view::npos) {
      tokens.add(text.substr(0, end + 2));
      text.remove_prefix(end + 2);
    }
    TranslatedPieces::tokenize(text, scratch, tokens);
  }

  // The vocabulary is not in the order of the pieces, but their places count where it has no token.
  std::optional<std::string> token(uint32_t id) const override {
    if (const auto found = files_.decoded().token(id)) return std::string(*found);
    if (id >= files_.target->size()) return std::nullopt;
    return std::string(files_.target->piece(id));
  }

  std::string join(const std::vector<std::string>& tokens,
                   const PythonAddedTokens& added) const override {
    std::string text = join_around_specials(*files_.target, tokens, added, " ");
    replace_all(text, "\u2581", " ");
    return std::string(python::stripped(text));
  }

 private:
  MarianFiles files_;
};

}  // namespace

void construct_marian(PythonBuilder& builder) {
  MarianFiles files;
  files.vocabulary = builder.json_vocabulary("vocab.json");
  if (builder.arguments.flag("separate_vocabs", false))
    files.target_vocabulary = builder.json_vocabulary("target_vocab.json");
  files.source = builder.sentencepiece("source.spm");
  files.target = builder.sentencepiece("target.spm");
  builder.named("unk_token", "<unk>");
  builder.named("eos_token", "</s>");
  builder.named("pad_token", "<pad>");
  builder.arguments.set_default("model_max_length", 512);
  const std::string unknown = PythonBuilder::text_of(builder.named("unk_token", "<unk>"));
  if (!files.vocabulary->id(unknown))
    refuse("vocab.json", "have the unknown token", "no id for " + shown(unknown));
  builder.finish(std::make_unique<MarianClass>(files, false, unknown));
  builder.set_target(std::make_unique<MarianClass>(files, true, unknown));
  PythonTemplate around = builder.around("A eos_token", "A B eos_token");
  around.marks_specials = true;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
