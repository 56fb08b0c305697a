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
#include "posenc/models/functional/similarity.h"
#include "posenc/models/sentence_folder.h"
#include "posenc/tokenizers/tensors.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct MultiVectorParts;
}  // namespace text

/// Options of MultiVectorEncoder::encode().
struct MultiVectorEncodeOptions {
  /// What the texts are for, on which the prompt, the most tokens, the expansion of queries and the
  /// tokens that have vectors depend.
  TORCH_ARG(sentence::Task, task) = sentence::Task::None;
  /// Name of one of the folder's prompts; empty: none. That of the task, or the folder's default,
  /// unless this or `prompt` is set.
  TORCH_ARG(std::optional<std::string>, prompt_name) = std::nullopt;
  /// The text of a prompt, put before each text as it is.
  TORCH_ARG(std::optional<std::string>, prompt) = std::nullopt;
  /// Divides each vector by its length.
  TORCH_ARG(bool, normalize) = false;
  /// Pools the vectors of each text, after what the folder does.
  TORCH_ARG(std::optional<sentence::TokenPooling>, token_pooling) = std::nullopt;
  /// How many texts are encoded at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each text of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// Turns texts into vectors of their tokens for late interaction, as ColBERT does: the model in a
/// folder of a MultiVectorEncoder of sentence-transformers, of PyLate or of Stanford's ColBERT.
/// Whatever the batch, a text has the vectors that it has alone, except for rounding.
///
/// ```cpp
/// auto model = posenc::load_multi_vector_encoder("models/colbertv2.0");
/// auto queries = model.encode_query({"What is a late interaction?"});
/// auto documents = model.encode_document({"ColBERT compares tokens.", "Paris is a city."});
/// auto scores = model.similarity(queries, documents);  // (1, 2)
/// ```
///
/// Queries may be filled up with tokens of one id, such as [MASK], whose vectors count although
/// other tokens do not see them. Documents may leave out the vectors of some tokens.
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of Tokenizer and FrozenEncoder; c10::ValueError for a prompt that the folder does
/// not have, options out of range, and a query without tokens whose expansion sees its tokens only.
///
/// Source: `MultiVectorEncoder` of sentence-transformers 6.2, in float32.
class MultiVectorEncoder {
 public:
  /// The vectors of texts, float32: embeddings (T, width()) and lengths (N).
  MultiVectors encode(const std::vector<std::string>& texts,
                      const MultiVectorEncodeOptions& options = {}) const;
  /// The same with Task::Query.
  MultiVectors encode_query(const std::vector<std::string>& texts,
                            MultiVectorEncodeOptions options = {}) const;
  /// The same with Task::Document.
  MultiVectors encode_document(const std::vector<std::string>& texts,
                               MultiVectorEncodeOptions options = {}) const;
  /// The scores (Q, N) of documents: maxsim(), or the mean of it if the folder says so.
  torch::Tensor similarity(const MultiVectors& queries, const MultiVectors& documents) const;

  /// Width of the vectors.
  int64_t width() const;
  /// Most tokens of a text of a task, of which the others are cut off; nothing: there is no limit.
  std::optional<int64_t> max_seq_length(sentence::Task task = sentence::Task::None) const;
  /// What the folder says.
  const SentenceFolder& folder() const;
  /// The tokenizer of texts of a task.
  const Tokenizer& tokenizer(sentence::Task task = sentence::Task::None) const;

 private:
  friend MultiVectorEncoder load_multi_vector_encoder(const std::string& folder,
                                                      const FreezeOptions& options,
                                                      const LoadOptions& load);
  explicit MultiVectorEncoder(std::shared_ptr<const text::MultiVectorParts> parts)
      : parts_(std::move(parts)) {}

  std::shared_ptr<const text::MultiVectorParts> parts_;
};

/// Loads a model from a folder: of a MultiVectorEncoder; of PyLate, whose config has the model_type
/// ColBERT, or none and the prefix of queries; of Stanford's ColBERT, with the class HF_ColBERT,
/// `linear.weight` and artifact.metadata; or a dense one with `colbert_linear.pt`, as that of
/// bge-m3. `load` are the options of load_encoder(); its report has the tensors of the encoder and
/// of the stages.
///
/// Errors: those of read_sentence_folder(), load_sentence_stages(), load_encoder() and
/// Tokenizer::from_folder(); c10::ValueError for a query expansion whose token is not in the
/// vocabulary, or whose tokens may see none.
MultiVectorEncoder load_multi_vector_encoder(const std::string& folder,
                                             const FreezeOptions& options = {},
                                             const LoadOptions& load = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const MultiVectorEncoder& model);

}  // namespace posenc
