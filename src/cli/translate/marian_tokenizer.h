#pragma once

#include <sentencepiece_processor.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/translate/vocabulary.h"

namespace posenc::cli {

/// Text to a Marian model's ids and back, as transformers' MarianTokenizer does it with the files
/// of the model's folder: source.spm, target.spm, vocab.json, target_vocab.json where the
/// vocabularies are two, and tokenizer_config.json where there is one. Targets are put together by
/// target.spm, which transformers 5 asks only where the vocabularies are two; the texts are the
/// same unless the two models disagree on what a piece is.
class MarianTokenizer {
 public:
  /// Throws Refused, and WeightsError for a file that cannot be read.
  explicit MarianTokenizer(const std::string& folder);

  /// The ids of a line of UTF-8, the end token last. Special tokens in the text are taken as such,
  /// and so is a first `>>lang<<`. What the vocabulary lacks is <unk>.
  std::vector<int64_t> encode(std::string_view line) const;
  /// The text of the ids: one line, without special tokens.
  std::string decode(const std::vector<int64_t>& ids) const;

  int64_t largest_source_id() const { return source_.largest_id(); }

 private:
  struct Special {
    std::string text;
    int64_t id;
  };

  void read_configuration(const std::string& path);
  void encode_plain(std::string_view text, std::vector<int64_t>& ids) const;
  int64_t id_of(const std::string& token) const;
  std::string token_of(int64_t id) const;

  Vocabulary source_;
  std::unique_ptr<Vocabulary> target_;  // where it is not the source's
  sentencepiece::SentencePieceProcessor source_pieces_, target_pieces_;
  std::vector<Special> specials_;
  int64_t unknown_ = 0, end_ = 0;
  bool cleans_up_ = false;
};

}  // namespace posenc::cli
