#include "posenc/models/save_pretrained.h"

#include "differential/encoder_case.h"
#include "differential/ops.h"

namespace posenc::differential {
namespace {

// As training would: every number changes, and what has to be zeros stays so.
void change_parameters(Encoder& model) {
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.mul_(1.25);
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
  change_parameters(model);
  auto how = SavePretrainedOptions()
                 .max_shard_bytes(options.at("max_shard_bytes").get<int64_t>())
                 .allow_missing(options.at("allow_missing").get<bool>());
  if (options.at("how") == "rest") how.rest_of(options.at("folder"));
  save_pretrained(model, options.at("out"), how);
  return encoder_results(model->forward(encoder_input(tensors), encoder_inputs(tensors)));
}

}  // namespace

Ops saved_ops() { return {{"save_pretrained", save_encoder}}; }

}  // namespace posenc::differential
