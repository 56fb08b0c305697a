#include "tokenizers/models/kinds.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/models/byte_tokens.h"
#include "tokenizers/models/trie.h"
#include "tokenizers/models/vocabulary_model.h"
#include "tokenizers/models/word_cache.h"
#include "tokenizers/unicode/utf8.h"

namespace posenc::text {
namespace {

constexpr uint32_t kNowhere = UINT32_MAX;
constexpr double kUnknownPenalty = 10;

// The best path to a place in the word: its last piece.
struct Step {
  double score = 0;
  uint32_t begin = kNowhere;
  uint32_t id = 0;
};

struct UnigramScratch : Scratch {
  WordCache cache;
  std::vector<Step> steps;
};

class Unigram : public VocabularyModel {
 public:
  explicit Unigram(const Definition& definition)
      : VocabularyModel(definition), scores_(definition.model.scores) {
    if (scores_.size() != vocabulary().pieces().size()) {
      throw TokenizerError("model.vocab: must have a score for each piece. Got " +
                           std::to_string(scores_.size()) + " for " +
                           std::to_string(vocabulary().pieces().size()));
    }
    if (const auto unk_id = definition.model.unk_id) {
      if (*unk_id >= scores_.size()) {
        throw TokenizerError("model.unk_id: must be below the number of pieces, " +
                             std::to_string(scores_.size()) + ". Got " + std::to_string(*unk_id));
      }
      unk_id_ = static_cast<uint32_t>(*unk_id);
    }
    if (definition.model.byte_fallback) bytes_.emplace(vocabulary());
    std::vector<Trie::Key> keys;
    keys.reserve(scores_.size());
    for (const Piece& piece : vocabulary().pieces()) {
      if (!piece.text.empty()) keys.push_back({piece.text, piece.id});
    }
    root_ = trie_.add(keys);
    for (const double score : scores_) unk_score_ = std::min(unk_score_, score);
    unk_score_ -= kUnknownPenalty;
  }

  std::unique_ptr<Scratch> scratch() const override { return std::make_unique<UnigramScratch>(); }

  void tokenize(std::string_view piece, Scratch& memory,
                std::vector<Token>& tokens) const override {
    auto& scratch = static_cast<UnigramScratch&>(memory);
    uint64_t hash = 0;
    const bool is_cacheable = piece.size() <= WordCache::kLongest;
    if (is_cacheable && scratch.cache.find(piece, hash, tokens)) return;
    const std::size_t before = tokens.size();
    find_path(piece, scratch.steps);
    add_tokens(piece, scratch.steps, tokens);
    if (is_cacheable)
      scratch.cache.add(piece, hash, tokens.data() + before, tokens.data() + tokens.size());
  }

 private:
  void find_path(std::string_view text, std::vector<Step>& steps) const {
    steps.assign(text.size() + 1, {});
    const auto reach = [&](std::size_t end, double score, std::size_t begin, uint32_t id) {
      Step& step = steps[end];
      if (step.begin == kNowhere || score > step.score)
        step = {score, static_cast<uint32_t>(begin), id};
    };
    for (std::size_t begin = 0; begin < text.size();) {
      const double so_far = steps[begin].score;
      const std::size_t next = begin + utf8_length(static_cast<unsigned char>(text[begin]));
      bool is_character_known = false;
      trie_.for_each_key(root_, text, begin, [&](std::size_t end, uint32_t id) {
        reach(end, scores_[id] + so_far, begin, id);
        is_character_known = is_character_known || end == next;
      });
      if (!is_character_known) reach_unknown(text, begin, next, unk_score_ + so_far, steps);
      begin = next;
    }
  }

  void reach_unknown(std::string_view text, std::size_t begin, std::size_t end, double score,
                     std::vector<Step>& steps) const {
    Step& step = steps[end];
    if (step.begin != kNowhere && !(score > step.score)) return;
    if (!unk_id_) refuse_without_unk_id(text.substr(begin, end - begin));
    step = {score, static_cast<uint32_t>(begin), *unk_id_};
  }

  [[noreturn]] static void refuse_without_unk_id(std::string_view character);

  // Neighbouring unknown pieces are one token.
  void add_tokens(std::string_view text, const std::vector<Step>& steps,
                  std::vector<Token>& tokens) const {
    const std::size_t first = tokens.size();
    for (auto end = static_cast<uint32_t>(text.size()); end > 0;) {
      const Step& last = steps[end];
      uint32_t begin = last.begin;
      if (unk_id_ && last.id == *unk_id_) {
        while (begin > 0 && steps[begin].id == *unk_id_) begin = steps[begin].begin;
        add_unknown(text.substr(begin, end - begin), begin, tokens);
      } else {
        tokens.push_back({last.id, begin, end});
      }
      end = begin;
    }
    std::reverse(tokens.begin() + static_cast<std::ptrdiff_t>(first), tokens.end());
  }

  // The run may be a piece that was not on the best path. Tokens are added from the last to the
  // first.
  void add_unknown(std::string_view run, uint32_t begin, std::vector<Token>& tokens) const {
    const uint32_t end = begin + static_cast<uint32_t>(run.size());
    if (const auto id = vocabulary().id(run)) {
      tokens.push_back({*id, begin, end});
    } else if (bytes_ && bytes_->has_all(run)) {
      std::for_each(run.rbegin(), run.rend(),
                    [&](char byte) { tokens.push_back({bytes_->id(byte), begin, end}); });
    } else {
      tokens.push_back({*unk_id_, begin, end, true});
    }
  }

  std::vector<double> scores_;
  std::optional<uint32_t> unk_id_;
  std::optional<ByteTokens> bytes_;
  Trie trie_;
  Trie::Node root_;
  double unk_score_ = std::numeric_limits<double>::infinity();
};

void Unigram::refuse_without_unk_id(std::string_view character) {
  throw TokenizerError("model.unk_id: must be the id of a piece, since no piece has " +
                       io::in_quotes(character) + ". Got null");
}

}  // namespace

std::unique_ptr<const Model> make_unigram(const Definition& definition) {
  return std::make_unique<Unigram>(definition);
}

}  // namespace posenc::text
