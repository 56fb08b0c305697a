#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/config/settings.h"
#include "posenc/models/frozen_file.h"

namespace posenc {

/// Seq2SeqWeights with a frozen model.
struct FrozenSeq2Seq {
  FrozenTransformer model;
  int64_t pad;
  std::string model_type;
  Settings config;
};

/// load_and_freeze_encoder() for an encoder-decoder.
FrozenSeq2Seq load_and_freeze_seq2seq(const std::string& folder, const FreezeOptions& options,
                                      const LoadOptions& load);

/// A frozen decoder of which the logits of some tokens are read, and the columns of its output
/// layer that give them.
struct FrozenTokenLogits {
  FrozenDecoder model;
  std::vector<int64_t> columns;

  /// The logits (N, columns) after each of N texts, of which `most` are computed at a time. Groups
  /// have the indices of texts that may begin alike: that is then computed once.
  at::Tensor after(const std::vector<std::vector<int64_t>>& texts,
                   const std::vector<std::vector<int64_t>>& groups, int64_t most) const;
};

/// load_and_freeze_decoder() in the name of `caller`. Unless the folder is frozen, the output layer
/// has the rows of these tokens alone, in float32. Throws c10::ValueError for tokens that are not
/// in the vocabulary.
FrozenTokenLogits load_token_logits(const char* caller, const std::string& folder,
                                    const std::vector<int64_t>& tokens,
                                    const FreezeOptions& options, const LoadOptions& load);

}  // namespace posenc
