#include "tokenizers/sentencepiece/pieces.h"
#include "tokenizers/unicode/utf8.h"

// The models of characters and of words.
namespace posenc::text {
namespace {

PieceMatch looked_up(const PieceTable& table, std::string_view text) {
  const int32_t id = table.searched_id(text);
  const bool is_unused = !table.is_unknown(id) && table.type(id) == SentencePiece::Type::Unused;
  return {text, is_unused ? table.unknown() : id};
}

class CharacterSegmenter : public PieceSegmenter {
 public:
  CharacterSegmenter(const PieceTable& table, const Spelling& spelling)
      : table_(table), spelling_(spelling) {}

  std::unique_ptr<PieceScratch> scratch() const override {
    return std::make_unique<PieceScratch>();
  }
  void cut(std::string_view text, PieceScratch&, std::vector<PieceMatch>& parts) const override {
    parts.clear();
    while (!text.empty()) {
      const std::size_t kept = spelling_.kept_prefix(text);
      const std::size_t length = kept > 0 ? kept : utf8_length(static_cast<unsigned char>(text[0]));
      parts.push_back(looked_up(table_, text.substr(0, length)));
      text.remove_prefix(length);
    }
  }

 private:
  const PieceTable& table_;
  const Spelling& spelling_;
};

// A word begins at each U+2581.
class WordSegmenter : public PieceSegmenter {
 public:
  explicit WordSegmenter(const PieceTable& table) : table_(table) {}

  std::unique_ptr<PieceScratch> scratch() const override {
    return std::make_unique<PieceScratch>();
  }
  void cut(std::string_view text, PieceScratch&, std::vector<PieceMatch>& parts) const override {
    constexpr std::string_view kBlank = "\u2581";
    parts.clear();
    while (!text.empty()) {
      const std::size_t from = text.starts_with(kBlank) ? kBlank.size() : 1;
      const std::size_t length = std::min(text.find(kBlank, from), text.size());
      parts.push_back(looked_up(table_, text.substr(0, length)));
      text.remove_prefix(length);
    }
  }

 private:
  const PieceTable& table_;
};

}  // namespace

std::unique_ptr<const PieceSegmenter> make_character_segmenter(const PieceTable& table,
                                                               const Spelling& spelling) {
  return std::make_unique<CharacterSegmenter>(table, spelling);
}

std::unique_ptr<const PieceSegmenter> make_word_segmenter(const PieceTable& table) {
  return std::make_unique<WordSegmenter>(table);
}

}  // namespace posenc::text
