#include "posenc/models/encoder_head.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "models/heads/rows.h"
#include "nn/weights.h"
#include "posenc/core/skip_init.h"
#include "posenc/functional/pooling.h"

namespace posenc {
namespace {

const char* to_string(head::Rows rows) {
  using head::Rows;
  switch (rows) {
    case Rows::Tokens: return "tokens";
    case Rows::Pooled: return "pooled";
    case Rows::Mean: return "mean";
    case Rows::MeanOfLogits: return "mean_of_logits";
    case Rows::MeanOfRows: return "mean_of_rows";
    case Rows::FirstAndMean: break;
  }
  return "first_and_mean";
}

int64_t last_width(const EncoderHeadOptions& options) {
  return options.dense().value_or(options.d_model());
}

}  // namespace

EncoderHeadImpl::EncoderHeadImpl(EncoderHeadOptions options_) : options(std::move(options_)) {
  EncoderHeadImpl::reset();
}

void EncoderHeadImpl::reset() {
  check_positive("EncoderHead", "d_model", options.d_model());
  check_positive("EncoderHead", "outputs", options.outputs());
  check_positive("EncoderHead", "dense", last_width(options));
  TORCH_CHECK_VALUE(!options.norm() || *options.norm() >= 0.0,
                    "[EncoderHead] norm must not be negative. Got ", *options.norm());
  TORCH_CHECK_VALUE(options.first_row() >= 0, "[EncoderHead] first_row must not be negative. Got ",
                    options.first_row());
  if (options.dense()) {
    dense = register_module(
        "dense", make_linear(torch::nn::LinearOptions(options.d_model(), *options.dense())
                                 .bias(options.dense_bias())));
  }
  if (options.norm()) {
    norm = register_module(
        "norm",
        LayerNorm(
            LayerNormOptions(last_width(options)).eps(*options.norm()).bias(options.norm_bias())));
  }
  if (!options.tied()) {
    weight = register_parameter("weight", torch::empty({options.outputs(), last_width(options)}));
  }
  if (options.bias()) bias = register_parameter("bias", torch::empty({options.outputs()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void EncoderHeadImpl::reset_parameters() {
  if (dense) dense->reset_parameters();
  if (norm) norm->reset_parameters();
  if (weight.defined()) torch::nn::init::kaiming_uniform_(weight, std::sqrt(5.0));
  const double bound = 1.0 / std::sqrt(static_cast<double>(last_width(options)));
  if (bias.defined()) torch::nn::init::uniform_(bias, -bound, bound);
}

void EncoderHeadImpl::pretty_print(std::ostream& stream) const {
  stream << "posenc::EncoderHead(d_model=" << options.d_model() << ", outputs=" << options.outputs()
         << ", rows=" << to_string(options.rows());
  if (options.dense()) {
    stream << ", dense=" << *options.dense()
           << ", activation=" << posenc::to_string(options.activation());
  }
  if (options.norm()) stream << ", norm=" << *options.norm();
  if (options.tied()) stream << ", tied";
  stream << ")";
}

torch::Tensor EncoderHeadImpl::logits(const torch::Tensor& rows, const torch::Tensor& table) {
  TORCH_CHECK_VALUE(rows.defined() && rows.dim() > 0 && rows.size(-1) == options.d_model(),
                    "[EncoderHead] rows must be (..., ", options.d_model(), "). Got ",
                    rows.defined() ? rows.sizes() : at::IntArrayRef{});
  if (options.tied()) {
    const auto wanted = {options.outputs(), last_width(options)};
    TORCH_CHECK_VALUE(table.defined() && table.sizes() == at::IntArrayRef(wanted),
                      "[EncoderHead] the table of a tied head must be ", at::IntArrayRef(wanted),
                      ". Got ", table.defined() ? table.sizes() : at::IntArrayRef{});
  }
  torch::Tensor x = dense ? dense->forward(rows) : rows;
  x = functional::elementwise(x, options.activation());
  if (norm) x = norm->forward(x);
  return functional::elementwise(torch::linear(x, options.tied() ? table : weight, bias),
                                 options.output_activation());
}

torch::Tensor EncoderHeadImpl::forward(const EncoderOutput& output,
                                       const torch::Tensor& attention_mask,
                                       const torch::Tensor& table) {
  if (options.rows() == head::Rows::Tokens) return logits(output.last_hidden_state, table);
  if (options.rows() == head::Rows::MeanOfLogits) {
    return functional::mean_pool(logits(output.last_hidden_state, table), attention_mask);
  }
  return logits(head_rows(options, output, attention_mask), table);
}

}  // namespace posenc
