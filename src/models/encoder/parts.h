#pragma once

#include <c10/util/FunctionRef.h>

#include <optional>
#include <vector>

#include "posenc/models/encoder.h"

namespace posenc {

/// Throws the errors that EncoderImpl::forward() documents for inputs that do not fit the options.
void check_encoder_inputs(const EncoderOptions& options, const at::Tensor& input,
                          const EncoderInputs& inputs);

/// The inputs, with the attention_mask that options.pad_token_id() gives where there is none.
EncoderInputs with_mask(const EncoderOptions& options, const at::Tensor& ids,
                        const EncoderInputs& inputs);

/// The embeddings of token ids, or of vectors that are given beside undefined ids.
using EmbedTokens =
    c10::function_ref<at::Tensor(const at::Tensor& ids, const EncoderEmbeddingsInputs& inputs)>;

/// The rows (B, L, E) of ids (B, L) in the table of tokens.
using TokenRows = c10::function_ref<at::Tensor(const at::Tensor& ids)>;
/// TokenRows of a table (V, E) of floating-point numbers.
at::Tensor token_rows(const EncoderOptions& options, const at::Tensor& tokens,
                      const at::Tensor& ids);

/// The input of the first layer, (B, L, D): what `embed` makes of ids or of their rows, as the
/// options say.
at::Tensor embed_tokens(const EncoderOptions& options, TokenRows rows_of, const at::Tensor& ids,
                        const EncoderInputs& inputs, EmbedTokens embed);

/// The ids (B, L) that the decoder of EncoderOptions::transformer gets beside ids (B, L), L > 0.
at::Tensor decoder_ids(const EncoderOptions& options, const at::Tensor& ids);

/// The mask of the rows that are kept after each layer; undefined if all are.
at::Tensor kept_rows(const EncoderOptions& options, const EncoderInputs& inputs);

/// The position ids that the layers rotate by; undefined for 0, 1, ... and without a rotary
/// embedding. Those of images are the coordinates (T, 2) of all tokens of `input`, zeros for those
/// before the patches, and in training random ones.
at::Tensor rotary_position_ids(const EncoderOptions& options, const at::Tensor& input,
                               const EncoderInputs& inputs, bool is_training = false);

/// The segments of tokens that the layers read; undefined for layers without them.
at::Tensor segments_of(const EncoderOptions& options, const EncoderInputs& inputs);

/// Whether the input is features, which are given as inputs_embeds.
bool takes_features(const EncoderOptions& options);

/// `ids`, `images` or `features`.
const char* input_name(const EncoderOptions& options);

/// The rotary embedding of a layer that has an attention or is a conformer's; null without one.
RotaryEmbedding rotary_of_layer(const torch::nn::Module& layer);

/// The width of last_hidden_state.
int64_t output_width(const EncoderOptions& options);

/// The rotary embeddings whose frequencies depend on how long a sequence is; empty without any.
std::vector<RotaryOptions> rotaries_by_length(const EncoderOptions& options);
/// The same for all lengths that have the same frequencies: sequences of other lengths would change
/// one another in a batch.
int64_t frequency_group(const std::vector<RotaryOptions>& rotaries, int64_t length);

/// The tokens of images before those of their patches: class tokens and registers.
int64_t tokens_before_patches(const EncoderOptions& options);

/// The mask of all layers for `length` tokens; `bias` may be null.
AttentionMask encoder_mask(const EncoderOptions& options, const EncoderInputs& inputs,
                           const DocumentPositionBias& bias, int64_t length);

/// Whether the stack or one of its layers has a grid bias.
bool has_grid_bias(const EncoderOptions& options);

/// The rows and columns of the patches of images; nothing for token ids.
std::optional<relative::Grid> grid_of(const EncoderOptions& options, const at::Tensor& input);

/// Whether sees_padding() is because of the layers.
bool layers_see_padding(const EncoderOptions& options);

/// The row (B, D) of each sequence that is pooled; not for Pooling::None.
at::Tensor pooled_rows(const EncoderOptions& options, const at::Tensor& hidden,
                       const at::Tensor& ids);

/// Whether the pooled rows are projected.
bool has_pooler(const EncoderOptions& options);

/// Whether the pooled rows are normalised.
bool has_pooler_norm(const EncoderOptions& options);

/// Whether the pooling has any weights.
bool has_pooling_weights(const EncoderOptions& options);

}  // namespace posenc
