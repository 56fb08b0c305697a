#include "differential/ops.h"
#include "posenc/inference/freeze.h"
#include "posenc/inference/score.h"
#include "posenc/models/save_pretrained.h"
#include "posenc/models/seq2seq.h"

namespace posenc::differential {
namespace {

at::Tensor steps_of_whisper(TransformerImpl& model, const at::Tensor& memory,
                            const at::Tensor& tgt) {
  DecoderCache cache = model.start(memory, tgt.size(1));
  std::vector<at::Tensor> logits;
  for (int64_t i = 0; i < tgt.size(1); ++i)
    logits.push_back(model.step(tgt.narrow(1, i, 1), cache));
  return at::stack(logits, 1);
}

// The log probabilities (B, L - 1) of the tokens of `tgt` after their first.
at::Tensor scores_of_whisper(const std::vector<std::vector<double>>& rows) {
  std::vector<at::Tensor> all;
  for (const auto& row : rows) all.push_back(at::tensor(row, at::kDouble));
  return at::stack(all);
}

// Teacher-forced logits and the memory, plain and frozen in each dtype, and the log probabilities
// of the tokens that are forced; gradients of
// (logits * cotangent).sum(); and the logits after a step of them, of a model that is saved.
StateDict whisper_logits(const Json& options, const StateDict& tensors) {
  Seq2SeqModel loaded = load_seq2seq(options.at("folder"));
  Transformer& model = loaded.model;
  const at::Tensor src = tensors["src"], tgt = tensors["tgt"];
  const auto causal = AttentionMask::causal();
  StateDict results;
  const at::Tensor logits = model->forward(src, tgt, {}, causal);
  (logits * tensors["cotangent"]).sum().backward();
  results.insert("logits", logits.detach());
  for (const auto& item : model->named_parameters())
    if (item.value().grad().defined()) results.insert("grad." + item.key(), item.value().grad());
  const torch::NoGradGuard no_grad;
  const at::Tensor memory = model->encode(src);
  results.insert("memory", memory);
  results.insert("steps", steps_of_whisper(*model, memory, tgt));
  const auto decoded = [&](const FrozenTransformer& frozen) {
    return frozen.decode(tgt, frozen.encode(src), causal);
  };
  const FrozenTransformer frozen = freeze(model);
  results.insert("frozen", decoded(frozen));
  results.insert("frozen_memory", frozen.encode(src));
  std::vector<std::vector<int64_t>> targets;
  for (int64_t row = 0; row < tgt.size(0); ++row) {
    const at::Tensor own = tgt[row].contiguous();
    targets.emplace_back(own.const_data_ptr<int64_t>(),
                         own.const_data_ptr<int64_t>() + own.numel());
  }
  results.insert("scores", scores_of_whisper(score(*model, src, {}, targets)));
  results.insert("frozen_scores", scores_of_whisper(score(frozen, src, {}, targets)));
  const auto converted = [&](WeightDtype dtype) {
    return decoded(freeze(model, FreezeOptions().weights(dtype)));
  };
  results.insert("int8", converted(WeightDtype::Int8));
  results.insert("bfloat16", converted(WeightDtype::BFloat16));
  const auto rounded = std::dynamic_pointer_cast<TransformerImpl>(model->clone());
  for (auto& item : rounded->named_parameters()) {  // those that are converted
    if (item.value().dim() == 2 && item.key().find("position") == std::string::npos)
      item.value().copy_(item.value().to(at::kBFloat16).to(at::kFloat));
  }
  results.insert("bfloat16_plain", rounded->forward(src, tgt, {}, causal));
  for (auto& item : model->named_parameters())
    if (item.value().grad().defined()) item.value().sub_(item.value().grad(), 0.001);
  results.insert("trained", model->forward(src, tgt, {}, causal));
  save_pretrained(loaded, options.at("out").get<std::string>(), SavePretrainedOptions());
  return results;
}

}  // namespace

Ops whisper_ops() { return {{"whisper_logits", whisper_logits}}; }

}  // namespace posenc::differential
