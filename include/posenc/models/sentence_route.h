#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/sentence_stage.h"

namespace posenc POSENC_EXPORT {

namespace sentence {

/// What the first stage of a route makes of the ids of a text.
enum class FirstStage {
  Encoder,          ///< an encoder's last hidden state
  MaskedHead,       ///< the logits of a head for masked words
  StaticEmbedding,  ///< the mean of the rows of a table: StaticEmbedding, model2vec
  Tokens,           ///< nothing: the stages are given the ids, as SparseStaticEmbedding is
};

/// How a query is filled up with tokens of one id, as ColBERT does.
struct QueryExpansion {
  /// Whether a query has exactly `length` tokens or at least as many.
  enum class Strategy { Fixed, Min };

  Strategy strategy;                      ///< of lengths
  int64_t length;                         ///< tokens, special ones and the prompt included
  bool attend = false;                    ///< whether the encoder sees the tokens that are added
  std::optional<std::string> token = {};  ///< default: the tokenizer's mask_token, or eos_token
};

}  // namespace sentence

/// A stage after the first, and the folder of its settings and weights.
struct SentenceStageFolder {
  sentence::Stage stage;  ///< what it computes
  std::string folder;     ///< empty for one that has no files
  /// Its file of weights, if it is not model.safetensors or pytorch_model.bin in the folder: of a
  /// SparseStaticEmbedding one of weights by tokens, of a Dense one of its module `linear`.
  std::string weights = {};
  /// What its names in that file begin with, where it has those of the encoder too.
  std::string prefix = {};
};

/// The stages through which texts of some tasks go: a Router has several, and a model without one a
/// single route for all tasks.
struct SentenceRoute {
  std::vector<sentence::Task> tasks;  ///< of the texts
  sentence::FirstStage first;         ///< what is given the ids
  /// Folder of the first stage and of its tokenizer. Routes whose folders are the same share it.
  std::string encoder;
  /// Where an adapter's folder is that of the first stage, the folder of its model, of whose
  /// config.json the encoder is; else that of the first stage.
  std::string base = {};
  std::vector<SentenceStageFolder> stages;  ///< those after the first
  /// Most tokens of a text, special tokens included, as sentence_bert_config.json has it, but no
  /// more than the encoder has positions for. It is used in place of the tokenizer's own limit.
  std::optional<int64_t> max_seq_length = {};
  /// Most tokens where max_seq_length is not set, besides the tokenizer's `model_max_length`: those
  /// that the encoder has positions for.
  std::optional<int64_t> max_positions = {};
  /// Most tokens of a query in place of both, even where they are more.
  std::optional<int64_t> query_length = {};
  std::optional<int64_t> document_length = {};                   ///< the same of a document
  std::optional<sentence::QueryExpansion> query_expansion = {};  ///< of a MultiVector model
  /// Beginnings of a MultiVector model's prompts that are single tokens, or whose first word is, if
  /// the vocabulary has them.
  std::vector<std::string> markers = {};
  bool do_lower_case = false;  ///< texts are lowercased before the tokenizer's own steps
};

}  // namespace posenc
