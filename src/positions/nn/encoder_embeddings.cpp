#include "posenc/positions/nn/encoder_embeddings.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/functional/lookup.h"
#include "positions/nn/computed_table.h"
#include "positions/nn/embed_module.h"
#include "positions/nn/encoder_embeddings_internals.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

using embeddings::Norm;
using embeddings::PositionIds;
using embeddings::Projection;

constexpr const char* kEmbeddings = "EncoderEmbeddings";

int64_t table_width(const EncoderEmbeddingsOptions& options) {
  return options.embedding_dim().value_or(options.d_model());
}

// The width of what is projected.
int64_t projected_width(const EncoderEmbeddingsOptions& options) {
  return options.trigram_input() ? 3 * table_width(options) : table_width(options);
}

// The width of the rows that are added to the tokens.
int64_t sum_width(const EncoderEmbeddingsOptions& options) {
  return options.projection() == Projection::Tokens ? options.d_model() : table_width(options);
}

int64_t norm_width(const EncoderEmbeddingsOptions& options) {
  const bool projected =
      (options.projection() == Projection::Sum && options.norm() != Norm::AfterTokens) ||
      (options.projection() == Projection::BeforeDropout && options.norm() == Norm::AfterDropout);
  return projected ? options.d_model() : sum_width(options);
}

bool has_positions(const EncoderEmbeddingsOptions& options) {
  return options.position_ids() != PositionIds::None;
}

void check_position_options(const EncoderEmbeddingsOptions& options) {
  TORCH_CHECK_VALUE(options.position_offset() >= 0 && options.first_position() >= 0, "[",
                    kEmbeddings, "] position_offset and first_position must not be negative. Got ",
                    options.position_offset(), " and ", options.first_position());
  if (!has_positions(options)) {
    TORCH_CHECK_VALUE(!options.sinusoid() && !options.position_padding_idx() &&
                          options.position_offset() == 0 && options.first_position() == 0,
                      "[", kEmbeddings,
                      "] sinusoid, position_padding_idx, position_offset and first_position need "
                      "positions. Got PositionIds::None");
    return;
  }
  check_positive(kEmbeddings, "position_rows", options.position_rows());
  if (options.position_ids() == PositionIds::FromIds) {
    TORCH_CHECK_VALUE(options.padding_idx().has_value(), "[", kEmbeddings,
                      "] PositionIds::FromIds needs a padding_idx");
    TORCH_CHECK_VALUE(
        *options.padding_idx() >= 0, "[", kEmbeddings,
        "] padding_idx must not be negative with PositionIds::FromIds, which compares "
        "ids with it. Got ",
        *options.padding_idx());
    TORCH_CHECK_VALUE(options.position_offset() == 0 && options.first_position() == 0, "[",
                      kEmbeddings,
                      "] PositionIds::FromIds counts from padding_idx alone. Got position_offset ",
                      options.position_offset(), " and first_position ", options.first_position());
  }
  TORCH_CHECK_VALUE(
      options.position_ids() != PositionIds::FromMask || first_position_row(options) > 0, "[",
      kEmbeddings,
      "] PositionIds::FromMask needs a row for masked tokens before the first "
      "position: a position_offset of at least 1. Got 0");
  TORCH_CHECK_VALUE(first_position_row(options) < options.position_rows(), "[", kEmbeddings,
                    "] position_rows must exceed the first position's row ",
                    first_position_row(options), ". Got ", options.position_rows());
  TORCH_CHECK_VALUE(options.sinusoid() || !options.train_sinusoid(), "[", kEmbeddings,
                    "] train_sinusoid needs a sinusoid. Got no sinusoid");
  if (const auto& sinusoid = options.sinusoid()) {
    TORCH_CHECK_VALUE(sinusoid->dim() == sum_width(options), "[", kEmbeddings,
                      "] the sinusoid's dim must be ", sum_width(options), ". Got ",
                      sinusoid->dim());
    TORCH_CHECK_VALUE(!options.position_padding_idx(), "[", kEmbeddings,
                      "] a sinusoid is not trained: it has no position_padding_idx. Got ",
                      *options.position_padding_idx());
  }
}

void check_type_options(const EncoderEmbeddingsOptions& options) {
  TORCH_CHECK_VALUE(options.type_vocab_size() >= 0 && options.task_type_vocab_size() >= 0, "[",
                    kEmbeddings,
                    "] type_vocab_size and task_type_vocab_size must not be negative. Got ",
                    options.type_vocab_size(), " and ", options.task_type_vocab_size());
  TORCH_CHECK_VALUE(options.box_positions() >= 0, "[", kEmbeddings,
                    "] box_positions must not be negative. Got ", options.box_positions());
  const int64_t edges = options.coordinate_size(), sides = options.shape_size();
  const bool are_sums = edges == 0 && sides == 0;
  TORCH_CHECK_VALUE(are_sums || (options.box_positions() > 0 && edges > 0 && sides > 0 &&
                                 4 * edges + 2 * sides == sum_width(options)),
                    "[", kEmbeddings, "] 4 coordinate_size + 2 shape_size must be d_model ",
                    sum_width(options), ", with box_positions. Got ", edges, " and ", sides);
  TORCH_CHECK_VALUE(options.type_vocab_size() > 0 || !options.type_padding_idx(), "[", kEmbeddings,
                    "] type_padding_idx needs a table of token types. Got type_vocab_size 0");
  TORCH_CHECK_VALUE(!options.types_from_tokens() || options.type_vocab_size() == 0, "[",
                    kEmbeddings,
                    "] types_from_tokens has no table of token types. Got type_vocab_size ",
                    options.type_vocab_size());
  TORCH_CHECK_VALUE(!options.types_from_tokens() || options.projection() != Projection::Tokens, "[",
                    kEmbeddings, "] types_from_tokens and Projection::Tokens exclude each other");
}

void check_options(const EncoderEmbeddingsOptions& options) {
  check_positive(kEmbeddings, "vocab_size", options.vocab_size());
  check_positive(kEmbeddings, "d_model", options.d_model());
  check_positive(kEmbeddings, "embedding_dim", table_width(options));
  TORCH_CHECK_VALUE(
      options.projection() != Projection::None || table_width(options) == options.d_model(), "[",
      kEmbeddings, "] embedding_dim must be d_model ", options.d_model(),
      " without a projection. Got ", table_width(options));
  TORCH_CHECK_VALUE(!options.trigram_input() || options.projection() == Projection::Tokens, "[",
                    kEmbeddings, "] trigram_input needs Projection::Tokens");
  TORCH_CHECK_VALUE(options.layer_norm_eps() >= 0.0, "[", kEmbeddings,
                    "] layer_norm_eps must not be negative. Got ", options.layer_norm_eps());
  check_dropout(kEmbeddings, options.dropout());
  check_position_options(options);
  check_type_options(options);
}

// A table whose padding row, if any, is zeros; negative rows count from the end.
torch::nn::Embedding embeddings_table(const char* name, int64_t rows, int64_t width,
                                      const std::optional<int64_t>& padding) {
  const int64_t row = functional::padding_row(kEmbeddings, name, padding, rows);
  auto options = torch::nn::EmbeddingOptions(rows, width);
  return make_embedding(row < 0 ? options : options.padding_idx(row));
}

LearnedPositionEmbedding embeddings_positions(const EncoderEmbeddingsOptions& options) {
  const int64_t rows = options.position_rows(), width = sum_width(options);
  auto learned = LearnedPositionEmbeddingOptions(rows, width).offset(options.position_offset());
  if (!options.sinusoid()) {
    functional::padding_row(kEmbeddings, "position_padding_idx", options.position_padding_idx(),
                            rows);
    return LearnedPositionEmbedding(learned.padding_idx(options.position_padding_idx()));
  }
  const SkipInit no_draws;  // the sinusoid replaces them
  LearnedPositionEmbedding made(learned);
  made->weight.set_data(module_table(*options.sinusoid(), rows));
  made->weight.set_requires_grad(options.train_sinusoid());
  return made;
}

}  // namespace

EncoderEmbeddingsImpl::EncoderEmbeddingsImpl(EncoderEmbeddingsOptions options_)
    : options(std::move(options_)) {
  EncoderEmbeddingsImpl::reset();
}

void EncoderEmbeddingsImpl::reset() {
  check_options(options);
  const embeddings::Names& names = options.names();
  const int64_t width = sum_width(options);
  tokens =
      register_module(names.tokens, embeddings_table("padding_idx", options.vocab_size(),
                                                     table_width(options), options.padding_idx()));
  if (has_positions(options))
    positions = register_module(names.positions, embeddings_positions(options));
  if (options.type_vocab_size() > 0)
    token_types = register_module(
        names.token_types, embeddings_table("type_padding_idx", options.type_vocab_size(), width,
                                            options.type_padding_idx()));
  if (options.task_type_vocab_size() > 0)
    task_types =
        register_module(names.task_types,
                        embeddings_table("", options.task_type_vocab_size(), width, std::nullopt));
  if (options.box_positions() > 0) {
    const auto table = [&](const char* name, int64_t own) {
      return register_module(
          name, embeddings_table("", options.box_positions(), own > 0 ? own : width, std::nullopt));
    };
    x_positions = table("x_position_embeddings", options.coordinate_size());
    y_positions = table("y_position_embeddings", options.coordinate_size());
    h_positions = table("h_position_embeddings", options.shape_size());
    w_positions = table("w_position_embeddings", options.shape_size());
  }
  if (options.norm() != Norm::None)
    norm = register_module(names.norm, LayerNorm(LayerNormOptions(norm_width(options))
                                                     .eps(options.layer_norm_eps())
                                                     .bias(options.norm_bias())));
  if (options.projection() != Projection::None)
    projection = register_module(
        names.projection,
        make_linear(torch::nn::LinearOptions(projected_width(options), options.d_model())
                        .bias(options.projection_bias())));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void EncoderEmbeddingsImpl::reset_parameters() {
  tokens->reset_parameters();
  if (positions && !options.sinusoid()) positions->reset_parameters();
  if (positions && options.sinusoid() && options.train_sinusoid()) {
    const torch::NoGradGuard no_grad;
    positions->weight.copy_(module_table(*options.sinusoid(), options.position_rows()));
  }
  if (token_types) token_types->reset_parameters();
  if (task_types) task_types->reset_parameters();
  for (auto* table : {&x_positions, &y_positions, &h_positions, &w_positions}) {
    if (*table) (*table)->reset_parameters();
  }
  if (norm) norm->reset_parameters();
  if (projection) projection->reset_parameters();
}

void EncoderEmbeddingsImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "EncoderEmbeddings", options, EncoderEmbeddingsOptions(-1, -1));
}

std::vector<std::string> EncoderEmbeddingsImpl::non_persistent_names() const {
  return {"position_ids", "token_type_ids"};
}

int64_t EncoderEmbeddingsImpl::max_tokens() const {
  return embeddings_max_tokens(options, positions ? positions->weight : torch::Tensor());
}

void EncoderEmbeddingsImpl::extend_positions(int64_t max_tokens, PositionExtension rule) {
  TORCH_CHECK_VALUE(
      positions && !options.sinusoid(),
      "[EncoderEmbeddings] extend_positions() needs a trained table of positions. Got ",
      positions ? "a sinusoid, which position_rows makes longer" : "no positions");
  const int64_t first = first_position_row(options);
  TORCH_CHECK_VALUE(max_tokens >= this->max_tokens(),
                    "[EncoderEmbeddings] max_tokens must be at least ", this->max_tokens(),
                    ", which the table has. Got ", max_tokens);
  positions->extend(first + max_tokens, rule, first);
  options.position_rows(first + max_tokens);
}

torch::Tensor EncoderEmbeddingsImpl::forward(const torch::Tensor& ids,
                                             const EncoderEmbeddingsInputs& inputs) {
  EmbeddingsCall call = embeddings_call(options, embeddings_weights(*this), ids, inputs);
  call.options.dropout(dropout->options.p()).training(dropout->is_training());
  return functional::encoder_embeddings(call.ids, call.weights, call.options);
}

}  // namespace posenc
