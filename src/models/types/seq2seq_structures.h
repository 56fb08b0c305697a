#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/config/model_folder.h"
#include "models/config/settings.h"
#include "posenc/positions/functional/encoder_embeddings.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/key_map.h"

namespace posenc {

struct Seq2SeqStructure;

/// The names in files of the matrices that may be tied.
struct VocabularyNames {
  std::string shared;   ///< the one that stands for all; empty: there is none
  std::string encoder;  ///< empty: sources are no tokens
  std::string decoder, head;
  /// The order in which transformers looks for one that stands for the absent ones.
  std::vector<std::string> order;
  /// Whether those that are absent are taken from the others: tie_word_embeddings.
  bool are_tied = true;
};

/// What model types with layers of one kind have in common: how their configurations and files are
/// read.
struct Seq2SeqFamily {
  TransformerOptions (*options)(const Settings& config, const Seq2SeqStructure& structure);
  /// The settings of these options; of those that `config` has in another way, only what differs.
  nlohmann::json (*settings)(const TransformerOptions& options, const Settings& config,
                             const Seq2SeqStructure& structure);
  VocabularyNames (*vocabulary)(const Settings& config, const Seq2SeqStructure& structure);
  /// Renames what headless models have.
  KeyMap (*renames)(const Seq2SeqStructure& structure);
  /// All other tensors than those of the vocabulary.
  KeyMap (*keys)(const TransformerOptions& options);
  /// The names of the layers of the encoder and the decoder, such as `model.encoder.layers.*.`.
  const char *encoder_layers, *decoder_layers;
  /// The same of a tensor of each layer, after those.
  const char* in_layer;
  const char* prefix;  ///< what the names of all tensors but those of the output layer begin with
  /// The setting that says how many rows a computed table of positions has.
  const char* positions = "max_position_embeddings";
};

/// The structure of an encoder-decoder of transformers.
struct Seq2SeqStructure {
  /// Whether the decoder's output is divided by the square root of d_model before the output layer.
  enum class OutputFactor { Never, FromConfig, Always };

  const Seq2SeqFamily* family;
  /// The preset of sinusoidal positions; null: a trained table with `position_offset` rows before
  /// that of the first position.
  const char* sinusoid = nullptr;
  int64_t position_offset = 0;
  bool counts_tokens = false;  ///< positions count the tokens that are no padding, without limit
  bool is_of_speech = false;   ///< sources are features of sound
  bool norm_first = false;     ///< then each stack has a norm at its end
  embeddings::Norm norm = embeddings::Norm::None, decoder_norm = embeddings::Norm::None;
  bool scales_decoder = true;  ///< whether scale_embedding is for the decoder's tokens too
  bool has_logits_bias = true;
  /// Whether the class has computed tables of positions among its weights.
  bool saves_positions = false;
  /// What the name of the class with the output layer has after that of the model: `BartFor...`.
  const char* class_ending = "ForConditionalGeneration";
  bool encoder_first = false;           ///< of the tied matrices
  bool has_two_vocabularies = false;    ///< with their own settings
  bool relative_in_each_layer = false;  ///< a table of relative positions in each, or one for all
  OutputFactor output_factor = OutputFactor::Never;
  /// What its class has as decoder_start_token_id by default, which heads need; none.
  std::optional<int64_t> start = std::nullopt;
  /// Whether below a head the decoder begins with the last token of the source, its language.
  bool starts_with_last = false;
};

}  // namespace posenc
