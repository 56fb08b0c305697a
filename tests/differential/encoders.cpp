#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/inference/frozen_classifier.h"
#include "posenc/inference/frozen_encoder.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"

namespace posenc::differential {
namespace {

at::Tensor tensor_or_none(const StateDict& tensors, const char* name) {
  return tensors.contains(name) ? tensors[name] : at::Tensor();
}

StateDict encode(const Json& options, const StateDict& tensors) {
  Encoder model = load_encoder(options.at("folder"));
  const at::Tensor input = encoder_input(tensors);
  const EncoderInputs inputs = encoder_inputs(tensors);
  return encoder_results(options.at("frozen").get<bool>() ? freeze(model).forward(input, inputs)
                                                          : model->forward(input, inputs));
}

}  // namespace

at::Tensor encoder_input(const StateDict& tensors) {
  if (tensors.contains("inputs_embeds")) return {};
  return tensors[tensors.contains("input_ids") ? "input_ids" : "pixel_values"];
}

EncoderInputs encoder_inputs(const StateDict& tensors) {
  return EncoderInputs()
      .attention_mask(tensor_or_none(tensors, "attention_mask"))
      .token_type_ids(tensor_or_none(tensors, "token_type_ids"))
      .position_ids(tensor_or_none(tensors, "position_ids"))
      .task_type_ids(tensor_or_none(tensors, "task_type_ids"))
      .bbox(tensor_or_none(tensors, "bbox"))
      .inputs_embeds(tensor_or_none(tensors, "inputs_embeds"));
}

StateDict encoder_results(const EncoderOutput& out) {
  StateDict results;
  results.insert("embeddings", out.embeddings);
  results.insert("last_hidden_state", out.last_hidden_state);
  if (out.pooled.defined()) results.insert("pooled", out.pooled);
  return results;
}

namespace {

StateDict classify(const Json& options, const StateDict& tensors) {
  const EncoderInputs inputs = encoder_inputs(tensors);
  Classifier model = load_classifier(options.at("folder"));
  const at::Tensor input = encoder_input(tensors);
  const ClassifierOutput out = options.at("frozen").get<bool>()
                                   ? freeze(model).forward(input, inputs)
                                   : model->forward(input, inputs);
  StateDict results;
  results.insert("logits", out.logits);
  return results;
}

}  // namespace

Ops encoder_ops() { return {{"classify", classify}, {"encode", encode}}; }

}  // namespace posenc::differential
