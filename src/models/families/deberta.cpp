// DeBERTa and DeBERTa v2: scores of contents and relative positions apart.

#include <algorithm>
#include <cmath>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr int64_t kWidestDebertaTable = int64_t{1} << 20;

// The class itself has no setting for the width of the tables.
void read_deberta_tables(const Settings& config, EncoderEmbeddingsOptions& options) {
  const int64_t width = options.d_model();
  const int64_t narrow = config.integer("embedding_size", width, 1, kWidestDebertaTable);
  options.type_vocab_size(config.integer("type_vocab_size", 0, INT32_MAX)).embedding_dim(narrow);
  if (narrow != width) {
    options.projection(Projection::Sum).projection_bias(false);
    options.names().projection = "embed_proj";
  }
  if (!config.flag("position_biased_input")) options.position_ids(PositionIds::None);
}

void read_deberta_v1_tables(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_deberta_tables(config, options);
  options.stepwise_norm(true);
}

// The words of a text with bars between them, as text.lower().split("|") and strip() find them.
std::vector<std::string> words_between_bars(const std::string& text) {
  constexpr const char* kBlanks = " \t\n\v\f\r";
  std::vector<std::string> words;
  std::istringstream all(io::lower_case(text) +
                         '|');  // without it, an empty last word would be none
  for (std::string word; std::getline(all, word, '|');) {
    word.erase(word.find_last_not_of(kBlanks) + 1);
    words.push_back(word.substr(std::min(word.find_first_not_of(kBlanks), word.size())));
  }
  return words;
}

// pos_att_type is a list, or a text with bars between its words.
std::vector<std::string> terms_in(const Settings& config) {
  constexpr const char* kTerms = "pos_att_type";
  std::vector<std::string> terms;
  const nlohmann::json& given = config.value(kTerms);
  if (given.is_null()) return terms;
  if (given.is_string()) return words_between_bars(given.get<std::string>());
  if (!given.is_array()) config.refuse(kTerms, "must be a list of c2p and p2c");
  for (const nlohmann::json& one : given) {
    if (!one.is_string()) config.refuse(kTerms, "must be a list of c2p and p2c");
    terms.push_back(one.get<std::string>());
  }
  return terms;
}

bool has_term(const std::vector<std::string>& terms, const char* term) {
  return std::find(terms.begin(), terms.end(), term) != terms.end();
}

// The distances and terms that both releases of DeBERTa have.
DisentangledOptions disentangled_in(const Settings& config) {
  constexpr int64_t kFarthest = int64_t{1} << 24;
  int64_t most = config.integer("max_relative_positions", -1, -kFarthest, kFarthest);
  if (most < 1) most = config.integer("max_position_embeddings", 1, kFarthest);
  const std::vector<std::string> terms = terms_in(config);
  return DisentangledOptions(most)
      .relative_attention(config.flag("relative_attention"))
      .content_to_position(has_term(terms, "c2p"))
      .position_to_content(has_term(terms, "p2c"));
}

void refuse_other_widths(const Settings& config, const TransformerLayerOptions& layer) {
  for (const auto& [name, width] :
       {std::pair<const char*, int64_t>{"pooler_hidden_size", layer.d_model()},
        {"attention_head_size", layer.d_model() / layer.num_heads()}}) {
    if (config.integer(name, width, 1, INT32_MAX) != width)
      config.refuse(name, "must be " + std::to_string(width) + ", as hidden_size has it");
  }
}

// The scale counts all words of pos_att_type, whatever they are.
void read_deberta(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  refuse_other_widths(config, layer);
  if (config.flag("talking_head", false)) config.refuse("talking_head", "must be false");
  const auto products = static_cast<double>(1 + terms_in(config).size());
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  layer.key_bias(false)
      .attention_scale(1.0 / std::sqrt(products * width))
      .disentangled(disentangled_in(config).position_key_bias(false));
  options.zero_padding(true);
}

// What follows the convolution has a name of transformers.
Activation conv_act_in(const Settings& config) {
  try {
    return activation_of(config.text("conv_act", "tanh"));
  } catch (const c10::ValueError&) {
    config.refuse("conv_act", "must be the name of an activation of transformers that posenc has");
  }
}

void read_deberta_v2(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  refuse_other_widths(config, layer);
  DisentangledOptions own = disentangled_in(config);
  const int64_t buckets = std::max<int64_t>(0, config.integer("position_buckets", -1, -1, 1 << 20));
  if (buckets > 0 && own.relative_attention() &&
      (buckets == 1 || own.max_relative_positions() <= buckets / 2 + 1)) {
    config.refuse("position_buckets",
                  "must be at least 2, and half of it and 1 below max_relative_positions " +
                      std::to_string(own.max_relative_positions()));
  }
  const int64_t size = config.integer("conv_kernel_size", 0, 0, 1 << 20);
  if (size > 0 && size % 2 == 0) config.refuse("conv_kernel_size", "must be odd, or 0");
  const int64_t groups = config.integer("conv_groups", 1, 1, INT32_MAX);
  if (layer.d_model() % groups != 0) config.refuse("conv_groups", "must divide hidden_size");
  own.norm_relative_embeddings(
      has_term(words_between_bars(config.text("norm_rel_ebd", "none")), "layer_norm"));
  layer.disentangled(own.position_buckets(buckets)
                         .share_att_key(config.flag("share_att_key", false))
                         .conv_kernel_size(size)
                         .conv_groups(groups)
                         .conv_act(size > 0 ? conv_act_in(config) : Activation::Tanh));
  options.zero_padding(true);
}

// What the encoder has beside its layers. Files may have positions that it does not use.
void name_deberta(KeyMap& map, const EncoderConfig& config) {
  const DisentangledOptions& own = *config.options.encoder().layer().disentangled();
  if (own.relative_attention()) {
    map.emplace_back("encoder.rel_embeddings.weight", "encoder.relative_embeddings.weight");
  } else {
    drop_unused(map, {"encoder.rel_embeddings.*"});
  }
  if (own.norm_relative_embeddings()) {
    add_norm(map, "encoder.LayerNorm", "encoder.relative_embeddings.norm");
  } else {
    drop_unused(map, {"encoder.LayerNorm.*"});
  }
  if (own.conv_kernel_size() > 0) {
    map.emplace_back("encoder.conv.conv.*", "encoder.conv.conv.*");
    add_norm(map, "encoder.conv.LayerNorm", "encoder.conv.norm");
  } else {
    drop_unused(map, {"encoder.conv.*"});
  }
  const EncoderEmbeddingsOptions& embeddings = *config.options.embeddings();
  if (embeddings.position_ids() == PositionIds::None)
    drop_unused(map, {"embeddings." + embeddings.names().positions + ".*"});
}

// The projections of positions, by their names in the file.
void name_projections(const LayerNames& names, const char* key, const char* query) {
  const DisentangledOptions& own = *names.config.options.encoder().layer().disentangled();
  const bool projects = own.relative_attention() && !own.share_att_key();
  const auto add = [&](const char* in_file, bool is_used, const char* name) {
    names.map.emplace_back(names.from + "attention.self." + in_file + ".*",
                           projects && is_used ? names.to + name : "");
  };
  add(key, own.content_to_position(), "self_attn.pos_key.*");
  add(query, own.position_to_content(), "self_attn.pos_query.*");
}

// Its one projection has the rows of one head after another, and biases with names of their own.
void name_deberta_layer(const LayerNames& names) {
  const int64_t heads = names.config.options.encoder().layer().num_heads();
  const std::string in_file = names.from + "attention.self.";
  names.map.emplace_back(KeySource::heads_to_parts(in_file + "in_proj.weight", heads),
                         names.to + "self_attn.in_proj_weight");
  names.map.emplace_back(
      KeySources{in_file + "q_bias", names.from + names.keys.k_bias, in_file + "v_bias"},
      names.to + "self_attn.in_proj_bias");
  name_projections(names, "pos_proj", "pos_q_proj");
}

void name_deberta_v2_layer(const LayerNames& names) {
  name_projections(names, "pos_key_proj", "pos_query_proj");
}

// clang-format off
constexpr EncoderLayerKeys kDebertaKeys[] = {{
    .layer = "encoder.layer.*.", .query = "attention.self.in_proj", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.output.LayerNorm", .norm2 = "output.LayerNorm",
    .k_bias = "attention.self.k_bias"}};

constexpr EncoderLayerKeys kDebertaV2Keys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.self.query_proj", .key = "attention.self.key_proj",
    .value = "attention.self.value_proj", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.output.LayerNorm", .norm2 = "output.LayerNorm"}};

constexpr EncoderStructure kDebertaLayers = {.keys = kDebertaKeys,
    .dropped = "embeddings.position_ids", .more = read_deberta, .names = name_deberta,
    .layer_names = name_deberta_layer};
constexpr EncoderStructure kDebertaV2Layers = {.keys = kDebertaV2Keys,
    .dropped = "embeddings.position_ids", .more = read_deberta_v2, .names = name_deberta,
    .layer_names = name_deberta_v2_layer};

constexpr EmbeddingsStructure kDebertaTables = {.order = Order::PositionsFirst,
    .more = read_deberta_v1_tables};
constexpr EmbeddingsStructure kDebertaV2Tables = {.order = Order::PositionsFirst,
    .more = read_deberta_tables};

// Choices have the same with one output.
constexpr HeadStructure kDebertaSequence = {.out = "classifier", .rows = Rows::Pooled,
    .pooling = Pooling::First, .dense = "pooler.dense", .activation_setting = "pooler_hidden_act"};
// The head of the original files, in place of BERT's: `legacy` is false.
constexpr HeadStructure kDebertaMasked = {.out = "lm_predictions.lm_head",
    .dense = "lm_predictions.lm_head.dense", .activation_setting = "hidden_act",
    .norm = "lm_predictions.lm_head.LayerNorm", .is_tied = true, .is_always_tied = true};
constexpr HeadStructure deberta_masked() {
  HeadStructure head = heads::narrow_bert_masked();
  head.variant_setting = "legacy";
  head.variant = &kDebertaMasked;
  return head;
}
constexpr HeadStructures kDebertaHeads = {.sequence = kDebertaSequence, .token = heads::kToken,
    .question = heads::kQuestion, .masked = deberta_masked()};
constexpr HeadStructures kDebertaV2Heads = {.sequence = kDebertaSequence, .token = heads::kToken,
    .question = heads::kQuestion, .masked = deberta_masked(), .choice = kDebertaSequence};

constexpr ModelType kDebertaTypes[] = {
    {.type = "deberta", .embeddings = "squeezebert", .tables = &kDebertaTables,
     .layers = &kDebertaLayers, .heads = &kDebertaHeads, .prefix = "deberta."},
    {.type = "deberta-v2", .embeddings = "squeezebert", .tables = &kDebertaV2Tables,
     .layers = &kDebertaV2Layers, .heads = &kDebertaV2Heads, .prefix = "deberta."},
};
// clang-format on

}  // namespace

constinit const Family deberta = kDebertaTypes;

}  // namespace posenc::families
