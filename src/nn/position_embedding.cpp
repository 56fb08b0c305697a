#include "posenc/nn/position_embedding.h"

#include <ostream>

#include "nn/computed_table.h"
#include "posenc/core/check.h"
#include "posenc/functional/positional_encoding.h"
#include "posenc/sinusoid/preset.h"
#include "posenc/sinusoid/table.h"

namespace posenc {

using TableStorage = PositionEmbeddingOptions::Storage;

PositionEmbeddingImpl::PositionEmbeddingImpl(PositionEmbeddingOptions options_)
    : options(std::move(options_)) {
  PositionEmbeddingImpl::reset();
}

SinusoidOptions PositionEmbeddingImpl::sinusoid() const {
  if (options.sinusoid()) return *options.sinusoid();
  const bool embedding_storage = options.storage() == TableStorage::Embedding;
  return preset(embedding_storage ? "notebook_002" : "notebook_004", options.d_model());
}

void PositionEmbeddingImpl::reset() {
  check_positive("PositionEmbedding", "max_len", options.max_len());
  check_positive("PositionEmbedding", "d_model", options.d_model());
  TORCH_CHECK_VALUE(sinusoid().dim() == options.d_model(),
                    "[PositionEmbedding] the sinusoid's dim must be d_model ", options.d_model(),
                    ". Got ", sinusoid().dim());
  const torch::Tensor rows = sinusoid_table(sinusoid(), options.max_len());
  if (options.storage() == TableStorage::Buffer) {
    pos_enc = register_buffer("pos_enc", rows);
    return;
  }
  // As in the notebook the Embedding draws its N(0, 1) weights before they are replaced, so that
  // modules initialised after it draw the same numbers as in Python.
  embedding =
      register_module("embedding", torch::nn::Embedding(options.max_len(), options.d_model()));
  embedding->weight.set_data(rows);
  embedding->weight.set_requires_grad(false);
}

torch::Tensor PositionEmbeddingImpl::table() const {
  return options.storage() == TableStorage::Buffer ? pos_enc : embedding->weight;
}

void PositionEmbeddingImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::PositionEmbedding(max_len=" << options.max_len()
         << ", d_model=" << options.d_model()
         << ", storage=" << (options.storage() == TableStorage::Buffer ? "buffer" : "embedding")
         << ")";
}

std::vector<ComputedTable> PositionEmbeddingImpl::computed_tables() const {
  const bool buffer = options.storage() == TableStorage::Buffer;
  return {computed_table(buffer ? "pos_enc" : "embedding.weight", 0, table(), sinusoid(),
                         options.max_len())};
}

void PositionEmbeddingImpl::to(torch::Device device, torch::Dtype dtype, bool non_blocking) {
  table().set_data(convert_table(sinusoid(), table(), dtype));
  torch::nn::Module::to(device, dtype, non_blocking);
}

void PositionEmbeddingImpl::to(torch::Dtype dtype, bool non_blocking) {
  table().set_data(convert_table(sinusoid(), table(), dtype));
  torch::nn::Module::to(dtype, non_blocking);
}

torch::Tensor PositionEmbeddingImpl::forward(const torch::Tensor& position_ids) {
  return functional::position_embedding(position_ids, table());
}

}  // namespace posenc
