#include "posenc/positions/nn/learned_position_embedding.h"

#include <torch/nn/init.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/core/skip_init.h"
#include "positions/functional/lookup.h"
#include "positions/nn/encoder_embeddings_internals.h"

namespace posenc {
namespace {

constexpr functional::LookupNames kLearnedPositions = {"LearnedPositionEmbedding", "position id",
                                                       "the number of positions"};

int64_t learned_padding_row(const LearnedPositionEmbeddingOptions& options) {
  return functional::padding_row("LearnedPositionEmbedding", "padding_idx", options.padding_idx(),
                                 options.num_embeddings());
}

}  // namespace

LearnedPositionEmbeddingImpl::LearnedPositionEmbeddingImpl(LearnedPositionEmbeddingOptions options_)
    : options(options_) {
  LearnedPositionEmbeddingImpl::reset();
}

void LearnedPositionEmbeddingImpl::reset() {
  check_positive("LearnedPositionEmbedding", "num_embeddings", options.num_embeddings());
  check_positive("LearnedPositionEmbedding", "embedding_dim", options.embedding_dim());
  TORCH_CHECK_VALUE(options.offset() >= 0 && options.offset() < options.num_embeddings(),
                    "[LearnedPositionEmbedding] offset must lie in [0, num_embeddings) = [0, ",
                    options.num_embeddings(), "). Got ", options.offset());
  learned_padding_row(options);  // throws
  weight = register_parameter("weight",
                              torch::empty({options.num_embeddings(), options.embedding_dim()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void LearnedPositionEmbeddingImpl::reset_parameters() {
  torch::nn::init::normal_(weight);
  const torch::NoGradGuard no_grad;
  if (const int64_t row = learned_padding_row(options); row >= 0) weight.select(0, row).zero_();
}

void LearnedPositionEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "LearnedPositionEmbedding", options,
                       LearnedPositionEmbeddingOptions(-1, -1));
}

torch::Tensor LearnedPositionEmbeddingImpl::forward(const torch::Tensor& position_ids) {
  const torch::Tensor rows =
      shifted_positions(kLearnedPositions, position_ids, options.offset(), weight.size(0));
  return functional::lookup(kLearnedPositions, rows, weight, learned_padding_row(options));
}

int64_t LearnedPositionEmbeddingImpl::max_positions() const {
  return options.num_embeddings() - options.offset();
}

void LearnedPositionEmbeddingImpl::resize(int64_t height, int64_t width, PositionResize rule,
                                          int64_t prefix) {
  const torch::NoGradGuard no_grad;
  replace_table(functional::resize_positions(weight.detach(), height, width, rule, prefix));
}

void LearnedPositionEmbeddingImpl::extend(int64_t rows, PositionExtension rule, int64_t prefix) {
  const torch::NoGradGuard no_grad;
  replace_table(functional::extend_positions(weight.detach(), rows, rule, prefix));
}

void LearnedPositionEmbeddingImpl::replace_table(const torch::Tensor& table) {
  const bool learns = weight.requires_grad();
  weight = table.contiguous().clone().set_requires_grad(learns);
  parameters_["weight"] = weight;
  options.num_embeddings(weight.size(0));
}

}  // namespace posenc
