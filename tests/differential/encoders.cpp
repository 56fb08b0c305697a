#include <algorithm>

#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/classifier.h"
#include "posenc/models/encoder.h"
#include "posenc/models/frozen_classifier.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/seq2seq.h"

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
      .computed_mask(tensor_or_none(tensors, "computed_mask"))
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

// The gradients of weighted logits, saved as the weights of the model.
StateDict differentiate_classifier(const Json& options, const StateDict& tensors) {
  Classifier model = load_classifier(options.at("folder"));
  const at::Tensor logits = model->forward(encoder_input(tensors), encoder_inputs(tensors)).logits;
  (logits * tensors["cotangent"]).sum().backward();
  for (auto& parameter : model->parameters()) {
    const at::Tensor& gradient = parameter.grad();
    parameter.set_data(gradient.defined() ? gradient : torch::zeros_like(parameter));
  }
  save_pretrained(model, options.at("out"), SavePretrainedOptions().allow_missing(true));
  return StateDict();
}

// A folder with tensors that its model does not have: those of `named` are in the report, and those
// of `inside` are refused unless they are allowed.
StateDict published(const Json& options, const StateDict& tensors) {
  LoadReport report;
  const auto load = LoadOptions().report(&report);
  const auto compute = [&](const LoadOptions& own) {
    StateDict results;
    if (options.at("loader") == "encoder") {
      Encoder model = load_encoder(options.at("folder"), own);
      return encoder_results(model->forward(encoder_input(tensors), encoder_inputs(tensors)));
    }
    Transformer model = load_seq2seq(options.at("folder"), own).model;
    results.insert("logits", model->forward(tensors["src"], tensors["tgt"],
                                            AttentionMask::key_padding(tensors["mask"]),
                                            AttentionMask::causal()));
    return results;
  };
  auto named = options.at("named").get<std::vector<std::string>>();
  const auto inside = options.at("inside").get<std::vector<std::string>>();
  StateDict results;
  if (inside.empty()) {
    results = compute(load);
  } else {
    try {
      compute(load);
      TORCH_CHECK(false, "was not refused: ", inside.front());
    } catch (const WeightsError& error) {
      const std::string text = error.what();
      for (const std::string& name : inside)
        TORCH_CHECK(text.find("'" + name + "'") != std::string::npos, "does not name ", name);
    }
    results = compute(LoadOptions(load).allow_unexpected(true));
    named.insert(named.end(), inside.begin(), inside.end());
  }
  std::sort(named.begin(), named.end());
  std::sort(report.unexpected.begin(), report.unexpected.end());
  TORCH_CHECK(report.unexpected == named, "names ", report.unexpected, " and not ", named);
  return results;
}

}  // namespace

Ops encoder_ops() {
  return {{"classify", classify},
          {"differentiate_classifier", differentiate_classifier},
          {"encode", encode},
          {"published", published}};
}

}  // namespace posenc::differential
