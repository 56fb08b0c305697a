#pragma once

#include <CLI/App.hpp>

#include <optional>
#include <string>
#include <vector>

#include "posenc/models/functional/quantize.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

/// How vectors are written: as they are, or in 8 bits or 1 bit an entry.
struct PrecisionOptions {
  std::optional<functional::EmbeddingPrecision> precision;
  std::string file;   ///< with `ranges`; empty: those of the vectors themselves
  at::Tensor ranges;  ///< those of the file
};

/// Adds --precision and --ranges.
std::vector<CLI::Option*> add_precision_options(CLI::App& sub, PrecisionOptions& options);

/// Reads the file of the options, if there is one. Throws CommandError for one without ranges, and
/// for bits, which have none.
void read_ranges(PrecisionOptions& options);

/// Vectors as a file has them: `embeddings` in that precision, and the `ranges` that were used.
StateDict quantized(const StateDict& vectors, const PrecisionOptions& options);

}  // namespace posenc::cli
