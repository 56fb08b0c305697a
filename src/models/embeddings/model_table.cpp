// posenc-budget: the rows of all model types, and the functions that make their embeddings
// The model types of transformers 5.23 whose embeddings are known: adding a model is one row. Its
// sizes are those of its configuration class. Embeddings that are omitted are the preset's.

#include "models/embeddings/model_table.h"

#include <cstdint>

#include "posenc/sinusoid/preset.h"

namespace posenc {
namespace embeddings {
namespace {

using embeddings::Norm;
using embeddings::Order;
using embeddings::PositionIds;
using embeddings::Projection;

constexpr double kBertEpsilon = 1e-12;  // where a class has no setting for it
constexpr int64_t kRowsBefore = 2;      // rows of a table before that of the first position

// Most embeddings have a row of padding, which null in a file leaves out.
void read_padding(const Settings& config, EncoderEmbeddingsOptions& options) {
  const int64_t vocab = options.vocab_size();
  options.padding_idx(std::nullopt);
  if (config.has("pad_token_id"))
    options.padding_idx(config.whole("pad_token_id", -vocab, vocab - 1));
}

bool is_narrow(const EncoderEmbeddingsOptions& options) {
  return options.embedding_dim().value_or(options.d_model()) != options.d_model();
}

// Adds a projection only if the widths differ.
void project_if_narrow(EncoderEmbeddingsOptions& options, Projection place, const char* name) {
  if (!is_narrow(options)) return;
  options.projection(place);
  options.names().projection = name;
}

void number_from_ids(const Settings& config, EncoderEmbeddingsOptions& options) {
  if (!options.padding_idx())
    config.refuse("pad_token_id", "must be a token: positions are counted from it");
  options.position_ids(PositionIds::FromIds).position_padding_idx(options.padding_idx());
}

void without_positions(EncoderEmbeddingsOptions& options) {
  options.position_ids(PositionIds::None);
}

void name_tables(EncoderEmbeddingsOptions& options, const char* tokens, const char* positions) {
  options.names().tokens = tokens;
  options.names().positions = positions;
}

// tokens + positions in an encoder with a decoder, without the two rows of BART.
void name_like_bart(EncoderEmbeddingsOptions& options) {
  name_tables(options, "embed_tokens", "embed_positions");
  options.names().norm = "layernorm_embedding";
}

void add_two_rows(EncoderEmbeddingsOptions& options) {
  options.position_rows(options.position_rows() + kRowsBefore).position_offset(kRowsBefore);
}

void bert(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.norm(Norm::AfterSum);
}

void bert_narrow(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  options.projection(Projection::Last);
  options.names().projection = "embedding_hidden_mapping_in";
}

void bert_no_norm(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
}

void bert_offset_2(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  options.position_rows(options.position_rows() + kRowsBefore).first_position(kRowsBefore);
}

void bert_tasks(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  if (!config.flag("use_task_id")) return;
  options.task_type_vocab_size(config.whole("task_type_vocab_size", 1, INT32_MAX));
}

void big_bird(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.norm(Norm::AfterDropout);
  if (!options.scale().is_none()) options.scale(Scale::SqrtDim);  // pow(), not sqrt()
}

void electra(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

void fnet(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  options.projection(Projection::BeforeDropout);
}

void roberta(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  number_from_ids(config, options);
}

void roberta_no_norm(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  number_from_ids(config, options);
}

void longformer(const Settings& config, EncoderEmbeddingsOptions& options) {
  roberta(config, options);
  options.order(Order::PositionsFirst);
}

// Its padding is always 1, whatever the configuration has.
void mpnet(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.type_vocab_size(0).norm(Norm::AfterSum).padding_idx(1);
  number_from_ids(config, options);
}

void squeezebert(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  options.order(Order::PositionsFirst);
}

void convbert(const Settings& config, EncoderEmbeddingsOptions& options) {
  squeezebert(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

// All tables have a row of padding, 0, and the norm an epsilon of its own.
void lxmert(const Settings&, EncoderEmbeddingsOptions& options) {
  options.norm(Norm::AfterSum).layer_norm_eps(kBertEpsilon).order(Order::PositionsFirst);
  options.padding_idx(0).position_padding_idx(0).type_padding_idx(0);
  options.position_ids(PositionIds::ArangeExpanded);
}

void tvp(const Settings& config, EncoderEmbeddingsOptions& options) {
  squeezebert(config, options);
  options.position_ids(PositionIds::ArangeExpanded);
  options.names().norm = "layer_norm";
}

void distilbert(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  options.type_vocab_size(0);
}

// The table begins as a sinusoid if asked for, and is trained like any other.
void distilbert_sinusoid(const Settings& config, EncoderEmbeddingsOptions& options) {
  distilbert(config, options);
  options.layer_norm_eps(kBertEpsilon);
  if (!config.flag("sinusoidal_pos_embds")) return;
  options.sinusoid(preset("distilbert", options.d_model())).train_sinusoid(true);
}

void instructblip(const Settings& config, EncoderEmbeddingsOptions& options) {
  distilbert(config, options);
  options.names().norm = "layernorm";
}

void clip(const Settings&, EncoderEmbeddingsOptions& options) {
  options.type_vocab_size(0).dropout(0.0);
  name_tables(options, "token_embedding", "position_embedding");
}

void blip_2(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0).dropout(0.0);
}

void gpt2(const Settings&, EncoderEmbeddingsOptions& options) {
  options.type_vocab_size(0).types_from_tokens(true);
  name_tables(options, "wte", "wpe");
}

void gpt(const Settings& config, EncoderEmbeddingsOptions& options) {
  gpt2(config, options);
  name_tables(options, "tokens_embed", "positions_embed");
}

void bart(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0).norm(Norm::AfterSum).position_ids(PositionIds::ArangeExpanded);
  add_two_rows(options);
  name_like_bart(options);
}

void biogpt(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0);
  add_two_rows(options);
  name_like_bart(options);
}

void blenderbot(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0);
  name_like_bart(options);
}

void led(const Settings& config, EncoderEmbeddingsOptions& options) {
  blenderbot(config, options);
  options.norm(Norm::AfterSum);
}

void opt(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0)
      .dropout(0.0)
      .position_ids(PositionIds::FromMask)
      .projection_bias(false);
  add_two_rows(options);
  name_tables(options, "embed_tokens", "embed_positions");
  project_if_narrow(options, Projection::Tokens, "project_in");
}

void pp_formulanet(const Settings& config, EncoderEmbeddingsOptions& options) {
  bart(config, options);
  options.position_ids(PositionIds::Arange);
}

void trocr(const Settings& config, EncoderEmbeddingsOptions& options) {
  bart(config, options);
  if (!config.flag("layernorm_embedding")) options.norm(Norm::None);
  if (!config.flag("use_learned_position_embeddings"))
    config.refuse("use_learned_position_embeddings", "must be true: sinusoids are not supported");
}

void nomic(const Settings& config, EncoderEmbeddingsOptions& options) {
  bert(config, options);
  without_positions(options);
}

// Without token types there is no table; the other classes need a row.
void gte(const Settings& config, EncoderEmbeddingsOptions& options) {
  nomic(config, options);
  options.type_vocab_size(config.whole("type_vocab_size", 0, INT32_MAX));
}

void funnel(const Settings& config, EncoderEmbeddingsOptions& options) {
  nomic(config, options);
  options.type_vocab_size(0);
  options.names().norm = "layer_norm";
}

void modernbert(const Settings& config, EncoderEmbeddingsOptions& options) {
  nomic(config, options);
  options.type_vocab_size(0).norm_bias(config.flag("norm_bias"));
  options.names().tokens = "tok_embeddings";
  options.names().norm = "norm";
}

void roformer(const Settings& config, EncoderEmbeddingsOptions& options) {
  nomic(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

}  // namespace
}  // namespace embeddings

const std::vector<EncoderEmbeddingsModelRow>& encoder_embeddings_model_table() {
  using namespace embeddings;
  static const std::vector<EncoderEmbeddingsModelRow> table = {
      // clang-format off
      // bert
      {"bert", "bert"},
      {"align_text_model", "bert"},
      {"chinese_clip_text_model", "bert"},
      {"flava_text_model", "bert"},
      {"bros", "bert"},
      {"splinter", "bert"},
      {"vilt", "bert"},
      {"visual_bert", "bert"},
      // bert_narrow
      {"albert", "bert_narrow"},
      {"electra", "bert_narrow", electra},
      {"fnet", "bert_narrow", fnet},
      {"rembert", "bert_narrow"},
      // bert_no_norm
      {"megatron-bert", "bert_no_norm"},
      // bert_offset_2
      {"nystromformer", "bert_offset_2"},
      {"mra", "bert_offset_2"},
      {"yoso", "bert_offset_2"},
      // bert_tasks
      {"ernie", "bert_tasks"},
      // roberta
      {"roberta", "roberta"},
      {"altclip_text_model", "roberta"},
      {"bridgetower_text_model", "roberta"},
      {"camembert", "roberta"},
      {"clap_text_model", "roberta"},
      {"data2vec-text", "roberta"},
      {"lilt", "roberta"},
      {"roberta-prelayernorm", "roberta"},
      {"xlm-roberta", "roberta"},
      {"xmod", "roberta"},
      // roberta_no_norm
      {"xlm-roberta-xl", "roberta_no_norm"},
      // squeezebert
      {"squeezebert", "squeezebert"},
      {"convbert", "squeezebert", convbert},
      {"lxmert", "squeezebert", lxmert},
      {"tvp", "squeezebert", tvp},
      // longformer
      {"longformer", "longformer"},
      {"luke", "longformer"},
      // distilbert
      {"distilbert", "distilbert", distilbert_sinusoid},
      {"bert-generation", "distilbert"},
      {"blip_text_model", "distilbert"},
      {"git", "distilbert"},
      {"instructblip_qformer", "distilbert", instructblip},
      {"instructblipvideo_qformer", "distilbert", instructblip},
      // mpnet
      {"mpnet", "mpnet"},
      // clip
      {"clip_text_model", "clip"},
      {"aimv2_text_model", "clip"},
      {"clipseg_text_model", "clip"},
      {"groupvit_text_model", "clip"},
      {"metaclip_2_text_model", "clip"},
      {"owlv2_text_model", "clip"},
      {"owlvit_text_model", "clip"},
      {"siglip_text_model", "clip"},
      {"siglip2_text_model", "clip"},
      {"xclip_text_model", "clip"},
      {"blip_2_qformer", "clip", blip_2},
      // gpt2
      {"gpt2", "gpt2"},
      {"gpt_bigcode", "gpt2"},
      {"gpt_neo", "gpt2"},
      {"imagegpt", "gpt2"},
      {"openai-gpt", "gpt2", gpt},
      // bart
      {"bart", "bart"},
      {"bigbird_pegasus", "bart", blenderbot},
      {"biogpt", "bart", biogpt},
      {"blenderbot", "bart", blenderbot},
      {"blenderbot-small", "bart", led},
      {"led", "bart", led},
      {"mbart", "bart"},
      {"mvp", "bart"},
      {"plbart", "bart"},
      {"pp_formulanet_text", "bart", pp_formulanet},
      {"trocr", "bart", trocr},
      // opt
      {"opt", "opt"},
      // nomic
      {"nomic_bert", "nomic"},
      {"funnel", "nomic", funnel},
      {"gte", "nomic", gte},
      {"jina_embeddings_v3", "nomic"},
      {"modernbert", "nomic", modernbert},
      {"modernbert-decoder", "nomic", modernbert},
      {"roformer", "nomic", roformer},
      // big_bird
      {"big_bird", "big_bird"},
      // clang-format on
  };
  return table;
}

const std::vector<EncoderEmbeddingsPresetRow>& encoder_embeddings_preset_table() {
  using namespace embeddings;
  static const std::vector<EncoderEmbeddingsPresetRow> table = {
      {"bert", "BertEmbeddings", "drop(LN((tok + typ) + pos))", bert},
      {"bert_narrow", "AlbertEmbeddings, FNetEmbeddings",
       "proj(drop(LN((tok + typ) + pos))); FNet: drop(proj(LN(...)))", bert_narrow},
      {"bert_no_norm", "MegatronBertEmbeddings", "drop((tok + typ) + pos)", bert_no_norm},
      {"bert_offset_2", "NystromformerEmbeddings", "as bert, positions from 2", bert_offset_2},
      {"bert_tasks", "ErnieEmbeddings",
       "drop(LN(((tok + typ) + pos) + task)); as bert without use_task_id", bert_tasks},
      {"roberta", "RobertaEmbeddings", "as bert, positions from the ids, padding apart", roberta},
      {"roberta_no_norm", "XLMRobertaXLEmbeddings", "drop((tok + typ) + pos), positions as roberta",
       roberta_no_norm},
      {"squeezebert", "SqueezeBertEmbeddings", "drop(LN((tok + pos) + typ))", squeezebert},
      {"longformer", "LongformerEmbeddings", "as squeezebert, positions as roberta", longformer},
      {"distilbert", "DistilBERT's Embeddings", "drop(LN(tok + pos))", distilbert},
      {"mpnet", "MPNetEmbeddings", "as distilbert, positions as roberta with padding 1", mpnet},
      {"clip", "CLIPTextEmbeddings", "tok + pos", clip},
      {"gpt2", "GPT2Model", "drop((tok + pos) + tok[types]), types only where given", gpt2},
      {"bart", "BartEncoder",
       "drop(LN(tok * s + pos)), positions from row 2; LED, Blenderbot: from row 0; BioGPT, "
       "Blenderbot, BigBird-Pegasus: no norm",
       bart},
      {"opt", "OPTDecoder", "proj(tok) + pos, positions from the mask, from row 2", opt},
      {"nomic", "NomicBertEmbeddings",
       "drop(LN(tok + typ)); ModernBERT, Funnel: no types; RoFormer: proj", nomic},
      {"big_bird", "BigBirdEmbeddings", "LN(drop((tok * s + typ) + pos))", big_bird},
  };
  return table;
}

}  // namespace posenc
