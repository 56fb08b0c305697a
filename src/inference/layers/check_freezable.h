#pragma once

#include <string>

#include "posenc/positions/nn/audio_embeddings.h"
#include "posenc/positions/nn/token_and_position_embedding.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"
#include "posenc/transformer/layers/window_encoder.h"

namespace posenc::inference {

/// Callers can exchange every part of a model, and change its options. The kernels do not check
/// sizes, and a stack has one layout and one number of heads, so freeze() calls these first. Each
/// throws c10::ValueError for a part that a frozen model would compute differently, by the name of
/// the part in the state_dict: `prefix` is that of the stack, `encoder.` or empty.
void check_freezable(const TransformerEncoderImpl& encoder, const std::string& prefix);
void check_freezable(const TransformerDecoderImpl& decoder, const std::string& prefix);
void check_freezable(const WindowEncoderImpl& encoder, const std::string& prefix);
/// The same for a stack inside a model of width `d_model` whose sequences are (B, L, D).
void check_stack_options(const TransformerLayerOptions& stack, const std::string& name,
                         int64_t d_model);
/// The same for an embedding of this width.
void check_freezable(const TokenAndPositionEmbeddingImpl& embedding, const std::string& name,
                     int64_t d_model);
/// The same for the embeddings of a source of features.
void check_freezable(const AudioEmbeddingsImpl& embeddings, const std::string& name,
                     int64_t d_model);
/// The same for the output layer, x (., D) weight^T + bias.
void check_output(const at::Tensor& weight, const at::Tensor& bias, const std::string& name,
                  int64_t d_model);

}  // namespace posenc::inference
