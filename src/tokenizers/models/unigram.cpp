#include "tokenizers/models/kinds.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "posenc/tokenizers/error.h"
#include "tokenizers/models/best_path.h"
#include "tokenizers/models/byte_tokens.h"
#include "tokenizers/models/vocabulary_model.h"
#include "tokenizers/models/word_cache.h"

namespace posenc::text {
namespace {

constexpr double kUnknownPenalty = 10;

struct UnigramScratch : Scratch {
  WordCache cache;
  BestPath<double> path;
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
    scratch.path.find(
        trie_, root_, piece, [&](uint32_t id, std::size_t) { return scores_[id]; }, unk_score_,
        [&](std::string_view character) {
          if (!unk_id_) refuse_without_unk_id(character);
          return *unk_id_;
        });
    add_tokens(piece, scratch.path, tokens);
    if (is_cacheable)
      scratch.cache.add(piece, hash, tokens.data() + before, tokens.data() + tokens.size());
  }

 private:
  [[noreturn]] static void refuse_without_unk_id(std::string_view character);

  // Neighbouring unknown pieces are one token.
  void add_tokens(std::string_view text, const BestPath<double>& path,
                  std::vector<Token>& tokens) const {
    const std::size_t first = tokens.size();
    for (auto end = static_cast<uint32_t>(text.size()); end > 0;) {
      auto [score, begin, id] = path.to(end);
      if (unk_id_ && id == *unk_id_) {
        while (begin > 0 && path.to(begin).id == *unk_id_) begin = path.to(begin).begin;
        add_unknown(text.substr(begin, end - begin), begin, tokens);
      } else {
        tokens.push_back({id, begin, end});
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
