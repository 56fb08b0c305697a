#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <optional>
#include <string>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/positions/functional/encoder_embeddings.h"
#include "posenc/positions/sinusoid/options.h"

namespace posenc POSENC_EXPORT {

namespace embeddings {

/// How tokens without given position ids are numbered.
enum class PositionIds {
  None,            ///< there are no positions
  Arange,          ///< 0, 1, ... from the offset
  ArangeExpanded,  ///< the same expanded over the batch, as in BART: another order of gradient sums
  FromIds,         ///< positions_from_ids() with padding_idx, as in RoBERTa
  FromMask,        ///< positions_from_mask(), as in OPT
};

/// The names under which the embeddings register their modules. Systems differ in them.
struct Names {
  std::string tokens = "word_embeddings";             ///< the table of tokens
  std::string positions = "position_embeddings";      ///< the table of positions
  std::string token_types = "token_type_embeddings";  ///< the table of token types
  std::string task_types = "task_type_embeddings";    ///< the table of task types
  std::string norm = "LayerNorm";                     ///< the norm
  std::string projection = "projection";              ///< the projection

  POSENC_FIELDS(Names, tokens, positions, token_types, task_types, norm, projection);
};

}  // namespace embeddings

/// Options of EncoderEmbeddings. encoder_embeddings_preset() has those of real systems.
struct EncoderEmbeddingsOptions : embeddings::StepOptions<EncoderEmbeddingsOptions> {
  /// The default options for these sizes: tokens and learned positions, and nothing else.
  EncoderEmbeddingsOptions(int64_t vocab_size, int64_t d_model)
      : vocab_size_(vocab_size), d_model_(d_model) {}

  /// Number of tokens in the vocabulary.
  TORCH_ARG(int64_t, vocab_size);
  /// Width of the result.
  TORCH_ARG(int64_t, d_model);
  /// Width of the tables if a projection maps it to d_model; d_model unless set.
  TORCH_ARG(std::optional<int64_t>, embedding_dim) = std::nullopt;
  /// Number of rows of the table of positions, including those before position_offset.
  TORCH_ARG(int64_t, position_rows) = 512;
  /// How tokens are numbered.
  TORCH_ARG(embeddings::PositionIds, position_ids) = embeddings::PositionIds::Arange;
  /// Added to all position ids, including given ones: 2 in BART.
  TORCH_ARG(int64_t, position_offset) = 0;
  /// The position of the first token unless position ids are given: 2 in Nystromformer.
  TORCH_ARG(int64_t, first_position) = 0;
  /// A frozen sinusoidal table in place of a learned one.
  TORCH_ARG(std::optional<SinusoidOptions>, sinusoid) = std::nullopt;
  /// Whether this table only begins as a sinusoid and is trained: DistilBERT.
  TORCH_ARG(bool, train_sinusoid) = false;
  /// Number of token types; 0: none.
  TORCH_ARG(int64_t, type_vocab_size) = 0;
  /// Number of task types; 0: none.
  TORCH_ARG(int64_t, task_type_vocab_size) = 0;
  /// Rows of each of the four tables of boxes, which `x_position_embeddings`, ..., `w_` are called:
  /// LayoutLM; 0: none.
  TORCH_ARG(int64_t, box_positions) = 0;
  /// Width of the rows of the edges of boxes, where those of the four edges, the height and the
  /// width are side by side, and not a sum of rows of d_model channels: LayoutLMv3. Heights and
  /// widths are then at least 0 and at most 1023. 0: a sum.
  TORCH_ARG(int64_t, coordinate_size) = 0;
  /// The same for the rows of heights and widths; 4 coordinate_size + 2 shape_size is d_model.
  TORCH_ARG(int64_t, shape_size) = 0;
  /// Whether the norm has a bias.
  TORCH_ARG(bool, norm_bias) = true;
  /// Whether the projection has a bias.
  TORCH_ARG(bool, projection_bias) = true;
  /// The names of the modules.
  TORCH_ARG(embeddings::Names, names) = {};

  POSENC_FIELDS(EncoderEmbeddingsOptions, types_from_tokens_, order_, norm_, layer_norm_eps_,
                projection_, trigram_input_, no_norm_, stepwise_norm_, scale_, scale_rounding_,
                padding_idx_, position_padding_idx_, type_padding_idx_, vocab_size_, d_model_,
                embedding_dim_, position_rows_, position_ids_, position_offset_, first_position_,
                sinusoid_, type_vocab_size_, task_type_vocab_size_, box_positions_,
                coordinate_size_, shape_size_, norm_bias_, projection_bias_);
  POSENC_TRAINING_FIELDS(dropout_, train_sinusoid_, names_);
};

/// Inputs of embeddings besides the ids; all are optional.
struct EncoderEmbeddingsInputs {
  /// Number of tokens before these, for decoding with a cache; not for PositionIds::FromIds.
  TORCH_ARG(int64_t, offset) = 0;
  /// The type of each token, as the ids.
  TORCH_ARG(at::Tensor, token_type_ids) = {};
  /// The position of each token, (L) or (B, L), in place of the rule of the options.
  TORCH_ARG(at::Tensor, position_ids) = {};
  /// Nonzero for tokens and 0 for padding, (B, offset + L); read by PositionIds::FromMask only.
  TORCH_ARG(at::Tensor, attention_mask) = {};
  /// The task type of each token, as the ids.
  TORCH_ARG(at::Tensor, task_type_ids) = {};
  /// The box (x0, y0, x1, y1) of each token, as the ids with 4 more; zeros unless given.
  TORCH_ARG(at::Tensor, bbox) = {};
  /// The vectors of the tokens, (B, L, E) or (L, E), in place of the rows of the ids, which are
  /// then an undefined tensor. They are not scaled. PositionIds::FromIds then counts all tokens.
  TORCH_ARG(at::Tensor, inputs_embeds) = {};
};

}  // namespace posenc
