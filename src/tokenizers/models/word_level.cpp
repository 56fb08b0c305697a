#include "tokenizers/models/kinds.h"

#include "tokenizers/models/vocabulary_model.h"

namespace posenc::text {
namespace {

class WordLevel : public VocabularyModel {
 public:
  using VocabularyModel::VocabularyModel;

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<Scratch>(); }

  void tokenize(std::string_view piece, Scratch&, std::vector<Token>& tokens) const override {
    const auto id = vocabulary().id(piece);
    tokens.push_back({id ? *id : unk_for(piece), 0, static_cast<uint32_t>(piece.size())});
  }
};

}  // namespace

std::unique_ptr<const Model> make_word_level(const Definition& definition) {
  return std::make_unique<WordLevel>(definition);
}

}  // namespace posenc::text
