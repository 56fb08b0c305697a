#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "posenc/functional/attention_mask.h"
#include "posenc/io/checkpoint.h"

namespace posenc {

/// A source and its target as token ids; a decoder's target has its begin and its end token.
struct TokenPair {
  std::vector<int64_t> src, tgt;
};

struct PairLoaderOptions {
  /// The id that pads shorter sequences.
  TORCH_ARG(int64_t, pad_id) = 0;
  /// Maximum number of pairs in a batch.
  TORCH_ARG(int64_t, max_rows) = 64;
  /// Maximum number of tokens in a batch, padding included: pairs * (longest source + longest
  /// target). 0: any.
  TORCH_ARG(int64_t, max_tokens) = 0;
  /// Decides the order of every epoch.
  TORCH_ARG(int64_t, seed) = 0;
  /// false: from short to long, the same in every epoch.
  TORCH_ARG(bool, shuffle) = true;
};

/// Pairs as tensors, on the CPU.
struct PairBatch {
  torch::Tensor src;           ///< (B, S), int64
  torch::Tensor tgt;           ///< (B, L), int64
  bool src_is_padded = false;  ///< some source is shorter than S
  int64_t pad_id = 0;
  int64_t tokens = 0;  ///< of both, without padding

  /// Keys that are no padding; none where there is no padding, which is faster.
  AttentionMask src_mask() const;
  /// What the decoder reads, tgt without its last column, and what it should predict: without its
  /// first. Throws c10::ValueError where no target has a second token.
  torch::Tensor tgt_input() const;
  torch::Tensor tgt_labels() const;
};

/// An endless stream of length-bucketed batches. In each epoch every pair occurs once, pairs of one
/// length are grouped anew, and the batches come in a new order. The same seed gives the same
/// batches on every machine.
///
/// Errors: c10::ValueError for no pairs, an empty sequence, a pair that alone exceeds max_tokens.
class PairLoader {
 public:
  explicit PairLoader(std::vector<TokenPair> pairs, const PairLoaderOptions& options = {});

  PairBatch next();

  /// Epochs that are complete, and batches that were taken of the one after them.
  int64_t epoch() const { return epoch_; }
  int64_t taken() const { return taken_; }

  /// The place in the data, for a checkpoint.
  TrainingNumbers state() const;
  /// Moves to that place. Throws c10::ValueError, and stays where it is, for a state of other
  /// pairs, options or seed.
  void restore(const TrainingNumbers& state);

 private:
  using Rows = std::vector<std::size_t>;  // places in pairs_
  std::vector<Rows> batches_of(int64_t epoch) const;
  double fingerprint() const;

  std::vector<TokenPair> pairs_;
  PairLoaderOptions options_;
  double fingerprint_ = 0.0;
  int64_t epoch_ = 0, taken_ = 0;
  std::vector<Rows> batches_;
};

}  // namespace posenc
