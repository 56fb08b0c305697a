#include "posenc/positions/nn/token_embedding.h"

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/token_embedding.h"
#include "positions/functional/lookup.h"
#include "positions/nn/embed_module.h"
#include "positions/nn/weights.h"

namespace posenc {

TokenEmbeddingImpl::TokenEmbeddingImpl(TokenEmbeddingOptions options_) : options(options_) {
  TokenEmbeddingImpl::reset();
}

TokenEmbeddingImpl::TokenEmbeddingImpl(TokenEmbeddingOptions options_, const torch::Tensor& weight)
    : options(options_) {
  build(weight);
}

void TokenEmbeddingImpl::reset() { build({}); }

void TokenEmbeddingImpl::build(const torch::Tensor& weight) {
  check_positive("TokenEmbedding", "vocab_size", options.vocab_size());
  check_positive("TokenEmbedding", "d_model", options.d_model());
  functional::padding_row("TokenEmbedding", "padding_idx", options.padding_idx(),
                          options.vocab_size());  // throws
  embedding = register_module(
      "embedding",
      make_embedding(torch::nn::EmbeddingOptions(options.vocab_size(), options.d_model())
                         .padding_idx(options.padding_idx())
                         .sparse(options.sparse())
                         ._weight(weight),
                     options.embedding_init()));
  embedding->weight.set_requires_grad(!options.freeze());
}

void TokenEmbeddingImpl::reset_parameters() {
  reset_embedding(*embedding, options.embedding_init());
}

void TokenEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TokenEmbedding", options, TokenEmbeddingOptions(-1, -1));
}

torch::Tensor TokenEmbeddingImpl::forward(const torch::Tensor& ids) {
  check_token_options("TokenEmbedding", embedding->options);
  return functional::token_embedding(ids, embedding->weight, options.scale(), options.padding_idx(),
                                     embedding->options.sparse());
}

TokenEmbedding TokenEmbedding::from_pretrained(const torch::Tensor& weight, bool freeze,
                                               const Scale& scale,
                                               std::optional<int64_t> padding_idx) {
  TORCH_CHECK_VALUE(weight.defined() && weight.dim() == 2 && weight.is_floating_point(),
                    "[TokenEmbedding] a pretrained weight must be a real matrix (vocab_size, "
                    "d_model). Got ",
                    weight.defined() ? c10::str(weight.scalar_type(), " ", weight.sizes())
                                     : c10::str("an undefined tensor"));
  const auto options = TokenEmbeddingOptions(weight.size(0), weight.size(1))
                           .scale(scale)
                           .padding_idx(padding_idx)
                           .freeze(freeze);
  // Detached, so that registering it does not change requires_grad of the caller's tensor.
  return TokenEmbedding(std::make_shared<TokenEmbeddingImpl>(options, weight.detach()));
}

}  // namespace posenc
