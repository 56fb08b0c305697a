#pragma once

#include <cstdint>
#include <string>

namespace posenc::cli {

struct TokenizeOptions {
  std::string folder;
  std::string file;  ///< "" or "-": standard input
  bool pair = false;
  bool no_special = false;
  bool json = false, count = false;
  int64_t max_length = 0;  ///< 0: not truncated
};

/// Writes the tokens of each line, in the same order.
void tokenize_lines(const TokenizeOptions& options);

struct DetokenizeOptions {
  std::string folder;
  std::string file;  ///< "" or "-": standard input
  bool keep_special = false;
};

/// Writes the text of the ids in each line.
void detokenize_lines(const DetokenizeOptions& options);

}  // namespace posenc::cli
