#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/definition/definition.h"
#include "tokenizers/models/vocabulary.h"
#include "tokenizers/sentencepiece/model_proto.h"
#include "tokenizers/sentencepiece/spelling.h"

namespace posenc::text {

/// A part of a spelled text, and the piece that it is; kNoPiece for an unknown one of a model
/// without an unknown piece.
struct PieceMatch {
  static constexpr int32_t kNoPiece = -1;
  std::string_view text;
  int32_t id = kNoPiece;
};

/// The pieces of a SentencePiece model and what they are for.
class PieceTable {
 public:
  /// Throws TokenizerError for a model that SentencePiece refuses.
  explicit PieceTable(const SentencePieceModel& model);

  /// The piece with this text, or the unknown one.
  int32_t id(std::string_view piece) const;
  /// The same of the pieces that a text may be cut into.
  int32_t searched_id(std::string_view piece) const;
  std::string_view text(int32_t id) const { return texts_[static_cast<std::size_t>(id)]; }
  SentencePiece::Type type(int32_t id) const { return types_[static_cast<std::size_t>(id)]; }
  float score(int32_t id) const { return scores_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return texts_.size(); }
  int32_t unknown() const { return unknown_; }
  bool is_unknown(int32_t id) const {
    return id == PieceMatch::kNoPiece || type(id) == SentencePiece::Type::Unknown;
  }
  /// Whether the piece is one that a text may be cut into.
  bool is_searched(int32_t id) const;

 private:
  Definition strings_;  // keeps them
  std::vector<std::string_view> texts_;
  std::vector<SentencePiece::Type> types_;
  std::vector<float> scores_;
  std::optional<Vocabulary> searched_, reserved_;
  int32_t unknown_ = PieceMatch::kNoPiece;
};

/// Memory of a thread for PieceSegmenter.
class PieceScratch {
 public:
  virtual ~PieceScratch() = default;
};

/// Cuts a spelled text into pieces, as one kind of model does.
class PieceSegmenter {
 public:
  virtual ~PieceSegmenter() = default;
  virtual std::unique_ptr<PieceScratch> scratch() const = 0;
  /// Writes the parts of `text`, which is not empty, to `parts`.
  virtual void cut(std::string_view text, PieceScratch& scratch,
                   std::vector<PieceMatch>& parts) const = 0;
};

/// SentencePiece's kinds of models. The table and the spelling must outlive them.
std::unique_ptr<const PieceSegmenter> make_unigram_segmenter(const PieceTable& table);
std::unique_ptr<const PieceSegmenter> make_bpe_segmenter(const PieceTable& table,
                                                         const Spelling& spelling);
std::unique_ptr<const PieceSegmenter> make_character_segmenter(const PieceTable& table,
                                                               const Spelling& spelling);
std::unique_ptr<const PieceSegmenter> make_word_segmenter(const PieceTable& table);

}  // namespace posenc::text
