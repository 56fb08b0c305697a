#include "posenc/nn/input_embedding.h"

#include <ostream>

#include "nn/embed_forward.h"
#include "nn/print.h"

namespace posenc {

InputEmbeddingImpl::InputEmbeddingImpl(InputEmbeddingOptions options_)
    : options(std::move(options_)) {
  InputEmbeddingImpl::reset();
}

void InputEmbeddingImpl::reset() {
  TORCH_CHECK_VALUE(options.token().d_model() == options.position().d_model(),
                    "[InputEmbedding] tokens and positions must have one d_model. Got ",
                    options.token().d_model(), " and ", options.position().d_model());
  token_embedding = register_module("token_embedding", TokenEmbedding(options.token()));
  pos_encoding = register_module("pos_encoding", PositionalEncoding(options.position()));
}

void InputEmbeddingImpl::reset_parameters() { token_embedding->reset_parameters(); }

void InputEmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::InputEmbedding(vocab_size=" << options.token().vocab_size()
         << ", d_model=" << options.token().d_model() << ", ";
  print(stream, options.position());
  if (options.reuse_output()) stream << ", reuse_output=true";
  stream << ")";
}

torch::Tensor InputEmbeddingImpl::forward(const torch::Tensor& ids, int64_t offset,
                                          const torch::Tensor& position_ids) {
  const EmbedModule module = {"InputEmbedding",
                              *token_embedding->embedding,
                              token_embedding->options.scale(),
                              token_embedding->options.padding_idx(),
                              *pos_encoding,
                              *pos_encoding->dropout,
                              options.reuse_output() ? &last_output_ : nullptr};
  return embed_forward(module, ids, offset, position_ids);
}

}  // namespace posenc
