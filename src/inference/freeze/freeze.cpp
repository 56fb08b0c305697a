#include "posenc/inference/freeze.h"

#include "inference/freeze/model.h"
#include "inference/layers/check_freezable.h"
#include "inference/rows/frozen_scope.h"

namespace posenc {
namespace {

template <typename Holder>
const auto& module_of(const Holder& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[freeze] the model must not be an empty holder");
  return *model.ptr();
}

}  // namespace

namespace inference {
namespace {

std::shared_ptr<TransformerEncoderModel> frozen_stack(const TransformerEncoderImpl& model,
                                                      WeightConverter& convert) {
  auto frozen = std::make_shared<TransformerEncoderModel>(
      TransformerEncoderModel{model.options, StaleCheck(model), {}});
  frozen->layers = freeze_layers(model, "", convert);
  finish(frozen->stale_check, convert);
  frozen->weights = convert.weights();
  frozen->call = convert.call_options();
  return frozen;
}

}  // namespace

void finish(StaleCheck& check, const WeightConverter& convert) {
  check.set_converted(convert.bytes());
  if (convert.loads()) check.release();
}

FrozenTransformerEncoder freeze_part(const TransformerEncoderImpl& model,
                                     WeightConverter& convert) {
  return FrozenAccess::wrap(frozen_stack(model, convert));
}

FrozenTransformerEncoder freeze_by(const TransformerEncoderImpl& model, WeightConverter& convert) {
  const FrozenScope scope;
  auto frozen = frozen_stack(model, convert);
  convert.check_exceptions();
  frozen->source = {convert.options(), convert.arrays()};
  return FrozenAccess::wrap(std::move(frozen));
}

namespace {

// All but the output layer.
std::shared_ptr<TransformerModel> frozen_stacks(const TransformerImpl& model,
                                                WeightConverter& convert) {
  auto frozen = std::make_shared<TransformerModel>(
      TransformerModel{model.options, StaleCheck(model), {}, {}, {}, {}, {}});
  const int64_t d_model = model.options.d_model();
  if (model.src_features)
    check_freezable(*model.src_features, "src_features", d_model);
  else
    check_freezable(*model.src_embedding, "src_embedding", d_model);
  check_freezable(*model.tgt_embedding, "tgt_embedding", d_model);
  check_stack_options(model.encoder->options.layer(), "encoder", d_model);
  check_stack_options(model.decoder->options.layer(), "decoder", d_model);
  if (model.src_features)
    frozen->src_features.emplace(*model.src_features, convert);
  else
    frozen->src_embedding = Embedding(model.src_embedding, convert);
  frozen->tgt_embedding = Embedding(model.tgt_embedding, convert);
  frozen->encoder = freeze_layers(*model.encoder, "encoder.", convert);
  frozen->decoder = freeze_stack(*model.decoder, "decoder.", convert, model.final_layer->scale());
  return frozen;
}

}  // namespace

std::shared_ptr<const TransformerModel> freeze_part(const TransformerImpl& model,
                                                    WeightConverter& convert) {
  auto frozen = frozen_stacks(model, convert);
  finish(frozen->stale_check, convert);
  frozen->weights = convert.weights();
  frozen->call = convert.call_options();
  return frozen;
}

FrozenTransformer freeze_by(const TransformerImpl& model, WeightConverter& convert) {
  const FrozenScope scope;
  auto frozen = frozen_stacks(model, convert);
  const at::Tensor& weight = model.final_layer->effective_weight();
  check_output(weight, model.final_layer->bias, "final_layer", model.options.d_model());
  frozen->final_layer = convert.projection(weight, model.final_layer->bias);
  convert.check_exceptions();
  finish(frozen->stale_check, convert);
  frozen->weights = convert.weights();
  frozen->call = convert.call_options();
  frozen->source = {convert.options(), convert.arrays()};
  return FrozenAccess::wrap(std::move(frozen));
}

}  // namespace inference

FrozenTransformerEncoder freeze(const TransformerEncoderImpl& model, const FreezeOptions& options) {
  inference::WeightConverter convert(options, model);
  return inference::freeze_by(model, convert);
}

FrozenTransformerEncoder freeze(const TransformerEncoder& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

FrozenTransformerEncoder freeze(TransformerEncoder&& model, const FreezeOptions& options) {
  return inference::freeze_and_release(model, options);
}

FrozenTransformer freeze(const TransformerImpl& model, const FreezeOptions& options) {
  inference::WeightConverter convert(options, model);
  return inference::freeze_by(model, convert);
}

FrozenTransformer freeze(const Transformer& model, const FreezeOptions& options) {
  return freeze(module_of(model), options);
}

FrozenTransformer freeze(Transformer&& model, const FreezeOptions& options) {
  return inference::freeze_and_release(model, options);
}

}  // namespace posenc
