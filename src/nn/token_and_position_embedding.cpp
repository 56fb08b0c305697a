#include "posenc/nn/token_and_position_embedding.h"

#include <ostream>

#include "core/check.h"
#include "nn/embed_forward.h"
#include "nn/layers.h"
#include "nn/print.h"

namespace posenc {

TokenAndPositionEmbeddingImpl::TokenAndPositionEmbeddingImpl(
    TokenAndPositionEmbeddingOptions options_)
    : options(std::move(options_)) {
  TokenAndPositionEmbeddingImpl::reset();
}

void TokenAndPositionEmbeddingImpl::reset() {
  check_positive("TokenAndPositionEmbedding", "vocab_size", options.vocab_size());
  check_positive("TokenAndPositionEmbedding", "d_model", options.d_model());
  check_dropout("TokenAndPositionEmbedding", options.dropout());
  if (!shares_tokens_) {
    token_embedding = register_module(
        "token_embedding",
        make_embedding(torch::nn::EmbeddingOptions(options.vocab_size(), options.d_model())
                           .padding_idx(options.padding_idx())
                           .sparse(options.sparse()),
                       options.embedding_init()));
  }
  position_encoding =
      register_module("position_encoding", PositionalEncoding(position_options(options)));
  dropout = register_module("dropout", torch::nn::Dropout(options.dropout()));
}

void TokenAndPositionEmbeddingImpl::reset_parameters() {
  if (!shares_tokens_) reset_embedding(*token_embedding, options.embedding_init());
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
  stream << "posenc::TokenAndPositionEmbedding(vocab_size=" << options.vocab_size()
         << ", d_model=" << options.d_model() << ", ";
  print(stream, position_encoding->options);
  print(stream, options.scale());
  print(stream, options.embedding_init(), EmbeddingInit::StandardNormal);
  if (options.padding_idx()) stream << ", padding_idx=" << *options.padding_idx();
  if (options.sparse()) stream << ", sparse=true";
  if (options.reuse_output()) stream << ", reuse_output=true";
  stream << ", dropout=" << options.dropout() << ")";
}

torch::Tensor TokenAndPositionEmbeddingImpl::forward(const torch::Tensor& ids, int64_t offset,
                                                     const torch::Tensor& position_ids) {
  const EmbedModule module = {
      "TokenAndPositionEmbedding", *token_embedding, options.scale(),
      // A shared table has its own padding row, as in Python.
      shares_tokens_ ? token_embedding->options.padding_idx() : options.padding_idx(),
      *position_encoding, *dropout, options.reuse_output() ? last_output_.get() : nullptr};
  return embed_forward(module, ids, offset, position_ids);
}

}  // namespace posenc
