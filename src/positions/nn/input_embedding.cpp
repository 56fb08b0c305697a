#include "posenc/positions/nn/input_embedding.h"

#include <ostream>

#include "core/print_fields.h"
#include "positions/nn/embed_module.h"

namespace posenc {

InputEmbeddingImpl::InputEmbeddingImpl(InputEmbeddingOptions options_)
    : options(std::move(options_)) {
  InputEmbeddingImpl::reset();
}

void InputEmbeddingImpl::reset() {
  token_embedding =
      register_module("token_embedding",
                      TokenEmbedding(TokenEmbeddingOptions(options.vocab_size(), options.d_model())
                                         .scale(options.scale())
                                         .embedding_init(options.embedding_init())
                                         .padding_idx(options.padding_idx())
                                         .freeze(options.freeze())
                                         .sparse(options.sparse())));
  pos_encoding = register_module(
      "pos_encoding", PositionalEncoding(position_options(options).dropout(options.dropout())));
}

void InputEmbeddingImpl::reset_parameters() { token_embedding->reset_parameters(); }

void InputEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "InputEmbedding", options, InputEmbeddingOptions(-1, -1, -1));
}

torch::Tensor InputEmbeddingImpl::forward(const torch::Tensor& ids, int64_t offset,
                                          const torch::Tensor& position_ids) {
  const EmbedModule module = {"InputEmbedding",
                              *token_embedding->embedding,
                              token_embedding->options.scale(),
                              token_embedding->options.padding_idx(),
                              *pos_encoding,
                              *pos_encoding->dropout,
                              options.reuse_output() ? last_output_.get() : nullptr};
  return embed_forward(module, ids, offset, position_ids);
}

}  // namespace posenc
