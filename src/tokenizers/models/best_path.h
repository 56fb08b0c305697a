#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tokenizers/models/trie.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {

/// The pieces with the greatest sum of scores that a text consists of (Viterbi). Sums are rounded
/// to `Score`, double or float, from the left: that decides between paths that are nearly equal.
/// Keeps its memory from text to text.
template <typename Score>
class BestPath {
 public:
  /// The best path to a place: its last piece.
  struct Step {
    Score score = 0;
    uint32_t begin = kNowhere;
    uint32_t id = 0;
  };

  /// Finds the path through `text`, which is UTF-8, by the pieces below `root`. `score(id, size)`
  /// is that of a piece; a character that is no piece is one of `unknown_score`, and of the id
  /// `unknown(character)`, which is called only where the path takes it.
  template <typename ScoreOf, typename Unknown>
  void find(const Trie& trie, Trie::Node root, std::string_view text, const ScoreOf& score,
            Score unknown_score, const Unknown& unknown) {
    steps_.assign(text.size() + 1, {});
    furthest_ = 0;
    for (std::size_t begin = 0; begin < text.size();) {
      move_back(begin);
      const Score so_far = steps_[begin].score;
      const std::size_t next = begin + utf8_length(static_cast<unsigned char>(text[begin]));
      const auto reach = [&](std::size_t end, Score sum, const auto& id) {
        furthest_ = std::max(furthest_, end);
        Step& step = steps_[end];
        if (step.begin == kNowhere || sum > step.score)
          step = {sum, static_cast<uint32_t>(begin), id()};
      };
      bool is_character_known = false;
      trie.for_each_key(root, text, begin, [&](std::size_t end, uint32_t id) {
        reach(end, score(id, end - begin) + so_far, [&] { return id; });
        is_character_known = is_character_known || end == next;
      });
      if (!is_character_known) {
        reach(next, unknown_score + so_far,
              [&] { return unknown(text.substr(begin, next - begin)); });
      }
      begin = next;
    }
  }

  /// The best path to byte `end`, which follows a character.
  const Step& to(std::size_t end) const { return steps_[end]; }

 private:
  static constexpr uint32_t kNowhere = UINT32_MAX;

  // In float32, sums are moved back where they become too large to be precise, as SentencePiece
  // does.
  void move_back(std::size_t begin) {
    constexpr Score kLargest = 100000;
    const Score offset = steps_[begin].score;
    if (!std::is_same_v<Score, float> || (offset >= -kLargest && offset <= kLargest)) return;
    for (std::size_t at = begin; at <= furthest_; ++at) {
      if (at == begin || steps_[at].begin != kNowhere) steps_[at].score -= offset;
    }
    steps_[begin].score = 0;
  }

  std::vector<Step> steps_;
  std::size_t furthest_ = 0;
};

}  // namespace posenc::text
