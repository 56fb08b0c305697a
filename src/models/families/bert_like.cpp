// BERT and what differs from it in names, sizes and where its norms are. A new type of this kind is
// a row of kBertLikeTypes.

#include "models/families/family.h"
#include "posenc/positions/sinusoid/preset.h"

namespace posenc::families {
namespace {

constexpr int64_t kMostAlbertLayers = 1000;  // ALBERT, whose layers share weights in groups

// Which of the layers of all groups AlbertTransformer runs as the i-th.
std::vector<int64_t> shared_order(int64_t layers, int64_t groups, int64_t inner) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < layers; ++i) {
    const double per_group = static_cast<double>(layers) / static_cast<double>(groups);
    const auto group = static_cast<int64_t>(static_cast<double>(i) / per_group);
    for (int64_t j = 0; j < inner; ++j) order.push_back(group * inner + j);
  }
  return order;
}

int64_t inner_layers(const Settings& config) {
  return config.integer("inner_group_num", 1, kMostAlbertLayers);
}

void read_albert(const Settings& config, const ModelType&, EncoderOptions& options) {
  const int64_t layers = options.encoder().num_layers(), inner = inner_layers(config);
  const int64_t groups = config.integer("num_hidden_groups", 1, kMostAlbertLayers);
  options.encoder().num_layers(groups * inner).order(shared_order(layers, groups, inner));
}

std::vector<int64_t> albert_numbers(const EncoderConfig& config, int64_t index) {
  const int64_t inner = inner_layers(config.settings);
  return {index / inner, index % inner};
}

void drop_later_groups(KeyMap& map, const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix) {
  const int64_t inner = inner_layers(config.settings);
  drop_later_layers(map, source, prefix, config.structure.keys.front().layer,
                    {config.options.encoder().num_layers() / inner, inner});
}

constexpr LayerNumbering kAlbertNumbering = {albert_numbers, drop_later_groups,
                                             "num_hidden_groups * inner_group_num"};

// clang-format off
// Layer j of group g is encoder.albert_layer_groups.g.albert_layers.j.
const EncoderLayerKeys kAlbertKeys[] = {{
    .layer = "encoder.albert_layer_groups.*.albert_layers.*.",
    .query = "attention.query", .key = "attention.key", .value = "attention.value",
    .out = "attention.dense", .wide = "ffn", .narrow = "ffn_output",
    .norm1 = "attention.LayerNorm", .norm2 = "full_layer_layer_norm"}};

constexpr EncoderStructure kAlbertLayers = {.keys = kAlbertKeys,
    .numbering = &kAlbertNumbering, .projection = "encoder.embedding_hidden_mapping_in",
    .output_dropout = Rate::None, .pooling = Pooling::TanhOfFirst, .pooler = "pooler",
    .more = read_albert};

constexpr HeadStructures kAlbertHeads = {.sequence = heads::kOfPooler, .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "predictions.decoder", .dense = "predictions.dense",
               .dense_setting = "embedding_size", .activation_setting = "hidden_act",
               .norm = "predictions.LayerNorm", .bias = "predictions.bias", .is_tied = true}};
// clang-format on

// The table begins as a sinusoid if asked for, and is trained like any other.
void read_sinusoid(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.layer_norm_eps(1e-12);  // the class has no setting for it
  if (!config.flag("sinusoidal_pos_embds")) return;
  options.sinusoid(preset("distilbert", options.d_model())).train_sinusoid(true);
}

// MPNetEncoder has a table with the number of rows in config.json, but always computes 32 buckets.
void read_mpnet(const Settings& config, const ModelType&, EncoderOptions& options) {
  constexpr int64_t kBuckets = 32, kMostRows = 1 << 20;
  constexpr const char* kRows = "relative_attention_num_buckets";
  const int64_t rows = config.integer(kRows, 1, kMostRows);
  if (rows < kBuckets) {
    config.refuse(kRows, "must be at least 32, the number of buckets that MPNet computes");
  }
  options.encoder().relative(
      relative::Buckets{.num_buckets = kBuckets, .spare_rows = rows - kBuckets});
}

// JinaBertModel of Jina's own code. Its slopes are float64 before they are rounded.
void read_jina_bert(const Settings& config, const ModelType&, EncoderOptions& options) {
  constexpr const char* kType = "feed_forward_type";
  const std::string type = config.text(kType, "original");
  if (type != "geglu" && type != "reglu") {
    config.refuse(kType, "must be geglu or reglu with position_embedding_type alibi");
  }
  own_layer(options)
      .activation(type == "geglu" ? Activation::GELU : Activation::ReLU)
      .linear1_bias(false);
  options.encoder().alibi(relative::Alibi{.slopes = relative::Slopes::XTransformers});
}

// With ALiBi, the code of JinaBERT has no positions.
void drop_jina_positions(KeyMap& map, const EncoderConfig& config) {
  drop_unused(map, {"embeddings." + config.options.embeddings()->names().positions + ".*"});
}

// clang-format off
constexpr EncoderLayerKeys kPreLayerNormKeys[] = {
    layers::bert_keys("attention.LayerNorm", "intermediate.LayerNorm")};
constexpr EncoderLayerKeys kMegatronBertKeys[] = {layers::bert_keys("attention.ln", "ln")};
constexpr EncoderLayerKeys kRobertaXLKeys[] = {
    layers::bert_keys("attention.self_attn_layer_norm", "LayerNorm")};

const EncoderLayerKeys kDistilBertKeys[] = {{
    .layer = "transformer.layer.*.",
    .query = "attention.q_lin", .key = "attention.k_lin", .value = "attention.v_lin",
    .out = "attention.out_lin", .wide = "ffn.lin1", .narrow = "ffn.lin2",
    .norm1 = "sa_layer_norm", .norm2 = "output_layer_norm"}};

const EncoderLayerKeys kMPNetKeys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attn.q", .key = "attention.attn.k", .value = "attention.attn.v",
    .out = "attention.attn.o", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.LayerNorm", .norm2 = "output.LayerNorm"}};

constexpr EncoderLayerKeys jina_bert_keys() {
  EncoderLayerKeys keys = layers::bert_keys("attention.output.LayerNorm", "mlp.layernorm");
  keys.wide = "mlp.gated_layers", keys.narrow = "mlp.wo";
  return keys;
}
constexpr EncoderLayerKeys kJinaBertKeys[] = {jina_bert_keys()};

constexpr EncoderStructure kBertWithoutPoolerLayers = {.keys = layers::kBertKeys};
constexpr EncoderStructure kElectraLayers = {.keys = layers::kBertKeys,
    .projection = "embeddings_project"};
constexpr EncoderStructure kRemBertLayers = {.keys = layers::kBertKeys,
    .projection = "encoder.embedding_hidden_mapping_in", .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kMegatronBertLayers = {.keys = kMegatronBertKeys, .norm_first = true,
    .last_norm = "encoder.ln", .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kRobertaPreLayerNormLayers = {.keys = kPreLayerNormKeys, .norm_first = true,
    .last_norm = "LayerNorm", .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kRobertaXLLayers = {.keys = kRobertaXLKeys, .norm_first = true,
    .output_dropout = Rate::None,
    .last_norm = "encoder.LayerNorm", .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kDistilBertLayers = {.keys = kDistilBertKeys,
    .attention_output_dropout = Rate::None};
constexpr EncoderStructure kMPNetLayers = {.keys = kMPNetKeys, .pooling = Pooling::TanhOfFirst,
    .relative_bias = "encoder.relative_attention_bias.weight", .more = read_mpnet};
constexpr EncoderStructure kLukeLayers = {.keys = layers::kBertKeys,
    .pooling = Pooling::TanhOfFirst, .dropped = "entity_embeddings.* *_query.*",
    .beside = "entity_embeddings"};
constexpr EncoderStructure kJinaBertLayers = {.keys = kJinaBertKeys,
    .feed_forward = FeedForward::Gated, .activation_dropout = Rate::Hidden,
    .output_dropout = Rate::None, .pooling = Pooling::TanhOfFirst,
    .reads = "position_embedding_type", .more = read_jina_bert, .names = drop_jina_positions};

constexpr EmbeddingsStructure kElectraTables = {.projection = Projection::Last,
    .projects_always = false, .projection_name = "embeddings_project"};
constexpr EmbeddingsStructure kDistilBertTables = {.has_types = false, .more = read_sinusoid};

constexpr HeadStructures kBertGenerationHeads = {
    .masked = {.lacks = "generation token by token"}};
constexpr HeadStructures kDistilBertHeads = {
    .sequence = {.out = "classifier", .rows = Rows::Pooled, .pooling = Pooling::First,
                 .dense = "pre_classifier", .activation = "relu"},
    .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "vocab_projector", .dense = "vocab_transform",
               .activation_setting = "activation", .norm = "vocab_layer_norm", .norm_eps = 1e-12,
               .is_tied = true}};
constexpr HeadStructures kElectraHeads = {.sequence = heads::of_first("gelu"), .token = heads::kToken,
    .question = heads::kQuestion, .masked = heads::kGeneratorMasked};
// Its output layer is not tied.
constexpr HeadStructure luke_masked() {
  HeadStructure head = heads::kRobertaMasked;
  head.is_tied = false;
  return head;
}
constexpr HeadStructures kLukeHeads = {.sequence = heads::kOfPooler, .token = heads::kToken, .question = heads::kQuestion,
    .masked = luke_masked()};
constexpr HeadStructures kRemBertHeads = {.sequence = heads::kOfPooler, .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "cls.predictions.decoder", .dense = "cls.predictions.dense",
               .dense_setting = "output_embedding_size", .activation_setting = "hidden_act",
               .norm = "cls.predictions.LayerNorm"}};
constexpr HeadStructures kSplinterHeads = {
    .question = {.lacks = "attention between questions and spans"}};

// JinaBERT v2, whose own code in its folders has the model type of BERT.
constexpr ModelType kJinaBert = {.type = "bert", .embeddings = "nomic",
    .layers = &kJinaBertLayers, .heads = &heads::kBert, .prefix = "bert.",
    .model_class = "JinaBertModel"};

const ModelType* jina_bert_if_alibi(const Settings& config) {
  constexpr const char* kType = "position_embedding_type";
  return config.has(kType) && config.value(kType) == "alibi" ? &kJinaBert : nullptr;
}

constexpr ModelType kBertLikeTypes[] = {
    {.type = "bert", .embeddings = "bert", .layers = &layers::kBert, .heads = &heads::kBert,
     .prefix = "bert.", .variant = jina_bert_if_alibi},
    {.type = "albert", .embeddings = "bert_narrow", .layers = &kAlbertLayers,
     .heads = &kAlbertHeads, .prefix = "albert."},
    {.type = "bert-generation", .embeddings = "distilbert", .layers = &kBertWithoutPoolerLayers,
     .heads = &kBertGenerationHeads, .prefix = "bert."},
    {.type = "camembert", .embeddings = "roberta", .layers = &layers::kBert,
     .heads = &heads::kRoberta, .prefix = "roberta."},
    {.type = "data2vec-text", .embeddings = "roberta", .layers = &layers::kBert,
     .heads = &heads::kRoberta, .prefix = "data2vec_text."},
    {.type = "distilbert", .embeddings = "distilbert", .tables = &kDistilBertTables,
     .layers = &kDistilBertLayers, .heads = &kDistilBertHeads, .prefix = "distilbert."},
    {.type = "electra", .embeddings = "bert_narrow", .tables = &kElectraTables,
     .layers = &kElectraLayers, .heads = &kElectraHeads, .prefix = "electra."},
    {.type = "ernie", .embeddings = "bert_tasks", .layers = &layers::kBert, .heads = &heads::kBert,
     .prefix = "ernie."},
    {.type = "luke", .embeddings = "longformer", .layers = &kLukeLayers, .heads = &kLukeHeads,
     .prefix = "luke."},
    {.type = "megatron-bert", .embeddings = "bert_no_norm", .layers = &kMegatronBertLayers,
     .heads = &heads::kBert, .prefix = "bert."},
    {.type = "mpnet", .embeddings = "mpnet", .layers = &kMPNetLayers, .heads = &heads::kRoberta,
     .prefix = "mpnet."},
    {.type = "rembert", .embeddings = "bert_narrow", .layers = &kRemBertLayers,
     .heads = &kRemBertHeads, .prefix = "rembert."},
    {.type = "roberta", .embeddings = "roberta", .layers = &layers::kBert,
     .heads = &heads::kRoberta, .prefix = "roberta."},
    {.type = "roberta-prelayernorm", .embeddings = "roberta",
     .layers = &kRobertaPreLayerNormLayers, .heads = &heads::kRoberta,
     .prefix = "roberta_prelayernorm."},
    {.type = "splinter", .embeddings = "bert", .layers = &kBertWithoutPoolerLayers,
     .heads = &kSplinterHeads, .prefix = "splinter."},
    {.type = "xlm-roberta", .embeddings = "roberta", .layers = &layers::kBert,
     .heads = &heads::kRoberta, .prefix = "roberta."},
    {.type = "xlm-roberta-xl", .embeddings = "roberta_no_norm", .layers = &kRobertaXLLayers,
     .heads = &heads::kRoberta, .prefix = "roberta."},
};
// clang-format on

}  // namespace

constinit const Family bert_like = kBertLikeTypes;

}  // namespace posenc::families
