#pragma once

#include <ATen/core/Tensor.h>
#include <torch/nn/modules/container/modulelist.h>

namespace posenc {

/// Tokens (B, L, D), which of them are real, and their ids; all but the tokens may be undefined.
struct ConvolvedTokens {
  at::Tensor tokens, mask, ids;
};

/// The tokens after the convolutions of a CNN, `convs`. Those of each sequence are moved to its
/// beginning and followed by zeros, as its padding would be, and the mask is of what they become.
/// Throws c10::ValueError, naming SentenceStages and the stage's number, for sequences that are
/// shorter than a kernel and for convolutions that give different numbers of rows.
ConvolvedTokens convolved(const torch::nn::ModuleListImpl& convs, const ConvolvedTokens& given,
                          std::size_t number);

}  // namespace posenc
