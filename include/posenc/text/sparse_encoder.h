#pragma once

#include <torch/arg.h>
#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/functional/sparse_vectors.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct SparseModel;
}  // namespace text

/// Options of SparseEncoder::encode().
struct SparseEncodeOptions {
  /// What the texts are for, which chooses the prompt, the route and the most tokens.
  TORCH_ARG(sentence::Task, task) = sentence::Task::None;
  /// As in SentenceEncodeOptions.
  TORCH_ARG(std::optional<std::string>, prompt_name) = std::nullopt;
  /// The text of a prompt, put before each text as it is.
  TORCH_ARG(std::optional<std::string>, prompt) = std::nullopt;
  /// Most entries of a vector, those of the largest absolute values. Unless set, the folder's, or
  /// the k of its SparseAutoEncoder, or all.
  TORCH_ARG(std::optional<int64_t>, max_active_dims) = std::nullopt;
  /// How many texts are encoded at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// A token and its weight in a vector.
struct TokenWeight {
  std::optional<std::string> token;  ///< as the vocabulary has it; nothing: it has none for this id
  float weight;                      ///< the vector's entry
};

/// Turns texts into sparse vectors over the vocabulary, as SPLADE and the models of a SparseEncoder
/// do: its tokenizer, its encoder with the head for masked words, frozen, and the stages after it.
/// Whatever the batch, a text has the vector that it has alone, except for rounding.
///
/// ```cpp
/// auto model = posenc::load_sparse_encoder("models/splade");
/// auto query = model.encode_query({"what is a heron"});
/// auto documents = model.encode_document({"Herons are long-legged birds.", "Bread is baked."});
/// auto scores = query.to_torch().matmul(documents.to_torch().to_dense().t());  // (1, 2)
/// auto words = model.decode(query, 5);  // the five largest
/// ```
///
/// With SpladePooling's maximum, the logits of all tokens are never in memory, and with a
/// SparseStaticEmbedding a query is a call of the tokenizer and a look at a table.
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of Tokenizer and FrozenClassifier; c10::ValueError for a prompt that the folder
/// does not have, a task without a route, options out of range, and a text without tokens where the
/// model has no vector for it.
///
/// Source: `SparseEncoder` of sentence-transformers 6.2, in float32; of LexicalWeights, BGE-M3's
/// `lexical_weights` in FlagEmbedding.
class SparseEncoder {
 public:
  /// The vectors of texts.
  SparseVectors encode(const std::vector<std::string>& texts,
                       const SparseEncodeOptions& options = {}) const;
  /// The same for queries: with the task Query.
  SparseVectors encode_query(const std::vector<std::string>& texts,
                             SparseEncodeOptions options = {}) const;
  /// The same for documents: with the task Document.
  SparseVectors encode_document(const std::vector<std::string>& texts,
                                SparseEncodeOptions options = {}) const;
  /// The tokens of each vector by descending weight, the first `top_k` if it is set; equal weights
  /// are in the order of their columns.
  ///
  /// Errors: c10::ValueError for vectors of another width, and a top_k that is not positive.
  std::vector<std::vector<TokenWeight>> decode(const SparseVectors& vectors,
                                               std::optional<int64_t> top_k = std::nullopt) const;

  /// Width of the vectors.
  int64_t width() const;
  /// Most tokens of a text of a task, of which the others are cut off; nothing: there is no limit.
  std::optional<int64_t> max_seq_length(sentence::Task task = sentence::Task::None) const;
  /// What the folder says.
  const SentenceFolder& folder() const;
  /// The tokenizer of texts of a task.
  const Tokenizer& tokenizer(sentence::Task task = sentence::Task::None) const;

 private:
  friend SparseEncoder load_sparse_encoder(const std::string& folder, const FreezeOptions& options,
                                           const LoadOptions& load);
  explicit SparseEncoder(std::shared_ptr<const text::SparseModel> model)
      : model_(std::move(model)) {}

  std::shared_ptr<const text::SparseModel> model_;
};

/// Loads a model from a folder of a SparseEncoder, of a `...ForMaskedLM` without a modules.json, or
/// of BGE-M3, as read_sentence_folder() reads it for SentenceKind::Sparse. `load` are the options
/// of load_encoder(); its report has the tensors of the encoders and of the stages.
///
/// Errors: those of read_sentence_folder(), load_sentence_stages(), load_classifier(),
/// load_encoder() and Tokenizer::from_folder(); c10::ValueError for a model without layers with
/// another WeightDtype or ComputeDtype than Float32.
SparseEncoder load_sparse_encoder(const std::string& folder, const FreezeOptions& options = {},
                                  const LoadOptions& load = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const SparseEncoder& model);

}  // namespace posenc
