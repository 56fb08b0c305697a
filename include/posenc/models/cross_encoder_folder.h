#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "posenc/export.h"
#include "posenc/models/sentence_route.h"
#include "posenc/transformer/functional/activation.h"

namespace posenc POSENC_EXPORT {

namespace sentence {

/// The tokens whose logits after a pair are its score: LogitScore.
struct LogitScore {
  int64_t true_token_id;                       ///< whose logit counts
  std::optional<int64_t> false_token_id = {};  ///< whose logit is subtracted, if there is one
};

/// What texts are put into as messages.
struct ChatTemplate {
  std::string source;          ///< in Jinja
  bool is_structured = false;  ///< whether a message's content is a list of typed parts
};

}  // namespace sentence

/// A folder of a model that scores texts or pairs of them: where its parts are, and how texts are
/// given to it.
struct CrossEncoderFolder {
  std::string model;           ///< folder of the model
  std::string base = {};       ///< folder of its config.json, another one for that of an adapter
  std::string tokenizer = {};  ///< folder of the tokenizer
  /// Stages after an encoder, the last of which makes the scores; none if the model's head does.
  std::vector<SentenceStageFolder> stages = {};
  bool is_causal = false;  ///< whether it is a causal language model, whose logits are the scores
  /// The tokens of these; without them they are `yes` and `no`.
  std::optional<sentence::LogitScore> logit_score = {};
  /// The template that pairs are put into, as messages of `query` and `document`, by a
  /// CrossEncoder.
  std::optional<sentence::ChatTemplate> chat_template = {};
  /// Prompts by name; each is put before the first text of a pair, or as the message of `system`.
  std::map<std::string, std::string> prompts = {};
  std::optional<std::string> default_prompt_name = {};  ///< the prompt without another
  /// The function that is applied to the logits, as the folder stores it: `activation_fn` of
  /// config_sentence_transformers.json, or in config.json `sentence_transformers.activation_fn` or
  /// `sbert_ce_default_activation_function`. Nothing if it stores none.
  std::optional<Activation> activation = {};
  std::optional<int64_t> max_seq_length = {};  ///< as in SentenceRoute
  std::optional<int64_t> max_positions = {};   ///< as in SentenceRoute
  bool do_lower_case = false;                  ///< as in SentenceRoute

  /// Whether the model's head makes the scores.
  bool has_head() const { return stages.empty() && !is_causal; }
};

/// Reads the folder of a classifier or of a `...ForCausalLM`, with the settings of a CrossEncoder
/// if it is one. `base`: of an adapter's folder, LoadOptions::base.
///
/// Errors: those of read_sentence_folder(); c10::ValueError for stages of which none makes scores,
/// and for an activation that is not a class of torch.nn that posenc has.
///
/// Source: sentence-transformers 6.2.
CrossEncoderFolder read_cross_encoder_folder(const std::string& folder,
                                             const std::string& base = "");

}  // namespace posenc
