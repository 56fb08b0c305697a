#include <algorithm>
#include <limits>

#include "posenc/tokenizers/error.h"
#include "tokenizers/models/trie.h"
#include "tokenizers/sentencepiece/pieces.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr float kUnknownPiecePenalty = 10;
constexpr float kLargestScore = 100000;  // sums beyond are moved back, to keep their precision

// The best path to a place: its last piece.
struct PieceStep {
  float score = 0;
  int32_t begin = -1;
  int32_t id = PieceMatch::kNoPiece;
};

struct UnigramSegmenterScratch : PieceScratch {
  std::vector<PieceStep> steps;
};

// The pieces with the greatest sum of scores. SentencePiece adds them in float32, from the left of
// the whole text, which decides between paths that are nearly equal.
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
    std::vector<PieceStep>& steps = static_cast<UnigramSegmenterScratch&>(scratch).steps;
    find_path(text, steps);
    parts.clear();
    for (auto end = static_cast<int32_t>(text.size()); end > 0;) {
      const PieceStep& last = steps[static_cast<std::size_t>(end)];
      parts.push_back({text.substr(static_cast<std::size_t>(last.begin),
                                   static_cast<std::size_t>(end - last.begin)),
                       last.id});
      end = last.begin;
    }
    std::reverse(parts.begin(), parts.end());
  }

 private:
  float score_of(int32_t id, std::size_t length) const {
    if (table_.type(id) != SentencePiece::Type::UserDefined) return table_.score(id);
    return static_cast<float>(0.1 * (static_cast<double>(length) - 1));
  }

  void find_path(std::string_view text, std::vector<PieceStep>& steps) const {
    steps.assign(text.size() + 1, {});
    std::size_t furthest = 0;
    const auto reach = [&](std::size_t begin, std::size_t end, float score, int32_t id) {
      furthest = std::max(furthest, end);
      PieceStep& step = steps[end];
      if (step.begin == -1 || score > step.score) step = {score, static_cast<int32_t>(begin), id};
    };
    for (std::size_t begin = 0; begin < text.size();) {
      if (steps[begin].score < -kLargestScore || steps[begin].score > kLargestScore)
        move_back(steps, begin, furthest);
      const float so_far = steps[begin].score;
      const std::size_t next = begin + utf8_length(static_cast<unsigned char>(text[begin]));
      bool is_character_known = false;
      trie_.for_each_key(root_, text, begin, [&](std::size_t end, uint32_t value) {
        const auto id = static_cast<int32_t>(value);
        reach(begin, end, score_of(id, end - begin) + so_far, id);
        is_character_known = is_character_known || end == next;
      });
      if (!is_character_known) reach(begin, next, unknown_score_ + so_far, table_.unknown());
      begin = next;
    }
  }

  static void move_back(std::vector<PieceStep>& steps, std::size_t begin, std::size_t furthest) {
    const float offset = steps[begin].score;
    for (std::size_t at = begin; at <= furthest; ++at) {
      if (at == begin || steps[at].begin != -1) steps[at].score -= offset;
    }
    steps[begin].score = 0;
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
