#include "inference/embedding.h"

#include "functional/lookup.h"

namespace posenc::inference {

Embedding::Embedding(const TokenAndPositionEmbedding& embedding)
    : weight(embedding->token_embedding->weight.detach()),
      table(embedding->position_encoding->pe.detach()),
      scale(embedding->options.scale()) {}

at::Tensor Embedding::operator()(const at::Tensor& ids, int64_t offset) const {
  return functional::embed(ids, weight, table,
                           functional::EmbedFuncOptions().scale(scale).position(
                               functional::PositionalEncodingFuncOptions().offset(offset)));
}

void Embedding::check_ids(const at::Tensor& ids) const {
  functional::check_indices({"TokenEmbedding", "id", "vocab_size"}, ids, weight.size(0));
}

at::Tensor Embedding::at_positions(const at::Tensor& ids, const at::Tensor& positions,
                                   int64_t length) const {
  // Padding counts towards the length, as in the module, although it is not looked up.
  TORCH_CHECK_VALUE(length <= table.size(-2), "[FrozenTransformer] sequence length ", length,
                    " exceeds max_len ", table.size(-2), ". Got it with its padding");
  return functional::embed(
      ids, weight, table,
      functional::EmbedFuncOptions().scale(scale).position(
          functional::PositionalEncodingFuncOptions().position_ids(positions)));
}

}  // namespace posenc::inference
