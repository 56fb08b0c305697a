#include "posenc/models/seq2seq.h"

#include <torch/types.h>

#include <algorithm>

#include "differential/ops.h"
#include "posenc/inference/encoded_sources.h"
#include "posenc/inference/freeze.h"

namespace posenc::differential {
namespace {

// The logits of each target token when tokens are given one by one.
at::Tensor stepped(TransformerImpl& model, const at::Tensor& memory, const AttentionMask& mask,
                   const at::Tensor& tgt) {
  DecoderCache cache = model.start(memory, tgt.size(1), mask);
  std::vector<at::Tensor> logits;
  for (int64_t i = 0; i < tgt.size(1); ++i)
    logits.push_back(model.step(tgt.narrow(1, i, 1), cache));
  return at::stack(logits, 1);
}

at::Tensor tokens_of(const std::vector<std::vector<Hypothesis>>& found) {
  std::vector<at::Tensor> rows;
  for (const auto& row : found) rows.push_back(at::tensor(row.front().tokens, at::kLong));
  return at::stack(rows);
}

// Teacher-forced logits of a folder's model, plain, frozen, in 8 bits and step by step; gradients
// of (logits * cotangent).sum(); and the tokens of greedy searches that never end.
StateDict seq2seq(const Json& options, const StateDict& tensors) {
  const auto loaded = load_seq2seq(options.at("folder"));
  Transformer model = loaded.model;
  const at::Tensor src = tensors["src"], tgt = tensors["tgt"];
  const auto mask = AttentionMask::key_padding(tensors["mask"]);
  StateDict results;
  const at::Tensor logits = model->forward(src, tgt, mask, AttentionMask::causal());
  (logits * tensors["cotangent"]).sum().backward();
  results.insert("logits", logits.detach());
  for (const auto& item : model->named_parameters())
    if (item.value().grad().defined()) results.insert("grad." + item.key(), item.value().grad());
  const torch::NoGradGuard no_grad;
  const auto freezing = FreezeOptions().gemm(GemmBackend::Native);
  const auto decoded = [&](const FrozenTransformer& frozen) {
    return frozen.decode(tgt, frozen.encode(src, mask), AttentionMask::causal(), mask);
  };
  const FrozenTransformer frozen = freeze(model, freezing);
  results.insert("frozen", decoded(frozen));
  results.insert("int8",
                 decoded(freeze(model, FreezeOptions(freezing).weights(WeightDtype::Int8))));
  if (options.at("steps").get<bool>())
    results.insert("steps", stepped(*model, model->encode(src, mask), mask, tgt));
  auto search = GenerateOptions(options.at("begin").get<int64_t>(), 0)
                    .eos_ids({})
                    .suppress_tokens({loaded.pad})
                    .max_new_tokens(options.at("new_tokens").get<int64_t>());
  results.insert("tokens", tokens_of(generate(*model, src, mask, search)));
  results.insert("frozen_tokens", tokens_of(generate(frozen, src, mask, search)));
  return results;
}

// Those alone of a plain model.
StateDict seq2seq_logits(const Json& options, const StateDict& tensors) {
  Transformer model = load_seq2seq(options.at("folder")).model;
  const torch::NoGradGuard no_grad;
  const auto mask = tensors.contains("mask") ? AttentionMask::key_padding(tensors["mask"])
                                             : AttentionMask();  // of sound
  StateDict results;
  results.insert("logits",
                 model->forward(tensors["src"], tensors["tgt"], mask, AttentionMask::causal()));
  return results;
}

using Lists = std::vector<std::vector<int64_t>>;

GenerateOptions search_of(const Json& given) {
  auto options = GenerateOptions(0, 0)
                     .eos_ids(given.at("ends").get<std::vector<int64_t>>())
                     .prefixes(given.at("prefixes").get<Lists>())
                     .num_beams(given.at("beams"))
                     .max_new_tokens(given.at("new_tokens").get<int64_t>())
                     .suppress_tokens(given.at("suppress").get<std::vector<int64_t>>())
                     .begin_suppress_tokens(given.at("begin_suppress").get<std::vector<int64_t>>())
                     .early_stopping(EarlyStopping::WhenUnlikely)
                     .return_log_probability(true);
  if (given.contains("timestamps"))
    options.timestamp_rules(TimestampRules{given.at("timestamps").at(0),
                                           given.at("timestamps").at(1),
                                           given.at("timestamps").at(2).get<int64_t>()});
  return options;
}

// Of sources that a model, plain and frozen, encodes once: the logits after targets, what these
// attend to, and twice what a search finds, first of them in reverse order.
StateDict encoded(const Json& options, const StateDict& tensors) {
  Transformer model = load_seq2seq(options.at("folder")).model;
  const auto mask =
      tensors.contains("mask") ? AttentionMask::key_padding(tensors["mask"]) : AttentionMask();
  const auto targets = options.at("targets").get<Lists>();
  std::vector<LayerHead> heads;
  for (const auto& [layer, head] :
       options.at("heads").get<std::vector<std::pair<int64_t, int64_t>>>())
    heads.push_back({layer, head});
  StateDict results;
  const auto run = [&](const std::string& name, const EncodedSources& sources) {
    results.insert(name + ".next", sources.next_logits(targets));
    const auto attention = sources.attention(targets, heads);
    for (std::size_t i = 0; i < attention.size(); ++i)
      results.insert(name + ".attention." + std::to_string(i), attention[i]);
    if (!options.contains("search")) return;
    auto search = search_of(options.at("search"));
    const auto keep = [&](const std::string& which, const auto& found) {
      for (std::size_t i = 0; i < found.size(); ++i) {
        const Hypothesis& best = found[i].front();
        const std::string of = name + which + std::to_string(i);
        results.insert(of + ".tokens", at::tensor(best.tokens, at::kLong));
        results.insert(of + ".scores",
                       at::tensor({best.score, best.log_probability /
                                                   static_cast<double>(best.tokens.size())}));
      }
    };
    std::vector<int64_t> order;
    for (int64_t i = sources.size(); i > 0; --i) order.push_back(i - 1);
    Lists reversed(search.prefixes().rbegin(), search.prefixes().rend());
    keep(".found.", sources.generate(search));
    auto again = sources.select(order).generate(GenerateOptions(search).prefixes(reversed));
    std::reverse(again.begin(), again.end());
    keep(".again.", again);
  };
  run("plain", encode_sources(model, tensors["src"], mask));
  run("frozen", encode_sources(freeze(model), tensors["src"], mask));
  return results;
}

}  // namespace

Ops seq2seq_ops() {
  return {{"seq2seq", seq2seq}, {"seq2seq_logits", seq2seq_logits}, {"encoded", encoded}};
}

}  // namespace posenc::differential
