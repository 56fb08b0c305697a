#include "tokenizers/sentencepiece/processor.h"

#include <utility>

#include "tokenizers/decoders/lossy_utf8.h"
#include "tokenizers/decoders/replace_all.h"
#include "tokenizers/sentencepiece/byte_pieces.h"

namespace posenc::text {
namespace {

constexpr std::string_view kBlankPiece = "\u2581";

std::vector<std::string_view> user_defined(const PieceTable& table) {
  std::vector<std::string_view> texts;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto id = static_cast<int32_t>(i);
    if (table.type(id) == SentencePiece::Type::UserDefined) texts.push_back(table.text(id));
  }
  return texts;
}

std::unique_ptr<const PieceSegmenter> make_segmenter(SentencePieceModel::Kind kind,
                                                     const PieceTable& table,
                                                     const Spelling& spelling) {
  switch (kind) {
    case SentencePieceModel::Kind::Unigram: return make_unigram_segmenter(table);
    case SentencePieceModel::Kind::Bpe: return make_bpe_segmenter(table, spelling);
    case SentencePieceModel::Kind::Word: return make_word_segmenter(table);
    case SentencePieceModel::Kind::Char: return make_character_segmenter(table, spelling);
  }
  return nullptr;
}

}  // namespace

SentencePieceProcessor::SentencePieceProcessor(SentencePieceModel model)
    : model_(std::move(model)),
      table_(model_),
      spelling_(model_.normalizer, model_.treat_whitespace_as_suffix, user_defined(table_)),
      segmenter_(make_segmenter(model_.kind, table_, spelling_)),
      falls_back_to_bytes_(model_.byte_fallback) {
  if (!model_.denormalizer.precompiled_charsmap.empty())
    decoded_spelling_ =
        std::make_unique<Spelling>(model_.denormalizer, false, std::vector<std::string_view>());
  model_.pieces = {};
}

void SentencePieceProcessor::cut(std::string_view text, Scratch& scratch) const {
  scratch.parts.clear();
  spelling_.spell(text, scratch.spelled);
  if (scratch.spelled.empty()) return;
  if (!scratch.segmenter) scratch.segmenter = segmenter_->scratch();
  segmenter_->cut(scratch.spelled, *scratch.segmenter, scratch.parts);
}

std::string_view SentencePieceProcessor::byte_piece(unsigned char byte) {
  return byte_pieces()[byte];
}

std::string SentencePieceProcessor::decode(const std::vector<std::string>& pieces) const {
  std::string text, bytes, part;
  const auto add_bytes = [&] {
    if (!bytes.empty()) text += lossy_utf8_by_byte(bytes);
    bytes.clear();
  };
  const SentencePieceSpelling& rules = model_.normalizer;
  bool is_first = true;  // whether a blank that the encoder has put first may come
  for (const std::string& piece : pieces) {
    const int32_t id = table_.id(piece);
    const bool is_known = id != PieceMatch::kNoPiece;
    if (is_known && table_.type(id) == SentencePiece::Type::Byte) {
      bytes += static_cast<char>(*byte_of_piece(piece));
      continue;
    }
    add_bytes();
    if (!text.empty()) is_first = false;
    if (is_known && table_.type(id) == SentencePiece::Type::Control) continue;
    std::string_view rest = piece;
    bool has_blank = false;
    if (is_first && (rules.add_dummy_prefix || rules.remove_extra_whitespaces)) {
      has_blank = rest.starts_with(kBlankPiece);
      if (has_blank) rest.remove_prefix(kBlankPiece.size());
      if (rules.remove_extra_whitespaces) has_blank = false;
    }
    if (table_.is_unknown(id)) {
      text += is_known && table_.text(id) == piece ? model_.unk_surface : piece;
    } else {
      part = rest;
      replace_all(part, kBlankPiece, " ");
      text += part;
    }
    if (has_blank || !text.empty()) is_first = false;
  }
  add_bytes();
  if (!decoded_spelling_) return text;
  std::string spelled;
  decoded_spelling_->spell(text, spelled);
  return spelled;
}

}  // namespace posenc::text
