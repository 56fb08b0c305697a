// How the embeddings of token ids are computed by each class of transformers.
//
// posenc-budget: the structure of each class

#include <cmath>
#include <cstdint>

#include "models/config/setting_names.h"
#include "models/embeddings/presets.h"

namespace posenc {
namespace {

using embeddings::Norm;
using embeddings::Order;
using embeddings::PositionIds;
using embeddings::Projection;

constexpr int64_t kMostTableRows = int64_t{1} << 28, kWidestTable = int64_t{1} << 20;
constexpr double kTorchEpsilon = 1e-5;  // the default of a norm
constexpr double kBertEpsilon = 1e-12;  // where a class has no setting for it

void read_tasks(const Settings& config, EncoderEmbeddingsOptions& options) {
  if (!config.flag("use_task_id")) return;
  options.task_type_vocab_size(config.integer("task_type_vocab_size", 1, INT32_MAX));
}

void scale_by_power(const Settings&, EncoderEmbeddingsOptions& options) {
  if (!options.scale().is_none()) options.scale(Scale::SqrtDim);  // pow(), not sqrt()
}

// All tables have a row of padding.
void pad_all_tables(const Settings&, EncoderEmbeddingsOptions& options) {
  options.layer_norm_eps(kBertEpsilon).position_padding_idx(0).type_padding_idx(0);
}

void read_trocr(const Settings& config, EncoderEmbeddingsOptions& options) {
  if (!config.flag("layernorm_embedding")) options.norm(Norm::None);
  if (!config.flag("use_learned_position_embeddings"))
    config.refuse("use_learned_position_embeddings", "must be true: sinusoids are not supported");
}

// A projection that nothing uses would be left out of a saved file. The norm has an epsilon of its
// own.
void read_mobilebert(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.layer_norm_eps(kTorchEpsilon)
      .trigram_input(config.flag("trigram_input"))
      .no_norm(no_norm_in(config));
  if (options.trigram_input() || *options.embedding_dim() != options.d_model()) return;
  config.refuse("trigram_input", "must be true with an embedding_size of hidden_size " +
                                     std::to_string(options.d_model()));
}

}  // namespace

bool no_norm_in(const Settings& config) {
  const std::string type = config.text("normalization_type");
  if (type != "no_norm" && type != "layer_norm") {
    config.refuse("normalization_type", "must be no_norm or layer_norm");
  }
  return type == "no_norm";
}

// clang-format off
namespace tables {

const EmbeddingsStructure kLxmert = {.order = Order::PositionsFirst,
    .position_ids = PositionIds::ArangeExpanded, .padding_idx = 0, .more = pad_all_tables};
const EmbeddingsStructure kTvp = {.order = Order::PositionsFirst,
    .position_ids = PositionIds::ArangeExpanded, .norm_name = "layer_norm"};
const EmbeddingsStructure kInstructBlip = {.has_types = false, .norm_name = "layernorm"};
const EmbeddingsStructure kBlip2 = {.norm = Norm::None, .has_types = false, .has_dropout = false};
const EmbeddingsStructure kGpt = {.norm = Norm::None, .has_padding = false, .has_types = false,
    .types_from_tokens = true, .tokens = "tokens_embed", .positions = "positions_embed"};
const EmbeddingsStructure kBioGpt = {.norm = Norm::None, .position_offset = 2, .has_types = false,
    .tokens = "embed_tokens", .positions = "embed_positions", .norm_name = "layernorm_embedding"};
const EmbeddingsStructure kBlenderbot = {.norm = Norm::None, .has_types = false,
    .tokens = "embed_tokens", .positions = "embed_positions", .norm_name = "layernorm_embedding"};
const EmbeddingsStructure kLed = {.has_types = false,
    .tokens = "embed_tokens", .positions = "embed_positions", .norm_name = "layernorm_embedding"};
const EmbeddingsStructure kPPFormulaNet = {.position_offset = 2, .has_types = false,
    .tokens = "embed_tokens", .positions = "embed_positions", .norm_name = "layernorm_embedding"};
const EmbeddingsStructure kTrOcr = {.position_ids = PositionIds::ArangeExpanded,
    .position_offset = 2, .has_types = false, .tokens = "embed_tokens",
    .positions = "embed_positions", .norm_name = "layernorm_embedding", .more = read_trocr};
const EmbeddingsStructure kFunnel = {.position_ids = PositionIds::None, .has_types = false,
    .norm_name = "layer_norm"};

}  // namespace tables

std::span<const EncoderEmbeddingsPresetRow> encoder_embeddings_preset_rows() {
  static constexpr EncoderEmbeddingsPresetRow kRows[] = {
      {"bert", "bert", "BertEmbeddings", "drop(LN((tok + typ) + pos))", {}},
      {"bert_narrow", "albert", "AlbertEmbeddings, FNetEmbeddings",
       "proj(drop(LN((tok + typ) + pos))); FNet: drop(proj(LN(...)))",
       {.projection = Projection::Last, .projection_name = "embedding_hidden_mapping_in"}},
      {"bert_no_norm", "megatron-bert", "MegatronBertEmbeddings", "drop((tok + typ) + pos)",
       {.norm = Norm::None}},
      {"bert_offset_2", "nystromformer", "NystromformerEmbeddings", "as bert, positions from 2",
       {.first_position = 2}},
      {"bert_tasks", "ernie", "ErnieEmbeddings",
       "drop(LN(((tok + typ) + pos) + task)); as bert without use_task_id", {.more = read_tasks}},
      {"roberta", "roberta", "RobertaEmbeddings", "as bert, positions from the ids, padding apart",
       {.position_ids = PositionIds::FromIds}},
      {"roberta_no_norm", "xlm-roberta-xl", "XLMRobertaXLEmbeddings",
       "drop((tok + typ) + pos), positions as roberta",
       {.norm = Norm::None, .position_ids = PositionIds::FromIds}},
      {"squeezebert", "squeezebert", "SqueezeBertEmbeddings",
       "drop(LN((tok + pos) + typ)); LayoutLM: six rows of boxes after pos; DeBERTa: "
       "drop(LN(proj((tok + pos) + typ))), pos and typ if it has them",
       {.order = Order::PositionsFirst}},
      {"longformer", "longformer", "LongformerEmbeddings", "as squeezebert, positions as roberta",
       {.order = Order::PositionsFirst, .position_ids = PositionIds::FromIds}},
      {"distilbert", "distilbert", "DistilBERT's Embeddings", "drop(LN(tok + pos))",
       {.has_types = false}},
      {"mpnet", "mpnet", "MPNetEmbeddings", "as distilbert, positions as roberta with padding 1",
       {.position_ids = PositionIds::FromIds, .padding_idx = 1, .has_types = false}},
      {"clip", "clip_text_model", "CLIPTextEmbeddings", "tok + pos",
       {.norm = Norm::None, .has_padding = false, .has_types = false, .has_dropout = false,
        .tokens = "token_embedding", .positions = "position_embedding"}},
      {"gpt2", "gpt2", "GPT2Model", "drop((tok + pos) + tok[types]), types only where given",
       {.norm = Norm::None, .has_padding = false, .has_types = false, .types_from_tokens = true,
        .tokens = "wte", .positions = "wpe"}},
      {"bart", "bart", "BartEncoder",
       "drop(LN(tok * s + pos)), positions from row 2; LED, Blenderbot: from row 0; BioGPT, "
       "Blenderbot, BigBird-Pegasus: no norm",
       {.position_ids = PositionIds::ArangeExpanded, .position_offset = 2, .has_types = false,
        .tokens = "embed_tokens", .positions = "embed_positions",
        .norm_name = "layernorm_embedding"}},
      {"opt", "opt", "OPTDecoder", "proj(tok) + pos, positions from the mask, from row 2",
       {.norm = Norm::None, .position_ids = PositionIds::FromMask, .position_offset = 2,
        .has_types = false, .has_dropout = false, .projection = Projection::Tokens,
        .projects_always = false, .projection_bias = false, .tokens = "embed_tokens",
        .positions = "embed_positions", .projection_name = "project_in"}},
      {"nomic", "nomic_bert", "NomicBertEmbeddings",
       "drop(LN(tok + typ)); ModernBERT, Funnel, BLOOM: no types; RoFormer: proj",
       {.position_ids = PositionIds::None}},
      {"llama", "llama", "LlamaModel", "tok; Gemma: tok * s; T5, XLNet: drop(tok)",
       {.norm = Norm::None, .position_ids = PositionIds::None, .has_types = false,
        .has_dropout = false, .tokens = "embed_tokens"}},
      {"mobilebert", "mobilebert", "MobileBertEmbeddings",
       "drop(norm((proj(next tok, tok, last tok) + pos) + typ)), where norm may be x w + b",
       {.order = Order::PositionsFirst, .projection = Projection::Tokens,
        .projection_name = "embedding_transformation", .more = read_mobilebert}},
      {"big_bird", "big_bird", "BigBirdEmbeddings", "LN(drop((tok * s + typ) + pos))",
       {.norm = Norm::AfterDropout, .more = scale_by_power}},
  };
  return kRows;
}
// clang-format on

namespace {

// A row of padding, which null in a file leaves out.
void set_padding(const Settings& config, const EmbeddingsStructure& structure,
                 EncoderEmbeddingsOptions& options) {
  options.padding_idx(structure.padding_idx);
  if (structure.has_padding && !structure.padding_idx && config.has("pad_token_id")) {
    const int64_t vocab = options.vocab_size();
    options.padding_idx(config.integer("pad_token_id", -vocab, vocab - 1));
  }
  if (structure.position_ids != PositionIds::FromIds) return;
  if (!options.padding_idx())
    config.refuse("pad_token_id", "must be a token: positions are counted from it");
  options.position_padding_idx(options.padding_idx());
}

void set_names(const EmbeddingsStructure& structure, embeddings::Names& names) {
  if (structure.tokens != nullptr) names.tokens = structure.tokens;
  if (structure.positions != nullptr) names.positions = structure.positions;
  if (structure.norm_name != nullptr) names.norm = structure.norm_name;
}

// Sizes, epsilon, dropout and scale.
EncoderEmbeddingsOptions sized_options(const Settings& config) {
  const int64_t width = config.integer("hidden_size", 1, kWidestTable);
  EncoderEmbeddingsOptions options(config.integer("vocab_size", 1, kMostTableRows), width);
  if (config.name_of(hf::kTableWidth))
    options.embedding_dim(config.integer(hf::kTableWidth, width, 1, kWidestTable));
  if (config.flag(hf::kScale, false)) options.scale(std::sqrt(static_cast<double>(width)));
  return options
      .position_rows(config.integer(hf::kPositions, options.position_rows(), 1, kMostTableRows))
      .layer_norm_eps(config.not_negative(hf::kEpsilon, kTorchEpsilon))
      .dropout(config.probability(hf::kDropout, 0.0));
}

}  // namespace

// Most classes need a row of token types, whether or not types are given: without any they fail.
EncoderEmbeddingsOptions embeddings_of(const Settings& config, const hf::ModelType& model) {
  const EmbeddingsStructure& s = model.tables != nullptr
                                     ? *model.tables
                                     : encoder_embeddings_preset_row(model.embeddings).structure;
  EncoderEmbeddingsOptions options = sized_options(config);
  set_padding(config, s, options);
  set_names(s, options.names());
  options.norm(s.norm).order(s.order).position_ids(s.position_ids);
  options.position_rows(options.position_rows() + s.position_offset + s.first_position)
      .position_offset(s.position_offset)
      .first_position(s.first_position);
  options.type_vocab_size(s.has_types ? 1 : 0).types_from_tokens(s.types_from_tokens);
  if (!s.has_dropout) options.dropout(0.0);
  const bool is_narrow = options.embedding_dim().value_or(options.d_model()) != options.d_model();
  options.projection_bias(s.projection_bias);
  if (s.projection != Projection::None && (s.projects_always || is_narrow)) {
    options.projection(s.projection);
    options.names().projection = s.projection_name;
  }
  if (s.more != nullptr) s.more(config, options);
  if (options.type_vocab_size() != 0)
    options.type_vocab_size(config.integer("type_vocab_size", 1, kMostTableRows));
  return options;
}

}  // namespace posenc
