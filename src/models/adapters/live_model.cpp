#include "models/adapters/live_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/equal.h>

#include "models/encoder/names.h"
#include "models/heads/config.h"
#include "models/save/heads.h"
#include "models/save/tensors.h"
#include "models/seq2seq/load.h"
#include "weights/load/key_change.h"
#include "weights/load/key_map.h"

namespace posenc::lora {
namespace {

void check_loaded(const char* caller, bool is_loaded) {
  TORCH_CHECK_VALUE(
      is_loaded, "[", caller,
      "] the model must be one that was loaded from a folder, by whose config.json its "
      "modules have names in transformers. Got another");
}

void add_changes(LiveModel& live, const LoadOptions& names) {
  for (const auto& item : live.parts) {
    if (!item.key().starts_with(names.prefix())) continue;
    const auto own = std::string_view(item.key()).substr(names.prefix().size());
    const auto found = io::find_rule(own, names.key_map());
    if (!found) continue;
    const KeySource& source = names.key_map()[found->rule].sources.items[found->source];
    if (source.change() != KeySource::Change::None) live.changes.emplace(item.key(), source);
  }
}

EncoderConfig config_of(const char* caller, const EncoderImpl& model) {
  check_loaded(caller, !model.options.origin().config.empty());
  EncoderConfig config = read_encoder_config(
      Settings::parse(caller, "the configuration of the encoder", model.options.origin().config));
  config.options.origin() = model.options.origin();
  config.options.pooling(model.options.pooling());
  return config;
}

LiveModel live_encoder(const EncoderImpl& model, const EncoderConfig& config_) {
  LiveModel live;
  EncoderConfig config = config_;
  config.options.origin().layout = 0;  // the names that transformers has now
  live.parts = encoder_parts(model, config);
  // Zeros that the class has not, which must stay so.
  for (const AbsentBias& bias : absent_biases(config, encoder_save_options(config).prefix()))
    if (live.parts.contains(bias.name)) live.parts.erase(bias.name);
  live.names = {config.whole.text("model_type", ""),
                {config.model.prefix, config.model.old_prefix},
                encoder_key_map(config)};
  live.folder = model.options.origin().folder;
  add_changes(live, encoder_save_options(config));
  return live;
}

void set_module(LiveModel& live, std::shared_ptr<torch::nn::Module> module) {
  live.module = std::move(module);
  for (const auto& item : live.module->named_parameters())
    live.memory.emplace(item.key(), item.value().const_data_ptr());
}

}  // namespace

void LiveModel::check_in_place(const char* caller) const {
  for (const auto& item : module->named_parameters()) {
    const auto found = memory.find(item.key());
    TORCH_CHECK_VALUE(found != memory.end() && found->second == item.value().const_data_ptr(), "[",
                      caller,
                      "] the model must have its device and type before it is given here, and keep "
                      "them. Got other memory of ",
                      item.key());
  }
}

std::string LiveModel::class_name(const std::string& part) const {
  if (heads.contains(part)) return part;
  for (const std::string& own : names.prefixes)
    if (!own.empty() && part.starts_with(own)) return prefix + part.substr(own.size());
  return prefix + part;
}

LiveModel live_model(const char* caller, const Encoder& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[", caller, "] the model must not be an empty holder");
  const at::NoGradGuard no_grad;
  LiveModel live = live_encoder(*model, config_of(caller, *model));
  set_module(live, model.ptr());
  return live;
}

LiveModel live_model(const char* caller, const Classifier& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[", caller, "] the model must not be an empty holder");
  const at::NoGradGuard no_grad;
  EncoderConfig config = config_of(caller, *model->encoder);
  const HeadConfig head = read_head_config(config, model->options.kind());
  config.options.pooling(model->encoder->options.pooling());
  LiveModel live = live_encoder(*model->encoder, config);
  set_module(live, model.ptr());
  live.prefix = config.model.prefix;
  for (const auto& item : head_tensors(*model.ptr(), head, config.settings)) {
    live.parts.insert(item.key(), item.value());
    live.heads.insert(item.key());
  }
  if (model->options.head().tied())
    for (const auto& name : encoder_token_table_names(config, config.options.origin().prefix))
      live.tied.insert(name);
  switch (model->options.kind()) {
    case head::Kind::Sequence: live.task = "SEQ_CLS"; break;
    case head::Kind::Token: live.task = "TOKEN_CLS"; break;
    case head::Kind::Question: live.task = "QUESTION_ANS"; break;
    default: break;
  }
  return live;
}

LiveModel live_model(const char* caller, const Decoder& model) {
  TORCH_CHECK_VALUE(!model.is_empty(), "[", caller, "] the model must not be an empty holder");
  const at::NoGradGuard no_grad;
  const EncoderConfig config = config_of(caller, *model->model);
  LiveModel live = live_encoder(*model->model, config);
  set_module(live, model.ptr());
  live.prefix = config.model.prefix;
  live.task = "CAUSAL_LM";
  for (const auto& item : head_tensors(*model.ptr(), *config.model.decoder)) {
    live.parts.insert(item.key(), item.value());
    live.heads.insert(item.key());
  }
  if (model->options.tied())
    for (const auto& name : encoder_token_table_names(config, config.options.origin().prefix))
      live.tied.insert(name);
  return live;
}

LiveModel live_model(const char* caller, const Seq2SeqModel& model) {
  TORCH_CHECK_VALUE(!model.model.is_empty(), "[", caller,
                    "] the model must not be an empty holder");
  check_loaded(caller, !model.origin.config.empty());
  const at::NoGradGuard no_grad;
  const Settings config =
      Settings::parse(caller, "the configuration of the model", model.origin.config);
  const hf::ModelType& type = seq2seq_type(config);
  LiveModel live;
  set_module(live, model.model.ptr());
  live.parts = seq2seq_parts(*model.model, type, model.model->options);
  const std::string prefix = type.seq2seq->family->prefix;
  live.names = {type.type, {prefix}};
  live.prefix = prefix;
  live.folder = model.origin.folder;
  add_changes(live, LoadOptions().key_map(type.seq2seq->family->keys(model.model->options)));
  return live;
}

LiveSource::LiveSource(const LiveModel& model) : model_(model) {
  for (std::size_t i = 0; i < model.parts.size(); ++i) {
    const auto& item = model.parts[i];
    entries_.push_back({.name = item.key()});
    entries_.back().sizes = tensor(i).sizes().vec();
  }
}

const KeySource* LiveSource::change(std::size_t index) const {
  const auto found = model_.changes.find(model_.parts[index].key());
  return found == model_.changes.end() ? nullptr : &found->second;
}

at::Tensor LiveSource::tensor(std::size_t index) const {
  const at::NoGradGuard no_grad;
  const auto found = kept_.find(index);
  const at::Tensor own = found == kept_.end() ? model_.parts[index].value() : found->second;
  const KeySource* const source = change(index);
  return source == nullptr ? own : io::change_of(*source).undo(*source, own).contiguous();
}

at::Tensor LiveSource::head(std::size_t index, int64_t axis, int64_t count) const {
  return tensor(index).narrow(axis, 0, count);
}

void LiveSource::copy_to(std::size_t index, const at::Tensor& target) const {
  target.copy_(tensor(index));
}

bool LiveSource::equal(std::size_t a, std::size_t b) const {
  return at::equal(tensor(a), tensor(b));
}

void LiveSource::keep(std::size_t index) {
  if (!kept_.contains(index)) kept_.emplace(index, model_.parts[index].value().clone());
}

void LiveSource::restore(std::size_t index) {
  const at::NoGradGuard no_grad;
  at::Tensor(model_.parts[index].value()).copy_(kept_.at(index));
}

void LiveSource::write(std::size_t index, const AdaptedSource& adapted) {
  const at::NoGradGuard no_grad;
  const at::Tensor& part = model_.parts[index].value();
  const KeySource* const source = change(index);
  if (source == nullptr) return adapted.copy_to(index, part);
  const io::KeyChange& own = io::change_of(*source);
  const at::Tensor value = adapted.tensor(index);
  if (own.apply != nullptr) {
    at::Tensor(part).copy_(own.apply(*source, value));
  } else {
    own.undo(*source, part).copy_(value);
  }
}

}  // namespace posenc::lora
