#include "models/front/builds.h"

#include <cstdint>

#include "posenc/sinusoid/preset.h"

namespace posenc::fronts {
namespace {

using front::Norm;
using front::Order;
using front::PositionIds;
using front::Projection;

constexpr double kBertEpsilon = 1e-12;  // where a class has no setting for it
constexpr int64_t kRowsBefore = 2;      // rows of a table before that of the first position

// Most fronts have a row of padding, which null in a file leaves out.
void read_padding(const Settings& config, EmbeddingFrontOptions& options) {
  const int64_t vocab = options.vocab_size();
  options.padding_idx(std::nullopt);
  if (config.has("pad_token_id"))
    options.padding_idx(config.whole("pad_token_id", -vocab, vocab - 1));
}

bool is_narrow(const EmbeddingFrontOptions& options) {
  return options.embedding_dim().value_or(options.d_model()) != options.d_model();
}

// Adds a projection only if the widths differ.
void project_if_narrow(EmbeddingFrontOptions& options, Projection place, const char* name) {
  if (!is_narrow(options)) return;
  options.projection(place);
  options.names().projection = name;
}

void number_from_ids(const Settings& config, EmbeddingFrontOptions& options) {
  if (!options.padding_idx())
    config.refuse("pad_token_id", "must be a token: positions are counted from it");
  options.position_ids(PositionIds::FromIds).position_padding_idx(options.padding_idx());
}

void without_positions(EmbeddingFrontOptions& options) { options.position_ids(PositionIds::None); }

void name_tables(EmbeddingFrontOptions& options, const char* tokens, const char* positions) {
  options.names().tokens = tokens;
  options.names().positions = positions;
}

// tokens + positions in an encoder with a decoder, without the two rows of BART.
void name_like_bart(EmbeddingFrontOptions& options) {
  name_tables(options, "embed_tokens", "embed_positions");
  options.names().norm = "layernorm_embedding";
}

void add_two_rows(EmbeddingFrontOptions& options) {
  options.position_rows(options.position_rows() + kRowsBefore).position_offset(kRowsBefore);
}

}  // namespace

void bert(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.norm(Norm::AfterSum);
}

void bert_narrow(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  options.projection(Projection::Last);
  options.names().projection = "embedding_hidden_mapping_in";
}

void bert_no_norm(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
}

void bert_offset_2(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  options.position_rows(options.position_rows() + kRowsBefore).first_position(kRowsBefore);
}

void bert_tasks(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  if (!config.flag("use_task_id")) return;
  options.task_type_vocab_size(config.whole("task_type_vocab_size", 1, INT32_MAX));
}

void big_bird(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.norm(Norm::AfterDropout);
  if (!options.scale().is_none()) options.scale(Scale::SqrtDim);  // pow(), not sqrt()
}

void electra(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

void fnet(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  options.projection(Projection::BeforeDropout);
}

void roberta(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  number_from_ids(config, options);
}

void roberta_no_norm(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  number_from_ids(config, options);
}

void longformer(const Settings& config, EmbeddingFrontOptions& options) {
  roberta(config, options);
  options.order(Order::PositionsFirst);
}

// Its padding is always 1, whatever the configuration has.
void mpnet(const Settings& config, EmbeddingFrontOptions& options) {
  options.type_vocab_size(0).norm(Norm::AfterSum).padding_idx(1);
  number_from_ids(config, options);
}

void squeezebert(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  options.order(Order::PositionsFirst);
}

void convbert(const Settings& config, EmbeddingFrontOptions& options) {
  squeezebert(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

// All tables have a row of padding, 0, and the norm an epsilon of its own.
void lxmert(const Settings&, EmbeddingFrontOptions& options) {
  options.norm(Norm::AfterSum).layer_norm_eps(kBertEpsilon).order(Order::PositionsFirst);
  options.padding_idx(0).position_padding_idx(0).type_padding_idx(0);
  options.position_ids(PositionIds::ArangeExpanded);
}

void tvp(const Settings& config, EmbeddingFrontOptions& options) {
  squeezebert(config, options);
  options.position_ids(PositionIds::ArangeExpanded);
  options.names().norm = "layer_norm";
}

void distilbert(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  options.type_vocab_size(0);
}

// The table begins as a sinusoid if asked for, and is trained like any other.
void distilbert_sinusoid(const Settings& config, EmbeddingFrontOptions& options) {
  distilbert(config, options);
  options.layer_norm_eps(kBertEpsilon);
  if (!config.flag("sinusoidal_pos_embds")) return;
  options.sinusoid(preset("distilbert", options.d_model())).train_sinusoid(true);
}

void instructblip(const Settings& config, EmbeddingFrontOptions& options) {
  distilbert(config, options);
  options.names().norm = "layernorm";
}

void clip(const Settings&, EmbeddingFrontOptions& options) {
  options.type_vocab_size(0).dropout(0.0);
  name_tables(options, "token_embedding", "position_embedding");
}

void blip_2(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0).dropout(0.0);
}

void gpt2(const Settings&, EmbeddingFrontOptions& options) {
  options.type_vocab_size(0).types_from_tokens(true);
  name_tables(options, "wte", "wpe");
}

void gpt(const Settings& config, EmbeddingFrontOptions& options) {
  gpt2(config, options);
  name_tables(options, "tokens_embed", "positions_embed");
}

void bart(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0).norm(Norm::AfterSum).position_ids(PositionIds::ArangeExpanded);
  add_two_rows(options);
  name_like_bart(options);
}

void biogpt(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0);
  add_two_rows(options);
  name_like_bart(options);
}

void blenderbot(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0);
  name_like_bart(options);
}

void led(const Settings& config, EmbeddingFrontOptions& options) {
  blenderbot(config, options);
  options.norm(Norm::AfterSum);
}

void opt(const Settings& config, EmbeddingFrontOptions& options) {
  read_padding(config, options);
  options.type_vocab_size(0)
      .dropout(0.0)
      .position_ids(PositionIds::FromMask)
      .projection_bias(false);
  add_two_rows(options);
  name_tables(options, "embed_tokens", "embed_positions");
  project_if_narrow(options, Projection::Tokens, "project_in");
}

void pp_formulanet(const Settings& config, EmbeddingFrontOptions& options) {
  bart(config, options);
  options.position_ids(PositionIds::Arange);
}

void trocr(const Settings& config, EmbeddingFrontOptions& options) {
  bart(config, options);
  if (!config.flag("layernorm_embedding")) options.norm(Norm::None);
  if (!config.flag("use_learned_position_embeddings"))
    config.refuse("use_learned_position_embeddings", "must be true: sinusoids are not supported");
}

void nomic(const Settings& config, EmbeddingFrontOptions& options) {
  bert(config, options);
  without_positions(options);
}

// Without token types there is no table; the other classes need a row.
void gte(const Settings& config, EmbeddingFrontOptions& options) {
  nomic(config, options);
  options.type_vocab_size(config.whole("type_vocab_size", 0, INT32_MAX));
}

void funnel(const Settings& config, EmbeddingFrontOptions& options) {
  nomic(config, options);
  options.type_vocab_size(0);
  options.names().norm = "layer_norm";
}

void modernbert(const Settings& config, EmbeddingFrontOptions& options) {
  nomic(config, options);
  options.type_vocab_size(0).norm_bias(config.flag("norm_bias"));
  options.names().tokens = "tok_embeddings";
  options.names().norm = "norm";
}

void roformer(const Settings& config, EmbeddingFrontOptions& options) {
  nomic(config, options);
  project_if_narrow(options, Projection::Last, "embeddings_project");
}

}  // namespace posenc::fronts
