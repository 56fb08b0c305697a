// Whole Transformers, as modules and frozen.

#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/inference/freeze.h"
#include "posenc/transformer/transformer.h"
#include "posenc/weights/load.h"

namespace posenc::differential {
namespace {

Transformer model_of(const Json& options) {
  return Transformer(TransformerOptions(options.at("src_vocab"), options.at("tgt_vocab"))
                         .d_model(options.at("width"))
                         .num_heads(options.at("heads"))
                         .num_encoder_layers(options.at("layers"))
                         .num_decoder_layers(options.at("decoder_layers"))
                         .d_ff(options.at("d_ff"))
                         .max_len(options.at("max_len"))
                         .dropout(options.at("dropout"))
                         .tie(tying_of(options.at("tying")))
                         .activation(activation_of(options.at("activation").get<std::string>()))
                         .norm_first(options.at("norm_first"))
                         .final_norm(options.at("norm"))
                         .layer_norm_eps(options.at("eps"))
                         .bias(options.at("bias"))
                         .python_dropout_order(true));
}

std::optional<AttentionMask> own_memory_mask(const Json& options, const StateDict& in) {
  if (!options.contains("memory_mask")) return std::nullopt;
  return mask_of(options, "memory_mask", in);
}

StateDict transformer(const Json& options, const StateDict& tensors) {
  auto model = model_of(options);
  return differentiate(*model, options, tensors, [&](const StateDict& in) {
    return model->forward(in["src"], in["tgt"], mask_of(options, "src_mask", in),
                          mask_of(options, "tgt_mask", in), own_memory_mask(options, in));
  });
}

FreezeOptions freeze_options(const Json& options) {
  static const GemmBackend kAll[] = {GemmBackend::Autotune, GemmBackend::Native, GemmBackend::ATen};
  return FreezeOptions().gemm(kAll[options.at("multiplier").get<size_t>()]);
}

StateDict frozen_transformer(const Json& options, const StateDict& tensors) {
  auto model = model_of(options);
  const auto frozen = [&](const StateDict& in) {
    const auto use = freeze(model, freeze_options(options));
    const auto src_mask = mask_of(options, "src_mask", in);
    const auto memory = use.encode(in["src"], src_mask);
    return use.decode(in["tgt"], memory, mask_of(options, "tgt_mask", in),
                      own_memory_mask(options, in).value_or(src_mask));
  };
  return differentiate(*model, options, tensors, frozen);
}

StateDict frozen_encoder(const Json& options, const StateDict& tensors) {
  TransformerEncoder encoder(TransformerEncoderOptions(layer_options(options), options.at("layers"))
                                 .norm(options.at("norm")));
  return differentiate(*encoder, options, tensors, [&](const StateDict& in) {
    return freeze(encoder, freeze_options(options))
        .forward(in["x"].detach(), mask_of(options, "mask", in));
  });
}

}  // namespace

Ops model_ops() {
  return {{"transformer", transformer},
          {"frozen_transformer", frozen_transformer},
          {"frozen_encoder", frozen_encoder}};
}

}  // namespace posenc::differential
