#include <torch/nn/functional/loss.h>
#include <torch/optim/sgd.h>

#include "differential/ops.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/seq2seq.h"

namespace posenc::differential {
namespace {

at::Tensor logits_of(Transformer model, const StateDict& tensors) {
  return model->forward(tensors["src"], tensors["tgt"], AttentionMask::key_padding(tensors["mask"]),
                        AttentionMask::causal());
}

void train_a_step(Transformer model, const StateDict& tensors) {
  torch::optim::SGD optimizer(model->parameters(), /*lr=*/0.05);
  const at::Tensor logits = logits_of(model, tensors);
  torch::nn::functional::cross_entropy(logits.flatten(0, 1), tensors["targets"].flatten())
      .backward();
  optimizer.step();
}

// The best sequence of each source, filled with -1.
at::Tensor found_by(const Seq2SeqModel& loaded, const StateDict& tensors) {
  const auto found = generate(loaded.model, tensors["src"],
                              AttentionMask::key_padding(tensors["mask"]), loaded.generation);
  std::size_t longest = 0;
  for (const auto& row : found) longest = std::max(longest, row.front().tokens.size());
  at::Tensor all =
      at::full({static_cast<int64_t>(found.size()), static_cast<int64_t>(longest)}, -1, at::kLong);
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto& tokens = found[i].front().tokens;
    for (std::size_t j = 0; j < tokens.size(); ++j)
      all[static_cast<int64_t>(i)][static_cast<int64_t>(j)] = tokens[j];
  }
  return all;
}

// A folder that is loaded, trained for a step or not, and saved, as it came or as a model that was
// made by hand; what the model computes then, and what the saved folder does when it is loaded.
StateDict save_seq2seq(const Json& options, const StateDict& tensors) {
  Seq2SeqModel loaded = load_seq2seq(options.at("folder"));
  if (options.at("trains").get<bool>()) train_a_step(loaded.model, tensors);
  if (options.at("by_hand").get<bool>()) {
    loaded = {loaded.model, loaded.generation, loaded.pad, loaded.model_type};
  }
  if (options.contains("num_beams")) {
    loaded.generation.num_beams(options.at("num_beams").get<int64_t>())
        .max_new_tokens(options.at("max_new_tokens").get<int64_t>())
        .suppress_tokens({loaded.pad})
        .early_stopping(EarlyStopping::WhenUnlikely);
  }
  save_pretrained(loaded, options.at("out"),
                  SavePretrainedOptions().max_shard_bytes(options.at("max_shard_bytes")));
  const Seq2SeqModel again = load_seq2seq(options.at("out"));
  const torch::NoGradGuard no_grad;
  StateDict results;
  results.insert("logits", logits_of(loaded.model, tensors));
  results.insert("logits_again", logits_of(again.model, tensors));
  results.insert("tokens", found_by(loaded, tensors));
  results.insert("tokens_again", found_by(again, tensors));
  return results;
}

}  // namespace

Ops saved_seq2seq_ops() { return {{"save_seq2seq", save_seq2seq}}; }

}  // namespace posenc::differential
