#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/label_lines.h"
#include "cli/precision.h"
#include "cli/prompt_options.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/text/text_labels.h"
#include "posenc/weights/load.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

struct ClassifyOptions {
  std::string folder;
  std::string file;  ///< "" or "-": standard input
  bool pair = false;
  int64_t batch = 32;
  PromptOptions prompt;
  std::optional<int64_t> top;     ///< number of labels; all unless set
  std::optional<int64_t> stride;  ///< of windows on long lines; these are cut unless set
  labels::Aggregation aggregation = labels::Aggregation::None;
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

/// Writes the labels of each line, or of its tokens, in the same order.
void classify_lines(const ClassifyOptions& options);

struct FillOptions {
  std::string folder;
  std::string file;  ///< "" or "-": standard input
  int64_t top = 5;
  int64_t batch = 32;
  std::vector<std::string> targets;  ///< the only tokens, unless it is empty
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

/// Writes the most probable tokens for each mask of each line.
void fill_lines(const FillOptions& options);

struct EncodeTextOptions {
  std::string folder, file, output;
  sentence::Task task = sentence::Task::None;
  PromptOptions prompt;
  bool normalize = false;
  int64_t truncate_dim = 0;  ///< 0: the folder's
  bool sparse = false;       ///< the folder is read as a SparseEncoder
  std::optional<int64_t> max_active_dims;
  bool decode = false;  ///< tokens with their weights are written instead of a file
  std::optional<int64_t> top;
  PrecisionOptions precision = {};
  bool per_token = false;    ///< whether a dense folder's head for tokens is used
  double pool_factor = 0.0;  ///< of the vectors of tokens; 0: they are not pooled
  int64_t batch = 32;
  FreezeOptions freezing = {};
  LoadOptions load = {};
};

/// Writes the vectors of the lines to a file: `embeddings` (N, D), or of a sparse model
/// `crow_indices`, `col_indices`, `values` and `size`; or prints the tokens of these; or writes the
/// vectors of their tokens.
void encode_text_lines(const EncodeTextOptions& options);
/// The same for a sparse model.
void encode_sparse_lines(const EncodeTextOptions& options);
/// Writes the vectors of the tokens of lines: `embeddings` (T, D) and `lengths` (N).
void encode_token_lines(const EncodeTextOptions& options);

/// Throws CommandError, that an option is for other vectors than those of the folder, if it is
/// given.
void refuse_if(bool is_given, const EncodeTextOptions& options, const char* option,
               const char* what);
/// The options that encode() of each class of models has.
template <typename Options>
Options encode_options(const EncodeTextOptions& options, CutLines& cut) {
  return Options()
      .task(options.task)
      .batch_size(options.batch)
      .prompt_name(options.prompt.name)
      .prompt(options.prompt.text)
      .on_truncated(cut.count());
}
/// Writes vectors to the output of the command, `embeddings` in the precision of the options.
void write_vectors(const EncodeTextOptions& options, const StateDict& vectors);

}  // namespace posenc::cli
