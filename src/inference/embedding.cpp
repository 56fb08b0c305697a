#include "inference/embedding.h"

#include <ATen/ops/arange.h>

#include "functional/lookup.h"

namespace posenc::inference {

namespace {

constexpr functional::LookupNames kNames = {"TokenEmbedding", "id", "vocab_size"};

}  // namespace

Embedding::Embedding(const TokenAndPositionEmbedding& embedding, WeightConverter& convert)
    : table(embedding->position_encoding->pe.detach()),
      converted(convert.table(embedding->token_embedding->weight)),
      scale(embedding->options.scale()) {
  if (!converted) weight = embedding->token_embedding->weight.detach();
}

// Converted rows become a table of their own, with the rows in the order of the ids.
at::Tensor Embedding::look_up(const at::Tensor& ids,
                              const functional::PositionalEncodingFuncOptions& position) const {
  const auto options = functional::EmbedFuncOptions().scale(scale).position(position);
  if (!converted) return functional::embed(ids, weight, table, options);
  functional::check_index_type(kNames, ids);
  check_ids(ids);
  return functional::embed(at::arange(ids.numel(), at::kLong).view(ids.sizes()),
                           converted->rows(ids), table, options);
}

at::Tensor Embedding::operator()(const at::Tensor& ids, int64_t offset) const {
  return look_up(ids, functional::PositionalEncodingFuncOptions().offset(offset));
}

void Embedding::check_ids(const at::Tensor& ids) const {
  functional::check_indices(kNames, ids, vocab_size());
}

at::Tensor Embedding::at_positions(const at::Tensor& ids, const at::Tensor& positions,
                                   int64_t length) const {
  // Padding counts towards the length, as in the module, although it is not looked up.
  TORCH_CHECK_VALUE(length <= table.size(-2), "[FrozenTransformer] sequence length ", length,
                    " exceeds max_len ", table.size(-2), ". Got it with its padding");
  return look_up(ids, functional::PositionalEncodingFuncOptions().position_ids(positions));
}

}  // namespace posenc::inference
