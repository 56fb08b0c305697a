// posenc-budget: one class: how the names and shapes of an adapter meet those of a file
#include "models/lora/adapted_source.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/count_nonzero.h>
#include <ATen/ops/equal.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/match_pattern.h"
#include "base/text.h"
#include "models/lora/config.h"
#include "models/types/file_names.h"
#include "weights/load/key_map.h"
#include "weights/load/mismatch.h"

namespace posenc::lora {
namespace {

bool has_number(const std::string& name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    const auto digits = std::string_view(name).substr(begin, end - begin);
    if (!digits.empty() && digits.find_first_not_of("0123456789") == std::string_view::npos)
      return true;
    begin = end + 1;
  }
  return false;
}

std::string without_end(const std::string& name, std::string_view end) {
  return name.substr(0, name.size() - end.size());
}

// A table which the encoder and the decoder have as their own: nobody asks this module.
constexpr const char* kTied = "shared";
// Modules whose weight alone is read. PEFT adds to what forward() of a module returns, and nobody
// calls theirs; values in place of the weight count.
constexpr const char* kOnlyRead[] = {"encoder.rel_embeddings", "encoder.rel_pos_bias",
                                     "encoder.rel_pos_x_bias", "encoder.rel_pos_y_bias"};

// Whether it adds nothing, as one that got no gradients.
bool is_zero(const LowRank& layer) {
  return !at::count_nonzero(layer.a).item<bool>() || !at::count_nonzero(layer.b).item<bool>();
}

// A table, which is no linear layer.
bool is_table(const std::string& module) {
  const std::string last = module.substr(module.rfind('.') + 1);
  return last.find("embed") != std::string::npos || last == "relative_attention_bias";
}

std::string listed(const LoraConfig& config, const std::vector<std::string>& defaults) {
  switch (config.targets().kind()) {
    case LoraTargets::Kind::AllLinear: return "all-linear";
    case LoraTargets::Kind::Pattern: return config.targets().names().front();
    case LoraTargets::Kind::OfModelType: return io::in_quotes_each(defaults);
    case LoraTargets::Kind::Names: break;
  }
  return io::in_quotes_each(config.targets().names());
}

}  // namespace

std::vector<WeightedAdapter> load_all(const char* caller,
                                      const std::vector<AdapterFolder>& folders) {
  std::vector<WeightedAdapter> adapters;
  for (const auto& [folder, scale] : folders) {
    TORCH_CHECK_VALUE(std::isfinite(scale), "[", caller, "] ", folder,
                      ": the scale of an adapter must be finite. Got ", scale);
    adapters.push_back({load_adapter(folder), scale});
  }
  return adapters;
}

AdaptedSource::AdaptedSource(const io::TensorSource& source, std::vector<WeightedAdapter> adapters,
                             const ModelNames& names, const std::string& prefix)
    : SelectedSource(source),
      source_(source),
      adapters_(std::move(adapters)),
      names_(names),
      given_(prefix) {
  std::erase(names_.prefixes, "");
  for (std::size_t i = 0; i < source.entries().size(); ++i) {
    select(i, source.entries()[i]);
    const std::string& name = entries_.back().name;
    if (adapters_.empty() || !name.starts_with(given_)) continue;
    const std::string own = bare(name);
    if (is_later(own)) continue;
    by_name_.emplace(own, i);
    has_prefix_ |= own.size() + given_.size() < name.size();
    const auto found = io::find_rule(own, names_.map);
    if (!found || names_.map[found->rule].name.empty()) continue;
    const auto& sources = names_.map[found->rule].sources.items;
    const KeySource::Change change = sources[found->source].change();
    mapped_[io::fill_pattern(names_.map[found->rule].name, found->runs)].push_back(
        {i, found->source, sources.size(), change});
    if (change == KeySource::Change::Transpose) turned_.insert(i);
  }
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const LoraAdapter& adapter = adapters_[i].adapter;
    std::string own;
    for (const auto& item : adapter.tensors) {
      for (const std::string& one : names_.prefixes)
        if (item.key().starts_with(one)) own = one;
    }
    prefix_.push_back(own);
    parts_.push_back(parts_of(adapter));
  }
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const auto placed = [&](const auto& add) {
      try {
        add();
      } catch (const WeightsError& error) {
        throw error.in_file(adapters_[i].adapter.folder);
      }
    };
    placed([&] { check_matches(i); });
    for (const auto& [name, value] : parts_[i].values)
      placed([&, &name = name, &value = value] { add_value(i, name, value); });
  }
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    try {
      for (const auto& [module, layer] : parts_[i].layers) add_layer(i, module, layer);
    } catch (const WeightsError& error) {
      throw error.in_file(adapters_[i].adapter.folder);
    }
  }
  for (auto& [index, change] : changes_) entries_[index].dtype = at::kFloat;
}

bool AdaptedSource::is_later(const std::string& bare_name) const {
  if (names_.later.empty()) return false;
  if (io::find_rule(bare_name, names_.later)) return true;
  return std::any_of(names_.prefixes.begin(), names_.prefixes.end(), [&](const auto& prefix) {
    return io::find_rule(prefix + bare_name, names_.later).has_value();
  });
}

void AdaptedSource::refuse_ignored(const std::string& module, bool is_added) const {
  const std::string own = bare(given_ + module);
  const bool is_only_read =
      std::find(std::begin(kOnlyRead), std::end(kOnlyRead), own) != std::end(kOnlyRead);
  if (own != kTied && !(is_added && is_only_read)) return;
  throw WeightsError(WeightsErrorCode::Unsupported,
                     "must be of a module that runs: PEFT ignores an adapter of one whose weight "
                     "others read")
      .in_tensor(module);
}

std::string AdaptedSource::where(std::size_t adapter) const {
  const std::string& folder = adapters_[adapter].adapter.folder;
  return folder.empty() ? "[LoraAdapter] " : "[load_adapter] " + folder + ": ";
}

std::string AdaptedSource::bare(const std::string& name) const {
  const std::string_view own = std::string_view(name).substr(given_.size());
  for (const std::string& prefix : names_.prefixes)
    if (own.starts_with(prefix)) return std::string(own.substr(prefix.size()));
  return std::string(own);
}

// The name that an entry of the source has in the class that was trained.
std::string AdaptedSource::trained_name(std::size_t adapter, const std::string& name) const {
  const std::string own = bare(name);
  const bool is_of_head_here = has_prefix_ && own.size() + given_.size() == name.size();
  return is_of_head_here ? own : prefix_[adapter] + own;
}

// That of a name in an adapter; files of old releases have gamma and beta in norms.
std::size_t AdaptedSource::find(const std::string& name) const {
  std::string own = bare(given_ + name);
  std::vector<std::string> all = {own};
  if (own.ends_with(kWeight)) all.push_back(without_end(own, kWeight) + ".gamma");
  if (own.ends_with(kBias)) all.push_back(without_end(own, kBias) + ".beta");
  const DecoderStructure heads = names_.decoder == nullptr ? DecoderStructure() : *names_.decoder;
  for (const auto& [from, to] :
       {std::pair(heads.head, heads.other_head), {heads.other_head, heads.head}}) {
    if (*to != '\0' && module_of(own) == from) all.push_back(to + own.substr(own.rfind('.')));
  }
  for (const std::string& one : all) {
    const auto found = by_name_.find(one);
    if (found != by_name_.end()) return found->second;
  }
  return kNone;
}

std::vector<AdaptedSource::Place> AdaptedSource::places_of(const std::string& name,
                                                           int64_t rows) const {
  const std::size_t index = find(name);
  if (index != kNone) return {{index, -1, 0, rows}};
  return mapped_places(name, rows);
}

// Where the file has the same under another name, or together with others: rows of what becomes
// the same tensor of the model.
std::vector<AdaptedSource::Place> AdaptedSource::mapped_places(const std::string& name,
                                                               int64_t rows) const {
  const std::string own_name = bare(given_ + name);
  const auto rule = io::find_rule(own_name, names_.map);
  if (!rule) return {};
  const auto& [sources, to] = names_.map[rule->rule];
  const auto found = mapped_.find(io::fill_pattern(to, rule->runs));
  const std::size_t part = rule->source, parts = sources.items.size();
  if (to.empty() || found == mapped_.end() ||
      sources.items[part].change() != KeySource::Change::None)
    return {};
  std::vector<Mapped> own = found->second;
  std::sort(own.begin(), own.end(), [](const auto& a, const auto& b) { return a.part < b.part; });
  const auto is_plain = [](const Mapped& one) { return one.change == KeySource::Change::None; };
  if (own.size() == 1 && own[0].parts == 1) {
    const int64_t all = entries_[own[0].index].sizes.empty() ? 0 : entries_[own[0].index].sizes[0];
    if (parts == 1) return {{own[0].index, -1, 0, rows}};
    int64_t begin = part == 0 ? 0 : all - rows * static_cast<int64_t>(parts - part);
    if (own[0].change == KeySource::Change::SwapHalves) begin = (begin + all / 2) % all;
    const bool fits = begin >= 0 && begin + rows <= all;
    if (!fits || (!is_plain(own[0]) && own[0].change != KeySource::Change::SwapHalves)) return {};
    return {{own[0].index, begin, 0, rows}};
  }
  if (!std::all_of(own.begin(), own.end(), is_plain)) return {};
  std::vector<Place> places;
  int64_t next = 0;
  for (const Mapped& one : own) {
    if (parts == own.size() && one.part == part) return {{one.index, -1, 0, rows}};
    const int64_t count = entries_[one.index].sizes.empty() ? 0 : entries_[one.index].sizes[0];
    places.push_back({one.index, -1, next, count});
    next += count;
  }
  return parts == 1 && next == rows ? places : std::vector<Place>();
}

// Of a class with a head, of which the source has nothing.
bool AdaptedSource::is_of_head(const std::string& name) const {
  const std::string own = bare(given_ + name);
  const std::string component = own.substr(0, own.find('.'));
  bool is_in_source = false;  // and not only in the adapter
  for (auto next = by_name_.lower_bound(component + ".");
       next != by_name_.end() && next->first.starts_with(component + "."); ++next)
    is_in_source = is_in_source || next->second < source_.entries().size();
  return !is_in_source && !has_number(own) &&
         hf::file_names_of(names_.model_type).has_module(component);
}

// Targets that match nothing at all would do nothing at all.
void AdaptedSource::check_matches(std::size_t adapter) const {
  const LoraConfig& config = adapters_[adapter].adapter.config;
  const auto defaults = default_targets(names_.model_type);
  TORCH_CHECK_VALUE(config.targets().kind() != LoraTargets::Kind::OfModelType || !defaults.empty(),
                    where(adapter), "target_modules must be there for model_type ",
                    names_.model_type, ", for which PEFT has none. Got null");
  const bool matches_source =
      std::any_of(entries_.begin(), entries_.end(), [&](const Entry& entry) {
        return entry.name.starts_with(given_) && entry.name.ends_with(kWeight) &&
               is_target(config, without_end(trained_name(adapter, entry.name), kWeight), defaults);
      });
  const auto& layers = parts_[adapter].layers;
  const bool matches_adapter = std::any_of(layers.begin(), layers.end(), [&](const auto& item) {
    return is_target(config, item.first, defaults);
  });
  TORCH_CHECK_VALUE(matches_source || matches_adapter, where(adapter),
                    "target_modules must match a layer of the model",
                    config.layers().empty() ? "" : " with layers_to_transform",
                    ". They match no layer. Got ", listed(config, defaults));
}

void AdaptedSource::check_shapes(const std::string& module, const LowRank& layer,
                                 const Place& place) const {
  const auto& sizes = entries_[place.index].sizes;
  if (sizes.size() != 2)
    throw WeightsError(WeightsErrorCode::Unsupported,
                       "must be of a linear layer or an embedding. Its weight in the model has "
                       "shape " +
                           io::shape_text(sizes))
        .in_tensor(module);
  const int64_t in = sizes[layer.is_turned ? 0 : 1];
  const int64_t out = place.begin >= 0 || place.rows < layer.b.size(0)
                          ? layer.b.size(0)
                          : sizes[layer.is_turned ? 1 : 0];
  const auto check = [&](const char* linear, const char* table, const at::Tensor& tensor,
                         int64_t axis, int64_t expected) {
    if (tensor.size(axis) == expected) return;
    throw WeightsError(WeightsErrorCode::ShapeMismatch,
                       c10::str("must have ", expected, axis == 0 ? " rows" : " columns",
                                ", as the model's weight of shape ", io::shape_text(sizes),
                                " has. Got shape ", io::shape_text(tensor.sizes())))
        .in_tensor(module + (layer.is_embedding ? table : linear));
  };
  check(".lora_A.weight", ".lora_embedding_A", layer.a, 1, in);
  check(".lora_B.weight", ".lora_embedding_B", layer.b, 0, out);
}

void AdaptedSource::add_layer(std::size_t adapter, const std::string& module,
                              const LowRank& layer) {
  const auto& [own, scale] = adapters_[adapter];
  const auto defaults = default_targets(names_.model_type);
  if (!is_target(own.config, module, defaults))
    throw WeightsError(WeightsErrorCode::UnexpectedKeys,
                       "must be a target of target_modules, " + listed(own.config, defaults) +
                           ", with the other settings of adapter_config.json")
        .in_tensor(module);
  if (!is_zero(layer)) refuse_ignored(module, /*is_added=*/true);
  const auto places = places_of(module + std::string(kWeight), layer.b.size(0));
  if (places.empty()) {
    if (is_of_head(module)) return of_heads_.push_back(module);
    throw WeightsError(WeightsErrorCode::UnexpectedKeys, "must be a module of the model")
        .in_tensor(module);
  }
  for (const Place& place : places) {
    io::refuse_unreadable_entry(entries_[place.index]);
    LowRank own_rows = layer;
    own_rows.is_turned |= turned_.contains(place.index);
    check_shapes(module, own_rows, place);
    Change& change = changes_[place.index];
    const bool has_other =
        std::any_of(change.layers.begin(), change.layers.end(), [&](const Placed& one) {
          return (one.begin < 0 || place.begin < 0 || one.begin == place.begin) &&
                 (one.layer.magnitude.defined() || layer.magnitude.defined());
        });
    TORCH_CHECK_VALUE(!has_other && (!layer.magnitude.defined() || scale == 1.0), where(adapter),
                      module,
                      " of an adapter with use_dora must have scale 1, and no other adapter beside "
                      "it. Got ",
                      has_other ? "another adapter" : "scale " + std::to_string(scale));
    if (place.rows < layer.b.size(0)) {
      own_rows.b = layer.b.narrow(0, place.from, place.rows);
      if (layer.magnitude.defined())
        own_rows.magnitude = layer.magnitude.narrow(0, place.from, place.rows);
    }
    change.layers.push_back({std::move(own_rows), scale, place.begin});
  }
  if (!layer.bias.defined()) return;
  const std::size_t bias = find(module + std::string(kBias));
  if (bias == kNone)
    throw WeightsError(WeightsErrorCode::UnexpectedKeys,
                       "must be of a layer with a bias, to which it is added")
        .in_tensor(module + ".lora_B.bias");
  changes_[bias].added.push_back(layer.bias * (layer.scale * scale));
}

void AdaptedSource::add_value(std::size_t adapter, const std::string& name,
                              const at::Tensor& value) {
  const auto places = places_of(name, value.dim() > 0 ? value.size(0) : 1);
  const bool is_rows = places.size() > 1 || (!places.empty() && places.front().begin >= 0);
  if (is_rows) {
    for (const Place& place : places)
      changes_[place.index].rows[std::max<int64_t>(place.begin, 0)] =
          value.narrow(0, place.from, place.rows);
    return;
  }
  const std::size_t index = places.empty() ? kNone : places.front().index;
  if (index == kNone) {
    constexpr std::string_view kSecond = ".decoder.bias";  // of a head, whose bias has two names
    if (name.ends_with(kSecond) &&
        parts_[adapter].values.contains(without_end(name, kSecond) + std::string(kBias)))
      return of_heads_.push_back(name);
    if (!is_of_head(name))
      throw WeightsError(WeightsErrorCode::UnexpectedKeys, "must be a tensor of the model")
          .in_tensor(name);
    // A bias of a module that the model has not: the trained class has it with fresh weights.
    const std::string weight = module_of(name) + std::string(kWeight);
    if (name.ends_with(kBias) && parts_[adapter].values.count(weight) == 0)
      return of_heads_.push_back(name);
    entries_.push_back({.name = given_ + name, .sizes = value.sizes().vec()});
    by_name_.emplace(bare(entries_.back().name), entries_.size() - 1);
    changes_[entries_.size() - 1] = {.value = value};
    return;
  }
  io::refuse_unreadable_entry(entries_[index]);
  if (entries_[index].sizes != value.sizes().vec() && !is_of_own_head(name))
    throw WeightsError(WeightsErrorCode::ShapeMismatch,
                       "must have shape " + io::shape_text(entries_[index].sizes) + ". Got " +
                           io::shape_text(value.sizes()))
        .in_tensor(name);
  const bool is_same = entries_[index].sizes == value.sizes().vec() &&
                       at::equal(base_of(index).to(at::kFloat), value);
  if (is_same) return;  // a copy of the base's
  refuse_ignored(module_of(name), /*is_added=*/false);
  Change& change = changes_[index];
  TORCH_CHECK_VALUE(!change.value.defined() || at::equal(change.value, value), where(adapter),
                    "two adapters must not replace one tensor by different values. Got ", name);
  entries_[index].sizes = value.sizes().vec();
  change.value = value;
}

// Whether it is a head's, whose sizes are those of the labels that were trained.
bool AdaptedSource::is_of_own_head(const std::string& name) const {
  const std::string own = bare(given_ + name);
  return has_prefix_ && own.size() == name.size() && !has_number(own);
}

bool AdaptedSource::is_changed(const std::string& name) const {
  const auto found = by_name_.find(bare(name));
  return found != by_name_.end() && is_changed(found->second);
}

bool AdaptedSource::keep(const std::string& name, const std::string& other, bool with_changes) {
  const auto found = by_name_.find(bare(other));
  if (found == by_name_.end() || by_name_.count(bare(name)) != 0) return false;
  entries_.push_back({.name = name, .sizes = entries_[found->second].sizes});
  changes_[entries_.size() - 1] = {.like = found->second, .is_like_changed = with_changes};
  by_name_.emplace(bare(name), entries_.size() - 1);
  return true;
}

bool AdaptedSource::has_other_names(std::size_t adapter) const {
  const auto& layers = parts_[adapter].layers;
  return std::any_of(layers.begin(), layers.end(), [&](const auto& item) {
    return has_number(item.first) && find(item.first + std::string(kWeight)) == kNone;
  });
}

// The modules of layers that the trained class has under other names than the source.
std::vector<std::string> AdaptedSource::mapped_modules(std::size_t adapter,
                                                       const std::set<std::string>& read) const {
  std::vector<std::string> modules;
  if (!has_other_names(adapter)) return modules;
  for (const auto& [to, entries] : mapped_) {
    const bool is_read = std::any_of(entries.begin(), entries.end(), [&](const Mapped& one) {
      return entries_[one.index].sizes.size() == 2 && read.contains(bare(entries_[one.index].name));
    });
    for (const KeyRule& rule : names_.map) {
      const auto runs = match_pattern(rule.name, to);
      if (!is_read || !runs || rule.name.empty()) continue;
      for (const KeySource& source : rule.sources.items) {
        const std::string name = io::fill_pattern(source.pattern(), *runs);
        if (name.ends_with(kWeight) && has_number(name) && by_name_.count(name) == 0)
          modules.push_back(prefix_[adapter] + without_end(name, kWeight));
      }
    }
  }
  return modules;
}

void AdaptedSource::check_targets(const std::set<std::string>& read) const {
  const auto defaults = default_targets(names_.model_type);
  std::set<std::string> own_read;
  for (const std::string& name : read) own_read.insert(bare(name));
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const LoraConfig& config = adapters_[i].adapter.config;
    std::vector<std::string> missing;
    const bool is_mapped = has_other_names(i);
    for (const Entry& entry : entries_) {
      if (is_mapped) break;
      if (entry.sizes.size() != 2 || !entry.name.ends_with(kWeight) ||
          !entry.name.starts_with(given_) || own_read.count(bare(entry.name)) == 0 ||
          by_name_.count(bare(entry.name)) == 0 || !has_number(entry.name))
        continue;
      const std::string module = without_end(trained_name(i, entry.name), kWeight);
      const bool is_other =
          config.targets().kind() == LoraTargets::Kind::AllLinear && is_table(module);
      if (is_other || parts_[i].layers.count(module) != 0) continue;
      if (is_target(config, module, defaults)) missing.push_back(module + ".lora_A.weight");
    }
    for (const std::string& module : mapped_modules(i, own_read))
      if (parts_[i].layers.count(module) == 0 && is_target(config, module, defaults))
        missing.push_back(module + ".lora_A.weight");
    if (missing.empty()) continue;
    throw WeightsError(
        WeightsErrorCode::MissingKeys,
        "must have a part for each target of target_modules in the model. It lacks " +
            io::in_quotes_each(missing))
        .in_file(adapters_[i].adapter.folder);
  }
}

std::vector<std::string> AdaptedSource::left_out() const {
  std::vector<std::string> all = SelectedSource::left_out();
  all.insert(all.end(), of_heads_.begin(), of_heads_.end());
  return all;
}

at::Tensor AdaptedSource::base_of(std::size_t index) const {
  const auto found = changes_.find(index);
  if (found != changes_.end() && found->second.like != kNone) return base_of(found->second.like);
  return SelectedSource::tensor(index);
}

at::Tensor AdaptedSource::tensor(std::size_t index) const {
  const auto found = changes_.find(index);
  if (found == changes_.end()) return SelectedSource::tensor(index);
  const Change& change = found->second;
  at::Tensor base = change.value.defined()   ? change.value
                    : change.is_like_changed ? tensor(change.like)
                                             : base_of(index);
  if (!change.rows.empty()) base = base.to(at::kFloat).clone();
  for (const auto& [begin, rows] : change.rows) base.narrow(0, begin, rows.size(0)).copy_(rows);
  base = merged(base, change.layers);
  for (const at::Tensor& bias : change.added) base = base + bias;
  return base;
}

at::Tensor AdaptedSource::head(std::size_t index, int64_t axis, int64_t count) const {
  if (!is_changed(index)) return SelectedSource::head(index, axis, count);
  return tensor(index).narrow(axis, 0, count);
}

void AdaptedSource::copy_to(std::size_t index, const at::Tensor& target) const {
  const auto found = changes_.find(index);
  if (found == changes_.end()) return SelectedSource::copy_to(index, target);
  const Change& change = found->second;
  const auto is_plain = [](const Placed& one) {
    return !one.layer.magnitude.defined() && !one.layer.is_turned && one.begin < 0;
  };
  const bool is_sum = change.added.empty() && !change.value.defined() && change.rows.empty() &&
                      change.like == kNone && change.layers.size() == 1 &&
                      is_plain(change.layers.front()) && target.scalar_type() == at::kFloat &&
                      target.is_cpu();
  if (!is_sum) {
    target.copy_(tensor(index));
    return;
  }
  SelectedSource::copy_to(index, target);  // in place, without another copy of the weight
  const auto& [layer, scale, begin] = change.layers.front();
  at::Tensor(target).addmm_(layer.b, layer.a, 1.0, layer.scale * scale);
}

bool AdaptedSource::equal(std::size_t a, std::size_t b) const {
  if (!is_changed(a) && !is_changed(b)) return SelectedSource::equal(a, b);
  return at::equal(tensor(a), tensor(b));
}

void AdaptedSource::check_values(std::size_t index) const {
  if (!is_changed(index)) SelectedSource::check_values(index);
}

}  // namespace posenc::lora
