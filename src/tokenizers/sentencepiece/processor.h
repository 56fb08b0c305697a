#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizers/sentencepiece/pieces.h"

namespace posenc::text {

/// SentencePiece 0.2.3 itself, as transformers' classes in Python call it. Immutable.
class SentencePieceProcessor {
 public:
  /// Throws TokenizerError for a model that SentencePiece refuses.
  explicit SentencePieceProcessor(SentencePieceModel model);

  /// Memory of a thread for encode().
  struct Scratch {
    std::string spelled, unknown;
    std::vector<PieceMatch> parts;
    std::unique_ptr<PieceScratch> segmenter;
  };

  /// Calls `add` with each piece of a text in UTF-8, and its id; for an unknown part with its text.
  template <typename Add>
  void encode(std::string_view text, Scratch& scratch, Add&& add) const {
    cut(text, scratch);
    const std::vector<PieceMatch>& parts = scratch.parts;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const PieceMatch& part = parts[i];
      if (!table_.is_unknown(part.id)) {
        add(part.text, part.id);
      } else if (falls_back_to_bytes_) {
        for (const char byte : part.text) add_byte(static_cast<unsigned char>(byte), add);
      } else {
        std::string_view run = part.text;  // with the unknown parts after it
        for (; i + 1 < parts.size() && table_.is_unknown(parts[i + 1].id); ++i)
          run = {run.data(), run.size() + parts[i + 1].text.size()};
        add(run, part.id);
      }
    }
  }
  /// The text of pieces.
  std::string decode(const std::vector<std::string>& pieces) const;

  /// The id of a piece; the unknown one's for a text that is none.
  int32_t id(std::string_view piece) const { return table_.id(piece); }
  std::string_view piece(uint32_t id) const { return table_.text(static_cast<int32_t>(id)); }
  std::size_t size() const { return table_.size(); }
  const PieceTable& table() const { return table_; }

 private:
  void cut(std::string_view text, Scratch& scratch) const;
  template <typename Add>
  void add_byte(unsigned char byte, Add&& add) const {
    const std::string_view piece = byte_piece(byte);
    add(piece, table_.id(piece));
  }
  static std::string_view byte_piece(unsigned char byte);

  SentencePieceModel model_;  // without its pieces
  PieceTable table_;
  Spelling spelling_;
  std::unique_ptr<const Spelling> decoded_spelling_;  // null if the model has none
  std::unique_ptr<const PieceSegmenter> segmenter_;
  bool falls_back_to_bytes_;
};

}  // namespace posenc::text
