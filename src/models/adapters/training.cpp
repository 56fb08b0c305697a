// posenc-budget: one class: the parameters of an adapter, from the targets to its file
// add_lora(): an adapter that is trained beside the weights of a model.

#include <ATen/ops/empty.h>
#include <ATen/ops/linalg_vector_norm.h>
#include <ATen/ops/zeros.h>
#include <torch/nn/init.h>

#include <algorithm>
#include <cmath>

#include "core/low_rank.h"
#include "models/adapters/live_model.h"
#include "models/lora/config.h"
#include "posenc/models/adapter_set.h"
#include "posenc/transformer/attention/disentangled_attention.h"
#include "posenc/transformer/attention/multihead_attention.h"
#include "posenc/transformer/layers/gated_feed_forward.h"
#include "posenc/transformer/output_projection.h"

namespace posenc {
namespace lora {

/// A part's place in a parameter of the module.
struct Place {
  std::string name;  // of the parameter
  at::Tensor parameter;
  int64_t begin = 0, rows = 0;
};

/// A module that the adapter acts on.
struct Target {
  std::string module;  // in the class
  Place place;
  at::Tensor a, b, magnitude;
};

namespace {

constexpr const char* kAdd = "add_lora";

// A part shares the memory of one parameter, of which it is rows.
Place place_of(const torch::nn::Module& module, const at::Tensor& part) {
  const auto* const begin = static_cast<const char*>(part.const_data_ptr());
  for (const auto& item : module.named_parameters()) {
    const at::Tensor& own = item.value();
    const auto* const first = static_cast<const char*>(own.const_data_ptr());
    if (begin < first || begin >= first + own.nbytes() || own.dim() != part.dim()) continue;
    const auto row = static_cast<int64_t>(own.nbytes()) / std::max<int64_t>(own.size(0), 1);
    return {item.key(), own, (begin - first) / row, part.size(0)};
  }
  return {};
}

std::shared_ptr<torch::nn::Module> owner_of(const torch::nn::Module& module,
                                            const std::string& parameter) {
  const auto dot = parameter.rfind('.');
  const std::string path = dot == std::string::npos ? "" : parameter.substr(0, dot);
  for (const auto& item : module.named_modules())
    if (item.key() == path) return item.value();
  return nullptr;
}

std::string parent_path(const std::string& path) {
  const auto dot = path.rfind('.');
  return dot == std::string::npos ? "" : path.substr(0, dot);
}

// Whether the forward() of its module looks for additions to the weight.
bool can_train(const torch::nn::Module& module, const Place& place) {
  const auto owner = owner_of(module, place.name);
  const auto attends = [](const std::shared_ptr<torch::nn::Module>& one) {
    return std::dynamic_pointer_cast<MultiheadAttentionImpl>(one) != nullptr ||
           std::dynamic_pointer_cast<DisentangledAttentionImpl>(one) != nullptr;
  };
  if (owner == nullptr) return false;
  if (attends(owner)) return true;
  if (std::dynamic_pointer_cast<OutputProjectionImpl>(owner) != nullptr) return true;
  if (std::dynamic_pointer_cast<torch::nn::LinearImpl>(owner) == nullptr) return false;
  const std::string path = parent_path(place.name), last = path.substr(path.rfind('.') + 1);
  if (last == "linear1" || last == "linear2" || last == "dense" || last == "pooler") return true;
  const auto around = owner_of(module, path);
  return attends(around) || std::dynamic_pointer_cast<GatedFeedForwardImpl>(around) != nullptr;
}

bool is_table(const Place& place) {
  return place.name.find("embedding") != std::string::npos &&
         place.name.find("projection") == std::string::npos;
}

}  // namespace

struct LoraTrainingState {
  LiveModel model;
  LoraConfig config;
  std::vector<Target> targets;
  StateDict saved;  // tensors of the model that are trained themselves, by their names in the class
  std::vector<std::pair<at::Tensor, bool>> required;  // what required gradients before
  std::shared_ptr<torch::nn::Module> whole;           // LoraTraining::module()

  LoraTrainingState(LiveModel model_, LoraConfig config_)
      : model(std::move(model_)), config(std::move(config_)) {}
  LoraTrainingState(const LoraTrainingState&) = delete;
  LoraTrainingState& operator=(const LoraTrainingState&) = delete;
  ~LoraTrainingState() {
    for (const Target& one : targets) attach_additions(one.place.parameter, {});
    for (auto& [parameter, before] : required) parameter.set_requires_grad(before);
  }

  void find_targets();
  void find_saved();
  void make_parameters();
  void take(const LoraAdapter& from);
  void attach();
  void make_whole();
  bool is_named(const std::string& module) const;
  LoraTargets written_targets() const;
  static LoraTraining handle(std::shared_ptr<LoraTrainingState> state) {
    return LoraTraining(std::move(state));
  }
};

bool LoraTrainingState::is_named(const std::string& module) const {
  const auto defaults = default_targets(model.names.model_type);
  TORCH_CHECK_VALUE(config.targets().kind() != LoraTargets::Kind::OfModelType || !defaults.empty(),
                    "[", kAdd, "] targets must be there for model_type ", model.names.model_type,
                    ", for which PEFT has none");
  return is_target(config, module, defaults);
}

void LoraTrainingState::find_targets() {
  const bool is_all = config.targets().kind() == LoraTargets::Kind::AllLinear;
  for (const auto& item : model.parts) {
    const std::string name = model.class_name(item.key());
    if (!name.ends_with(kWeight) || item.value().dim() != 2) continue;
    const std::string module = name.substr(0, name.size() - kWeight.size());
    if (!is_named(module)) continue;
    const Place place = place_of(*model.module, item.value());
    const bool is_output = model.heads.contains(item.key()) && place.name.ends_with("head.weight");
    if (is_all && (is_output || !place.parameter.defined() || is_table(place))) continue;
    // A weight that the file has as (in, out) is (out, in) here, as those of the adapter are.
    const auto change = model.changes.find(item.key());
    const bool is_changed = change != model.changes.end();
    const bool is_turned = is_changed && change->second.change() == KeySource::Change::Transpose;
    if (is_turned) config.fan_in_fan_out(true);
    TORCH_CHECK_VALUE(
        place.parameter.defined() && (!is_changed || is_turned) && can_train(*model.module, place),
        "[", kAdd,
        "] a target must be a linear layer of an attention, of a "
        "feed-forward network or of a pooler, which the model has as its file does. "
        "Got ",
        module);
    targets.push_back({module, place, {}, {}, {}});
  }
  TORCH_CHECK_VALUE(!targets.empty(), "[", kAdd,
                    "] targets must match a layer of the model. They match no layer");
}

// Of a tensor that has rows of others beside them, all must be trained, or none.
void LoraTrainingState::find_saved() {
  std::map<std::string, std::pair<at::Tensor, int64_t>> rows;  // trained, of each parameter
  for (const auto& item : model.parts) {
    const std::string name = model.class_name(item.key());
    const std::string module = name.substr(0, name.rfind('.'));
    const bool is_of_target = std::any_of(targets.begin(), targets.end(),
                                          [&](const Target& one) { return one.module == module; });
    const bool is_bias = name.ends_with("bias");
    const bool is_trained = has_saved_values(config, module) ||
                            (is_bias && config.bias() == LoraBias::All) ||
                            (is_bias && config.bias() == LoraBias::LoraOnly && is_of_target);
    if (!is_trained) continue;
    const Place place = place_of(*model.module, item.value());
    TORCH_CHECK_VALUE(place.parameter.defined() && !model.changes.contains(item.key()), "[", kAdd,
                      "] what is trained itself must be in the model as in its file. Got ", name);
    saved.insert(name, item.value());
    auto& own = rows[place.name];
    own.first = place.parameter;
    own.second += place.rows;
  }
  for (auto& [name, own] : rows) {
    TORCH_CHECK_VALUE(own.second == own.first.size(0), "[", kAdd,
                      "] of a tensor that posenc has as one with others, such as the biases of "
                      "query, key and value, all must be trained or none. Got a part of ",
                      name);
    own.first.set_requires_grad(true);
  }
  for (const std::string& text : config.modules_to_save()) {
    if (text == "classifier" || text == "score") continue;  // PEFT has both for any model
    const bool matches = std::any_of(saved.begin(), saved.end(), [&](const auto& item) {
      return has_saved_values(LoraConfig().modules_to_save({text}),
                              item.key().substr(0, item.key().rfind('.')));
    });
    TORCH_CHECK_VALUE(matches, "[", kAdd, "] modules_to_save must be modules of the model. Got ",
                      text);
  }
}

void LoraTrainingState::make_parameters() {
  const at::NoGradGuard no_grad;
  for (Target& one : targets) {
    const at::Tensor weight = one.place.parameter.narrow(0, one.place.begin, one.place.rows);
    const int64_t rank = rank_of(config, one.module);
    one.a = at::empty({rank, weight.size(1)}, weight.options().requires_grad(false));
    torch::nn::init::kaiming_uniform_(one.a, std::sqrt(5.0));
    one.b = at::zeros({weight.size(0), rank}, weight.options().requires_grad(false));
    if (config.dora()) one.magnitude = at::linalg_vector_norm(weight, 2, at::IntArrayRef{1});
  }
}

void LoraTrainingState::take(const LoraAdapter& from) {
  const at::NoGradGuard no_grad;
  AdapterParts own = parts_of({config, from.tensors, from.folder});
  const auto copy = [&](const std::string& name, const at::Tensor& target,
                        const at::Tensor& value) {
    if (!value.defined() || value.sizes() != target.sizes())
      throw WeightsError(WeightsErrorCode::ShapeMismatch,
                         c10::str("must have shape ", target.sizes(), ". Got ",
                                  value.defined() ? c10::str(value.sizes()) : "none"))
          .in_tensor(name);
    at::Tensor(target).copy_(value);
  };
  for (const Target& one : targets) {
    const LowRank& layer = own.layers[one.module];
    copy(one.module + ".lora_A.weight", one.a, layer.a);
    copy(one.module + ".lora_B.weight", one.b, layer.b);
    if (one.magnitude.defined())
      copy(one.module + ".lora_magnitude_vector", one.magnitude, layer.magnitude);
  }
  if (own.layers.size() != targets.size())
    throw WeightsError(WeightsErrorCode::UnexpectedKeys,
                       "has modules that are not among the targets")
        .in_file(from.folder);
  for (const auto& [name, value] : own.values) {
    if (!saved.contains(name))
      throw WeightsError(WeightsErrorCode::UnexpectedKeys, "must be a tensor that is trained")
          .in_tensor(name);
    copy(name, saved[name], value);
  }
}

void LoraTrainingState::attach() {
  std::map<void*, std::pair<at::Tensor, std::vector<LowRankAddition>>> by_weight;
  const std::weak_ptr<torch::nn::Module> module = model.module;
  for (Target& one : targets) {
    for (at::Tensor* tensor : {&one.a, &one.b, &one.magnitude})
      if (tensor->defined()) tensor->set_requires_grad(true);
    auto& own = by_weight[one.place.parameter.unsafeGetTensorImpl()];
    own.first = one.place.parameter;
    own.second.push_back({one.place.begin, one.place.rows, one.a, one.b, one.magnitude,
                          scale_of(config, one.module), config.dropout(), [module] {
                            const auto held = module.lock();
                            return held != nullptr && held->is_training();
                          }});
  }
  for (auto& [impl, own] : by_weight) attach_additions(own.first, std::move(own.second));
}

// Names of PEFT have dots, which those of parameters must not: a module for each part of a name.
void LoraTrainingState::make_whole() {
  whole = std::make_shared<torch::nn::Module>("LoraTraining");
  whole->register_module("base", model.module);
  const auto adapter = whole->register_module("adapter", std::make_shared<torch::nn::Module>());
  const auto add = [&](const std::string& name, const at::Tensor& parameter) {
    torch::nn::Module* at = adapter.get();
    std::size_t begin = 0;
    for (std::size_t dot = 0; (dot = name.find('.', begin)) != std::string::npos; begin = dot + 1) {
      const std::string part = name.substr(begin, dot - begin);
      const auto children = at->named_children();
      const auto* const known = children.find(part);
      at = known != nullptr
               ? known->get()
               : at->register_module(part, std::make_shared<torch::nn::Module>()).get();
    }
    at->register_parameter(name.substr(begin), parameter, parameter.requires_grad());
  };
  for (const Target& one : targets) {
    add(one.module + ".lora_A.weight", one.a);
    add(one.module + ".lora_B.weight", one.b);
    if (one.magnitude.defined()) add(one.module + ".lora_magnitude_vector", one.magnitude);
  }
  if (!model.module->is_training()) whole->eval();
}

// The user's endings, if they match nothing outside the layers, where the class may have more than
// the model; else whole names.
LoraTargets LoraTrainingState::written_targets() const {
  using Kind = LoraTargets::Kind;
  const auto has_number = [](const std::string& name) {
    return std::any_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  const auto& names = config.targets().names();
  const bool is_generic = std::any_of(names.begin(), names.end(),
                                      [](const std::string& name) { return name == "dense"; });
  const bool are_layers = std::all_of(targets.begin(), targets.end(),
                                      [&](const Target& one) { return has_number(one.module); });
  if (config.targets().kind() == Kind::Pattern) return config.targets();
  if (config.targets().kind() == Kind::Names && are_layers && !is_generic) return config.targets();
  std::vector<std::string> all;
  for (const Target& one : targets) all.push_back(one.module);
  return all;
}

namespace {

LoraTraining training_of(LiveModel model, LoraConfig config, const LoraAdapter* from) {
  check_config("[add_lora] ", config);
  TORCH_CHECK_VALUE(!config.lora_bias(), "[add_lora] lora_bias must be false. Got true");
  // Classes of PEFT for these tasks save the output layer too.
  const std::vector<std::string> outputs = config.task_type() == "QUESTION_ANS"
                                               ? std::vector<std::string>{"qa_outputs"}
                                               : std::vector<std::string>{"classifier", "score"};
  const bool has_task = !config.task_type().empty() && config.task_type() == model.task;
  for (const std::string& output : outputs) {
    const bool is_there =
        std::any_of(model.heads.begin(), model.heads.end(),
                    [&](const std::string& name) { return name.starts_with(output + "."); });
    auto& own = config.modules_to_save();
    if (has_task && is_there && std::count(own.begin(), own.end(), output) == 0)
      own.push_back(output);
  }
  auto state = std::make_shared<LoraTrainingState>(std::move(model), std::move(config));
  for (const auto& item : state->model.module->named_parameters()) {
    TORCH_CHECK_VALUE(additions_of(item.value()).empty(),
                      "[add_lora] the model must have no other adapter in training. Got one at ",
                      item.key());
  }
  for (auto& item : state->model.module->named_parameters()) {
    state->required.emplace_back(item.value(), item.value().requires_grad());
    item.value().set_requires_grad(false);
  }
  state->find_targets();
  state->find_saved();
  state->make_parameters();
  if (from != nullptr) state->take(*from);
  state->attach();
  state->make_whole();
  return LoraTrainingState::handle(std::move(state));
}

}  // namespace
}  // namespace lora

StateDict LoraTraining::named_parameters() const {
  state_->model.check_in_place(lora::kAdd);
  StateDict named;
  for (const lora::Target& one : state_->targets) {
    named.insert(one.module + ".lora_A.weight", one.a);
    named.insert(one.module + ".lora_B.weight", one.b);
    if (one.magnitude.defined()) named.insert(one.module + ".lora_magnitude_vector", one.magnitude);
  }
  std::set<std::string> seen;
  for (const auto& item : state_->saved) {
    const lora::Place place = lora::place_of(*state_->model.module, item.value());
    if (seen.insert(place.name).second) named.insert(item.key(), place.parameter);
  }
  return named;
}

const std::shared_ptr<torch::nn::Module>& LoraTraining::module() const { return state_->whole; }

std::vector<torch::Tensor> LoraTraining::parameters() const { return named_parameters().values(); }

LoraAdapter LoraTraining::adapter() const {
  state_->model.check_in_place(lora::kAdd);
  LoraAdapter adapter = {state_->config, StateDict(), ""};
  adapter.config.targets(state_->written_targets());
  for (const lora::Target& one : state_->targets) {
    adapter.tensors.insert(one.module + ".lora_A.weight", one.a.detach().clone());
    adapter.tensors.insert(one.module + ".lora_B.weight", one.b.detach().clone());
    if (one.magnitude.defined())
      adapter.tensors.insert(one.module + ".lora_magnitude_vector", one.magnitude.detach().clone());
  }
  for (const auto& item : state_->saved) {
    std::string name = item.key();
    const std::string module = name.substr(0, name.rfind('.'));
    for (const lora::Target& one : state_->targets)
      if (one.module == module) name.insert(module.size(), ".base_layer");  // as PEFT has it
    adapter.tensors.insert(name, item.value().detach().clone());
  }
  return adapter;
}

LoraTraining add_lora(const Encoder& model, const LoraConfig& config, const LoraAdapter* from) {
  return lora::training_of(lora::live_model(lora::kAdd, model), config, from);
}
LoraTraining add_lora(const Classifier& model, const LoraConfig& config, const LoraAdapter* from) {
  return lora::training_of(lora::live_model(lora::kAdd, model), config, from);
}
LoraTraining add_lora(const Decoder& model, const LoraConfig& config, const LoraAdapter* from) {
  return lora::training_of(lora::live_model(lora::kAdd, model), config, from);
}
LoraTraining add_lora(const Seq2SeqModel& model, const LoraConfig& config,
                      const LoraAdapter* from) {
  return lora::training_of(lora::live_model(lora::kAdd, model), config, from);
}

}  // namespace posenc
