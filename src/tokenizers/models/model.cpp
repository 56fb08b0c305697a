#include "tokenizers/models/model.h"

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/models/kinds.h"
#include "tokenizers/models/vocabulary_model.h"

namespace posenc::text {

void VocabularyModel::refuse_unknown(std::string_view word) const {
  throw TokenizerError("model.unk_token: must be in the vocabulary, since " + io::in_quotes(word) +
                       " is not. Got " + io::in_quotes(*unk_token_));
}

std::unique_ptr<const Model> make_model(const Definition& definition) {
  using Kind = ModelDefinition::Kind;
  switch (definition.model.kind) {
    case Kind::WordPiece: return make_word_piece(definition);
    case Kind::WordLevel: return make_word_level(definition);
    case Kind::Bpe: return make_bpe(definition);
    case Kind::Unigram: return make_unigram(definition);
  }
  throw TokenizerError("model.type: must be BPE, WordPiece, WordLevel or Unigram. Got another");
}

}  // namespace posenc::text
