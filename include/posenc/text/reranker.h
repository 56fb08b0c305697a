#pragma once

#include <ATen/core/Tensor.h>
#include <torch/arg.h>

#include <cstdint>
#include <functional>
#include <iosfwd>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "posenc/export.h"
#include "posenc/inference/freeze_options.h"
#include "posenc/models/cross_encoder_folder.h"
#include "posenc/tokenizers/tensors.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {
namespace text {
struct RerankerParts;
}  // namespace text

/// A document by its index, and its score.
struct RankedDocument {
  int64_t corpus_id;  ///< the index among the documents
  double score;       ///< the larger, the better it matches
};

/// The documents of scores (N), best first, at most `top_k` of them; equal scores keep the order of
/// the documents, and NaN comes last. No more than the first `top_k` are sorted.
///
/// Errors: c10::ValueError for scores of another rank, and a top_k that is not positive.
std::vector<RankedDocument> ranked_documents(const torch::Tensor& scores,
                                             std::optional<int64_t> top_k = std::nullopt);

/// Options of Reranker.
struct RankOptions {
  /// How many documents rank() returns, best first; all unless set.
  TORCH_ARG(std::optional<int64_t>, top_k) = std::nullopt;
  /// Name of one of the folder's prompts; empty: none. The folder's default unless this or `prompt`
  /// is set.
  TORCH_ARG(std::optional<std::string>, prompt_name) = std::nullopt;
  /// The text of a prompt, put before the query as it is; in a chat template it is the message of
  /// the system.
  TORCH_ARG(std::optional<std::string>, prompt) = std::nullopt;
  /// How many pairs are computed at a time.
  TORCH_ARG(int64_t, batch_size) = 32;
  /// Is called with the index of each pair of which the model takes a part only.
  TORCH_ARG(std::function<void(int64_t)>, on_truncated) = {};
};

/// Tells how well documents match a query, which it reads together with each of them: a
/// cross-encoder (`...ForSequenceClassification` with one label, or an encoder whose last Dense
/// makes the scores), or a causal language model that is asked whether they match, whose score is
/// the logit of one token less that of another, at the last token of the pair. Of the output layer
/// only these rows are multiplied, and what the pairs of a query begin with is computed once.
///
/// ```cpp
/// auto reranker = posenc::load_reranker("models/ms-marco-MiniLM-L6-v2");
/// for (const auto& [index, score] : reranker.rank("Where is the cat?", {"On the sofa.", "At 5."}))
///   std::cout << index << " " << score << "\n";
/// ```
///
/// Scores are what the folder's activation makes of the logits, the sigmoid unless it stores
/// another. Whatever the batch, a pair has the score that it has alone, except for rounding.
///
/// Any number of threads may use one; copies refer to the same model.
///
/// Errors: those of Tokenizer and of frozen models; c10::ValueError for a prompt that the folder
/// does not have, options out of range, and a pair without tokens.
///
/// Source: `CrossEncoder` of sentence-transformers 6.2, in float32.
class Reranker {
 public:
  /// The scores (N) of pairs of a query and a document, float32.
  torch::Tensor score(const std::vector<std::pair<std::string, std::string>>& pairs,
                      const RankOptions& options = {}) const;
  /// The documents by descending score.
  std::vector<RankedDocument> rank(const std::string& query,
                                   const std::vector<std::string>& documents,
                                   const RankOptions& options = {}) const;

  /// Most tokens of a pair; nothing: there is no limit.
  std::optional<int64_t> max_seq_length() const;
  /// What the folder says.
  const CrossEncoderFolder& folder() const;
  /// The tokenizer.
  const Tokenizer& tokenizer() const;

 private:
  friend Reranker load_reranker(const std::string& folder, const FreezeOptions& options,
                                const LoadOptions& load);
  explicit Reranker(std::shared_ptr<const text::RerankerParts> parts) : parts_(std::move(parts)) {}

  std::shared_ptr<const text::RerankerParts> parts_;
};

/// Whether a folder is one that load_reranker() loads; others make vectors. An adapter, alone or in
/// `load`, makes a classifier of any model that it was trained to classify with.
///
/// Errors: those of inspect_sentence_kind() and inspect_head().
bool is_reranker(const std::string& folder, const LoadOptions& load = {});

/// Loads a CrossEncoder of sentence-transformers, a classifier of transformers, or a
/// `...ForCausalLM` that answers with `yes` or `no`, which need no files of sentence-transformers.
/// `load` are the options of load_classifier() and load_encoder().
///
/// Errors: those of read_cross_encoder_folder(), load_classifier(), load_encoder(), freeze() and
/// Tokenizer::from_folder(); c10::ValueError for a model with another number of labels than one, a
/// vocabulary without the tokens of the answer, and a chat template with what posenc does not know,
/// or that leaves out a text.
Reranker load_reranker(const std::string& folder, const FreezeOptions& options = {},
                       const LoadOptions& load = {});

/// Prints the class and its main options on one line.
std::ostream& operator<<(std::ostream& stream, const Reranker& model);

}  // namespace posenc
