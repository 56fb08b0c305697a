// posenc-budget: all that a config.json says of a head

#include "models/heads/config.h"
#include "models/config/activation_name.h"

#include <c10/util/Exception.h>

#include <filesystem>

#include "core/named.h"
#include "models/encoder/parts.h"
#include "models/lora/adapted_folder.h"
#include "models/lora/heads.h"
#include "models/seq2seq/load.h"
#include "posenc/models/inspect_folder.h"

namespace posenc {
namespace {

using head::Kind;
using head::Rows;

constexpr int64_t kMostLabels = 1 << 20;
constexpr const char* kArchitectures = "architectures";
constexpr const char* kLabels = "id2label";
constexpr const char* kProblem = "problem_type";
constexpr const char* kRows = "classifier_pooling";

struct KindRow {
  Kind kind;
  const char* what;
  const char* ending;  // of the class
  const HeadStructure HeadStructures::*structure;
};

constexpr KindRow kKinds[] = {
    {Kind::Sequence, "a label of a sequence", "ForSequenceClassification",
     &HeadStructures::sequence},
    {Kind::Token, "labels of tokens", "ForTokenClassification", &HeadStructures::token},
    {Kind::Question, "answers to questions", "ForQuestionAnswering", &HeadStructures::question},
    {Kind::Masked, "masked tokens", "ForMaskedLM", &HeadStructures::masked},
    {Kind::Image, "a label of an image", "ForImageClassification", &HeadStructures::image},
    {Kind::Choice, "one of several choices", "ForMultipleChoice", &HeadStructures::choice},
};

struct ProblemRow {
  const char* name;
  head::Problem problem;
};

constexpr ProblemRow kProblems[] = {
    {"single_label_classification", head::Problem::SingleLabel},
    {"multi_label_classification", head::Problem::MultiLabel},
    {"regression", head::Problem::Regression},
};

// ELECTRA's discriminator finds exchanged tokens.
std::optional<Kind> kind_of_class(const std::string& name) {
  for (const KindRow& row : kKinds) {
    const std::string ending = row.ending;  // the simple head of XLM is that of other models
    if (name.ends_with(ending) || name.ends_with(ending + "Simple")) return row.kind;
  }
  if (name.ends_with("Reader"))
    return Kind::Question;  // DPR's, whose other head is one of sequences
  const bool has_two_heads = name.ends_with("ForPreTraining") && !name.starts_with("Electra");
  if (has_two_heads || name.ends_with("WithLMHeadModel")) return Kind::Masked;
  return std::nullopt;
}

// The class that `architectures` names, if it is one.
std::optional<std::string> class_in(const Settings& config) {
  const nlohmann::json& classes = config.value(kArchitectures);
  if (!classes.is_array() || classes.size() != 1 || !classes[0].is_string()) return std::nullopt;
  return classes[0].get<std::string>();
}

Kind kind_in(const Settings& config) {
  const auto name = class_in(config);
  if (!name) config.refuse(kArchitectures, "must be a list of one class, which tells the head");
  const auto kind = kind_of_class(*name);
  if (!kind) {
    config.refuse(kArchitectures,
                  "must name a model with a head that posenc has: ...ForSequenceClassification, "
                  "...ForTokenClassification, ...ForQuestionAnswering, ...ForMaskedLM, "
                  "...ForImageClassification or ...ForMultipleChoice");
  }
  return *kind;
}

std::string label_of(const nlohmann::json& label) {
  return label.is_string() ? label.get<std::string>() : label.dump();
}

std::vector<std::string> labels_in(const Settings& config, const HeadStructure& structure) {
  std::vector<std::string> labels;
  if (!config.has(kLabels)) {
    const int64_t count = config.integer("num_labels", structure.labels, 1, kMostLabels);
    for (int64_t i = 0; i < count; ++i) labels.push_back("LABEL_" + std::to_string(i));
    return labels;
  }
  const nlohmann::json& given = config.value(kLabels);
  if (!given.is_object() || given.empty()) config.refuse(kLabels, "must be an object of labels");
  for (std::size_t i = 0; i < given.size(); ++i) {
    const auto found = given.find(std::to_string(i));
    if (found == given.end() || found->is_structured()) {
      config.refuse(kLabels, "must have a label for each number from 0 to " +
                                 std::to_string(given.size() - 1));
    }
    labels.push_back(label_of(*found));
  }
  return labels;
}

const HeadStructure& structure_of(const EncoderConfig& encoder, const KindRow& row) {
  const HeadStructures* heads = encoder.model.heads;
  const HeadStructure* found = heads == nullptr ? nullptr : &(heads->*row.structure);
  const bool is_lacking = found != nullptr && *found->lacks != '\0';
  TORCH_CHECK_VALUE(!is_lacking, encoder.settings.where(), "the head of model_type ",
                    encoder.model.type, " for ", row.what, " is not supported: it needs ",
                    found->lacks);
  TORCH_CHECK_VALUE(found != nullptr && *found->out != '\0', encoder.settings.where(),
                    "model_type must be that of an encoder with a head for ", row.what, ". Got ",
                    encoder.model.type);
  const bool is_variant =
      found->labels_of_variant > 0
          ? static_cast<int64_t>(labels_in(encoder.whole, *found).size()) >=
                found->labels_of_variant
          : found->variant != nullptr && !encoder.settings.flag(found->variant_setting);
  if (is_variant) return *found->variant;
  return *found;
}

std::optional<head::Problem> problem_in(const Settings& config) {
  if (!config.has(kProblem)) return std::nullopt;
  const auto* row = detail::find_named(kProblems, config.text(kProblem));
  if (row == nullptr) {
    config.refuse(kProblem,
                  "must be single_label_classification, multi_label_classification or regression");
  }
  return row->problem;
}

// A setting of a head, which configuration classes may lack.
bool has_bias_in(const Settings& config, const char* setting) {
  return *setting == '\0' || config.flag(setting);
}

// XLMSequenceSummary: which rows are summarised.
Rows summary_rows(const Settings& config, const HeadStructure& structure, EncoderOptions& encoder) {
  constexpr const char *kProjects = "summary_use_proj", *kToLabels = "summary_proj_to_labels";
  if (*structure.dense != '\0') {
    if (!config.flag(kProjects)) config.refuse(kProjects, "must be true");
    if (config.flag(kToLabels, false)) {
      config.refuse(kToLabels, "must be false: labels are projected from the summary");
    }
  } else {
    for (const char* setting : {kProjects, kToLabels}) {
      if (!config.flag(setting))
        config.refuse(setting, "must be true: the outputs are labels then");
    }
  }
  const std::string type = config.text("summary_type");
  if (type == "mean" && *structure.dense == '\0') return Rows::MeanOfRows;
  if (type != "first" && type != "last" && type != "mean" && type != "cls_index") {
    config.refuse("summary_type", "must be first, last, mean or cls_index");
  }
  // Where no index is given, cls_index is the last row.
  encoder.pooling(type == "first"  ? encoder::Pooling::First
                  : type == "mean" ? encoder::Pooling::Mean
                                   : encoder::Pooling::Last);
  return Rows::Pooled;
}

Rows rows_in(const Settings& config, const HeadStructure& structure, EncoderOptions& encoder) {
  if (structure.is_summary) return summary_rows(config, structure, encoder);
  if (structure.pooling != encoder::Pooling::None) encoder.pooling(structure.pooling);
  if (structure.pooling == encoder::Pooling::LastToken) {
    encoder.pad_token_id(config.integer_if("pad_token_id"));
  }
  const std::string first = structure.first_word;
  if (first.empty()) return structure.rows;
  const std::string given = config.text(kRows);
  if (given == "mean") return Rows::Mean;
  if (given == "late" && structure.may_be_late) return Rows::MeanOfLogits;
  if (given != first) {
    config.refuse(kRows,
                  "must be " + first + (structure.may_be_late ? ", mean or late" : " or mean"));
  }
  encoder.pooling(encoder::Pooling::First);
  return Rows::Pooled;
}

// A setting with the name of an activation, or none.
Activation activation_if(const Settings& config, const char* setting) {
  const std::string name = config.text_if(setting).value_or("");
  return named_activation(config, setting, name.empty() ? "linear" : name);
}

Activation activation_in_head(const Settings& config, const HeadStructure& structure) {
  const std::string setting = structure.activation_setting;
  if (setting.empty()) {
    return activation_of(*structure.activation == '\0' ? "linear" : structure.activation);
  }
  return activation_if(config, structure.activation_setting);
}

// The model below a head on its decoder.
void set_decoder(EncoderConfig& encoder) {
  const hf::ModelType& type = encoder.model;
  const Settings config = seq2seq_settings(encoder.whole, type.type);
  const Seq2SeqStructure& structure = *type.seq2seq;
  const TransformerOptions own = structure.family->options(config, structure);
  EncoderOptions& options = encoder.options;
  options.transformer(TransformerOptions(own).output_bias(false).output_scale(1.0))
      .eos_token_id(config.integer("eos_token_id", 0, INT64_MAX))
      .pad_token_id(seq2seq_pad(config, type.type, own));
  if (structure.starts_with_last) return;
  constexpr const char* kStart = "decoder_start_token_id";
  options.decoder_start_token_id(structure.start && !config.mentions(kStart)
                                     ? *structure.start
                                     : config.integer(kStart, 0, own.tgt_vocab() - 1));
}

double norm_eps_in(const Settings& config, const HeadStructure& structure, double of_layers) {
  const std::string setting = structure.norm_eps_setting;
  if (!setting.empty()) return config.real(setting);
  return structure.norm_eps > 0.0 ? structure.norm_eps : of_layers;
}

EncoderHeadOptions head_options(const Settings& config, const HeadStructure& structure,
                                EncoderOptions& encoder, int64_t outputs) {
  const auto& layer = encoder.encoder().layer();
  const Rows rows = rows_in(config, structure, encoder);
  EncoderHeadOptions options(output_width(encoder) * (rows == Rows::FirstAndMean ? 2 : 1), outputs);
  options.rows(rows);
  if (rows == Rows::MeanOfRows || rows == Rows::FirstAndMean)
    options.first_row(tokens_before_patches(encoder));
  if (structure.is_summary && *structure.dense == '\0')
    options.output_activation(activation_if(config, "summary_activation"));
  if (*structure.dense != '\0') {
    const std::string width = structure.dense_setting;
    options
        .dense(width.empty() ? layer.d_model()
                             : config.integer(width, layer.d_model(), 1, kMostLabels))
        .dense_bias(structure.has_dense_bias && has_bias_in(config, structure.dense_bias))
        .activation(activation_in_head(config, structure));
    if (*structure.dense2 != '\0') options.dense2(layer.d_model());
  }
  if (*structure.norm != '\0') {
    options.norm(norm_eps_in(config, structure, layer.layer_norm_eps()))
        .norm_bias(has_bias_in(config, structure.norm_bias));
  }
  if (*structure.beside_table != '\0') {
    const int64_t width = layer.d_model();
    options.columns_beside_table(width - config.integer("embedding_size", 1, width));
  }
  options.bias(structure.has_bias && has_bias_in(config, structure.bias_setting));
  return options.tied(structure.is_tied &&
                      (structure.is_always_tied || config.flag("tie_word_embeddings", true)));
}

}  // namespace

std::vector<head::Kind> encoder_head_kinds(const std::string& model_type) {
  std::vector<Kind> kinds;
  const hf::ModelType* model = hf::find_model_type(model_type);
  if (model != nullptr && *model->part != '\0') {  // of a pair, that of images
    const hf::ConfigClass& whole = hf::ConfigClass::of(model_type);
    const std::string_view vision = whole.part_type("vision_config");
    model = hf::find_model_type(vision.empty() ? whole.part_type(model->part) : vision);
  }
  if (model == nullptr || model->heads == nullptr) return kinds;
  for (const KindRow& row : kKinds) {
    const HeadStructure& structure = model->heads->*row.structure;
    if (*structure.out != '\0' && *structure.lacks == '\0') kinds.push_back(row.kind);
  }
  return kinds;
}

std::optional<head::Kind> inspect_head(const std::string& folder, const LoadOptions& options) {
  constexpr const char* kCaller = "inspect_head";
  const AdaptedFolder place = adapted_folder(kCaller, folder, options);
  const auto path = std::filesystem::path(place.folder) / "config.json";
  const auto name = class_in(lora::with_heads(Settings(kCaller, path.string()),
                                              lora::load_all(kCaller, place.options.adapters())));
  return name ? kind_of_class(*name) : std::nullopt;
}

const char* class_ending(Kind kind) { return kKinds[static_cast<std::size_t>(kind)].ending; }

std::string problem_name(head::Problem problem) {
  for (const ProblemRow& row : kProblems) {
    if (row.problem == problem) return row.name;
  }
  return "";
}

std::string head_part(const Settings& config, std::optional<Kind> kind) {
  const hf::ModelType* whole = hf::find_model_type(config.text("model_type", ""));
  const bool is_pair = whole != nullptr && *whole->part != '\0';
  return is_pair && (kind ? *kind : kind_in(config)) == Kind::Image ? "vision_config" : "";
}

HeadConfig read_head_config(EncoderConfig& encoder, std::optional<Kind> kind) {
  const Settings& config = encoder.settings;
  const Kind chosen = kind ? *kind : kind_in(encoder.whole);
  const KindRow& row = kKinds[static_cast<std::size_t>(chosen)];
  const HeadStructure& structure = structure_of(encoder, row);
  if (structure.check != nullptr) structure.check(encoder);
  if (structure.is_on_decoder) set_decoder(encoder);
  std::vector<std::string> labels;
  if (has_labels(chosen) && structure.outputs == 0) labels = labels_in(encoder.whole, structure);
  int64_t outputs = structure.outputs > 0 ? structure.outputs : static_cast<int64_t>(labels.size());
  if (chosen == Kind::Question) outputs = 2;
  if (chosen == Kind::Choice) outputs = 1;
  if (chosen == Kind::Masked) outputs = config.integer("vocab_size", 1, INT64_MAX);
  EncoderHeadOptions options = head_options(config, structure, encoder.options, outputs);
  TORCH_CHECK_VALUE(
      options.rows() != Rows::Pooled || encoder.options.pooling() != encoder::Pooling::None,
      config.where(), "model_type ", encoder.model.type, " must have a pooler for its head");
  return {structure, chosen, options, std::move(labels), problem_in(encoder.whole)};
}

}  // namespace posenc
