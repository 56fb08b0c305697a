#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inference/generate/step_model.h"
#include "posenc/models/decoder.h"

namespace posenc {

/// load_decoder() in the name of another public function.
Decoder load_decoder_for(const char* caller, const std::string& folder, const LoadOptions& options);

/// Logits as the options scale and cap them, of the products with the output layer.
at::Tensor scaled_logits(const DecoderOptions& options, const at::Tensor& products);

/// Whether the frequencies of a rotary embedding depend on how long a row is: rows of different
/// lengths then have different ones.
bool depends_on_length(const EncoderOptions& options);

/// The most tokens that a decoder's positions have: DecoderImpl::most_tokens().
int64_t most_tokens(const DecoderOptions& options);

/// plan_search() of prompts for generate(), also of a frozen decoder.
SearchPlan plan_of_prompts(const DecoderOptions& options, const GenerateOptions& search,
                           const std::vector<std::vector<int64_t>>& prompts);

/// Throws the errors of score() for the texts.
void check_texts(const DecoderOptions& options, const std::vector<std::vector<int64_t>>& texts);

}  // namespace posenc
