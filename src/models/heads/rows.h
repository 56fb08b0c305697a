#pragma once

#include <string>

#include "posenc/models/encoder_head.h"
#include "posenc/weights/load.h"

namespace posenc {

/// The row (B, D) of each sequence that a head takes; not for Rows::Tokens and MeanOfLogits, which
/// take all. Throws c10::ValueError for an output without it.
at::Tensor head_rows(const EncoderHeadOptions& options, const EncoderOutput& output,
                     const at::Tensor& attention_mask);

/// The head of `kind` alone, in eval mode, of a model that has several; as load_classifier().
EncoderHead load_head(const std::string& folder, head::Kind kind, const LoadOptions& options);

}  // namespace posenc
