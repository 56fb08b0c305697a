#include "posenc/models/adapter_set.h"

#include <algorithm>
#include <cmath>

#include "models/adapters/live_model.h"

namespace posenc {
namespace lora {

struct AdapterSetState {
  explicit AdapterSetState(LiveModel model_) : model(std::move(model_)), source(model) {}

  /// The tensors with these adapters, which are checked once.
  const AdaptedSource& with(const std::vector<std::string>& names,
                            const std::vector<double>& scales);
  std::unique_ptr<AdaptedSource> adapted_by(std::vector<WeightedAdapter> chosen);

  LiveModel model;
  LiveSource source;
  std::map<std::string, LoraAdapter> adapters;
  std::vector<std::string> active;
  std::set<std::size_t> changed;  // parts that are not the base's
  std::map<std::pair<std::vector<std::string>, std::vector<double>>, std::unique_ptr<AdaptedSource>>
      made;
};

namespace {

constexpr const char* kSet = "AdapterSet";

}  // namespace

std::unique_ptr<AdaptedSource> AdapterSetState::adapted_by(std::vector<WeightedAdapter> chosen) {
  auto adapted = std::make_unique<AdaptedSource>(source, std::move(chosen), model.names);
  std::set<std::string> all;
  for (const auto& item : model.parts) all.insert(item.key());
  adapted->check_targets(all);
  for (const std::string& table : model.tied)
    TORCH_CHECK_VALUE(!adapted->is_changed(table), "[", kSet,
                      "] an adapter of the table to which the output layer is tied must be merged "
                      "while the model is loaded (LoadOptions::adapters). Got one of ",
                      table);
  for (std::size_t i = 0; i < model.parts.size(); ++i)
    TORCH_CHECK_VALUE(adapted->entries()[i].sizes == source.entries()[i].sizes, "[", kSet, "] ",
                      source.entries()[i].name, " must have shape ",
                      at::IntArrayRef(source.entries()[i].sizes), ". Got ",
                      at::IntArrayRef(adapted->entries()[i].sizes));
  return adapted;
}

const AdaptedSource& AdapterSetState::with(const std::vector<std::string>& names,
                                           const std::vector<double>& scales) {
  constexpr std::size_t kMost = 64;
  if (made.size() > kMost) made.clear();
  auto& own = made[{names, scales}];
  if (own == nullptr) {
    std::vector<WeightedAdapter> chosen;
    for (std::size_t i = 0; i < names.size(); ++i)
      chosen.push_back({adapters.at(names[i]), scales[i]});
    own = adapted_by(std::move(chosen));
  }
  return *own;
}

}  // namespace lora

AdapterSet::AdapterSet(const Encoder& model)
    : state_(std::make_shared<lora::AdapterSetState>(lora::live_model(lora::kSet, model))) {}
AdapterSet::AdapterSet(const Classifier& model)
    : state_(std::make_shared<lora::AdapterSetState>(lora::live_model(lora::kSet, model))) {}
AdapterSet::AdapterSet(const Decoder& model)
    : state_(std::make_shared<lora::AdapterSetState>(lora::live_model(lora::kSet, model))) {}
AdapterSet::AdapterSet(const Seq2SeqModel& model)
    : state_(std::make_shared<lora::AdapterSetState>(lora::live_model(lora::kSet, model))) {}

void AdapterSet::add(const std::string& name, const LoraAdapter& adapter) {
  TORCH_CHECK_VALUE(!name.empty() && !state_->adapters.contains(name), "[", lora::kSet,
                    "] the name of an adapter must not be empty or taken. Got ", name);
  state_->adapted_by({{adapter, 1.0}});
  state_->adapters.emplace(name, adapter);
}

void AdapterSet::activate(const std::vector<std::string>& names,
                          const std::vector<double>& scales) {
  lora::AdapterSetState& state = *state_;
  state.model.check_in_place(lora::kSet);
  TORCH_CHECK_VALUE(scales.empty() || scales.size() == names.size(), "[", lora::kSet,
                    "] scales must be one for each name, or none. Got ", scales.size(), " for ",
                    names.size());
  for (std::size_t i = 0; i < names.size(); ++i) {
    TORCH_CHECK_VALUE(state.adapters.contains(names[i]), "[", lora::kSet,
                      "] the name must be of an adapter in the set. Got ", names[i]);
    TORCH_CHECK_VALUE(std::count(names.begin(), names.end(), names[i]) == 1, "[", lora::kSet,
                      "] each adapter must be named once. Got twice ", names[i]);
    TORCH_CHECK_VALUE(scales.empty() || std::isfinite(scales[i]), "[", lora::kSet,
                      "] scales must be finite. Got ", scales[i]);
  }
  std::set<std::size_t> now;
  if (!names.empty()) {
    const auto& adapted =
        state.with(names, scales.empty() ? std::vector<double>(names.size(), 1.0) : scales);
    for (std::size_t i = 0; i < state.model.parts.size(); ++i)
      if (adapted.is_changed(i)) now.insert(i);
    for (const std::size_t index : now) state.source.keep(index);
    for (const std::size_t index : now) state.source.write(index, adapted);
  }
  for (const std::size_t index : state.changed)
    if (!now.contains(index)) state.source.restore(index);
  state.changed = std::move(now);
  state.active = names;
}

std::vector<std::string> AdapterSet::names() const {
  std::vector<std::string> all;
  for (const auto& [name, adapter] : state_->adapters) all.push_back(name);
  return all;
}

const std::vector<std::string>& AdapterSet::active() const { return state_->active; }

}  // namespace posenc
