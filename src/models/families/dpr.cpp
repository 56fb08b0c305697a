// DPR, of three classes: encoders of questions and contexts, and readers.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// The first row, projected if projection_dim is positive. Without a mask, padding is found by its
// id.
void read_dpr(const Settings& config, const ModelType&, EncoderOptions& options) {
  const int64_t width = config.integer("projection_dim", 0, INT32_MAX);
  if (width > 0) {
    options.pooling(Pooling::LinearOfFirst).pooler_dim(width);
  } else {
    options.pooling(Pooling::First);
  }
  options.pad_token_id(config.integer_if("pad_token_id"));
  options.masks_padding(options.pad_token_id().has_value());
}

// Its class takes all tokens as real where there is no mask.
void read_dpr_reader(const Settings& config, const ModelType& model, EncoderOptions& options) {
  read_dpr(config, model, options);
  options.masks_padding(false);
}

// clang-format off
constexpr EncoderLayerKeys kDprKeys[] = {layers::bert_keys("attention.output.LayerNorm", "output.LayerNorm", "bert_model.encoder.layer.*.")};
constexpr EncoderLayerKeys kDprReaderKeys[] = {layers::bert_keys("attention.output.LayerNorm", "output.LayerNorm", "encoder.bert_model.encoder.layer.*.")};

// Files of older releases have a pooler of BERT, which the classes do not run.
constexpr EncoderStructure kDprLayers = {.keys = kDprKeys, .embeddings = "bert_model.embeddings.",
    .pooler = "encode_proj", .dropped = "bert_model.pooler.*", .more = read_dpr};
constexpr EncoderStructure kDprReaderLayers = {.keys = kDprReaderKeys,
    .embeddings = "encoder.bert_model.embeddings.", .pooler = "encoder.encode_proj",
    .dropped = "encoder.bert_model.pooler.* qa_outputs.* qa_classifier.*",
    .beside = "qa_outputs qa_classifier", .more = read_dpr_reader};

// Two heads of one class.
constexpr HeadStructures kDprReaderHeads = {
    .sequence = {.out = "span_predictor.qa_classifier", .rows = Rows::Pooled, .pooling = Pooling::First,
                 .outputs = 1, .class_ending = "Reader"},
    .question = {.out = "span_predictor.qa_outputs", .pooling = Pooling::First, .class_ending = "Reader"}};

// DPR has three classes, of which each has its own prefix.
constexpr ModelType kDprContext = {.type = "dpr", .embeddings = "bert", .layers = &kDprLayers,
    .prefix = "ctx_encoder.", .model_class = "DPRContextEncoder"};
constexpr ModelType kDprReader = {.type = "dpr", .embeddings = "bert", .layers = &kDprReaderLayers,
    .heads = &kDprReaderHeads, .prefix = "span_predictor.", .model_class = "DPRReader"};

const ModelType* dpr_class(const Settings& config) {
  const nlohmann::json& classes = config.value("architectures");
  if (!classes.is_array() || classes.size() != 1) return nullptr;
  if (classes[0] == kDprContext.model_class) return &kDprContext;
  return classes[0] == kDprReader.model_class ? &kDprReader : nullptr;
}

constexpr ModelType kDprTypes[] = {
    {.type = "dpr", .embeddings = "bert", .layers = &kDprLayers, .heads = &kDprReaderHeads,
     .prefix = "question_encoder.", .variant = dpr_class},
};
// clang-format on

}  // namespace

constinit const Family dpr = kDprTypes;

}  // namespace posenc::families
