#pragma once

// The options of encoders, heads and classifiers, beside those of inference/freeze/option_fields.h;
// lint compares each list with the struct.

#include "inference/freeze/option_fields.h"
#include "inference/freeze/option_holders.h"
#include "posenc/models/attention_pooling.h"
#include "posenc/models/classifier.h"

POSENC_FIELDS(posenc::AttentionPoolingOptions,
              (d_model, num_heads, d_ff, activation, layer_norm_eps), ())
POSENC_FIELDS(posenc::EncoderOptions,
              (embeddings, patches, encoder, windows, causal, zero_padding, zero_hidden_padding,
               token_dropout_id, raw_inputs_embeds, pad_token_id, pos_embed_shift, pos_embed_jitter,
               pos_embed_rescale, document_bias, pooling, pooler_dim, eos_token_id,
               hidden_states_before_norm),
              (origin))
POSENC_FIELDS(posenc::EncoderHeadOptions,
              (d_model, outputs, rows, first_row, dense, dense_bias, activation, norm, norm_bias,
               bias, tied, columns_beside_table, output_activation),
              ())
POSENC_FIELDS(posenc::ClassifierOptions, (encoder, head), (kind, labels, problem))

namespace posenc {

/// The classes with options that freezable encoders and classifiers hold besides; lint compares
/// them, and those of inference/freeze/option_holders.h, with the headers.
using ModelOptionHolders =
    ModuleClasses<AttentionPoolingImpl, ClassifierImpl, EncoderHeadImpl, EncoderImpl>;

}  // namespace posenc
