#include "text/sentence/query_expansion.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/where.h>
#include <c10/util/Exception.h>

#include <algorithm>

namespace posenc::text {
namespace {

using Strategy = sentence::QueryExpansion::Strategy;

int64_t token_of(const char* caller, const sentence::QueryExpansion& rule,
                 const Tokenizer& tokenizer) {
  if (rule.token) {
    const auto id = tokenizer.token_to_id(*rule.token);
    TORCH_CHECK_VALUE(id, "[", caller, "] token of query_expansion must be in the vocabulary. Got ",
                      *rule.token);
    return *id;
  }
  for (const char* name : {"mask_token", "eos_token"})
    if (const auto id = tokenizer.special_token_id(name)) return *id;
  TORCH_CHECK_VALUE(false, "[", caller,
                    "] query_expansion must have a token where the tokenizer has neither a "
                    "mask_token nor an eos_token. Got no token");
}

// The smallest half of a window of the layers; nothing if all see all tokens.
std::optional<int64_t> smallest_window(const TransformerEncoderOptions& stack) {
  std::optional<int64_t> least = stack.layer().window();
  for (const TransformerLayerOptions& layer : stack.layers())
    if (layer.window() && (!least || *layer.window() < *least)) least = layer.window();
  return least;
}

}  // namespace

Expansion::Expansion(const char* caller, const sentence::QueryExpansion& rule_,
                     const Tokenizer& tokenizer, const EncoderOptions& encoder)
    : rule(rule_),
      id(token_of(caller, rule_, tokenizer)),
      is_before(rule_.strategy == Strategy::Fixed && tokenizer.pads_left()) {
  if (rule.attend) return;
  const auto window = smallest_window(encoder.encoder());
  TORCH_CHECK_VALUE(!window || *window >= rule.length - 1, "[", caller,
                    "] length of query_expansion with attend false must be at most the half of a "
                    "window of attention and one, ",
                    window.value_or(0) + 1, ": what is added might see no token. Got ",
                    rule.length);
  TORCH_CHECK_VALUE(!is_before || !encoder.causal(), "[", caller,
                    "] query_expansion with attend false must not add tokens before a text of a "
                    "causal model, which would see none. Got a tokenizer that pads on the left");
}

TokenBatch Expansion::apply(const TokenBatch& batch, at::Tensor& added) const {
  const int64_t rows = batch.input_ids.size(0), columns = batch.input_ids.size(1);
  const int64_t width = std::max(columns, rule.length);
  const at::Tensor lengths = batch.attention_mask.sum(1, /*keepdim=*/true);
  const at::Tensor places = at::arange(width, at::kLong).expand({rows, width});
  const at::Tensor missing = (rule.length - lengths).clamp_min(0);
  added = is_before ? places < missing : (places >= lengths).logical_and(places < rule.length);
  const at::Tensor from = is_before ? (places - missing).clamp_min(0) : places;
  const auto moved = [&](const at::Tensor& x) {
    const at::Tensor wide = at::constant_pad_nd(x, {0, width - columns}, 0);
    return is_before ? wide.gather(1, from) : wide;
  };
  TokenBatch result = batch;
  result.input_ids = moved(batch.input_ids).masked_fill(added, id);
  result.attention_mask = moved(batch.attention_mask).masked_fill(added, 1);
  if (batch.token_type_ids.defined())
    result.token_type_ids = moved(batch.token_type_ids).masked_fill(added, 0);
  return result;
}

}  // namespace posenc::text
