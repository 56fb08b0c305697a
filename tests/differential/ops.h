#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "posenc/functional/attention_mask.h"
#include "posenc/io/state_dict.h"
#include "posenc/nn/transformer/transformer_layer_options.h"

namespace torch::nn {
class Module;
}

namespace posenc::differential {

using Json = nlohmann::json;

/// What one case computes: its options and tensors in, tensors out.
using Op = std::function<StateDict(const Json& options, const StateDict& tensors)>;
using Ops = std::map<std::string, Op>;

Ops clipping_ops();
Ops embedding_ops();
Ops file_ops();
Ops function_ops();
Ops layer_ops();
Ops marian_ops();
Ops model_ops();
Ops optimizer_ops();
Ops sinusoid_ops();

/// The module with the case's parameters `param.*`, in the case's dtype and mode; then `out`, and
/// of (out * cotangent).sum() every gradient: `grad.param.*` of the module, `grad.in.*` of the
/// floating-point inputs `in.*`, which `forward` gets as leaves by name.
StateDict differentiate(torch::nn::Module& module, const Json& options, const StateDict& tensors,
                        const std::function<at::Tensor(const StateDict& in)>& forward);

/// The sum of the parts [{"kind": ..., "in": name of a tensor}] of options[name]; none without it.
AttentionMask mask_of(const Json& options, const std::string& name, const StateDict& in);

/// `float32` and so on.
at::ScalarType dtype_of(const Json& options);

TransformerLayerOptions layer_options(const Json& options);

}  // namespace posenc::differential
