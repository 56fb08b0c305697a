#include "posenc/transformer/functional/activation.h"

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
#include <string>
#include <vector>

#include "core/named.h"

namespace posenc {
namespace {

using at::Tensor;

struct Row {
  const char* name;        // in transformers' ACT2FN, or that of to_string() alone
  const char* class_name;  // in torch.nn; empty: none is made without arguments
  Activation activation;
  Tensor (*apply)(const Tensor& x);
};

constexpr Row kActivations[] = {
    {"linear", "Identity", Activation::Identity, [](const Tensor& x) { return x; }},
    {"elu", "ELU", Activation::ELU, [](const Tensor& x) { return at::elu(x); }},
    {"gelu", "GELU", Activation::GELU, [](const Tensor& x) { return at::gelu(x); }},
    {"gelu_tanh", "", Activation::GELUTanh, [](const Tensor& x) { return at::gelu(x, "tanh"); }},
    {"hardswish", "Hardswish", Activation::Hardswish,
     [](const Tensor& x) { return at::hardswish(x); }},
    {"leaky_relu", "LeakyReLU", Activation::LeakyReLU,
     [](const Tensor& x) { return at::leaky_relu(x); }},
    {"log_sigmoid", "LogSigmoid", Activation::LogSigmoid,
     [](const Tensor& x) { return at::log_sigmoid(x); }},
    {"mish", "Mish", Activation::Mish, [](const Tensor& x) { return at::mish(x); }},
    {"quick_gelu", "", Activation::QuickGELU,
     [](const Tensor& x) { return x * at::sigmoid(1.702 * x); }},
    {"relu", "ReLU", Activation::ReLU, [](const Tensor& x) { return at::relu(x); }},
    {"relu2", "", Activation::ReLUSquared, [](const Tensor& x) { return at::relu(x).square(); }},
    {"relu6", "ReLU6", Activation::ReLU6, [](const Tensor& x) { return at::relu6(x); }},
    {"selu", "SELU", Activation::SELU, [](const Tensor& x) { return at::selu(x); }},
    {"swish", "SiLU", Activation::SiLU, [](const Tensor& x) { return at::silu(x); }},
    {"sigmoid", "Sigmoid", Activation::Sigmoid, [](const Tensor& x) { return at::sigmoid(x); }},
    {"softplus", "Softplus", Activation::Softplus, [](const Tensor& x) { return at::softplus(x); }},
    {"softsign", "Softsign", Activation::Softsign,
     [](const Tensor& x) { return x / (x.abs() + 1); }},
    {"tanh", "Tanh", Activation::Tanh, [](const Tensor& x) { return at::tanh(x); }},
};

// Further names in ACT2FN.
struct OtherName {
  const char* name;
  Activation activation;
};
constexpr OtherName kOtherNames[] = {
    {"gelu_accurate", Activation::GELUTanh},
    {"gelu_fast", Activation::GELUTanh},
    {"gelu_new", Activation::GELUTanh},
    {"gelu_python", Activation::GELU},
    {"gelu_python_tanh", Activation::GELUTanh},
    {"gelu_pytorch_tanh", Activation::GELUTanh},
    {"silu", Activation::SiLU},
};

const Row& row_of(Activation activation) {
  for (const Row& row : kActivations)
    if (row.activation == activation) return row;
  TORCH_CHECK_VALUE(false, "[Activation] must be one of the enumeration. Got ",
                    static_cast<int>(activation));
}

}  // namespace

Activation activation_of(const std::string& name) {
  std::vector<OtherName> all(std::begin(kOtherNames), std::end(kOtherNames));
  for (const Row& row : kActivations) all.push_back({row.name, row.activation});
  return detail::find_named(
             all, name, "[activation_of] ",
             "the name must be that of an activation of transformers that posenc has; the nearest "
             "are {1}. Got {0}")
      .activation;
}

Activation activation_of_class(std::string_view name) {
  std::vector<OtherName> classes;
  for (const Row& row : kActivations)
    if (*row.class_name != '\0') classes.push_back({row.class_name, row.activation});
  return detail::find_named(classes, name, "[activation_of_class] ",
                            "the name must be that of an activation in torch.nn; the nearest are "
                            "{1}. Got {0}")
      .activation;
}

std::string to_string(Activation activation) { return row_of(activation).name; }

namespace functional {

at::Tensor activate(const at::Tensor& x, Activation activation) {
  TORCH_CHECK_TYPE(x.is_floating_point(), "[activate] x must be floating-point. Got ",
                   x.scalar_type());
  return row_of(activation).apply(x);
}

}  // namespace functional
}  // namespace posenc
