#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/frozen_encoder.h"

namespace posenc::differential {
namespace {

// All results of an encoder, in eval mode or in training with a seed, and the gradient of given
// vectors of the tokens.
StateDict outputs(const Json& options, const StateDict& tensors) {
  Encoder model = load_encoder(options.at("folder"));
  model->train(options.at("training").get<bool>());
  EncoderInputs inputs = encoder_inputs(tensors)
                             .output_hidden_states(options.at("hidden_states").get<bool>())
                             .output_attentions(options.at("attentions").get<bool>());
  at::Tensor input, embeds;
  if (tensors.contains("inputs_embeds")) {
    embeds = tensors["inputs_embeds"].clone().requires_grad_();
    inputs.inputs_embeds(embeds);
  } else {
    input = encoder_input(tensors);
  }
  torch::manual_seed(options.at("seed").get<int64_t>());
  const bool is_frozen = options.at("frozen");
  const EncoderOutput out =
      is_frozen ? freeze(model).forward(input, inputs) : model->forward(input, inputs);
  StateDict results = encoder_results(out);
  const auto add = [&](const std::string& name, const std::vector<torch::Tensor>& all) {
    for (std::size_t i = 0; i < all.size(); ++i)
      results.insert(name + "." + std::to_string(i), all[i]);
  };
  add("hidden_states", out.hidden_states);
  add("attentions", out.attentions);
  if (tensors.contains("cotangent")) {
    torch::Tensor sum = (out.last_hidden_state * tensors["cotangent"]).sum();
    for (const auto& weights : out.attentions) sum = sum + weights.square().sum();
    sum.backward();
    results.insert("grad.inputs_embeds", embeds.grad());
  }
  return results;
}

}  // namespace

Ops output_ops() { return {{"outputs", outputs}}; }

}  // namespace posenc::differential
