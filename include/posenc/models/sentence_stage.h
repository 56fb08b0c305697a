#pragma once

// posenc-budget: one struct for each stage of sentence-transformers, of which Stage is one

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "posenc/core/fields.h"
#include "posenc/export.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc POSENC_EXPORT {

/// What a model of sentence-transformers does with the output of its encoder.
namespace sentence {

/// What a text is for. The prompt, the route, the most tokens and what is masked may depend on it.
enum class Task { None, Query, Document };

/// How rows of tokens become one; posenc/models/functional/pooling.h has the formulas.
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

  POSENC_FIELDS(Pooling, modes, include_prompt);
};

/// y = activation(x W^T + b); with a residual connection + x, or + x R^T if the widths differ.
struct Dense {
  int64_t in_features;                       ///< width of x
  int64_t out_features;                      ///< width of y
  bool bias = true;                          ///< whether there is b
  Activation activation = Activation::Tanh;  ///< what follows
  bool use_residual = false;                 ///< whether there is a residual connection
  Feature input = Feature::Sentence;         ///< x
  Feature output = Feature::Sentence;        ///< y

  POSENC_FIELDS(Dense, in_features, out_features, bias, activation, use_residual, input, output);
};

/// x / max(|x|, 1e-12).
struct Normalize {
  Feature input = Feature::Sentence;   ///< x
  Feature output = Feature::Sentence;  ///< the result

  POSENC_FIELDS(Normalize, input, output);
};

/// Layer normalisation of the sentences, with eps 1e-5.
struct LayerNorm {
  int64_t dimension;  ///< their width

  POSENC_FIELDS(LayerNorm, dimension);
};

/// Dropout of the sentences, which acts in training alone.
struct Dropout {
  double p = 0.2;  ///< its probability

  POSENC_FIELDS(Dropout, p);
};

/// Tokens become the weighted mean of the encoder's hidden states from layer_start on, of which the
/// embeddings are number 0.
struct WeightedLayerPooling {
  int64_t num_hidden_layers = 12;  ///< the encoder's layers
  int64_t layer_start = 4;         ///< the first hidden state that counts

  POSENC_FIELDS(WeightedLayerPooling, num_hidden_layers, layer_start);
};

/// Each token is multiplied by the weight of its id. Means of the tokens are then sums divided by
/// the sum of the weights in place of the number of tokens.
struct WordWeights {
  int64_t vocab_size;  ///< ids that have a weight

  POSENC_FIELDS(WordWeights, vocab_size);
};

/// Convolutions over the tokens, side by side, each padded by (kernel - 1) / 2 zeros: out_channels
/// for each kernel. Tokens that are masked do not take part, as if each text were alone.
struct CNN {
  int64_t in_embedding_dimension;                 ///< width of the tokens
  int64_t out_channels = 256;                     ///< of each convolution
  std::vector<int64_t> kernel_sizes = {1, 3, 5};  ///< a convolution for each
  std::vector<int64_t> stride_sizes = {};         ///< of each convolution; empty: 1

  POSENC_FIELDS(CNN, in_embedding_dimension, out_channels, kernel_sizes, stride_sizes);
};

/// How SpladePooling joins the tokens.
enum class SpladeStrategy { Max, Sum };

/// Logits of tokens (B, L, V) -> sentences (B, V): the largest f(z) of the tokens, or the sum of
/// all, where f(z) = log(1 + max(z, 0)), and with two logs log(1 + that).
struct SpladePooling {
  SpladeStrategy strategy = SpladeStrategy::Max;  ///< which of both
  int64_t logs = 1;                               ///< 1, or 2 for `log1p_relu`

  POSENC_FIELDS(SpladePooling, strategy, logs);
};

/// Sentences (B, input_dim) -> (B, hidden_dim), of whose entries at most k are not zero: the k
/// largest of W (x - pre_bias) + latent_bias, those of them that are positive.
struct SparseAutoEncoder {
  int64_t input_dim;         ///< width of x
  int64_t hidden_dim = 512;  ///< width of the result
  int64_t k = 8;             ///< entries that are kept
  bool normalize = false;    ///< x is (x - mean) / (s + 1e-5) first, s^2 with n - 1 in place of n

  POSENC_FIELDS(SparseAutoEncoder, input_dim, hidden_dim, k, normalize);
};

/// Sentences (B, vocab_size): the weight of each token that is in the sequence, however often, and
/// 0 for the others. Where there are sentences already, they are multiplied by these.
struct SparseStaticEmbedding {
  int64_t vocab_size;  ///< V

  POSENC_FIELDS(SparseStaticEmbedding, vocab_size);
};

/// Tokens -> sentences (B, vocab_size): for each id the largest max(w . x + b, 0) of its tokens, as
/// BGE-M3's `sparse_linear.pt` has w and b.
struct LexicalWeights {
  int64_t in_features;                         ///< width of x
  int64_t vocab_size;                          ///< V
  std::vector<int64_t> unused_token_ids = {};  ///< ids that are left out

  POSENC_FIELDS(LexicalWeights, in_features, vocab_size, unused_token_ids);
};

/// Tokens that have no vector in a model of vectors of tokens. Those that are added to a query have
/// one.
struct MultiVectorMask {
  std::vector<std::string> skiplist_words = {};  ///< tokens, of those in the vocabulary
  /// Which texts leave them out; a text without a task is a document.
  std::vector<Task> skiplist_tasks = {Task::Document};
  /// The only ids that have vectors in texts that are no queries; empty: all.
  std::vector<int64_t> keep_only_token_ids = {};
  bool skips_first = false;  ///< whether the first token has none either: bge-m3

  POSENC_FIELDS(MultiVectorMask, skiplist_words, skiplist_tasks, keep_only_token_ids, skips_first);
};

/// Fewer vectors of a text, of sentence-transformers' HierarchicalTokenPooling:
/// functional::hierarchical_token_pool() has the formula.
struct TokenPooling {
  double factor = 1.0;           ///< about how many become one
  int64_t protected_tokens = 1;  ///< first ones that stay as they are
  bool normalize = true;         ///< whether each is divided by its length
  /// Which texts it is for; a text without a task is a document.
  std::vector<Task> tasks = {Task::Document};

  POSENC_FIELDS(TokenPooling, factor, protected_tokens, normalize, tasks);
};

/// One stage.
using Stage = std::variant<Pooling, Dense, Normalize, LayerNorm, Dropout, WeightedLayerPooling,
                           WordWeights, CNN, SpladePooling, SparseAutoEncoder,
                           SparseStaticEmbedding, LexicalWeights, MultiVectorMask, TokenPooling>;

}  // namespace sentence

}  // namespace posenc
