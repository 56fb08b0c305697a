#include "posenc/transformer/output_projection.h"

#include <torch/nn/init.h>

#include <cmath>
#include <optional>
#include <ostream>

#include "core/check.h"
#include "core/low_rank.h"
#include "posenc/core/skip_init.h"

namespace posenc {

OutputProjectionImpl::OutputProjectionImpl(int64_t d_model, int64_t vocab_size, bool has_bias,
                                           double scale)
    : d_model_(d_model), vocab_size_(vocab_size), has_bias_(has_bias), scale_(scale) {
  OutputProjectionImpl::reset();
}

void OutputProjectionImpl::reset() {
  check_positive("OutputProjection", "d_model", d_model_);
  check_positive("OutputProjection", "vocab_size", vocab_size_);
  if (!embedding_) weight = register_parameter("weight", torch::empty({vocab_size_, d_model_}));
  if (has_bias_) bias = register_parameter("bias", torch::empty({vocab_size_}));
  if (!SkipInit::is_active()) reset_parameters();
}

void OutputProjectionImpl::reset_parameters() {
  if (weight.defined()) torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  if (!bias.defined()) return;
  const double bound = 1.0 / std::sqrt(static_cast<double>(d_model_));
  torch::nn::init::uniform_(bias, -bound, bound);
}

void OutputProjectionImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::OutputProjection(d_model=" << d_model_ << ", vocab_size=" << vocab_size_;
  if (!has_bias_) stream << ", bias=false";
  if (scale_ != 1.0) stream << ", scale=" << scale_;
  if (embedding_) stream << ", tied";
  stream << ")";
}

torch::Tensor OutputProjectionImpl::forward(const torch::Tensor& x) {
  return linear_rows(scale_ == 1.0 ? x : x * scale_, effective_weight(),
                     bias.defined() ? std::optional(bias) : std::nullopt);
}

void OutputProjectionImpl::tie(const torch::nn::Embedding& embedding) {
  TORCH_CHECK_VALUE(
      embedding->weight.size(0) == vocab_size_ && embedding->weight.size(1) == d_model_,
      "[OutputProjection] the embedding must be (", vocab_size_, ", ", d_model_, "). Got ",
      embedding->weight.sizes());
  embedding_ = embedding;
  if (!weight.defined()) return;
  weight = torch::Tensor();
  parameters_.erase("weight");
}

}  // namespace posenc
