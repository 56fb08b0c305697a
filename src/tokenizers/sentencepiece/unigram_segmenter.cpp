#include <algorithm>
#include <limits>

#include "posenc/tokenizers/error.h"
#include "tokenizers/models/best_path.h"
#include "tokenizers/sentencepiece/pieces.h"

namespace posenc::text {
namespace {

constexpr float kUnknownPiecePenalty = 10;

struct UnigramSegmenterScratch : PieceScratch {
  BestPath<float> path;
};

// SentencePiece's Unigram, which adds the scores in float32.
class UnigramSegmenter : public PieceSegmenter {
 public:
  explicit UnigramSegmenter(const PieceTable& table) : table_(table) {
    std::vector<Trie::Key> keys;
    float least = std::numeric_limits<float>::max();
    for (std::size_t i = 0; i < table.size(); ++i) {
      const auto id = static_cast<int32_t>(i);
      if (table.type(id) == SentencePiece::Type::Normal) least = std::min(least, table.score(id));
      // An unused one would not be taken.
      if (!table.is_searched(id) || table.type(id) == SentencePiece::Type::Unused) continue;
      keys.push_back({table.text(id), static_cast<uint32_t>(id)});
    }
    if (keys.empty())
      throw TokenizerError("the pieces: must have one that texts are cut into. Got no such piece");
    root_ = trie_.add(keys);
    unknown_score_ = least - kUnknownPiecePenalty;
  }

  std::unique_ptr<PieceScratch> scratch() const override {
    return std::make_unique<UnigramSegmenterScratch>();
  }

  void cut(std::string_view text, PieceScratch& scratch,
           std::vector<PieceMatch>& parts) const override {
    BestPath<float>& path = static_cast<UnigramSegmenterScratch&>(scratch).path;
    path.find(
        trie_, root_, text, [&](uint32_t id, std::size_t size) { return score_of(id, size); },
        unknown_score_, [&](std::string_view) { return static_cast<uint32_t>(table_.unknown()); });
    parts.clear();
    for (std::size_t end = text.size(); end > 0;) {
      const auto& [score, begin, id] = path.to(end);
      parts.push_back({text.substr(begin, end - begin), static_cast<int32_t>(id)});
      end = begin;
    }
    std::reverse(parts.begin(), parts.end());
  }

 private:
  float score_of(uint32_t piece, std::size_t size) const {
    const auto id = static_cast<int32_t>(piece);
    if (table_.type(id) != SentencePiece::Type::UserDefined) return table_.score(id);
    return static_cast<float>(0.1 * (static_cast<double>(size) - 1));
  }

  const PieceTable& table_;
  Trie trie_;
  Trie::Node root_;
  float unknown_score_;
};

}  // namespace

std::unique_ptr<const PieceSegmenter> make_unigram_segmenter(const PieceTable& table) {
  return std::make_unique<UnigramSegmenter>(table);
}

}  // namespace posenc::text
