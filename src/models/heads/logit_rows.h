#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/models/encoder.h"

namespace posenc {

/// A causal language model without the product with its vocabulary.
struct ModelWithLogits {
  Encoder encoder;
  at::Tensor rows;                ///< (N, D): those of some tokens in its output layer
  std::optional<double> softcap;  ///< logits become softcap * tanh(logits / softcap)
};

/// Loads that of a `...ForCausalLM` folder, as load_encoder() does, with the rows of these tokens:
/// of `lm_head`, or of the table of tokens where the configuration ties them and there is none.
/// Throws those errors in the name of `caller`, c10::ValueError for a model that is not causal and
/// for ids that are not in the vocabulary, and WeightsError for an output layer that is not there.
ModelWithLogits load_with_logits(const char* caller, const std::string& folder,
                                 const std::vector<int64_t>& tokens, const LoadOptions& options);

/// The logits (B, N) of last rows (B, D).
at::Tensor logits_of_tokens(const ModelWithLogits& model, const at::Tensor& rows);

}  // namespace posenc
