#include <torch/types.h>

#include <algorithm>

#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/frozen_decoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/save_pretrained.h"

namespace posenc::differential {
namespace {

using Lists = std::vector<std::vector<int64_t>>;

DecoderInputs decoder_inputs(const StateDict& tensors) {
  DecoderInputs inputs;
  if (tensors.contains("attention_mask")) inputs.attention_mask(tensors["attention_mask"]);
  return inputs;
}

// The tokens of each row, without its padding.
Lists texts_of(const StateDict& tensors) {
  const at::Tensor& ids = tensors["input_ids"];
  const at::Tensor mask = tensors.contains("attention_mask") ? tensors["attention_mask"].ne(0)
                                                             : at::ones_like(ids, at::kBool);
  Lists texts;
  for (int64_t row = 0; row < ids.size(0); ++row) {
    const at::Tensor own = ids[row].masked_select(mask[row]);
    const auto* const begin = own.const_data_ptr<int64_t>();
    texts.emplace_back(begin, begin + own.numel());
  }
  return texts;
}

// The best tokens of each prompt, which all have one length, and their scores.
void insert_found(StateDict& results, const std::string& name,
                  const std::vector<std::vector<Hypothesis>>& found) {
  std::vector<at::Tensor> rows;
  std::vector<double> scores;
  for (const auto& row : found) {
    rows.push_back(at::tensor(row.front().tokens, at::kLong));
    scores.push_back(row.front().score);
  }
  results.insert(name + "tokens", at::stack(rows));
  results.insert(name + "scores", at::tensor(scores, at::kDouble));
}

// What follows the first token of each text, one text after another.
at::Tensor flat(const std::vector<std::vector<double>>& scores) {
  std::vector<double> all;
  for (const auto& row : scores) all.insert(all.end(), row.begin(), row.end());
  return at::tensor(all, at::kDouble);
}

// The logits of texts that are padded on the left, given in steps of random sizes.
at::Tensor stepped(DecoderImpl& model, const StateDict& tensors, const Json& sizes) {
  const at::Tensor &ids = tensors["left_ids"], &mask = tensors["left_mask"];
  std::vector<KeyValueCache> caches = model.make_caches(ids.size(0), ids.size(1));
  std::vector<at::Tensor> logits;
  int64_t begin = 0;
  for (const int64_t size : sizes.get<std::vector<int64_t>>()) {
    const auto inputs = DecoderInputs().attention_mask(mask.narrow(1, 0, begin + size));
    logits.push_back(model.step(ids.narrow(1, begin, size), caches, inputs).logits);
    begin += size;
  }
  return at::cat(logits, 1);
}

// All that a folder's model computes: plain and frozen, as a decoder and as an encoder.
StateDict decode(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  LoadOptions load;
  if (options.contains("adapter")) load.adapters({{options.at("adapter"), 1.0}});
  Decoder model = load_decoder(folder, load);
  const torch::NoGradGuard no_grad;
  const FrozenDecoder frozen = freeze(model);
  const at::Tensor& ids = tensors["input_ids"];
  StateDict results;
  const auto insert = [&](const std::string& name, const DecoderOutput& out) {
    results.insert(name + "logits", out.logits);
    results.insert(name + "last_hidden_state", out.last_hidden_state);
    if (out.hidden_states.size() > 1)  // all but the last, which is before or after the last norm
      results.insert(
          name + "hidden_states",
          at::stack(at::TensorList(out.hidden_states).slice(0, out.hidden_states.size() - 1)));
  };
  insert("", model->forward(ids, decoder_inputs(tensors).output_hidden_states(true)));
  insert("frozen.", frozen.forward(ids, decoder_inputs(tensors)));
  if (options.contains("steps"))
    results.insert("steps", stepped(*model, tensors, options.at("steps")));
  if (options.at("encodes").get<bool>()) {
    Encoder encoder = load_encoder(folder, load);
    const EncoderInputs inputs = encoder_inputs(tensors);
    results.insert("encoder.last_hidden_state", encoder->forward(ids, inputs).last_hidden_state);
    results.insert("frozen_encoder.last_hidden_state",
                   freeze(encoder).forward(ids, inputs).last_hidden_state);
  }
  const Lists texts = texts_of(tensors);
  results.insert("score", flat(score(model, texts)));
  results.insert("frozen.score", flat(score(frozen, texts)));
  const auto search = GenerateOptions(0, 0)
                          .eos_ids({})
                          .num_beams(options.at("num_beams").get<int64_t>())
                          .max_new_tokens(options.at("new_tokens").get<int64_t>());
  insert_found(results, "", generate(model, texts, search));
  insert_found(results, "frozen.", generate(frozen, texts, search));
  return results;
}

// A folder that is loaded, changed, saved and loaded again.
StateDict save_decoder(const Json& options, const StateDict& tensors) {
  Decoder model = load_decoder(options.at("folder"));
  const torch::NoGradGuard no_grad;
  for (auto& parameter : model->parameters()) parameter.mul_(1.25);
  save_pretrained(model, options.at("out"),
                  SavePretrainedOptions().max_shard_bytes(options.at("max_shard_bytes")));
  StateDict results;
  Decoder again = load_decoder(options.at("out"));
  const at::Tensor& ids = tensors["input_ids"];
  results.insert("logits", model->forward(ids, decoder_inputs(tensors)).logits);
  results.insert("logits_again", again->forward(ids, decoder_inputs(tensors)).logits);
  return results;
}

}  // namespace

Ops decoder_ops() { return {{"decode", decode}, {"save_decoder", save_decoder}}; }

}  // namespace posenc::differential
