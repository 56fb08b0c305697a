#include "posenc/models/encoder_head.h"

#include <torch/nn/init.h>

#include <cmath>
#include <ostream>

#include "core/check.h"
#include "core/low_rank.h"
#include "core/print_fields.h"
#include "models/heads/rows.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/functional/pooling.h"
#include "positions/nn/weights.h"

namespace posenc {
namespace {

int64_t last_width(const EncoderHeadOptions& options) {
  return options.dense2().value_or(options.dense().value_or(options.d_model()));
}

int64_t table_width(const EncoderHeadOptions& options) {
  return last_width(options) - options.columns_beside_table();
}

}  // namespace

EncoderHeadImpl::EncoderHeadImpl(EncoderHeadOptions options_) : options(std::move(options_)) {
  EncoderHeadImpl::reset();
}

void EncoderHeadImpl::reset() {
  check_positive("EncoderHead", "d_model", options.d_model());
  check_positive("EncoderHead", "outputs", options.outputs());
  check_positive("EncoderHead", "dense", options.dense().value_or(options.d_model()));
  check_positive("EncoderHead", "dense2", last_width(options));
  TORCH_CHECK_VALUE(options.dense() || !options.dense2(),
                    "[EncoderHead] dense2 must be with dense. Got no dense");
  TORCH_CHECK_VALUE(options.columns_beside_table() >= 0 && table_width(options) > 0,
                    "[EncoderHead] columns_beside_table must be from 0 to ",
                    last_width(options) - 1, ". Got ", options.columns_beside_table());
  TORCH_CHECK_VALUE(!options.norm() || *options.norm() >= 0.0,
                    "[EncoderHead] norm must not be negative. Got ", *options.norm());
  TORCH_CHECK_VALUE(options.first_row() >= 0, "[EncoderHead] first_row must not be negative. Got ",
                    options.first_row());
  const auto add_linear = [&](const char* name, int64_t in, int64_t out) {
    return register_module(
        name, make_linear(torch::nn::LinearOptions(in, out).bias(options.dense_bias())));
  };
  if (options.dense()) dense = add_linear("dense", options.d_model(), *options.dense());
  if (options.dense2()) dense2 = add_linear("dense2", *options.dense(), *options.dense2());
  if (options.norm()) {
    norm = register_module(
        "norm",
        LayerNorm(
            LayerNormOptions(last_width(options)).eps(*options.norm()).bias(options.norm_bias())));
  }
  if (!options.tied()) {
    weight = register_parameter("weight", torch::empty({options.outputs(), table_width(options)}));
  }
  if (options.columns_beside_table() > 0) {
    weight_beside_table = register_parameter(
        "weight_beside_table", torch::empty({options.outputs(), options.columns_beside_table()}));
  }
  if (options.bias()) bias = register_parameter("bias", torch::empty({options.outputs()}));
  if (!SkipInit::is_active()) reset_parameters();
}

void EncoderHeadImpl::reset_parameters() {
  for (auto* linear : {&dense, &dense2}) {
    if (*linear) (*linear)->reset_parameters();
  }
  if (norm) norm->reset_parameters();
  for (auto* one : {&weight, &weight_beside_table}) {
    if (one->defined()) torch::nn::init::kaiming_uniform_(*one, std::sqrt(5.0));
  }
  const double bound = 1.0 / std::sqrt(static_cast<double>(last_width(options)));
  if (bias.defined()) torch::nn::init::uniform_(bias, -bound, bound);
}

void EncoderHeadImpl::pretty_print(std::ostream& stream) const {
  fields::print_module(stream, "EncoderHead", options, EncoderHeadOptions(-1, -1));
}

torch::Tensor EncoderHeadImpl::logits(const torch::Tensor& rows, const torch::Tensor& table) {
  TORCH_CHECK_VALUE(rows.defined() && rows.dim() > 0 && rows.size(-1) == options.d_model(),
                    "[EncoderHead] rows must be (..., ", options.d_model(), "). Got ",
                    rows.defined() ? rows.sizes() : at::IntArrayRef{});
  if (options.tied()) {
    const auto expected = {options.outputs(), table_width(options)};
    TORCH_CHECK_VALUE(table.defined() && table.sizes() == at::IntArrayRef(expected),
                      "[EncoderHead] the table of a tied head must be ", at::IntArrayRef(expected),
                      ". Got ", table.defined() ? table.sizes() : at::IntArrayRef{});
  }
  torch::Tensor x = dense ? forward_linear(*dense, rows) : rows;
  x = functional::activate(x, options.activation());
  if (dense2) x = functional::activate(dense2->forward(x), options.activation());
  if (norm) x = norm->forward(x);
  const torch::Tensor& own = options.tied() ? table : weight;
  const int64_t width = own.size(1), beside = options.columns_beside_table();
  torch::Tensor y = torch::linear(beside == 0 ? x : x.narrow(-1, 0, width), own, bias);
  if (beside > 0) y = y + torch::linear(x.narrow(-1, width, beside), weight_beside_table);
  return functional::activate(y, options.output_activation());
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
