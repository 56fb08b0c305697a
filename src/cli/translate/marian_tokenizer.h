#pragma once

#include <sentencepiece_processor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "cli/translate/added_tokens.h"
#include "cli/translate/vocabulary.h"

namespace posenc::cli {

/// Converts text to a Marian model's ids and back, like transformers' MarianTokenizer, with the
/// files of the model's folder: source.spm, target.spm, vocab.json, target_vocab.json if there are
/// two vocabularies, and the files that add tokens (tokenizer_settings.h). As in transformers 5,
/// target.spm is used only with two vocabularies; otherwise source.spm also joins translations.
class MarianTokenizer {
 public:
  /// Throws CommandError, and WeightsError for a file that cannot be read.
  explicit MarianTokenizer(const std::string& folder);

  /// Encodes a line of UTF-8; the end token comes last. Recognises added and special tokens in the
  /// text, and a leading `>>lang<<`. Tokens that are not in the vocabulary become <unk>. An added
  /// token's id may exceed the model's vocabulary.
  std::vector<int64_t> encode(std::string_view line) const;
  /// Decodes ids to one line of text, without special tokens.
  std::string decode(const std::vector<int64_t>& ids) const;

  int64_t largest_source_id() const { return source_.largest_id(); }
  /// The added token with that id, or nullptr.
  const AddedToken* added_token(int64_t id) const { return added_.find(id); }

 private:
  void read_settings(const std::string& folder);
  void encode_plain(std::string_view text, std::vector<int64_t>& ids) const;
  int64_t id_of(const std::string& token) const;
  std::string token_of(int64_t id) const;
  const sentencepiece::SentencePieceProcessor& output_pieces() const;
  std::string joined(const std::vector<std::string>& pieces) const;

  Vocabulary source_;
  std::unique_ptr<Vocabulary> target_;  // if it is not the source's
  sentencepiece::SentencePieceProcessor source_pieces_, target_pieces_;
  AddedTokens added_;  // including the special ones
  std::unordered_set<int64_t> special_ids_;
  std::unordered_set<std::string> special_texts_;
  int64_t unknown_ = 0, end_ = 0;
  bool cleans_up_ = false, splits_specials_ = false;
};

}  // namespace posenc::cli
