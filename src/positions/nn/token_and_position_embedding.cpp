#include "posenc/positions/nn/token_and_position_embedding.h"

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/embed.h"
#include "posenc/positions/sinusoid/positions.h"
#include "positions/nn/embed_module.h"
#include "positions/nn/token_positions.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

using embeddings::Norm;
using embeddings::PositionIds;

constexpr const char* kTokenAndPosition = "TokenAndPositionEmbedding";

void check_padding(const TokenAndPositionEmbeddingOptions& options) {
  TORCH_CHECK_VALUE(
      options.position_ids() != PositionIds::FromIds || options.padding_idx().value_or(-1) >= 0,
      "[", kTokenAndPosition, "] PositionIds::FromIds needs a padding_idx that is not negative");
}

void check_structure(const TokenAndPositionEmbeddingOptions& options) {
  const PositionIds ids = options.position_ids();
  TORCH_CHECK_VALUE(
      ids == PositionIds::Arange || ids == PositionIds::FromIds || ids == PositionIds::None, "[",
      kTokenAndPosition,
      "] position_ids must be PositionIds::Arange, FromIds or None. Got another");
  TORCH_CHECK_VALUE(!options.learned_positions() || ids == PositionIds::Arange, "[",
                    kTokenAndPosition, "] learned_positions needs PositionIds::Arange");
  TORCH_CHECK_VALUE(options.position_offset() >= 0 &&
                        (options.position_offset() == 0 || options.learned_positions()),
                    "[", kTokenAndPosition,
                    "] position_offset must be the rows before the first position of "
                    "learned_positions. Got ",
                    options.position_offset());
  check_padding(options);
  TORCH_CHECK_VALUE(options.norm() != Norm::AfterDropout, "[", kTokenAndPosition,
                    "] norm must be Norm::None, AfterSum or AfterTokens. Got AfterDropout");
  const bool is_plain =
      !options.learned_positions() && ids == PositionIds::Arange && options.norm() == Norm::None;
  TORCH_CHECK_VALUE(is_plain || (options.table_source() == TableSource::Buffer &&
                                 options.batch_first() && !options.grow()),
                    "[", kTokenAndPosition,
                    "] table_source, batch_first(false) and grow are for sinusoids of "
                    "PositionIds::Arange without a norm");
}

}  // namespace

int64_t first_position_row(const TokenAndPositionEmbeddingOptions& options) {
  check_padding(options);  // which may have been set later
  return options.position_ids() == PositionIds::FromIds ? *options.padding_idx() + 1
                                                        : options.position_offset();
}

bool leaves_positions(const TokenAndPositionEmbeddingImpl& embedding) {
  return embedding.position_encoding && embedding.norm.is_empty() &&
         embedding.options.position_ids() == PositionIds::Arange;
}

bool reads_trained_rows(const TokenAndPositionEmbeddingImpl& embedding) {
  return embedding.position_embedding && !leaves_positions(embedding) &&
         embedding.options.position_ids() != PositionIds::FromIds;
}

void check_length(const char* module, const TokenAndPositionEmbeddingOptions& options,
                  int64_t length, int64_t offset) {
  TORCH_CHECK_VALUE(offset >= 0 && length <= options.max_len() - offset, "[", module,
                    "] sequence length ", offset + length, " exceeds max_len ", options.max_len(),
                    ". Got ", length, " tokens after ", offset);
}

TokenAndPositionEmbeddingImpl::TokenAndPositionEmbeddingImpl(
    TokenAndPositionEmbeddingOptions options_)
    : options(std::move(options_)) {
  TokenAndPositionEmbeddingImpl::reset();
}

void TokenAndPositionEmbeddingImpl::reset() {
  check_positive("TokenAndPositionEmbedding", "vocab_size", options.vocab_size());
  check_positive("TokenAndPositionEmbedding", "d_model", options.d_model());
  check_positive("TokenAndPositionEmbedding", "max_len", options.max_len());
  check_dropout("TokenAndPositionEmbedding", options.dropout());
  check_structure(options);
  if (!shares_tokens_) {
    token_embedding = register_module(
        "token_embedding",
        make_embedding(torch::nn::EmbeddingOptions(options.vocab_size(), options.d_model())
                           .padding_idx(options.padding_idx())
                           .sparse(options.sparse()),
                       options.embedding_init()));
  }
  if (options.learned_positions()) {
    const int64_t first = first_position_row(options);
    position_embedding =
        register_module("position_embedding",
                        LearnedPositionEmbedding(LearnedPositionEmbeddingOptions(
                                                     first + options.max_len(), options.d_model())
                                                     .offset(first)));
  } else if (options.position_ids() != PositionIds::None) {
    auto position = position_options(options);
    if (options.position_ids() == PositionIds::FromIds)
      position.max_len(first_position_row(options) + options.max_len()).grow(true);
    position_encoding = register_module("position_encoding", PositionalEncoding(position));
  }
  if (options.norm() != Norm::None)
    norm = register_module(
        "norm",
        TransformerNorm(TransformerNormOptions(options.d_model()).eps(options.layer_norm_eps())));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void TokenAndPositionEmbeddingImpl::reset_parameters() {
  if (!shares_tokens_) reset_embedding(*token_embedding, options.embedding_init());
  if (position_embedding) position_embedding->reset_parameters();
  if (norm) norm->reset_parameters();
}

void TokenAndPositionEmbeddingImpl::share_tokens(const torch::nn::Embedding& embedding) {
  TORCH_CHECK_VALUE(embedding->weight.sizes() == token_embedding->weight.sizes(),
                    "[TokenAndPositionEmbedding] shared tokens must be (vocab_size, d_model) = ",
                    token_embedding->weight.sizes(), ". Got ", embedding->weight.sizes());
  if (!shares_tokens_) unregister_module("token_embedding");
  token_embedding = embedding;
  shares_tokens_ = true;
}

void TokenAndPositionEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TokenAndPositionEmbedding", options,
                       TokenAndPositionEmbeddingOptions(-1, -1, -1));
}

torch::Tensor TokenAndPositionEmbeddingImpl::forward(const torch::Tensor& ids, int64_t offset,
                                                     const torch::Tensor& position_ids) {
  // A shared table has its own padding row, as in Python.
  const auto& padding_idx =
      shares_tokens_ ? token_embedding->options.padding_idx() : options.padding_idx();
  if (leaves_positions(*this)) {
    const EmbedModule module = {kTokenAndPosition,
                                *token_embedding,
                                options.scale(),
                                padding_idx,
                                *position_encoding,
                                *dropout,
                                options.reuse_output() ? last_output_.get() : nullptr};
    return embed_forward(module, ids, offset, position_ids);
  }
  const bool are_of_ids = options.position_ids() == PositionIds::FromIds;
  TORCH_CHECK_VALUE(are_of_ids || !position_ids.defined(), "[", kTokenAndPosition,
                    "] position_ids are for sinusoids of PositionIds::FromIds, or of "
                    "PositionIds::Arange without a norm");
  check_token_options(kTokenAndPosition, token_embedding->options);
  const torch::Tensor& tokens = token_embedding->weight;
  const bool sparse = token_embedding->options.sparse();
  const int64_t first_row = first_position_row(options);
  auto position = functional::PositionalEncodingFuncOptions();
  torch::Tensor table;
  if (are_of_ids) {
    position.position_ids(position_ids.defined()
                              ? position_ids
                              : positions_from_ids(ids, *options.padding_idx(), offset));
    table = position_encoding->table(first_row + offset + ids.size(-1));
  } else if (options.position_ids() != PositionIds::None) {
    check_length(kTokenAndPosition, options, ids.size(-1), offset);
    position.offset(first_row + offset);
    table = reads_trained_rows(*this) ? position_embedding->weight : position_encoding->pe;
  }
  torch::Tensor x;
  if (!table.defined() || options.norm() == Norm::AfterTokens) {
    x = functional::token_embedding(ids, tokens, options.scale(), padding_idx, sparse);
    if (norm && options.norm() == Norm::AfterTokens) x = norm->forward(x);
    if (table.defined()) x = functional::positional_encoding(x, table, position);
  } else {
    x = functional::embed(ids, tokens, table,
                          functional::EmbedFuncOptions()
                              .scale(options.scale())
                              .padding_idx(padding_idx)
                              .position(position)
                              .sparse(sparse));
  }
  if (norm && options.norm() == Norm::AfterSum) x = norm->forward(x);
  return dropout->forward(x);
}

}  // namespace posenc
