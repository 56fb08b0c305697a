#pragma once

#include <string>

#include "posenc/models/functional/sparse_vectors.h"
#include "posenc/weights/state_dict.h"

namespace posenc::cli {

/// Vectors as posenc encode writes them.
struct StoredVectors {
  enum class Kind {
    Dense,      ///< `embeddings` (N, D)
    Bits,       ///< `embeddings` (N, D / 8), a bit for each entry
    Sparse,     ///< `crow_indices`, `col_indices`, `values` and `size`
    PerTokens,  ///< `embeddings` (T, D) and `lengths` (N)
  };

  Kind kind;
  at::Tensor rows = {};     ///< of all kinds but Sparse; float32 but for Bits
  at::Tensor lengths = {};  ///< of PerTokens: int64, which add up to the rows
  SparseVectors sparse = {};

  int64_t width() const;
};

/// Reads a file of them. Throws CommandError for one that is not.
StoredVectors read_stored_vectors(const std::string& path);

/// The names of similarities, of which some are for some kinds.
std::string similarity_names();
/// Throws CommandError unless the name is one of them, or empty.
void check_similarity(const std::string& name);

/// The scores (N, M) float32 of all vectors of `a` with all of `b`, by the similarity `name`; by
/// the usual one of their kind if it is empty. Throws CommandError for an unknown name, and for
/// vectors of different kinds or widths and kinds that the similarity is not for.
at::Tensor similarity_scores(const std::string& name, const StoredVectors& a,
                             const StoredVectors& b);

}  // namespace posenc::cli
