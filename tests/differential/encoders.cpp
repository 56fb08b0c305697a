#include "differential/ops.h"
#include "posenc/inference/frozen_classifier.h"
#include "posenc/inference/frozen_encoder.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"

namespace posenc::differential {
namespace {

EncoderInputs encoder_inputs(const StateDict& tensors) {
  const auto tensor = [&](const char* name) {
    return tensors.contains(name) ? tensors[name] : at::Tensor();
  };
  return EncoderInputs()
      .attention_mask(tensor("attention_mask"))
      .token_type_ids(tensor("token_type_ids"))
      .position_ids(tensor("position_ids"))
      .task_type_ids(tensor("task_type_ids"));
}

StateDict encode(const Json& options, const StateDict& tensors) {
  const EncoderInputs inputs = encoder_inputs(tensors);
  const at::Tensor input = tensors[tensors.contains("input_ids") ? "input_ids" : "pixel_values"];
  Encoder model = load_encoder(options.at("folder"));
  const EncoderOutput out = options.at("frozen").get<bool>() ? freeze(model).forward(input, inputs)
                                                             : model->forward(input, inputs);
  StateDict results;
  results.insert("embeddings", out.embeddings);
  results.insert("last_hidden_state", out.last_hidden_state);
  if (out.pooled.defined()) results.insert("pooled", out.pooled);
  return results;
}

StateDict classify(const Json& options, const StateDict& tensors) {
  const EncoderInputs inputs = encoder_inputs(tensors);
  Classifier model = load_classifier(options.at("folder"));
  const at::Tensor& ids = tensors["input_ids"];
  const ClassifierOutput out = options.at("frozen").get<bool>() ? freeze(model).forward(ids, inputs)
                                                                : model->forward(ids, inputs);
  StateDict results;
  results.insert("logits", out.logits);
  return results;
}

}  // namespace

Ops encoder_ops() { return {{"classify", classify}, {"encode", encode}}; }

}  // namespace posenc::differential
