#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace posenc {

struct DecoderInputs;

/// The sequences of a batch without the padding on either side of them, R rows: each begins with
/// its first token, so that columns are positions, and under a causal mask no token sees what
/// follows.
struct TokenRuns {
  at::Tensor ids;                // (R, M), M tokens in the longest; zeros follow the others
  std::vector<int64_t> lengths;  // tokens of each
  at::Tensor places;  // (B, L): where in `ids`, flat, each of the batch is, or undefined if they
                      // are the same; of padding, where the nearest token is
  bool are_packed = false;  // whether rows of the batch are several sequences

  /// What x (R, M, D) has for the columns of the batch: (B, L, D).
  at::Tensor in_batch(const at::Tensor& x) const;
  /// The row of the last token of each sequence in x (R, M, D): (R, 1, D).
  at::Tensor last(const at::Tensor& x) const;
};

/// Throws the errors that Decoder documents, in the name of `module`, for ids (B, L) and the mask
/// or positions of `inputs`, of a model with `vocab` tokens.
TokenRuns token_runs(const char* module, const at::Tensor& ids, const DecoderInputs& inputs,
                     int64_t vocab);

/// A mask (B, L) of tokens whose rows are checked to have a token, and no hole: bool.
at::Tensor checked_mask(const char* module, const at::Tensor& mask, at::IntArrayRef sizes);

/// Throws c10::ValueError for ids at tokens that are not in [0, vocab); an undefined mask has no
/// padding. Ids on other devices are left to the look-up.
void check_ids(const char* module, const at::Tensor& ids, const at::Tensor& mask, int64_t vocab);

}  // namespace posenc
