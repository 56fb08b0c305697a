#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace posenc::text {

/// A piece of a SentencePiece model.
struct SentencePiece {
  enum class Type { Normal = 1, Unknown = 2, Control = 3, UserDefined = 4, Unused = 5, Byte = 6 };

  std::string text;
  float score = 0;
  Type type = Type::Normal;
};

/// How a SentencePiece model spells a text, or what it has decoded: `sentencepiece.NormalizerSpec`.
struct SentencePieceSpelling {
  std::string precompiled_charsmap;
  bool add_dummy_prefix = true, remove_extra_whitespaces = true, escape_whitespaces = true;
};

/// What posenc reads of a SentencePiece model, the protocol buffer `sentencepiece.ModelProto`; with
/// the defaults of its definition.
struct SentencePieceModel {
  enum class Kind { Unigram = 1, Bpe = 2, Word = 3, Char = 4 };

  std::vector<SentencePiece> pieces;
  Kind kind = Kind::Unigram;
  bool byte_fallback = false;
  bool treat_whitespace_as_suffix = false;
  int32_t unk_id = 0, bos_id = 1, eos_id = 2;
  std::string unk_piece = "<unk>", bos_piece = "<s>", eos_piece = "</s>";
  std::string unk_surface = " \u2047 ";  // that the unknown piece is decoded to
  SentencePieceSpelling normalizer;
  SentencePieceSpelling denormalizer;  // used if it has a charsmap
};

/// Throws TokenizerError unless `bytes` is such a model, with pieces in UTF-8.
SentencePieceModel read_sentencepiece_proto(std::string_view bytes);

}  // namespace posenc::text
