#include "posenc/inference/freeze.h"

#include "inference/check_freezable.h"
#include "inference/model.h"

namespace posenc {
namespace {

template <typename Holder>
const auto& module_of(const Holder& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return *model.ptr();
}

}  // namespace

FrozenTransformerEncoder freeze(const TransformerEncoderImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  auto frozen = std::make_shared<inference::TransformerEncoderModel>(
      inference::TransformerEncoderModel{model.options, inference::StaleCheck(model), {}});
  inference::GemmSelector gemm(options.gemm());
  frozen->layers = inference::freeze_layers(model, "", gemm);
  return inference::FrozenAccess::wrap(std::move(frozen));
}

FrozenTransformerEncoder freeze(const TransformerEncoder& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

FrozenTransformer freeze(const TransformerImpl& model, const FreezeOptions& options) {
  const torch::NoGradGuard no_grad;
  inference::GemmSelector gemm(options.gemm());
  auto frozen = std::make_shared<inference::TransformerModel>(
      inference::TransformerModel{model.options, inference::StaleCheck(model), {}, {}, {}, {}, {}});
  const int64_t d_model = model.options.d_model();
  inference::check_freezable(*model.src_embedding, "src_embedding", d_model);
  inference::check_freezable(*model.tgt_embedding, "tgt_embedding", d_model);
  inference::check_stack_options(model.encoder->options.layer(), "encoder", d_model);
  inference::check_stack_options(model.decoder->options.layer(), "decoder", d_model);
  frozen->src_embedding = inference::Embedding(model.src_embedding);
  frozen->tgt_embedding = inference::Embedding(model.tgt_embedding);
  frozen->encoder = inference::freeze_layers(*model.encoder, "encoder.", gemm);
  frozen->decoder = inference::freeze_stack(*model.decoder, "decoder.", gemm);
  const at::Tensor& weight = model.final_layer->effective_weight();
  inference::check_output(weight, model.final_layer->bias, "final_layer", d_model);
  frozen->final_layer = {weight, model.final_layer->bias, gemm.choose(weight)};
  return inference::FrozenAccess::wrap(std::move(frozen));
}

FrozenTransformer freeze(const Transformer& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

}  // namespace posenc
