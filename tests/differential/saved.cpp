#include "posenc/models/save_pretrained.h"

#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include <array>
#include <map>
#include <set>

#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/save_sentence_model.h"
#include "posenc/models/sentence_folder.h"

namespace posenc::differential {
namespace {

// As training would: every number changes, and what has to be zeros stays so.
void change_parameters(torch::nn::Module& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model.parameters()) parameter.mul_(1.25);
}

Encoder encoder_to_save(const Json& options) {
  if (options.at("how") != "fresh") return load_encoder(options.at("folder"));
  torch::manual_seed(options.at("seed").get<int64_t>());
  Encoder model(encoder_options_from_hf(options.at("folder").get<std::string>() + "/config.json"));
  model->eval();
  return model;
}

StateDict save_encoder(const Json& options, const StateDict& tensors) {
  Encoder model = encoder_to_save(options);
  change_parameters(*model);
  auto how = SavePretrainedOptions()
                 .max_shard_bytes(options.at("max_shard_bytes").get<int64_t>())
                 .allow_missing(options.at("allow_missing").get<bool>());
  if (options.at("how") == "rest") how.rest_of(options.at("folder"));
  save_pretrained(model, options.at("out"), how);
  return encoder_results(model->forward(encoder_input(tensors), encoder_inputs(tensors)));
}

StateDict save_classifier(const Json& options, const StateDict& tensors) {
  Classifier model = load_classifier(options.at("folder"));
  change_parameters(*model);
  for (auto& label : model->options.labels()) label += " changed";
  auto how = SavePretrainedOptions().max_shard_bytes(options.at("max_shard_bytes").get<int64_t>());
  if (options.at("keeps_rest")) how.rest_of(options.at("folder"));
  save_pretrained(model, options.at("out"), how);
  StateDict results;
  results.insert("logits", model->forward(encoder_input(tensors), encoder_inputs(tensors)).logits);
  return results;
}

// A new head of `labels` on an encoder, one step of training, and what the model then computes.
StateDict train_classifier(const Json& options, const StateDict& tensors) {
  torch::manual_seed(options.at("seed").get<int64_t>());
  const Classifier loaded = load_classifier(options.at("folder"));
  const auto labels = options.at("labels").get<std::vector<std::string>>();
  ClassifierOptions own = loaded->options;
  own.head().outputs(static_cast<int64_t>(labels.size()));
  own.labels(labels).problem(std::nullopt);
  Classifier model(own);
  model->encoder = std::dynamic_pointer_cast<EncoderImpl>(
      model->replace_module("encoder", loaded->encoder.ptr()));
  model->eval();  // without dropouts, so that the step can be checked
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.1);
  const auto inputs = encoder_inputs(tensors);
  torch::nn::functional::cross_entropy(model->forward(tensors["input_ids"], inputs).logits,
                                       tensors["targets"])
      .backward();
  optimizer.step();
  SavePretrainedOptions how;
  if (options.at("keeps_rest")) how.rest_of(options.at("folder"));
  save_pretrained(model, options.at("out"), how);
  StateDict results;
  results.insert("logits", model->forward(tensors["input_ids"], inputs).logits);
  return results;
}

// A model of sentence-transformers after one step of training, and the vectors of ids.
StateDict train_sentences(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  Encoder encoder = load_encoder(read_sentence_folder(folder).route().encoder);
  SentenceStages stages = load_sentence_stages(folder);
  std::vector<at::Tensor> parameters = encoder->parameters();
  for (const at::Tensor& parameter : stages->parameters()) parameters.push_back(parameter);
  const at::Tensor& mask = tensors["attention_mask"];
  const auto inputs =
      EncoderInputs().attention_mask(mask).output_hidden_states(stages->needs_hidden_states());
  const auto vectors = [&] {
    const EncoderOutput out = encoder->forward(tensors["input_ids"], inputs);
    return stages->forward(out.last_hidden_state, mask, /*prompt_length=*/0, tensors["input_ids"],
                           out.hidden_states);
  };
  torch::optim::SGD optimizer(parameters, /*lr=*/0.1);
  (vectors() * tensors["cotangent"]).sum().backward();
  optimizer.step();
  save_sentence_model(encoder, stages, options.at("out"), SaveSentenceModelOptions(folder));
  StateDict results;
  results.insert("vectors", vectors());
  return results;
}

// A model of sentence-transformers with several routes after all its weights have changed, and the
// vectors of ids that go through an encoder.
StateDict save_routes(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  const SentenceFolder read = read_sentence_folder(folder);
  std::vector<SentenceStages> stages = load_sentence_stages(read);
  std::map<std::string, Encoder> encoders;
  std::set<const torch::nn::Module*> changed;
  std::vector<SentenceModelRoute> routes;
  for (size_t i = 0; i < stages.size(); ++i) {
    routes.push_back({{}, stages[i]});
    for (const auto& stage : stages[i]->children())
      if (changed.insert(stage.get()).second) change_parameters(*stage);
    if (read.routes[i].first != sentence::FirstStage::Encoder) continue;
    const std::string& first = read.routes[i].encoder;
    if (encoders.find(first) == encoders.end()) {
      encoders.emplace(first, load_encoder(first));
      change_parameters(*encoders.at(first));
    }
    routes.back().first = encoders.at(first);
  }
  save_sentence_model(routes, options.at("out"), SaveSentenceModelOptions(folder));
  StateDict results;
  for (size_t i = 0; i < stages.size(); ++i) {
    if (read.routes[i].first != sentence::FirstStage::Encoder) continue;
    const EncoderOutput out =
        encoders.at(read.routes[i].encoder)->forward(tensors["input_ids"], encoder_inputs(tensors));
    const at::Tensor vectors = stages[i]->forward(out.last_hidden_state, tensors["attention_mask"],
                                                  /*prompt_length=*/0, tensors["input_ids"]);
    for (const auto task : read.routes[i].tasks)
      results.insert(std::array{"none", "query", "document"}[static_cast<size_t>(task)], vectors);
  }
  return results;
}

}  // namespace

Ops saved_ops() {
  return {{"save_pretrained", save_encoder},
          {"save_classifier", save_classifier},
          {"train_classifier", train_classifier},
          {"train_sentences", train_sentences},
          {"save_routes", save_routes}};
}

}  // namespace posenc::differential
