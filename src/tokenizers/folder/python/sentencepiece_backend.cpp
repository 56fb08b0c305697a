#include "tokenizers/folder/python/constructors.h"
#include "tokenizers/python/sentencepiece_class.h"

// The classes that add nothing to SentencePieceBackend but their special tokens.
namespace posenc::text {
namespace {

void finish_backend(PythonBuilder& builder, const char* file) {
  const auto pieces = builder.sentencepiece_backend(file);
  if (!builder.arguments.flag("legacy", true)) {
    refuse("legacy", "be true or absent for " + builder.settings.tokenizer_class, "false");
  }
  builder.named("bos_token", "<s>");
  builder.named("eos_token", "</s>");
  builder.named("unk_token", "<unk>");
  builder.named("pad_token", "<pad>");
  builder.finish(std::make_unique<SentencePieceClass>(pieces));
}

}  // namespace

void construct_bert_generation(PythonBuilder& builder) {
  builder.named("sep_token", "<::::>");
  finish_backend(builder, "spiece.model");
  builder.set_around(builder.around("A", "A B"));
}

void construct_speecht5(PythonBuilder& builder) {
  if (builder.arguments.flag("normalize", false))
    refuse("normalize", "be false: numbers are not spelled out", "true");
  finish_backend(builder, "spm_char.model");
  PythonTemplate around = builder.around("A eos_token", "A B eos_token");
  around.has_types = false;
  builder.set_around(std::move(around));
}

}  // namespace posenc::text
