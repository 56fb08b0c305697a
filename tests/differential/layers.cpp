#include "differential/ops.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/transformer_decoder.h"
#include "posenc/transformer/layers/transformer_encoder.h"

namespace posenc::differential {
namespace {

StateDict attention(const Json& options, const StateDict& tensors) {
  const auto width = [&](const char* name) -> std::optional<int64_t> {
    if (options.at(name).is_null()) return std::nullopt;
    return options.at(name).get<int64_t>();
  };
  MultiheadAttention module(MultiheadAttentionOptions(options.at("width"), options.at("heads"))
                                .dropout(options.at("dropout"))
                                .bias(options.at("bias"))
                                .kdim(width("kdim"))
                                .vdim(width("vdim"))
                                .batch_first(options.at("batch_first"))
                                .python_dropout_order(true));
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    return module->forward(in["query"], in["key"], in["value"], mask_of(options, "mask", in));
  });
}

template <typename Module>
StateDict encode(Module module, const Json& options, const StateDict& tensors) {
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    return module->forward(in["x"], mask_of(options, "mask", in));
  });
}

template <typename Module>
StateDict decode(Module module, const Json& options, const StateDict& tensors) {
  return differentiate(*module, options, tensors, [&](const StateDict& in) {
    return module->forward(in["x"], in["memory"], mask_of(options, "mask", in),
                           mask_of(options, "memory_mask", in));
  });
}

}  // namespace

Ops layer_ops() {
  return {
      {"attention", attention},
      {"encoder_layer",
       [](const Json& options, const StateDict& tensors) {
         return encode(TransformerEncoderLayer(layer_options(options)), options, tensors);
       }},
      {"decoder_layer",
       [](const Json& options, const StateDict& tensors) {
         return decode(TransformerDecoderLayer(layer_options(options)), options, tensors);
       }},
      {"encoder",
       [](const Json& options, const StateDict& tensors) {
         const auto how = TransformerEncoderOptions(layer_options(options), options.at("layers"));
         return encode(TransformerEncoder(TransformerEncoderOptions(how).norm(options.at("norm"))),
                       options, tensors);
       }},
      {"decoder",
       [](const Json& options, const StateDict& tensors) {
         const auto how = TransformerDecoderOptions(layer_options(options), options.at("layers"));
         return decode(TransformerDecoder(TransformerDecoderOptions(how).norm(options.at("norm"))),
                       options, tensors);
       }},
  };
}

}  // namespace posenc::differential
