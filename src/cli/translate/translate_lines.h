#pragma once

#include <cstdint>
#include <string>

#include "posenc/inference/freeze_options.h"

namespace posenc::cli {

/// Settings of the search; 0 selects the model's own setting.
struct SearchOptions {
  int64_t beams = 0;
  int64_t max_length = 0;  ///< of a translation, in tokens
  int64_t n_best = 1;
  int64_t batch = 1024;  ///< source tokens per batch, including padding
};

/// The arguments of `posenc translate`.
struct TranslateOptions {
  std::string folder, file;
  SearchOptions search;
  bool with_scores = false;  ///< prints LINE, SCORE and TEXT instead of the text alone
  bool truncate = false;
  int64_t threads = 0;
  WeightDtype weights = WeightDtype::Float32;
};

/// Writes the translation of each line of a file to standard output. Throws CommandError if the
/// model or the text is invalid, and always in a build without posenc::text.
void translate_lines(const TranslateOptions& options);

}  // namespace posenc::cli
