#include "posenc/transformer/layers/conformer_convolution.h"

#include <ATen/ops/conv1d.h>
#include <torch/nn/init.h>

#include <cmath>
#include <ostream>
#include <utility>

#include "core/check.h"
#include "posenc/core/skip_init.h"
#include "positions/nn/weights.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

constexpr const char* kConvolutionOfConformer = "ConformerConvolution";

}  // namespace

ConformerConvolutionImpl::ConformerConvolutionImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  ConformerConvolutionImpl::reset();
}

void ConformerConvolutionImpl::reset() {
  TORCH_CHECK_VALUE(options.conformer(), "[", kConvolutionOfConformer,
                    "] conformer must be set. Got no conformer");
  const int64_t width = options.d_model(), size = options.conformer()->conv_kernel_size();
  TORCH_CHECK_VALUE(size > 0 && size % 2 == 1, "[", kConvolutionOfConformer,
                    "] conv_kernel_size must be odd and positive. Got ", size);
  check_dropout(kConvolutionOfConformer, options.conformer()->conv_dropout());
  norm = register_module("norm", make_norm(options));
  pointwise1 = register_module("pointwise1",
                               make_linear(torch::nn::LinearOptions(width, 2 * width).bias(false)));
  depthwise_weight = register_parameter("depthwise_weight", torch::empty({width, size}));
  batch_norm = register_module("batch_norm", torch::nn::BatchNorm1d(width));
  pointwise2 = register_module("pointwise2",
                               make_linear(torch::nn::LinearOptions(width, width).bias(false)));
  dropout = register_module("dropout", torch::nn::Dropout(options.conformer()->conv_dropout()));
  if (!SkipInit::is_active()) reset_parameters();
}

void ConformerConvolutionImpl::reset_parameters() {
  norm->reset_parameters();
  pointwise1->reset_parameters();
  const double bound = 1.0 / std::sqrt(static_cast<double>(depthwise_weight.size(1)));
  torch::nn::init::uniform_(depthwise_weight, -bound, bound);
  batch_norm->reset_parameters();
  pointwise2->reset_parameters();
}

void ConformerConvolutionImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::ConformerConvolution(d_model=" << options.d_model()
         << ", conv_kernel_size=" << options.conformer()->conv_kernel_size() << ")";
}

torch::Tensor ConformerConvolutionImpl::forward(const torch::Tensor& x) {
  const int64_t width = options.d_model();
  TORCH_CHECK_VALUE(x.dim() == 3 && x.size(2) == width, "[", kConvolutionOfConformer,
                    "] x must be (B, L, ", width, "). Got ", x.sizes());
  if (x.numel() == 0) return x;
  const auto halves = pointwise1->forward(norm->forward(x)).chunk(2, -1);
  const torch::Tensor gated = halves[0] * halves[1].sigmoid();
  torch::Tensor y = at::conv1d(gated.transpose(1, 2), depthwise_weight.unsqueeze(1), {}, 1,
                               depthwise_weight.size(1) / 2, 1, width);
  y = functional::activate(batch_norm->forward(y), options.activation()).transpose(1, 2);
  return drop(*dropout, pointwise2->forward(y));
}

}  // namespace posenc
