#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/sentence_route.h"
#include "posenc/models/sentence_stages.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

/// The class of sentence-transformers that a folder is for.
enum class SentenceKind {
  Dense,         ///< SentenceTransformer
  Sparse,        ///< SparseEncoder
  MultiVector,   ///< MultiVectorEncoder, ColBERT of PyLate and HF_ColBERT
  CrossEncoder,  ///< CrossEncoder, and classifiers and causal models alone, which rank
};

/// A folder of sentence-transformers: where its parts are, and how texts are given to it.
struct SentenceFolder {
  SentenceKind kind;                  ///< what it is read as
  std::vector<SentenceRoute> routes;  ///< at least one
  /// Prompts by name; each is put before the text as it is. `query` and `document` are always
  /// there, empty unless the folder has them.
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt_name = {};  ///< the prompt of encode() without another
  std::optional<int64_t> truncate_dim = {};             ///< entries of a vector that are kept
  /// Most entries of a Sparse vector that are kept, those of the largest absolute values.
  std::optional<int64_t> max_active_dims = {};
  std::optional<std::string> similarity_fn_name = {};  ///< by which the vectors are compared
  /// Whether modules.json lists the stages; otherwise they are the usual ones of an encoder.
  bool has_modules = true;

  /// The route of texts of a task.
  ///
  /// Errors: c10::ValueError for a task that has none.
  const SentenceRoute& route(sentence::Task task = sentence::Task::None) const;
};

/// Of which class a folder is: that of `model_type` in config_sentence_transformers.json, where
/// ColBERT is MultiVector; without one, MultiVector for a `query_prefix` or `document_prefix` in
/// it, as older releases of PyLate wrote; else by `architectures` in config.json: HF_ColBERT is
/// MultiVector, and, without a modules.json, classes that end in ForSequenceClassification or
/// ForCausalLM are CrossEncoder; else Dense. `base`: of an adapter's folder, LoadOptions::base,
/// whose config.json that is.
///
/// Errors: WeightsError for files that cannot be read; c10::ValueError for another model_type.
SentenceKind inspect_sentence_kind(const std::string& folder, const std::string& base = "");

/// Reads a folder that sentence-transformers wrote, as `kind`, which is the folder's own unless it
/// is set. As Sparse can be read, besides, a `...ForMaskedLM` without a modules.json, whose logits
/// are then pooled by SpladePooling, and one of Dense that has BGE-M3's `sparse_linear.pt`, which
/// is then the only stage, LexicalWeights. Without a modules.json, and for a CrossEncoder, it is an
/// encoder, whose rows are pooled by their mean, or by the last token for the `...ForCausalLM` of
/// causal models; prompts and other settings are then ignored. `base`: of an adapter's folder,
/// LoadOptions::base.
///
/// Errors: WeightsError for files that cannot be read; c10::ValueError for a folder of another
/// kind, of which sentence-transformers makes a model of `kind` by layers that it draws at random,
/// or that another function loads; a stage that posenc lacks or that is code in the folder, a path
/// that leaves it, two stages of one name, a Router whose routes are not in it, settings that
/// change what the encoder gets, and a chat template without a modules.json, into which
/// sentence-transformers puts texts. Routes that no task takes are not read.
///
/// Source: sentence-transformers 6.2.
SentenceFolder read_sentence_folder(const std::string& folder,
                                    std::optional<SentenceKind> kind = std::nullopt,
                                    const std::string& base = "");

/// Loads the stages after the first of a task's route, in eval mode. Of `options`,
/// allow_unexpected, base and report count.
///
/// Errors: those of read_sentence_folder(), SentenceFolder::route() and SentenceStages;
/// WeightsError for weights.
SentenceStages load_sentence_stages(const std::string& folder, const LoadOptions& options = {},
                                    sentence::Task task = sentence::Task::None);
/// The same for all routes of a folder that has been read, in their order. A stage that is in
/// several of them is one module, which they share.
std::vector<SentenceStages> load_sentence_stages(const SentenceFolder& folder,
                                                 const LoadOptions& options = {});

/// The text of the prompt `name` among a folder's `prompts`; empty for an empty name.
///
/// Errors: c10::ValueError for a name that is none of theirs.
std::string named_prompt(const std::map<std::string, std::string>& prompts,
                         const std::string& name);

/// Most tokens of a text: a folder's `max_seq_length`, or else the smaller of the tokenizer's
/// `model_max_length` and the positions that the model has. Nothing if there is no limit.
std::optional<int64_t> max_tokens_of_text(std::optional<int64_t> max_seq_length,
                                          std::optional<int64_t> model_max_length,
                                          std::optional<int64_t> max_positions);
/// The same for a text of a task: the route's length for it comes before the others.
std::optional<int64_t> max_tokens_of_text(const SentenceRoute& route, sentence::Task task,
                                          std::optional<int64_t> model_max_length);

/// Loads the table (V, D) of a StaticEmbedding in the folder `encoder` of a SentenceRoute:
/// `embedding.weight`, or model2vec's `embeddings` with its `mapping` and `weights`. `options` are
/// those of load_encoder(): the file's other tensors are in the report, and one inside the module
/// `embedding` is an error.
///
/// Errors: WeightsError; c10::ValueError for options that it does not take.
torch::Tensor load_static_embedding(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
