#include <algorithm>
#include <unordered_map>

#include "tokenizers/sentencepiece/pieces.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

// A part of the text; parts that were joined to the one before them are empty.
struct PieceSymbol {
  std::string_view text;
  int32_t previous, next;  // -1 at the ends
  bool is_frozen;          // a user-defined piece
};

// Two parts that may be joined. The best score is first, then the leftmost.
struct PiecePair {
  float score;
  int32_t left, right;
  std::size_t size;  // of both, when they were found

  bool operator<(const PiecePair& other) const {
    return score < other.score || (score == other.score && left > other.left);
  }
};

struct BpeSegmenterScratch : PieceScratch {
  std::vector<PieceSymbol> symbols;
  std::vector<PiecePair> pairs;  // a heap
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
    return std::make_unique<BpeSegmenterScratch>();
  }

  void cut(std::string_view text, PieceScratch& memory,
           std::vector<PieceMatch>& parts) const override {
    auto& scratch = static_cast<BpeSegmenterScratch&>(memory);
    std::vector<PieceSymbol>& symbols = scratch.symbols;
    symbols.clear();
    scratch.pairs.clear();
    scratch.halves.clear();
    while (!text.empty()) {
      const std::size_t kept = spelling_.kept_prefix(text);
      const std::size_t length = kept > 0 ? kept : utf8_length(static_cast<unsigned char>(text[0]));
      const auto index = static_cast<int32_t>(symbols.size());
      symbols.push_back(
          {text.substr(0, length), index - 1, length == text.size() ? -1 : index + 1, kept > 0});
      text.remove_prefix(length);
    }
    for (std::size_t i = 1; i < symbols.size(); ++i) {
      add_pair(static_cast<int32_t>(i - 1), static_cast<int32_t>(i), scratch);
    }
    std::make_heap(scratch.pairs.begin(), scratch.pairs.end());
    while (!scratch.pairs.empty()) {
      std::pop_heap(scratch.pairs.begin(), scratch.pairs.end());
      const PiecePair pair = scratch.pairs.back();
      scratch.pairs.pop_back();
      PieceSymbol& left = symbols[static_cast<std::size_t>(pair.left)];
      PieceSymbol& right = symbols[static_cast<std::size_t>(pair.right)];
      if (left.text.empty() || right.text.empty() ||
          left.text.size() + right.text.size() != pair.size)
        continue;  // one of them has been joined to another
      left.text = {left.text.data(), pair.size};
      left.next = right.next;
      right.text = {};
      if (left.next >= 0) symbols[static_cast<std::size_t>(left.next)].previous = pair.left;
      push_pair(left.previous, pair.left, scratch);
      push_pair(pair.left, left.next, scratch);
    }
    parts.clear();
    for (int32_t i = symbols.empty() ? -1 : 0; i != -1;
         i = symbols[static_cast<std::size_t>(i)].next) {
      add_parts(symbols[static_cast<std::size_t>(i)].text, scratch, 0, parts);
    }
  }

 private:
  bool add_pair(int32_t left, int32_t right, BpeSegmenterScratch& scratch) const {
    if (left < 0 || right < 0) return false;
    const PieceSymbol& first = scratch.symbols[static_cast<std::size_t>(left)];
    const PieceSymbol& second = scratch.symbols[static_cast<std::size_t>(right)];
    if (first.is_frozen || second.is_frozen) return false;
    const std::string_view both(first.text.data(), first.text.size() + second.text.size());
    const int32_t id = table_.searched_id(both);
    if (id == table_.unknown() || !table_.is_searched(id)) return false;
    scratch.pairs.push_back({table_.score(id), left, right, both.size()});
    if (table_.type(id) == SentencePiece::Type::Unused) scratch.halves[both] = first.text.size();
    return true;
  }
  void push_pair(int32_t left, int32_t right, BpeSegmenterScratch& scratch) const {
    if (add_pair(left, right, scratch)) std::push_heap(scratch.pairs.begin(), scratch.pairs.end());
  }

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
