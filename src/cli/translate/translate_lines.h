#pragma once

#include <cstdint>
#include <string>

#include "posenc/inference/freeze_options.h"
#include "posenc/weights/load.h"

namespace posenc::cli {

/// Settings of the search; 0 selects the model's own setting.
struct SearchOptions {
  int64_t beams = 0;
  int64_t max_length = 0;  ///< of a translation, in tokens
  int64_t n_best = 1;
  int64_t batch = 1024;            ///< source tokens per batch, including padding
  std::string src_lang, tgt_lang;  ///< codes of languages; empty: the folder's own
  std::string prefix;              ///< text before each line
  std::string target_prefix;       ///< text that begins each translation
  bool alignments = false;         ///< whether each token's place in the source is wanted
};

/// What is written for each line.
enum class LineFormat {
  Text,         ///< the translation
  Scores,       ///< LINE, SCORE and TEXT of each translation
  Json,         ///< an object with all of them
  AlignedJson,  ///< the same with the ids of tokens, and which of the source's each attends to most
};

/// The arguments of `posenc translate`.
struct TranslateOptions {
  std::string folder, file;
  std::string model;  ///< the folder, as --model gives it
  SearchOptions search;
  LineFormat format = LineFormat::Text;
  bool truncate = false;
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

/// Writes the translation of each line of a file to standard output. Throws CommandError if the
/// model or the text is invalid.
void translate_lines(const TranslateOptions& options);

}  // namespace posenc::cli
