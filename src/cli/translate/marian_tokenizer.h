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

/// Text to a Marian model's ids and back, as transformers' MarianTokenizer does it with the files
/// of the model's folder: source.spm, target.spm, vocab.json, target_vocab.json where the
/// vocabularies are two, and the files that add tokens (tokenizer_settings.h). As in transformers 5
/// target.spm is asked only there: one vocabulary's translations are put together by source.spm.
class MarianTokenizer {
 public:
  /// Throws Refused, and WeightsError for a file that cannot be read.
  explicit MarianTokenizer(const std::string& folder);

  /// The ids of a line of UTF-8, the end token last. Added and special tokens in the text are taken
  /// as such, and so is a first `>>lang<<`. What the vocabulary lacks is <unk>. An added token's id
  /// may be one that the model lacks.
  std::vector<int64_t> encode(std::string_view line) const;
  /// The text of the ids: one line, without special tokens.
  std::string decode(const std::vector<int64_t>& ids) const;

  int64_t largest_source_id() const { return source_.largest_id(); }
  /// The added token of that id; nullptr where there is none.
  const AddedToken* added_token(int64_t id) const { return added_.find(id); }

 private:
  void read_settings(const std::string& folder);
  void encode_plain(std::string_view text, std::vector<int64_t>& ids) const;
  int64_t id_of(const std::string& token) const;
  std::string token_of(int64_t id) const;
  const sentencepiece::SentencePieceProcessor& output_pieces() const;
  std::string joined(const std::vector<std::string>& pieces) const;

  Vocabulary source_;
  std::unique_ptr<Vocabulary> target_;  // where it is not the source's
  sentencepiece::SentencePieceProcessor source_pieces_, target_pieces_;
  AddedTokens added_;  // the special ones, too
  std::unordered_set<int64_t> special_ids_;
  std::unordered_set<std::string> special_texts_;
  int64_t unknown_ = 0, end_ = 0;
  bool cleans_up_ = false, splits_specials_ = false;
};

}  // namespace posenc::cli
