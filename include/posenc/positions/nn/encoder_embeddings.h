#pragma once

#include <torch/nn/modules/common.h>
#include <torch/nn/modules/dropout.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/pimpl.h>

#include <string>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/core/state_dict_traits.h"
#include "posenc/export.h"
#include "posenc/positions/nn/encoder_embeddings_options.h"
#include "posenc/positions/nn/layer_norm.h"
#include "posenc/positions/nn/learned_position_embedding.h"

namespace posenc POSENC_EXPORT {

/// The embeddings of tokens, positions and token types at the start of an encoder, with the
/// norm, the projection and the dropout that a system has there; functional::encoder_embeddings()
/// has the formula.
///
/// ids: (B, L) or (L)  ->  (..., d_model).
///
/// ```cpp
/// const auto options = posenc::encoder_embeddings_preset("bert", R"({"hidden_size": 8})");
/// posenc::EncoderEmbeddings embeddings(options);
/// torch::Tensor ids = torch::tensor({{101, 7592, 2088, 102}});
/// torch::Tensor x = embeddings->forward(ids);  // (B, L, 8)
/// ```
///
/// Keys: those in `names`, by default `word_embeddings.weight`, `position_embeddings.weight`,
/// `token_type_embeddings.weight`, `task_type_embeddings.weight`, `LayerNorm.weight`,
/// `LayerNorm.bias`, `projection.weight` and `projection.bias`, and those of boxes,
/// `x_position_embeddings.weight` and the same with `y_`, `h_` and `w_`, as far as the options
/// require them.
/// A sinusoidal table is a parameter without gradient unless `train_sinusoid` is set.
///
/// Errors: those of functional::encoder_embeddings(); c10::IndexError for more tokens than the
/// table has positions; c10::ValueError for options that contradict each other and for inputs that
/// the options do not use.
///
/// Source: the `...Embeddings` classes of transformers 5.23, such as `BertEmbeddings`.
class EncoderEmbeddingsImpl : public Cloneable<EncoderEmbeddingsImpl>, public StateDictTraits {
 public:
  /// A module with the given options.
  explicit EncoderEmbeddingsImpl(EncoderEmbeddingsOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;
  /// The buffers of position ids and types that older files of transformers hold.
  std::vector<std::string> non_persistent_names() const override;

  /// Returns the embedded ids.
  torch::Tensor forward(const torch::Tensor& ids, const EncoderEmbeddingsInputs& inputs = {});

  /// Makes a trained table of positions long enough for sequences of `max_tokens` tokens; see
  /// functional::extend_positions(). It replaces the parameter, so create optimisers afterwards.
  ///
  /// Errors: c10::ValueError for fewer tokens than there are positions, and without a trained
  /// table.
  void extend_positions(int64_t max_tokens, PositionExtension rule);

  /// How many tokens a sequence may have; the largest int64 without positions.
  int64_t max_tokens() const;

  EncoderEmbeddingsOptions options;             ///< the options given to the constructor
  torch::nn::Embedding tokens{nullptr};         ///< the table of tokens
  LearnedPositionEmbedding positions{nullptr};  ///< the table of positions
  torch::nn::Embedding token_types{nullptr};    ///< the table of token types
  torch::nn::Embedding task_types{nullptr};     ///< the table of task types
  torch::nn::Embedding x_positions{nullptr};    ///< the table of left and right edges of boxes
  torch::nn::Embedding y_positions{nullptr};    ///< the table of upper and lower edges
  torch::nn::Embedding h_positions{nullptr};    ///< the table of heights
  torch::nn::Embedding w_positions{nullptr};    ///< the table of widths
  LayerNorm norm{nullptr};                      ///< the norm
  torch::nn::Linear projection{nullptr};        ///< the projection
  torch::nn::Dropout dropout{nullptr};          ///< the dropout

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(EncoderEmbeddingsInputs())})
};

TORCH_MODULE(EncoderEmbeddings);

}  // namespace posenc
