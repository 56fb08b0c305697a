// Adapters of PEFT on loaded models: trained for a step, and switched in place.

#include <torch/optim/sgd.h>

#include "differential/encoder_case.h"
#include "differential/ops.h"
#include "posenc/models/adapter_set.h"
#include "posenc/models/lora.h"
#include "posenc/models/seq2seq.h"
#include "posenc/train/fused_adam.h"
#include "posenc/train/token_cross_entropy.h"
#include "posenc/train/trainer.h"

namespace posenc::differential {
namespace {

// The base's values, of which those that are trained themselves are left out.
StateDict values_of(const torch::nn::Module& module) {
  StateDict values;
  for (const auto& item : module.named_parameters())
    if (!item.value().requires_grad()) values.insert(item.key(), item.value().detach().clone());
  return values;
}

at::Tensor count_of(int64_t count) { return at::scalar_tensor(count, at::kLong); }

// How many of the base's tensors have other bits, or a gradient.
int64_t touched(const torch::nn::Module& module, const StateDict& before) {
  int64_t count = 0;
  for (const auto& item : module.named_parameters()) {
    if (!before.contains(item.key())) continue;
    count += item.value().grad().defined() || !at::equal(item.value(), before[item.key()]) ? 1 : 0;
  }
  return count;
}

template <typename Model, typename Forward>
StateDict trained(const Json& options, const StateDict& tensors, const Model& model,
                  const Forward& forward) {
  const LoraAdapter from = load_adapter(options.at("adapter"));
  StateDict results;
  {
    const LoraTraining training = add_lora(model, from.config, &from);
    const StateDict before = values_of(*model.ptr());
    const at::Tensor out = forward();
    results.insert("out", out.detach());
    (out * tensors["cotangent"]).sum().backward();
    for (const auto& item : training.named_parameters())
      if (item.value().grad().defined()) results.insert("grad." + item.key(), item.value().grad());
    torch::optim::SGD(training.parameters(), /*lr=*/0.05).step();
    results.insert("after", forward().detach());
    results.insert("touched", count_of(touched(*model.ptr(), before)));
    save_adapter(training.adapter(), options.at("out"), options.at("folder"));
  }
  results.insert("without", forward().detach());
  return results;
}

StateDict train(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  const at::Tensor input = encoder_input(tensors);
  const EncoderInputs inputs = encoder_inputs(tensors);
  if (!options.at("head").get<bool>()) {
    Encoder model = load_encoder(folder);
    return trained(options, tensors, model,
                   [&] { return model->forward(input, inputs).last_hidden_state; });
  }
  Classifier model = load_classifier(folder);
  return trained(options, tensors, model, [&] { return model->forward(input, inputs).logits; });
}

// Each adapter active, both, and none; the same of a model into which they are loaded.
StateDict switched(const Json& options, const StateDict& tensors) {
  const torch::NoGradGuard no_grad;
  const std::string folder = options.at("folder");
  const at::Tensor input = encoder_input(tensors);
  const EncoderInputs inputs = encoder_inputs(tensors);
  Encoder model = load_encoder(folder);
  const StateDict before = values_of(*model.ptr());
  StateDict whole;
  for (const auto& item : model->named_parameters()) whole.insert(item.key(), item.value().clone());
  AdapterSet set(model);
  std::vector<std::string> names;
  std::vector<double> scales;
  std::vector<AdapterFolder> adapters;
  for (const auto& [name, adapter] : options.at("adapters").items()) {
    set.add(name, load_adapter(adapter.at("folder")));
    names.push_back(name);
    scales.push_back(adapter.at("scale"));
    adapters.push_back({adapter.at("folder"), scales.back()});
  }
  StateDict results;
  const auto run = [&](const std::string& name, Encoder own) {
    results.insert(name, own->forward(input, inputs).last_hidden_state);
  };
  for (int round = 0; round < 2; ++round) {
    for (const std::string& name : names) set.activate({name});
    set.activate(names, scales);
    run("active." + std::to_string(round), model);
    set.deactivate();
    int64_t differ = 0;
    for (const auto& item : model->named_parameters())
      differ += at::equal(item.value(), whole[item.key()]) ? 0 : 1;
    results.insert("differ." + std::to_string(round), count_of(differ));
  }
  run("loaded", load_encoder(folder, LoadOptions().adapters(adapters)));
  return results;
}

at::Tensor logits_of(const Seq2SeqModel& loaded, const StateDict& tensors) {
  Transformer model = loaded.model;
  const auto mask = tensors.contains("mask") ? AttentionMask::key_padding(tensors["mask"])
                                             : AttentionMask();  // of sound
  return model->forward(tensors["src"], tensors["tgt"], mask, AttentionMask::causal());
}

// An encoder-decoder into which an adapter is loaded, one in which it is active, and one where it
// is trained, before a step.
StateDict seq2seq(const Json& options, const StateDict& tensors) {
  const torch::NoGradGuard no_grad;
  const std::string folder = options.at("folder"), adapter = options.at("adapter");
  StateDict results;
  results.insert(
      "logits", logits_of(load_seq2seq(folder, LoadOptions().adapters({{adapter, 1.0}})), tensors));
  const Seq2SeqModel model = load_seq2seq(folder);
  AdapterSet set(model);
  set.add("own", load_adapter(adapter));
  set.activate({"own"});
  results.insert("active", logits_of(model, tensors));
  set.deactivate();
  const LoraAdapter from = load_adapter(adapter);
  const LoraTraining training = add_lora(model, from.config, &from);
  results.insert("trained", logits_of(model, tensors));
  return results;
}

// A decoder's adapter, trained by Trainer on one batch of texts.
StateDict causal(const Json& options, const StateDict& tensors) {
  const std::string folder = options.at("folder");
  Decoder model = load_decoder(folder);
  const LoraAdapter from = load_adapter(options.at("adapter"));
  const LoraTraining training = add_lora(model, from.config, &from);
  std::vector<TokenPair> texts;
  for (int64_t row = 0; row < tensors["ids"].size(0); ++row) {
    const auto own = tensors["ids"][row].masked_select(tensors["mask"][row].ne(0));
    texts.push_back({{}, {own.data_ptr<int64_t>(), own.data_ptr<int64_t>() + own.numel()}});
  }
  PairLoader loader(texts, PairLoaderOptions().pad_id(-1));
  FusedAdamW optimizer(training.parameters(), options.at("lr").get<double>());
  const auto loss = [&](const PairBatch& batch) {
    const auto mask = batch.tgt.ne(batch.pad_id);
    return functional::causal_cross_entropy(
        model->forward(batch.tgt, DecoderInputs().attention_mask(mask)).logits,
        batch.tgt.masked_fill(~mask, -100));
  };
  std::vector<double> losses;
  const auto report = [&](const TrainingProgress& progress) { losses.push_back(progress.loss); };
  Trainer(TrainingRun{*training.module(), &optimizer}, loader, loss,
          TrainerOptions(options.at("steps")).report_every(1).report(report))
      .train();
  save_adapter(training.adapter(), options.at("out"), folder);
  StateDict results;
  results.insert("losses", torch::tensor(losses));
  return results;
}

}  // namespace

Ops lora_ops() {
  return {{"lora_train", train},
          {"lora_switch", switched},
          {"lora_seq2seq", seq2seq},
          {"lora_causal", causal}};
}

}  // namespace posenc::differential
