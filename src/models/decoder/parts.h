#pragma once

#include "posenc/models/decoder.h"

namespace posenc {

/// Logits as the options scale and cap them, of the products with the output layer.
at::Tensor scaled_logits(const DecoderOptions& options, const at::Tensor& products);

/// Whether the frequencies of a rotary embedding depend on how long a row is: rows of different
/// lengths then have different ones.
bool depends_on_length(const EncoderOptions& options);

/// The most tokens that a decoder's positions have: DecoderImpl::most_tokens().
int64_t most_tokens(const DecoderOptions& options);

}  // namespace posenc
