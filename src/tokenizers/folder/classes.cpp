#include "tokenizers/folder/classes.h"

#include "tokenizers/folder/folder_model.h"

namespace posenc::text {
namespace {

void construct_backend(ClassBuilder& builder) {
  take_file_or_sentencepiece(builder, {"tokenizer.model"});
  builder.finish();
}

void construct_parakeet(ClassBuilder& builder) {
  builder.settings.decodes_runs_once = true;
  construct_backend(builder);
}

}  // namespace

Constructor constructor_of(std::string_view name) {
  if (name == "TokenizersBackend") return construct_backend;
  if (name == "ParakeetTokenizer") return construct_parakeet;
  for (const auto find : {word_piece_constructor, byte_level_constructor, bpe_constructor,
                          unigram_constructor, translation_constructor}) {
    if (const Constructor found = find(name)) return found;
  }
  return nullptr;
}

}  // namespace posenc::text
