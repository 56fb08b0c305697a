#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "posenc/export.h"
#include "posenc/train/checkpoint.h"
#include "posenc/transformer/functional/attention_mask.h"

namespace posenc POSENC_EXPORT {

/// A source and its target as token ids. A decoder's target includes its begin and end tokens.
/// Where no pair has a source, they are texts of a language model alone.
struct TokenPair {
  std::vector<int64_t> src;  ///< the source
  std::vector<int64_t> tgt;  ///< the target
};

/// Options of PairLoader.
struct PairLoaderOptions {
  /// The padding id, which no pair may contain but as the first token of a target: models such as
  /// Marian and T5 begin with it.
  TORCH_ARG(int64_t, pad_id) = 0;
  /// Maximum number of pairs in a batch.
  TORCH_ARG(int64_t, max_rows) = 64;
  /// Maximum number of tokens in a batch, including padding: pairs * (longest source + longest
  /// target). 0: no limit.
  TORCH_ARG(int64_t, max_tokens) = 0;
  /// Determines the order of all epochs.
  TORCH_ARG(int64_t, seed) = 0;
  /// Shuffles each epoch; false: from short to long, the same in every epoch.
  TORCH_ARG(bool, shuffle) = true;
};

/// A batch of pairs, on the CPU.
struct PairBatch {
  torch::Tensor src;           ///< (B, S), int64
  torch::Tensor tgt;           ///< (B, L), int64
  bool src_is_padded = false;  ///< whether a source is shorter than S
  int64_t pad_id = 0;          ///< the padding id
  int64_t tokens = 0;          ///< number of tokens in src and tgt, without padding

  /// The mask of padding in src; none if there is no padding, which is faster.
  AttentionMask src_mask() const;
  /// The decoder's input: tgt without its last column.
  ///
  /// Errors: c10::ValueError if no target has a second token.
  torch::Tensor tgt_input() const;
  /// The tokens that the decoder should predict: tgt without its first column.
  ///
  /// Errors: those of tgt_input().
  torch::Tensor tgt_labels() const;
};

/// The pairs of `whole` that process `rank` of `ranks` trains on: every ranks-th pair, without
/// columns that are padding only. It may be empty.
///
/// Errors: c10::ValueError for a rank outside [0, ranks).
PairBatch share(const PairBatch& whole, int64_t rank, int64_t ranks);

/// An endless stream of length-bucketed batches. Each epoch contains every pair once; pairs of
/// equal length are grouped differently, and batches are in a different order, in each epoch. The
/// same seed gives the same batches on every machine.
///
/// ```cpp
/// std::vector<posenc::TokenPair> pairs = {{{5, 6, 7}, {1, 7, 6, 5, 2}}, {{8}, {1, 8, 2}}};
/// posenc::PairLoader loader(pairs, posenc::PairLoaderOptions().max_rows(32));
/// posenc::PairBatch batch = loader.next();
/// ```
///
/// Errors: c10::ValueError for no pairs, an empty target, a source in some of them only, a target
/// of a single token, a pair that contains the padding id after its target's begin, and one that
/// alone exceeds max_tokens.
class PairLoader {
 public:
  /// A loader of `pairs`, at the start of the first epoch.
  explicit PairLoader(std::vector<TokenPair> pairs, const PairLoaderOptions& options = {});

  /// Returns the next batch.
  PairBatch next();

  /// Number of complete epochs.
  int64_t epoch() const { return epoch_; }
  /// Number of batches taken from the current epoch.
  int64_t batch_in_epoch() const { return taken_; }

  /// The position in the data, for a checkpoint.
  CheckpointScalars state() const;
  /// Moves to a saved position.
  ///
  /// Errors: c10::ValueError for the state of a loader with other pairs, options or seed; the
  /// position is then unchanged.
  void restore(const CheckpointScalars& state);

 private:
  using PairIndices = std::vector<std::size_t>;  // in pairs_
  std::vector<PairIndices> batches_of(int64_t epoch) const;
  double fingerprint() const;

  std::vector<TokenPair> pairs_;
  PairLoaderOptions options_;
  double fingerprint_ = 0.0;
  int64_t epoch_ = 0, taken_ = 0;
  std::vector<PairIndices> batches_;
};

}  // namespace posenc
