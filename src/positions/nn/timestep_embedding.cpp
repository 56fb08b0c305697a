#include "posenc/positions/nn/timestep_embedding.h"

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/linear.h>

#include <ostream>

#include "core/check.h"
#include "core/print_fields.h"
#include "posenc/positions/functional/timestep_embedding.h"
#include "positions/nn/weights.h"

namespace posenc {

TimestepEmbeddingImpl::TimestepEmbeddingImpl(TimestepEmbeddingOptions options_)
    : options(std::move(options_)) {
  TimestepEmbeddingImpl::reset();
}

void TimestepEmbeddingImpl::reset() {
  check_positive("TimestepEmbedding", "channels", options.channels());
  check_positive("TimestepEmbedding", "hidden", options.hidden());
  pe = register_module(
      "pe",
      PositionEmbedding(PositionEmbeddingOptions(options.d_model()).max_len(options.max_len())));
  pe_linear = register_module(
      "pe_linear",
      torch::nn::Sequential(make_linear({options.d_model(), options.hidden()}), torch::nn::ReLU(),
                            make_linear({options.hidden(), options.channels()})));
}

void TimestepEmbeddingImpl::reset_parameters() {
  for (const size_t i : {0, 2}) pe_linear->at<torch::nn::LinearImpl>(i).reset_parameters();
}

void TimestepEmbeddingImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "TimestepEmbedding", options, TimestepEmbeddingOptions(-1, -1));
}

torch::Tensor TimestepEmbeddingImpl::forward(const torch::Tensor& t) {
  const auto& first = pe_linear->at<torch::nn::LinearImpl>(0);
  const auto& second = pe_linear->at<torch::nn::LinearImpl>(2);
  return functional::timestep_embedding(t, pe->table(),
                                        {first.weight, first.bias, second.weight, second.bias});
}

torch::Tensor TimestepEmbeddingImpl::add_to(const torch::Tensor& image, const torch::Tensor& t) {
  return functional::add_timestep(image, forward(t));
}

}  // namespace posenc
