// Single layers with weights in 8 bits, for int8.py, and whole models with weights in any dtype,
// for tests/benchmarks/int8_accuracy.py.

#include <torch/types.h>

#include "differential/encoder_case.h"
#include "differential/packed_layer.h"
#include "posenc/inference/freeze.h"
#include "posenc/models/encoder.h"
#include "posenc/models/frozen_encoder.h"
#include "posenc/models/seq2seq.h"
#include "posenc/weights/load.h"

namespace posenc::differential {
namespace {

StateDict int8_layer(const Json& options, const StateDict& tensors) {
  return packed_layer(options, tensors, [&] {
    return inference::Int8Weight(tensors["weight"], options.at("block").get<int64_t>());
  });
}

FreezeOptions dtype_option(const Json& options) {
  static const std::map<std::string, WeightDtype> kAll = {{"float32", WeightDtype::Float32},
                                                          {"int8", WeightDtype::Int8},
                                                          {"bfloat16", WeightDtype::BFloat16}};
  return FreezeOptions()
      .weights(kAll.at(options.at("weights").get<std::string>()))
      .int8_block(options.value("block", int64_t{0}))
      .compute(options.contains("compute") ? ComputeDtype::BFloat16 : ComputeDtype::Float32);
}

Transformer model_with_weights(const Json& options) {
  if (options.contains("folder")) return load_seq2seq(options.at("folder")).model;
  Transformer model(TransformerOptions(options.at("src_vocab"), options.at("tgt_vocab"))
                        .d_model(options.at("d_model"))
                        .num_heads(options.at("heads"))
                        .num_encoder_layers(options.at("layers"))
                        .num_decoder_layers(options.at("layers"))
                        .d_ff(options.at("d_ff"))
                        .max_len(options.at("max_len"))
                        .norm_first(true));
  load_weights(model, options.at("file").get<std::string>());
  model->eval();
  return model;
}

// The log probabilities of tokens (B, T) that follow `begin`, each given those before it, and what
// a greedy search finds.
StateDict converted_transformer(const Json& options, const StateDict& tensors) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(model_with_weights(options), dtype_option(options));
  const int64_t begin = options.at("begin"), end = options.at("end"), most = options.at("most");
  const auto &src = tensors["src"], &tgt = tensors["tgt"];
  const auto mask = AttentionMask::padding(src, options.at("pad").get<int64_t>());
  const auto memory = frozen.encode(src, mask);
  const auto given = torch::cat(
      {torch::full({tgt.size(0), 1}, begin, torch::kLong), tgt.narrow(1, 0, tgt.size(1) - 1)}, 1);
  const auto logits = frozen.decode(given, memory, AttentionMask::causal(), mask);
  StateDict results;
  results.insert("log_probs", logits.log_softmax(-1).gather(2, tgt.unsqueeze(2)).squeeze(2));
  const auto search = GenerateOptions(begin, end).max_new_tokens(most).length_penalty(0.0);
  const auto found = generate(frozen, src, mask, search);
  for (size_t b = 0; b < found.size(); ++b)
    results.insert("tokens." + std::to_string(b), torch::tensor(found[b][0].tokens, torch::kLong));
  return results;
}

StateDict converted_encoder(const Json& options, const StateDict& tensors) {
  const torch::NoGradGuard no_grad;
  const auto frozen = freeze(load_encoder(options.at("folder")), dtype_option(options));
  StateDict results;
  results.insert("out",
                 frozen.forward(encoder_input(tensors), encoder_inputs(tensors)).last_hidden_state);
  return results;
}

}  // namespace

Ops int8_ops() {
  return {{"int8_layer", int8_layer},
          {"converted_transformer", converted_transformer},
          {"converted_encoder", converted_encoder}};
}

}  // namespace posenc::differential
