// Losses, dropout and schedules.

#include <torch/utils.h>

#include "differential/ops.h"
#include "posenc/positions/functional/dropout.h"
#include "posenc/train/lambda_lr.h"
#include "posenc/train/token_cross_entropy.h"

namespace posenc::differential {
namespace {

StateDict loss(const Json& options, const StateDict& tensors) {
  const auto logits = tensors["logits"].clone().requires_grad_();
  const auto how = functional::TokenCrossEntropyFuncOptions()
                       .label_smoothing(options.at("label_smoothing"))
                       .ignore_index(options.at("ignore_index"));
  const auto out = functional::token_cross_entropy(logits, tensors["targets"], how);
  (out * options.at("gain").get<double>()).backward();
  StateDict results;
  results.insert("out", out);
  results.insert("grad.logits", logits.grad());
  return results;
}

StateDict causal_loss(const Json& options, const StateDict& tensors) {
  const auto logits = tensors["logits"].clone().requires_grad_();
  auto how = functional::CausalCrossEntropyFuncOptions().ignore_index(options.at("ignore_index"));
  if (const int64_t items = options.at("items")) how.num_items_in_batch(items);
  const auto out = functional::causal_cross_entropy(logits, tensors["labels"], how);
  out.backward();
  StateDict results;
  results.insert("out", out);
  results.insert("grad.logits", logits.grad());
  return results;
}

StateDict dropout(const Json& options, const StateDict& tensors) {
  auto x = tensors["x"].clone();
  if (options.at("transposed").get<bool>()) x = x.transpose(0, 1).contiguous().transpose(0, 1);
  x.requires_grad_();
  torch::manual_seed(options.at("seed").get<uint64_t>());
  const auto out = functional::dropout(x, options.at("p"), options.at("train"));
  out.backward(tensors["cotangent"]);
  StateDict results;
  results.insert("out", out);
  results.insert("next", torch::rand({5}));  // the generator's state must match Python's
  results.insert("grad.x", x.grad());
  return results;
}

StateDict schedule(const Json& options, const StateDict&) {
  const auto factor = options.at("kind") == "warmup"
                          ? warmup_factor(options.at("d_model"), options.at("warmup"))
                          : cosine_factor(options.at("warmup"), options.at("steps"));
  std::vector<double> all;
  for (int64_t step = 0; step < options.at("steps"); ++step) all.push_back(factor(step));
  StateDict results;
  results.insert("out", torch::tensor(all, torch::kDouble));
  return results;
}

}  // namespace

Ops function_ops() {
  return {
      {"loss", loss}, {"causal_loss", causal_loss}, {"dropout", dropout}, {"schedule", schedule}};
}

}  // namespace posenc::differential
