#include "posenc/transformer/layers/relative_embeddings.h"

#include <ATen/ops/conv1d.h>
#include <torch/nn/init.h>

#include <ostream>
#include <utility>

#include "core/check.h"
#include "posenc/core/skip_init.h"
#include "positions/nn/convolution.h"
#include "transformer/functional/drop.h"
#include "transformer/layers/layer_parts.h"

namespace posenc {
namespace {

const DisentangledOptions& relative_options(const char* module,
                                            const TransformerLayerOptions& options) {
  TORCH_CHECK_VALUE(options.disentangled(), "[", module,
                    "] disentangled must be set. Got no disentangled attention");
  return *options.disentangled();
}

}  // namespace

RelativeEmbeddingsImpl::RelativeEmbeddingsImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  RelativeEmbeddingsImpl::reset();
}

void RelativeEmbeddingsImpl::reset() {
  const DisentangledOptions& own = relative_options("RelativeEmbeddings", options);
  check_positive("RelativeEmbeddings", "max_relative_positions", own.max_relative_positions());
  if (own.relative_attention())
    weight = register_parameter("weight", torch::empty({2 * own.span(), options.d_model()}));
  if (own.norm_relative_embeddings()) norm = register_module("norm", make_norm(options));
  if (!SkipInit::is_active()) reset_parameters();
}

void RelativeEmbeddingsImpl::reset_parameters() {
  if (weight.defined()) torch::nn::init::normal_(weight);
  if (norm) norm->reset_parameters();
}

void RelativeEmbeddingsImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::RelativeEmbeddings(rows=" << 2 * options.disentangled()->span()
         << ", d_model=" << options.d_model() << ")";
}

torch::Tensor RelativeEmbeddingsImpl::forward() {
  return weight.defined() && norm ? norm->forward(weight) : weight;
}

ConvolutionBesideImpl::ConvolutionBesideImpl(TransformerLayerOptions options_)
    : options(std::move(options_)) {
  ConvolutionBesideImpl::reset();
}

void ConvolutionBesideImpl::reset() {
  constexpr const char* kConvolution = "ConvolutionBeside";
  const DisentangledOptions& own = relative_options(kConvolution, options);
  const int64_t width = options.d_model(), size = own.conv_kernel_size();
  TORCH_CHECK_VALUE(size > 0 && size % 2 == 1, "[", kConvolution,
                    "] conv_kernel_size must be odd and positive. Got ", size);
  TORCH_CHECK_VALUE(own.conv_groups() > 0 && width % own.conv_groups() == 0, "[", kConvolution,
                    "] conv_groups must divide d_model ", width, ". Got ", own.conv_groups());
  conv = register_module("conv", make_convolution(torch::nn::Conv1dOptions(width, width, size)
                                                      .padding(size / 2)
                                                      .groups(own.conv_groups())));
  norm = register_module("norm", make_norm(options));
  dropout = register_module("dropout", torch::nn::Dropout(dropouts_of(options).output));
}

void ConvolutionBesideImpl::reset_parameters() {
  conv->reset_parameters();
  norm->reset_parameters();
}

void ConvolutionBesideImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::ConvolutionBeside(d_model=" << options.d_model()
         << ", conv_kernel_size=" << options.disentangled()->conv_kernel_size() << ")";
}

torch::Tensor ConvolutionBesideImpl::forward(const torch::Tensor& x, const torch::Tensor& out,
                                             const torch::Tensor& kept) {
  const torch::Tensor rows = kept.defined() ? kept.unsqueeze(-1) : kept;
  const auto without_padding = [&](const torch::Tensor& all) {
    return rows.defined() ? all.masked_fill(rows.logical_not(), 0.0) : all;
  };
  torch::Tensor y = conv->forward(without_padding(x).transpose(1, 2)).transpose(1, 2).contiguous();
  y = without_padding(y);
  y = functional::activate(drop(*dropout, y), options.disentangled()->conv_act());
  y = norm->forward(out + y);
  return rows.defined() ? y * rows.to(y.scalar_type()) : y;
}

}  // namespace posenc
