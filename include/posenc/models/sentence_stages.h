#pragma once

#include <torch/nn/pimpl.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/core/cloneable.h"
#include "posenc/export.h"
#include "posenc/functional/elementwise.h"

namespace posenc POSENC_EXPORT {

/// What a model of sentence-transformers does with the output of its encoder.
namespace sentence {

/// How rows of tokens become one; posenc/functional/pooling.h has the formulas.
enum class PoolingMode { CLS, Max, Mean, MeanSqrtLength, WeightedMean, LastToken };

/// What a stage reads and writes.
enum class Feature {
  Sentence,  ///< the vector of each sequence, (B, D)
  Tokens,    ///< those of its tokens, (B, L, D)
};

/// Tokens (B, L, D) -> sentences (B, modes * D), one mode after another.
struct Pooling {
  std::vector<PoolingMode> modes = {PoolingMode::Mean};  ///< in the order of the result
  bool include_prompt = true;  ///< false: the tokens of the prompt do not count
};

/// y = activation(x W^T + b); with a residual connection + x, or + x R^T if the widths differ.
struct Dense {
  int64_t in_features;                         ///< width of x
  int64_t out_features;                        ///< width of y
  bool bias = true;                            ///< whether there is b
  Elementwise activation = Elementwise::Tanh;  ///< what follows
  bool use_residual = false;                   ///< whether there is a residual connection
  Feature input = Feature::Sentence;           ///< x
  Feature output = Feature::Sentence;          ///< y
};

/// x / max(|x|, 1e-12).
struct Normalize {
  Feature input = Feature::Sentence;   ///< x
  Feature output = Feature::Sentence;  ///< the result
};

/// Layer normalisation of the sentences, with eps 1e-5.
struct LayerNorm {
  int64_t dimension;  ///< their width
};

/// Dropout of the sentences, which acts in training alone.
struct Dropout {
  double p = 0.2;  ///< its probability
};

/// One stage.
using Stage = std::variant<Pooling, Dense, Normalize, LayerNorm, Dropout>;

}  // namespace sentence

/// Options of SentenceStages; load_sentence_stages() has those of real models.
struct SentenceStagesOptions {
  /// Stages after an encoder of width `d_model`.
  explicit SentenceStagesOptions(int64_t d_model) : d_model_(d_model) {}

  /// Width D of the encoder's last hidden state.
  TORCH_ARG(int64_t, d_model);
  /// The stages in order.
  TORCH_ARG(std::vector<sentence::Stage>, stages);
  /// Whether the encoder already gives sentences (B, D), as static embeddings do.
  TORCH_ARG(bool, takes_sentences) = false;
};

/// The stages of a model of sentence-transformers after its encoder: what makes a sentence vector
/// of the rows of its tokens.
///
/// hidden: (B, L, D), attention_mask: (B, L)  ->  (B, width()). In half types the result has their
/// dtype.
///
/// ```cpp
/// posenc::SentenceStages stages(posenc::SentenceStagesOptions(8).stages(
///     {posenc::sentence::Pooling{}, posenc::sentence::Normalize{}}));
/// torch::Tensor of_texts = stages->forward(torch::randn({2, 5, 8}));  // (2, 8)
/// ```
///
/// Keys: those of sentence-transformers, `<i>.linear.weight`, `<i>.linear.bias`,
/// `<i>.residual.weight` of a Dense and `<i>.norm.weight`, `<i>.norm.bias` of a LayerNorm, where i
/// counts the stages from 1, the encoder being 0.
///
/// Errors: c10::ValueError for widths that do not follow from each other, stages that read what no
/// stage has made, and inputs of another shape.
///
/// Source: sentence-transformers 6.2.
class SentenceStagesImpl : public Cloneable<SentenceStagesImpl> {
 public:
  /// A module with the given options.
  explicit SentenceStagesImpl(SentenceStagesOptions options_);

  void reset() override;
  /// Draws new initial weights.
  void reset_parameters();
  void pretty_print(std::ostream& stream) const override;

  /// The sentence vectors of a batch. The first `prompt_length` real tokens of each sequence are
  /// those of a prompt, which some models do not pool.
  torch::Tensor forward(const torch::Tensor& hidden, const torch::Tensor& attention_mask = {},
                        int64_t prompt_length = 0);
  /// Width of the sentence vectors.
  int64_t width() const;
  /// Whether a stage leaves out the tokens of a prompt.
  bool excludes_prompt() const;
  /// Whether a sequence without tokens has a vector: max and cls pooling have none.
  bool defines_empty() const;

  SentenceStagesOptions options;  ///< the options given to the constructor

 protected:
  POSENC_FORWARD_HAS_DEFAULT_ARGS({1, torch::nn::AnyValue(torch::Tensor())},
                                  {2, torch::nn::AnyValue(int64_t{0})})
};

TORCH_MODULE(SentenceStages);

}  // namespace posenc
