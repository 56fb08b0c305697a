#pragma once

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "posenc/positions/rotary/rotary_options.h"
#include "posenc/transformer/functional/attention_mask.h"
#include "posenc/transformer/layers/transformer_layer_options.h"
#include "posenc/weights/state_dict.h"

namespace torch::nn {
class Module;
}

namespace posenc::differential {

using Json = nlohmann::json;

/// Computes one case from its options and tensors.
using Op = std::function<StateDict(const Json& options, const StateDict& tensors)>;
using Ops = std::map<std::string, Op>;

Ops attention_ops();
Ops bfloat16_ops();
Ops clipping_ops();
Ops decoder_ops();
Ops embedding_ops();
Ops encoder_ops();
Ops file_ops();
Ops embeddings_ops();
Ops frozen_ops();
Ops function_ops();
Ops int8_ops();
Ops layer_ops();
Ops lora_ops();
Ops marian_ops();
Ops model_ops();
Ops module_ops();
Ops multivector_ops();
Ops optimizer_ops();
Ops output_ops();
Ops pair_ops();
Ops relative_ops();
Ops rotary_ops();
Ops rotary_taker_ops();
Ops saved_ops();
Ops saved_seq2seq_ops();
Ops search_ops();
Ops sentence_ops();
Ops rerank_ops();
Ops sentence_text_ops();
Ops seq2seq_ops();
Ops sequence_attention_ops();
Ops sinusoid_ops();
Ops training_ops();
Ops speech_ops();
Ops vision_ops();
Ops whisper_ops();

/// Sets the module's parameters to `param.*`, in the case's dtype and mode. Returns `out` and the
/// gradients of (out * cotangent).sum(): `grad.param.*` for the module, and `grad.in.*` for the
/// floating-point inputs `in.*`, which `forward` gets as leaves by name.
StateDict differentiate(torch::nn::Module& module, const Json& options, const StateDict& tensors,
                        const std::function<at::Tensor(const StateDict& in)>& forward);

/// Combines the parts [{"kind": ..., "in": name of a tensor}] of options[name]; no mask if absent.
AttentionMask mask_of(const Json& options, const std::string& name, const StateDict& in);

/// The description of a rotary embedding: of a configuration, or of a preset with parameters.
RotaryOptions rotary_options_of(const Json& options);

/// `float32`, etc.
at::ScalarType dtype_of(const Json& options);

TransformerLayerOptions layer_options(const Json& options);

}  // namespace posenc::differential
