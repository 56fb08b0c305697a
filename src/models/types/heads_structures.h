#pragma once

#include "posenc/models/encoder.h"
#include "posenc/models/encoder_head.h"

namespace posenc {

struct EncoderConfig;

/// A head of transformers, which takes the output of the encoder of the same model type: its parts
/// by their names in a file, without `.weight` and `.bias`. The defaults are those of most heads.
struct HeadStructure {
  const char* out = "";  ///< the output layer; empty: there is no such head
  head::Rows rows = head::Rows::Tokens;
  bool is_on_decoder = false;  ///< whether it takes the output of the decoder of its model type
  bool has_prefix = true;      ///< whether its class has the model below it in a module
  /// If it is not empty, the setting classifier_pooling decides: this word for the first row,
  /// `mean` and, if it may_be_late, `late` for the mean of the logits.
  const char* first_word = "";
  bool may_be_late = false;
  /// What the encoder pools below it; None: what it has for all heads.
  encoder::Pooling pooling = encoder::Pooling::None;
  const char* dense = "";          ///< the linear layer before the output; empty: none
  const char* dense_setting = "";  ///< the setting with its width; empty: hidden_size
  const char* dense_bias = "";     ///< the setting that says if it has a bias; empty: it has
  bool has_dense_bias = true;      ///< whether it has one, with that setting or without
  /// A second one, which brings the rows back to hidden_size; empty: none.
  const char* dense2 = "";
  const char* activation = "";          ///< in transformers' words
  const char* activation_setting = "";  ///< in place of `activation`, the setting that has it
  const char* norm = "";                ///< the norm before the output; empty: none
  const char* other_norm = "";          ///< a further name of it
  const char* norm_bias = "";           ///< the setting that says if it has a bias; empty: it has
  double norm_eps = 0.0;                ///< zero: that of the layers
  const char* norm_eps_setting = "";    ///< in place of both, the setting that has it
  const char* other_out = "";           ///< a further name of the output layer
  int64_t outputs = 0;                  ///< of it; 0: the labels, or what the kind says
  int64_t labels = 2;                   ///< where a file says nothing
  bool has_bias = true;                 ///< of the output layer
  const char* bias_setting = "";        ///< the setting that says so
  const char* bias = "";                ///< a further name of the output layer's bias
  bool has_both_biases = true;          ///< whether an untied output layer has it by either name
  /// Whether settings `summary_*` say what the head takes, and what follows the output layer: XLM,
  /// or with `dense` what follows that: XLNet.
  bool is_summary = false;
  /// The output layer is the table of tokens, unless a file has another or `tie_word_embeddings`
  /// is false.
  bool is_tied = false;
  /// Columns of the output layer's weight beside the table, transposed; empty: there are none.
  const char* beside_table = "";
  /// Whether it is the table whatever `tie_word_embeddings` says.
  bool is_always_tied = false;
  /// A setting with which the head is as described, and the head without it; null: there is none.
  const char* variant_setting = "";
  const HeadStructure* variant = nullptr;
  /// The same with at least as many labels; 0: there is none.
  int64_t labels_of_variant = 0;
  const char* lacks = "";  ///< what posenc lacks for a head that transformers has
  /// What the name of its class has after that of the model; empty: what all of its kind have.
  const char* class_ending = "";
  /// Refuses settings of the head that posenc lacks; null: there are none.
  void (*check)(const EncoderConfig& config) = nullptr;
};

/// The heads of a model type.
struct HeadStructures {
  HeadStructure sequence = {}, token = {}, question = {}, masked = {}, image = {}, choice = {};
};

/// What several families have.
namespace heads {

using encoder::Pooling;
using head::Rows;

// clang-format off
inline constexpr HeadStructure kToken = {.out = "classifier"};
inline constexpr HeadStructure kQuestion = {.out = "qa_outputs"};

// tanh(pooler(x)) of the first row is the encoder's pooled output.
inline constexpr HeadStructure kOfPooler = {.out = "classifier", .rows = Rows::Pooled};

inline constexpr HeadStructure kOfLastToken = {.out = "score", .rows = Rows::Pooled,
    .pooling = Pooling::LastToken, .has_bias = false};

// A layer of the head's own in place of the pooler.
constexpr HeadStructure of_first(const char* activation, const char* setting = "") {
  return {.out = "classifier.out_proj", .rows = Rows::Pooled, .pooling = Pooling::First,
          .dense = "classifier.dense", .activation = activation, .activation_setting = setting};
}

// Those on a decoder.
inline constexpr HeadStructure kOfLastEnd = {.out = "classification_head.out_proj",
    .rows = Rows::Pooled, .is_on_decoder = true, .pooling = Pooling::LastEndToken,
    .dense = "classification_head.dense", .activation = "tanh"};
inline constexpr HeadStructure kDecoderQuestion = {.out = "qa_outputs", .is_on_decoder = true};

inline constexpr HeadStructure kBertMasked = {.out = "cls.predictions.decoder",
    .dense = "cls.predictions.transform.dense", .activation_setting = "hidden_act",
    .norm = "cls.predictions.transform.LayerNorm", .bias = "cls.predictions.bias",
    .is_tied = true};

inline constexpr HeadStructure kRobertaMasked = {.out = "lm_head.decoder", .dense = "lm_head.dense",
    .activation = "gelu", .norm = "lm_head.layer_norm", .bias = "lm_head.bias", .is_tied = true};

inline constexpr HeadStructure kGeneratorMasked = {.out = "generator_lm_head",
    .dense = "generator_predictions.dense", .dense_setting = "embedding_size",
    .activation = "gelu", .norm = "generator_predictions.LayerNorm", .is_tied = true};

// The width before the output is that of the table.
constexpr HeadStructure narrow_bert_masked() {
  HeadStructure head = kBertMasked;
  head.dense_setting = "embedding_size";
  return head;
}

// Linear layers on images; dinov2 has two rows, CLIP and others the mean of some.
constexpr HeadStructures image_head(Rows rows) {
  return {.image = {.out = "classifier", .rows = rows,
                    .pooling = rows == Rows::Pooled ? Pooling::First : Pooling::None}};
}

inline constexpr HeadStructures kBert = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = kBertMasked};
inline constexpr HeadStructures kRoberta = {.sequence = of_first("tanh"), .token = kToken,
    .question = kQuestion, .masked = kRobertaMasked};
// Those of decoders, of which each class of transformers has some.
inline constexpr HeadStructures kLastToken = {.sequence = kOfLastToken};
inline constexpr HeadStructures kLabels = {.sequence = kOfLastToken, .token = {.out = "score"}};
inline constexpr HeadStructures kDecoder = {.sequence = kOfLastToken, .token = {.out = "score"},
    .question = kQuestion};
inline constexpr HeadStructures kGpt = {.sequence = kOfLastToken, .token = kToken,
    .question = kQuestion};
inline constexpr HeadStructures kGptLabels = {.sequence = kOfLastToken, .token = kToken};
inline constexpr HeadStructures kGptQuestions = {.sequence = kOfLastToken, .question = kQuestion};
inline constexpr HeadStructures kVisionMean = image_head(Rows::MeanOfRows);
// clang-format on

}  // namespace heads
}  // namespace posenc
