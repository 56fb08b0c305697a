#include "posenc/transformer/functional/elementwise.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/elu.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/hardswish.h>
#include <ATen/ops/leaky_relu.h>
#include <ATen/ops/log_sigmoid.h>
#include <ATen/ops/mish.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/relu6.h>
#include <ATen/ops/selu.h>
#include <ATen/ops/sigmoid.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softplus.h>
#include <ATen/ops/tanh.h>

#include <iterator>

#include "core/named.h"

namespace posenc {
namespace {

using at::Tensor;

struct ElementwiseRow {
  const char* name;  // of the class in torch.nn
  Elementwise function;
  Tensor (*apply)(const Tensor& x);
};

// In the order of the enumeration.
const ElementwiseRow kElementwise[] = {
    {"Identity", Elementwise::Identity, [](const Tensor& x) { return x; }},
    {"ELU", Elementwise::ELU, [](const Tensor& x) { return at::elu(x); }},
    {"GELU", Elementwise::GELU, [](const Tensor& x) { return at::gelu(x); }},
    {"GELUTanh", Elementwise::GELUTanh, [](const Tensor& x) { return at::gelu(x, "tanh"); }},
    {"Hardswish", Elementwise::Hardswish, [](const Tensor& x) { return at::hardswish(x); }},
    {"LeakyReLU", Elementwise::LeakyReLU, [](const Tensor& x) { return at::leaky_relu(x); }},
    {"LogSigmoid", Elementwise::LogSigmoid, [](const Tensor& x) { return at::log_sigmoid(x); }},
    {"Mish", Elementwise::Mish, [](const Tensor& x) { return at::mish(x); }},
    {"QuickGELU", Elementwise::QuickGELU,
     [](const Tensor& x) { return x * at::sigmoid(1.702 * x); }},
    {"ReLU", Elementwise::ReLU, [](const Tensor& x) { return at::relu(x); }},
    {"ReLU6", Elementwise::ReLU6, [](const Tensor& x) { return at::relu6(x); }},
    {"SELU", Elementwise::SELU, [](const Tensor& x) { return at::selu(x); }},
    {"SiLU", Elementwise::SiLU, [](const Tensor& x) { return at::silu(x); }},
    {"Sigmoid", Elementwise::Sigmoid, [](const Tensor& x) { return at::sigmoid(x); }},
    {"Softplus", Elementwise::Softplus, [](const Tensor& x) { return at::softplus(x); }},
    {"Softsign", Elementwise::Softsign, [](const Tensor& x) { return x / (x.abs() + 1); }},
    {"Tanh", Elementwise::Tanh, [](const Tensor& x) { return at::tanh(x); }},
};

struct TransformersRow {
  const char* name;  // in ACT2FN
  Elementwise function;
};

constexpr TransformersRow kTransformersNames[] = {
    {"gelu", Elementwise::GELU},
    {"gelu_accurate", Elementwise::GELUTanh},
    {"gelu_fast", Elementwise::GELUTanh},
    {"gelu_new", Elementwise::GELUTanh},
    {"gelu_python", Elementwise::GELU},
    {"gelu_python_tanh", Elementwise::GELUTanh},
    {"gelu_pytorch_tanh", Elementwise::GELUTanh},
    {"hardswish", Elementwise::Hardswish},
    {"leaky_relu", Elementwise::LeakyReLU},
    {"linear", Elementwise::Identity},
    {"mish", Elementwise::Mish},
    {"quick_gelu", Elementwise::QuickGELU},
    {"relu", Elementwise::ReLU},
    {"relu6", Elementwise::ReLU6},
    {"sigmoid", Elementwise::Sigmoid},
    {"silu", Elementwise::SiLU},
    {"swish", Elementwise::SiLU},
    {"tanh", Elementwise::Tanh},
};

const ElementwiseRow& row_of(Elementwise function) {
  return kElementwise[static_cast<std::size_t>(function)];
}

}  // namespace

Elementwise elementwise_of(std::string_view name) {
  return detail::find_named(kElementwise, name, "[elementwise_of] ",
                            "the name must be that of an activation in torch.nn; the nearest are "
                            "{1}. Got {0}")
      .function;
}

Elementwise elementwise_of_transformers(std::string_view name) {
  return detail::find_named(kTransformersNames, name, "[elementwise_of_transformers] ",
                            "the name must be that of an activation in transformers; the nearest "
                            "are {1}. Got {0}")
      .function;
}

std::string to_string(Elementwise function) { return row_of(function).name; }

namespace functional {

at::Tensor elementwise(const at::Tensor& x, Elementwise function) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[elementwise] x must be floating-point. Got ",
                   x.scalar_type());
  return row_of(function).apply(x);
}

}  // namespace functional
}  // namespace posenc
