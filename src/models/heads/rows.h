#pragma once

#include "posenc/models/encoder_head.h"

namespace posenc {

/// The row (B, D) of each sequence that a head takes; not for Rows::Tokens and MeanOfLogits, which
/// take all. Throws c10::ValueError for an output without it.
at::Tensor head_rows(const EncoderHeadOptions& options, const EncoderOutput& output,
                     const at::Tensor& attention_mask);

}  // namespace posenc
