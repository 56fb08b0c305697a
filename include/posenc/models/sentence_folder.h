#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "posenc/export.h"
#include "posenc/models/sentence_stages.h"

namespace posenc POSENC_EXPORT {

/// A folder of sentence-transformers: where its parts are, and how texts are given to it.
struct SentenceFolder {
  std::string encoder;  ///< folder of the encoder, or of the static embedding
  bool is_static =
      false;              ///< a table of tokens (StaticEmbedding, model2vec) in place of an encoder
  std::string tokenizer;  ///< folder of the tokenizer
  /// Prompts by name; each is put before the text as it is.
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt_name = {};  ///< the prompt of encode() without another
  std::optional<int64_t> truncate_dim = {};             ///< entries of a vector that are kept
  /// Most tokens of a text, special tokens included, as sentence_bert_config.json has it, but no
  /// more than the encoder has positions for. It is preferred to the tokenizer's own limit.
  std::optional<int64_t> max_seq_length = {};
  /// Most tokens where max_seq_length is not set, besides the tokenizer's `model_max_length`: those
  /// that the encoder has positions for.
  std::optional<int64_t> max_positions = {};
  bool do_lower_case = false;  ///< texts are lowercased before the tokenizer's own steps
};

/// Reads a folder that sentence-transformers wrote. Without a modules.json it is an encoder, whose
/// rows are pooled by their mean, or by the last token for the `...ForCausalLM` of causal models.
///
/// Errors: WeightsError for files that cannot be read; c10::ValueError for a kind of model that is
/// not SentenceTransformer or CrossEncoder, a stage that posenc lacks or that is code in the
/// folder, a path that leaves it, two stages of one name, and settings that change what the encoder
/// gets.
///
/// Source: sentence-transformers 6.2.
SentenceFolder read_sentence_folder(const std::string& folder);

/// Loads the stages after the encoder, in eval mode.
///
/// Errors: those of read_sentence_folder() and SentenceStages; WeightsError for weights.
SentenceStages load_sentence_stages(const std::string& folder);

/// The function that a cross-encoder applies to its logits, as its folder stores it:
/// `activation_fn` of config_sentence_transformers.json, or in config.json
/// `sentence_transformers.activation_fn` or `sbert_ce_default_activation_function`. Nothing if it
/// stores none.
///
/// Errors: c10::ValueError for one that is not a class of torch.nn that posenc has; WeightsError
/// for files.
std::optional<Elementwise> cross_encoder_activation(const std::string& folder);

/// Most tokens that the encoder in a folder has positions for: `max_position_embeddings`, and no
/// more than the rows of its table. Nothing if there is no limit.
///
/// Errors: those of encoder_options_from_hf().
std::optional<int64_t> encoder_max_positions(const std::string& folder);

/// Loads the table (V, D) of a StaticEmbedding in the folder `encoder` of a SentenceFolder:
/// `embedding.weight`, or model2vec's `embeddings` with its `mapping` and `weights`.
///
/// Errors: WeightsError.
torch::Tensor load_static_embedding(const std::string& folder);

}  // namespace posenc
