#include "models/types/heads_structures.h"

#include "models/config/settings.h"

namespace posenc::heads {
namespace {

using encoder::Pooling;
using head::Rows;

void check_softmax(const Settings& config) {
  if (config.flag("asm", false)) config.refuse("asm", "must be false");
}

// The other head for questions of XLM and XLNet searches for the ends of the most probable
// beginnings.
void check_simple(const Settings& config) {
  constexpr const char* kArchitectures = "architectures";
  const nlohmann::json& classes = config.value(kArchitectures);
  const bool is_list = classes.is_array() && !classes.empty() && classes[0].is_string();
  if (is_list && classes[0].get<std::string>().ends_with("ForQuestionAnswering")) {
    config.refuse(kArchitectures,
                  "must be ...ForQuestionAnsweringSimple: a search for the end of each start is "
                  "not supported");
  }
}

// clang-format off
constexpr HeadStructure kToken = {.out = "classifier"};
constexpr HeadStructure kQuestion = {.out = "qa_outputs"};

// tanh(pooler(x)) of the first row is the encoder's pooled output.
constexpr HeadStructure kOfPooler = {.out = "classifier", .rows = Rows::Pooled};

constexpr HeadStructure kOfLastToken = {.out = "score", .rows = Rows::Pooled,
    .pooling = Pooling::LastToken, .has_bias = false};

// A layer of the head's own in place of the pooler.
constexpr HeadStructure of_first(const char* activation, const char* setting = "") {
  return {.out = "classifier.out_proj", .rows = Rows::Pooled, .pooling = Pooling::First,
          .dense = "classifier.dense", .activation = activation, .activation_setting = setting};
}

constexpr HeadStructure kBertMasked = {.out = "cls.predictions.decoder",
    .dense = "cls.predictions.transform.dense", .activation_setting = "hidden_act",
    .norm = "cls.predictions.transform.LayerNorm", .bias = "cls.predictions.bias",
    .is_tied = true};

constexpr HeadStructure kRobertaMasked = {.out = "lm_head.decoder", .dense = "lm_head.dense",
    .activation = "gelu", .norm = "lm_head.layer_norm", .bias = "lm_head.bias", .is_tied = true};

constexpr HeadStructure kGeneratorMasked = {.out = "generator_lm_head",
    .dense = "generator_predictions.dense", .dense_setting = "embedding_size",
    .activation = "gelu", .norm = "generator_predictions.LayerNorm", .is_tied = true};

// The width before the output is that of the table.
constexpr HeadStructure narrow_bert_masked() {
  HeadStructure head = kBertMasked;
  head.dense_setting = "embedding_size";
  return head;
}

// Choices have the same with one output.
constexpr HeadStructure kDebertaSequence = {.out = "classifier", .rows = Rows::Pooled,
    .pooling = Pooling::First, .dense = "pooler.dense", .activation_setting = "pooler_hidden_act"};

// The head of the original files, in place of BERT's: `legacy` is false.
constexpr HeadStructure kDebertaMasked = {.out = "lm_predictions.lm_head",
    .dense = "lm_predictions.lm_head.dense", .activation_setting = "hidden_act",
    .norm = "lm_predictions.lm_head.LayerNorm", .is_tied = true, .is_always_tied = true};

constexpr HeadStructure deberta_masked() {
  HeadStructure head = narrow_bert_masked();
  head.variant_setting = "legacy";
  head.variant = &kDebertaMasked;
  return head;
}

// Its layers have an epsilon of their own.
constexpr HeadStructure squeezed_masked() {
  HeadStructure head = kBertMasked;
  head.norm_eps_setting = "layer_norm_eps";
  return head;
}

// Linear layers on images; dinov2 has two rows, CLIP and others the mean of some.
constexpr HeadStructures image_head(Rows rows) {
  return {.image = {.out = "classifier", .rows = rows,
                    .pooling = rows == Rows::Pooled ? Pooling::First : Pooling::None}};
}

// Its output layer is not tied.
constexpr HeadStructure luke_masked() {
  HeadStructure head = kRobertaMasked;
  head.is_tied = false;
  return head;
}

constexpr HeadStructure kXlnetSequence = {.out = "logits_proj", .rows = Rows::Pooled,
    .dense = "sequence_summary.summary", .activation_setting = "summary_activation",
    .is_summary = true};

// A table of tokens that is narrower than the encoder's output.
constexpr HeadStructure mobile_masked() {
  HeadStructure head = kBertMasked;
  head.beside_table = "cls.predictions.dense";
  return head;
}

// LayoutLMv3 has a layer before the labels of tokens where they are many.
constexpr HeadStructure kManyLabels = {.out = "classifier.out_proj", .dense = "classifier.dense",
    .activation = "tanh"};

constexpr HeadStructure esm_masked() {
  HeadStructure head = kRobertaMasked;
  head.has_both_biases = false;
  return head;
}

constexpr HeadStructure modern(const char* out) {
  return {.out = out, .dense = "head.dense", .dense_bias = "classifier_bias",
          .activation_setting = "classifier_activation", .norm = "head.norm",
          .norm_bias = "norm_bias"};
}

constexpr HeadStructure modern_sequence() {
  HeadStructure head = modern("classifier");
  head.first_word = "cls";
  return head;
}

constexpr HeadStructure modern_masked() {
  HeadStructure head = modern("decoder");
  head.bias_setting = "decoder_bias";
  head.is_tied = true;
  return head;
}
}  // namespace

const HeadStructures kBert = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = kBertMasked};
const HeadStructures kRoberta = {.sequence = of_first("tanh"), .token = kToken,
    .question = kQuestion, .masked = kRobertaMasked};
const HeadStructures kAlbert = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = {.out = "predictions.decoder", .dense = "predictions.dense",
               .dense_setting = "embedding_size", .activation_setting = "hidden_act",
               .norm = "predictions.LayerNorm", .bias = "predictions.bias", .is_tied = true}};
const HeadStructures kBertGeneration = {
    .masked = {.lacks = "generation token by token"}};
const HeadStructures kConvBert = {.sequence = of_first("", "hidden_act"), .token = kToken,
    .question = kQuestion, .masked = kGeneratorMasked};
const HeadStructures kDeberta = {.sequence = kDebertaSequence, .token = kToken,
    .question = kQuestion, .masked = deberta_masked()};
const HeadStructures kDebertaV2 = {.sequence = kDebertaSequence, .token = kToken,
    .question = kQuestion, .masked = deberta_masked(), .choice = kDebertaSequence};
const HeadStructures kBeit = {.image = {.out = "classifier", .rows = Rows::Pooled}};
const HeadStructures kBloom = {.sequence = kOfLastToken, .token = kToken, .question = kQuestion};
const HeadStructures kDecoder = {.sequence = kOfLastToken, .token = {.out = "score"},
    .question = kQuestion};
const HeadStructures kDistilBert = {
    .sequence = {.out = "classifier", .rows = Rows::Pooled, .pooling = Pooling::First,
                 .dense = "pre_classifier", .activation = "relu"},
    .token = kToken, .question = kQuestion,
    .masked = {.out = "vocab_projector", .dense = "vocab_transform",
               .activation_setting = "activation", .norm = "vocab_layer_norm", .norm_eps = 1e-12,
               .is_tied = true}};
const HeadStructures kElectra = {.sequence = of_first("gelu"), .token = kToken,
    .question = kQuestion, .masked = kGeneratorMasked};
const HeadStructures kDinov2 = image_head(Rows::FirstAndMean);
const HeadStructures kEncoderDecoder = {.sequence = {.lacks = "the decoder under it"},
    .question = {.lacks = "the decoder under it"}};
const HeadStructures kEsm = {.sequence = of_first("tanh"), .token = kToken,
    .masked = esm_masked()};
const HeadStructures kEuroBert = {
    .sequence = {.out = "classifier", .first_word = "bos", .may_be_late = true, .dense = "dense",
                 .activation = "gelu"},
    .token = kToken,
    .masked = {.out = "lm_head", .bias_setting = "mlp_bias", .is_tied = true}};
const HeadStructures kGte = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = {.out = "lm_head.decoder", .dense = "lm_head.dense",
               .activation = "gelu", .norm = "lm_head.norm", .other_norm = "lm_head.layer_norm", .is_tied = true}};
const HeadStructures kLayoutLMv3 = {.sequence = of_first("tanh"),
    .token = {.out = "classifier", .variant = &kManyLabels, .labels_of_variant = 10},
    .question = {.out = "qa_outputs.out_proj", .dense = "qa_outputs.dense", .activation = "tanh"}};
const HeadStructures kLuke = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = luke_masked()};
const HeadStructures kMobileBert = {.sequence = kOfPooler, .token = kToken,
    .question = kQuestion, .masked = mobile_masked()};
const HeadStructures kModernBert = {.sequence = modern_sequence(), .token = modern("classifier"),
    .question = modern("classifier"), .masked = modern_masked()};
const HeadStructures kNomicBert = {
    .sequence = {.out = "classifier", .rows = Rows::Pooled, .pooling = Pooling::TanhOfFirst}, .token = kToken, .question = kQuestion,
    .masked = {.out = "cls.predictions.decoder", .dense = "cls.predictions.transform.dense",
               .activation_setting = "hidden_act", .norm = "cls.predictions.transform.layer_norm",
               .bias = "cls.predictions.bias", .is_tied = true}};
const HeadStructures kRemBert = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = {.out = "cls.predictions.decoder", .dense = "cls.predictions.dense",
               .dense_setting = "output_embedding_size", .activation_setting = "hidden_act",
               .norm = "cls.predictions.LayerNorm"}};
const HeadStructures kRoFormer = {.sequence = of_first("", "hidden_act"), .token = kToken,
    .question = kQuestion, .masked = narrow_bert_masked()};
const HeadStructures kSplinter = {
    .question = {.lacks = "attention between questions and spans"}};
const HeadStructures kSqueezeBert = {.sequence = kOfPooler, .token = kToken, .question = kQuestion,
    .masked = squeezed_masked()};
const HeadStructures kSwin = {.image = {.out = "classifier", .rows = Rows::Pooled}};
const HeadStructures kT5 = {.sequence = {.lacks = "the decoder under it"}, .token = kToken,
    .question = {.lacks = "the decoder under it"}};
const HeadStructures kVisionMean = image_head(Rows::MeanOfRows);
const HeadStructures kViT = image_head(Rows::Pooled);
const HeadStructures kXlm = {
    .sequence = {.out = "sequence_summary.summary", .rows = Rows::Pooled, .is_summary = true},
    .token = kToken,
    .question = {.out = "qa_outputs", .check = check_simple},
    .masked = {.out = "pred_layer.proj", .is_tied = true, .check = check_softmax}};
const HeadStructures kXlnet = {
    .sequence = kXlnetSequence,
    .token = kToken,
    .question = {.out = "qa_outputs", .check = check_simple},
    .masked = {.lacks = "two-stream attention"},
    .choice = kXlnetSequence};
// clang-format on

}  // namespace posenc::heads
