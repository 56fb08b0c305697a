#include <unordered_map>

#include "tokenizers/models/joiner.h"
#include "tokenizers/sentencepiece/pieces.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

using ScoreJoiner = Joiner<float>;

struct BpeSegmenterScratch : PieceScratch, TextSymbols {
  explicit BpeSegmenterScratch(const PieceTable& of) : table(of) {}

  // The best score is first, so that ranks are scores with another sign.
  bool find(uint32_t left, uint32_t right, ScoreJoiner::Pair& pair) {
    if (is_frozen[left] || is_frozen[right]) return false;
    const std::string_view text = both(left, right);
    const int32_t id = table.searched_id(text);
    if (id == table.unknown() || !table.is_searched(id)) return false;
    pair.rank = -table.score(id);
    pair.mark = static_cast<uint32_t>(text.size());
    if (table.type(id) == SentencePiece::Type::Unused) halves[text] = texts[left].size();
    return true;
  }

  const PieceTable& table;
  ScoreJoiner joiner;
  std::vector<bool> is_frozen;  // the user-defined pieces among the symbols
  // Of unused pieces that were found, the bytes of the first of the two parts.
  std::unordered_map<std::string_view, std::size_t> halves;
};

// SentencePiece's BPE: of two neighbours that are a piece, those of the best score are joined
// first.
class BpeSegmenter : public PieceSegmenter {
 public:
  BpeSegmenter(const PieceTable& table, const Spelling& spelling)
      : table_(table), spelling_(spelling) {}

  std::unique_ptr<PieceScratch> scratch() const override {
    return std::make_unique<BpeSegmenterScratch>(table_);
  }

  void cut(std::string_view text, PieceScratch& memory,
           std::vector<PieceMatch>& parts) const override {
    auto& scratch = static_cast<BpeSegmenterScratch&>(memory);
    scratch.texts.clear();
    scratch.is_frozen.clear();
    scratch.halves.clear();
    while (!text.empty()) {
      const std::size_t kept = spelling_.kept_prefix(text);
      const std::size_t length = kept > 0 ? kept : utf8_length(static_cast<unsigned char>(text[0]));
      scratch.texts.push_back(text.substr(0, length));
      scratch.is_frozen.push_back(kept > 0);
      text.remove_prefix(length);
    }
    scratch.joiner.join(scratch.texts.size(), scratch);
    parts.clear();
    for (const std::string_view symbol : scratch.texts) {
      if (!symbol.empty()) add_parts(symbol, scratch, 0, parts);
    }
  }

 private:
  // An unused piece is taken apart again.
  void add_parts(std::string_view text, const BpeSegmenterScratch& scratch, int depth,
                 std::vector<PieceMatch>& parts) const {
    constexpr int kDeepest = 100;  // as SentencePiece
    const int32_t id = table_.searched_id(text);
    if (depth > kDeepest) return parts.push_back({text, id});
    if (id == table_.unknown() || !table_.is_searched(id))
      return parts.push_back({text, table_.unknown()});
    if (table_.type(id) != SentencePiece::Type::Unused) return parts.push_back({text, id});
    const auto half = scratch.halves.find(text);
    if (half == scratch.halves.end()) return parts.push_back({text, table_.unknown()});
    add_parts(text.substr(0, half->second), scratch, depth + 1, parts);
    add_parts(text.substr(half->second), scratch, depth + 1, parts);
  }

  const PieceTable& table_;
  const Spelling& spelling_;
};

}  // namespace

std::unique_ptr<const PieceSegmenter> make_bpe_segmenter(const PieceTable& table,
                                                         const Spelling& spelling) {
  return std::make_unique<BpeSegmenter>(table, spelling);
}

}  // namespace posenc::text
