#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <optional>

#include "posenc/core/base_arg.h"
#include "posenc/export.h"
#include "posenc/positions/scale.h"

namespace posenc POSENC_EXPORT {

/// The places in which the embeddings of real encoders differ.
namespace embeddings {

/// Which of two tables is added to the tokens first. The two sums differ in their last bits.
enum class Order {
  TypesFirst,      ///< (tokens + types) + positions, as in BERT
  PositionsFirst,  ///< (tokens + positions) + types, as in Longformer
};

/// Where the layer norm is.
enum class Norm {
  None,          ///< there is none, as in GPT-2 and CLIP
  AfterSum,      ///< before the dropout, as in BERT
  AfterDropout,  ///< as in BigBird
  AfterTokens,   ///< before positions are added, as in Blenderbot's small decoder
};

/// Where a projection from the width of the tables to d_model is.
enum class Projection {
  None,           ///< the tables have the width d_model
  Last,           ///< of the result, as in ELECTRA and ALBERT
  BeforeDropout,  ///< after the norm, as in FNet
  Tokens,         ///< of the tokens alone, before positions are added, as in OPT
  Sum,            ///< of the sum, before the norm, as in DeBERTa
};

/// How the factor of the tokens is rounded before it is applied.
enum class ScaleRounding {
  None,        ///< not at all: a Python number
  ToWeight,    ///< to the dtype of the tokens, as in Gemma
  ToBFloat16,  ///< to bfloat16 always, as in RecurrentGemma
};

/// Base class of the options of embeddings: how rows of the tables become the result.
template <typename Derived>
class StepOptions {
 public:
  /// Token types are rows of the table of tokens, added where token_type_ids are given: GPT-2.
  POSENC_BASE_ARG(bool, types_from_tokens) = false;
  /// What is added to the tokens first.
  POSENC_BASE_ARG(Order, order) = Order::TypesFirst;
  /// Where the norm is.
  POSENC_BASE_ARG(Norm, norm) = Norm::None;
  /// Added to the variance in the norm.
  POSENC_BASE_ARG(double, layer_norm_eps) = 1e-12;
  /// Where the projection is.
  POSENC_BASE_ARG(Projection, projection) = Projection::None;
  /// Whether the projection takes the vectors of the next token, the token and the one before it,
  /// side by side, with zeros beyond both ends: MobileBERT. Needs Projection::Tokens.
  POSENC_BASE_ARG(bool, trigram_input) = false;
  /// Whether the norm normalises nothing, but multiplies by its weight and adds its bias:
  /// MobileBERT.
  POSENC_BASE_ARG(bool, no_norm) = false;
  /// Whether the layer norm is computed operation by operation, as in DeBERTa v1: other bits.
  POSENC_BASE_ARG(bool, stepwise_norm) = false;
  /// Factor of the tokens, before anything is added to them.
  POSENC_BASE_ARG(Scale, scale) = Scale::None;
  /// How this factor is rounded.
  POSENC_BASE_ARG(ScaleRounding, scale_rounding) = ScaleRounding::None;
  /// Probability of zeroing an element in training, in [0, 1).
  POSENC_BASE_ARG(double, dropout) = 0.0;
  /// The row of the tokens that gets no gradient, and that a module initialises to zeros; a
  /// negative index counts from the end.
  POSENC_BASE_ARG(std::optional<int64_t>, padding_idx) = std::nullopt;
  /// The same for a row of positions.
  POSENC_BASE_ARG(std::optional<int64_t>, position_padding_idx) = std::nullopt;
  /// The same for a row of token types.
  POSENC_BASE_ARG(std::optional<int64_t>, type_padding_idx) = std::nullopt;
};

}  // namespace embeddings

namespace functional {

/// The tensors of the embeddings. Steps whose tensor is undefined are skipped.
struct EncoderEmbeddingsWeights {
  at::Tensor tokens;       ///< (V, E)
  at::Tensor positions;    ///< (P, E); (P, D) with Projection::Tokens
  at::Tensor token_types;  ///< (K, E); as positions
  at::Tensor task_types;   ///< (T, E), added last; as positions
  /// (Q, E), of the boxes' x, added after the positions: LayoutLM. Or (Q, C), and h_positions
  /// (Q, S) with 4 C + 2 S = E, where the six rows of a box are side by side: LayoutLMv3.
  at::Tensor x_positions;
  at::Tensor y_positions;        ///< the same of y; all four are given or none
  at::Tensor h_positions;        ///< the same of their heights
  at::Tensor w_positions;        ///< the same of their widths
  at::Tensor norm_weight;        ///< the width where the norm is
  at::Tensor norm_bias;          ///< as norm_weight
  at::Tensor projection_weight;  ///< (D, E); (D, 3 E) with trigram_input
  at::Tensor projection_bias;    ///< (D)
};

/// Options of encoder_embeddings(). The norm is AfterSum and the projection Last unless set, if
/// there are a norm_weight and a projection_weight.
struct EncoderEmbeddingsFuncOptions : embeddings::StepOptions<EncoderEmbeddingsFuncOptions> {
  /// The default options.
  EncoderEmbeddingsFuncOptions() {
    norm(embeddings::Norm::AfterSum).projection(embeddings::Projection::Last);
  }

  /// The position of the first token, without position_ids.
  TORCH_ARG(int64_t, offset) = 0;
  /// Rows of the table of positions, (L), (1, L) or (B, L); no offset is added to them.
  TORCH_ARG(at::Tensor, position_ids) = {};
  /// Rows of the table of token types, as `ids`; row 0 for all tokens unless given.
  TORCH_ARG(at::Tensor, token_type_ids) = {};
  /// Rows of the table of task types, as `ids`; row 0 for all tokens unless given.
  TORCH_ARG(at::Tensor, task_type_ids) = {};
  /// The box (x0, y0, x1, y1) of each token, (..., 4): its edges are rows of x_positions and
  /// y_positions, y1 - y0 is one of h_positions, and x1 - x0 one of w_positions, both clipped to
  /// [0, 1023] where the rows are side by side. Zeros unless given.
  TORCH_ARG(at::Tensor, bbox) = {};
  /// Whether dropout is applied.
  TORCH_ARG(bool, training) = false;
};

/// The input of an encoder's first layer from token ids, with tables that are trained:
/// dropout(norm((tokens[ids] * scale + token_types[type_ids]) + positions[position_ids])), where
/// the options determine which of these steps are applied, and in which order.
///
/// ids: (B, L) or (L), any integer type  ->  (..., D).
///
/// On the CPU in float32, forward and backward are one pass over memory each, including the norm,
/// and bit-identical to PyTorch's separate operations; the gradients are summed in autograd's
/// order. In all other cases the operations are run one by one.
///
/// Errors: c10::IndexError for an id, a type or a position outside its table, with its place;
/// c10::TypeError for ids that are not integers; c10::ValueError for shapes that do not match,
/// position_ids combined with an offset, and a dropout outside [0, 1).
at::Tensor encoder_embeddings(const at::Tensor& ids, const EncoderEmbeddingsWeights& weights,
                              const EncoderEmbeddingsFuncOptions& options = {});

}  // namespace functional
}  // namespace posenc
