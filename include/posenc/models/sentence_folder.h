#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "posenc/export.h"
#include "posenc/models/sentence_stages.h"
#include "posenc/weights/load.h"

namespace posenc POSENC_EXPORT {

/// A folder of sentence-transformers: where its parts are, and how texts are given to it.
struct SentenceFolder {
  std::string encoder;  ///< folder of the encoder, or of the static embedding
  bool is_static =
      false;              ///< a table of tokens (StaticEmbedding, model2vec) in place of an encoder
  std::string tokenizer;  ///< folder of the tokenizer
  /// Prompts by name; each is put before the text as it is. `query` and `document` are always
  /// there, empty unless the folder has them.
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt_name = {};  ///< the prompt of encode() without another
  std::optional<int64_t> truncate_dim = {};             ///< entries of a vector that are kept
  /// Most tokens of a text, special tokens included, as sentence_bert_config.json has it, but no
  /// more than the encoder has positions for. It is used in place of the tokenizer's own limit.
  std::optional<int64_t> max_seq_length = {};
  /// Most tokens where max_seq_length is not set, besides the tokenizer's `model_max_length`: those
  /// that the encoder has positions for.
  std::optional<int64_t> max_positions = {};
  bool do_lower_case = false;  ///< texts are lowercased before the tokenizer's own steps
  /// Whether modules.json lists the stages; otherwise they are the usual ones of an encoder.
  bool has_modules = true;
};

/// Reads a folder that sentence-transformers wrote. Without a modules.json, and for a CrossEncoder,
/// it is an encoder, whose rows are pooled by their mean, or by the last token for the
/// `...ForCausalLM` of causal models; prompts and other settings are then ignored.
///
/// Errors: WeightsError for files that cannot be read; c10::ValueError for a kind of model that is
/// not SentenceTransformer or CrossEncoder, a stage that posenc lacks or that is code in the
/// folder, a path that leaves it, two stages of one name, settings that change what the encoder
/// gets, and a chat template without a modules.json, into which sentence-transformers puts texts.
///
/// Source: sentence-transformers 6.2.
SentenceFolder read_sentence_folder(const std::string& folder);

/// Loads the stages after the encoder, in eval mode. Of `options`, allow_unexpected and report
/// count.
///
/// Errors: those of read_sentence_folder() and SentenceStages; WeightsError for weights.
SentenceStages load_sentence_stages(const std::string& folder, const LoadOptions& options = {});

/// A folder with a head for pairs of texts: where its parts are, and how texts are given to it.
struct CrossEncoderFolder {
  std::string model;  ///< folder of the classifier and of its tokenizer
  /// Prompts by name; each is put before the first text of a pair.
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt_name = {};  ///< the prompt without another
  /// The function that is applied to the logits, as the folder stores it: `activation_fn` of
  /// config_sentence_transformers.json, or in config.json `sentence_transformers.activation_fn` or
  /// `sbert_ce_default_activation_function`. Nothing if it stores none.
  std::optional<Activation> activation = {};
  std::optional<int64_t> max_seq_length = {};  ///< as in SentenceFolder
  std::optional<int64_t> max_positions = {};   ///< as in SentenceFolder
  bool do_lower_case = false;                  ///< as in SentenceFolder
};

/// Reads the folder of a classifier, with the settings of a CrossEncoder if it is one.
///
/// Errors: those of read_sentence_folder(); c10::ValueError for a cross-encoder with more stages
/// than a Transformer, and for an activation that is not a class of torch.nn that posenc has.
///
/// Source: sentence-transformers 6.2.
CrossEncoderFolder read_cross_encoder_folder(const std::string& folder);

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

/// Loads the table (V, D) of a StaticEmbedding in the folder `encoder` of a SentenceFolder:
/// `embedding.weight`, or model2vec's `embeddings` with its `mapping` and `weights`. `options` are
/// those of load_encoder(): the file's other tensors are in the report, and one inside the module
/// `embedding` is an error.
///
/// Errors: WeightsError; c10::ValueError for options that it does not take.
torch::Tensor load_static_embedding(const std::string& folder, const LoadOptions& options = {});

}  // namespace posenc
