#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/models/decoder.h"

namespace posenc {

/// A causal language model without the product with its vocabulary.
struct ModelWithLogits {
  Encoder encoder;
  at::Tensor rows;                        ///< (N, D): those of some tokens in its output layer
  at::Tensor bias;                        ///< (N), theirs; undefined without one
  std::optional<DecoderOptions> options;  ///< of which those of logits are read
};

/// Loads that of a `...ForCausalLM` folder, as load_decoder() does, with the rows of these tokens.
/// Throws those errors in the name of `caller`, and c10::ValueError for ids that are not in the
/// vocabulary.
ModelWithLogits load_with_logits(const char* caller, const std::string& folder,
                                 const std::vector<int64_t>& tokens, const LoadOptions& options);

/// The logits (B, N) of last rows (B, D).
at::Tensor logits_of_tokens(const ModelWithLogits& model, const at::Tensor& rows);

}  // namespace posenc
