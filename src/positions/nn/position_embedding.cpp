#include "posenc/positions/nn/position_embedding.h"

#include <c10/core/DefaultDtype.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/positional_encoding.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/positions/sinusoid/table.h"
#include "positions/nn/computed_table.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

bool is_buffer(const PositionEmbeddingOptions& options) {
  return options.register_as() == PositionEmbeddingOptions::RegisterAs::Buffer;
}

// The sinusoid of the reference class, which with a frozen weight computes in the default dtype.
// With a half type its positions would collide, so then they are computed in float32 and rounded
// once.
SinusoidOptions own_sinusoid(const PositionEmbeddingOptions& options) {
  if (is_buffer(options)) return preset("notebook_004", options.d_model());
  auto own = preset("notebook_002", options.d_model());
  const bool in_double = c10::get_default_dtype_as_scalartype() == torch::kDouble;
  return in_double ? own.arithmetic(sinusoid::Arithmetic::Float64) : own;
}

}  // namespace

PositionEmbeddingImpl::PositionEmbeddingImpl(PositionEmbeddingOptions options_)
    : options(std::move(options_)) {
  PositionEmbeddingImpl::reset();
}

SinusoidOptions PositionEmbeddingImpl::sinusoid() const { return *options.sinusoid(); }

void PositionEmbeddingImpl::reset() {
  check_positive("PositionEmbedding", "d_model", options.d_model());
  check_positive("PositionEmbedding", "max_len", options.max_len());
  const bool own = !options.sinusoid();
  if (own) options.sinusoid(own_sinusoid(options));
  TORCH_CHECK_VALUE(sinusoid().dim() == options.d_model(),
                    "[PositionEmbedding] the sinusoid's dim must be d_model ", options.d_model(),
                    ". Got ", sinusoid().dim());
  const bool in_double = own && sinusoid().arithmetic() == sinusoid::Arithmetic::Float64;
  const torch::Tensor rows = in_double
                                 ? sinusoid_table(sinusoid(), options.max_len(), torch::kDouble)
                                 : module_table(sinusoid(), options.max_len());
  if (is_buffer(options)) {
    pos_enc = register_buffer("pos_enc", rows);
    return;
  }
  // As in Python, the Embedding draws its N(0, 1) weights before they are replaced, so that
  // modules initialised after it draw the same numbers as in Python.
  embedding = register_module("embedding", make_embedding(torch::nn::EmbeddingOptions(
                                               options.max_len(), options.d_model())));
  embedding->weight.set_data(rows);
  embedding->weight.set_requires_grad(false);
}

torch::Tensor PositionEmbeddingImpl::table() const {
  return is_buffer(options) ? pos_enc : embedding->weight;
}

void PositionEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "PositionEmbedding", options, PositionEmbeddingOptions(-1));
}

TableRecipe PositionEmbeddingImpl::table_recipe() const {
  return {is_buffer(options) ? "pos_enc" : "embedding.weight", 0, table(), sinusoid(),
          options.max_len()};
}

torch::Tensor PositionEmbeddingImpl::forward(const torch::Tensor& position_ids) {
  return functional::position_embedding(position_ids, table());
}

}  // namespace posenc
