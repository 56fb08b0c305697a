#pragma once

#include "posenc/models/encoder.h"

namespace posenc {

/// Throws the errors that EncoderImpl::forward() documents for inputs that do not fit the options.
void check_encoder_inputs(const EncoderOptions& options, const at::Tensor& input,
                          const EncoderInputs& inputs);

/// The inputs, with the attention_mask that options.pad_token_id() gives where there is none.
EncoderInputs with_mask(const EncoderOptions& options, const at::Tensor& ids,
                        const EncoderInputs& inputs);

/// The input of the first layer: `embeddings` (B, L, D) of `ids` after what the options do to them.
at::Tensor masked_embeddings(const EncoderOptions& options, const at::Tensor& ids,
                             const EncoderInputs& inputs, const at::Tensor& embeddings);

/// The inputs of the embeddings of token ids.
EncoderEmbeddingsInputs embeddings_inputs(const EncoderOptions& options,
                                          const EncoderInputs& inputs);

/// The position ids that the layers rotate by; undefined for 0, 1, ... and without a rotary
/// embedding.
at::Tensor rotary_position_ids(const EncoderOptions& options, const EncoderInputs& inputs);

/// The mask of all layers for `length` tokens; `relative_bias` is undefined without buckets.
AttentionMask encoder_mask(const EncoderOptions& options, const EncoderInputs& inputs,
                           const at::Tensor& relative_bias, int64_t length);

/// Whether sees_padding() is because of the layers.
bool layers_see_padding(const EncoderOptions& options);

/// The row (B, D) of each sequence that is pooled; not for Pooling::None.
at::Tensor pooled_rows(const EncoderOptions& options, const at::Tensor& hidden,
                       const at::Tensor& ids);

/// Whether the pooled rows are projected.
bool has_pooler(const EncoderOptions& options);

/// Whether the pooling has any weights.
bool has_pooling_weights(const EncoderOptions& options);

}  // namespace posenc
