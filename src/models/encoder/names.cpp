// posenc-budget: all that names the tensors of one encoder

#include "models/encoder/names.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <sstream>
#include <utility>

#include "base/text.h"
#include "models/encoder/parts.h"
#include "models/types/model_types.h"
#include "weights/load/key_map.h"

namespace posenc {
namespace {

using Part = const char* EncoderLayerKeys::*;

bool is_named(const char* name) { return *name != '\0'; }

// A name of layer `index` in a file.
std::string layer_name(const std::string& name, const EncoderConfig& config, int64_t index) {
  std::vector<int64_t> numbers = {index};
  if (config.structure.numbering != nullptr)
    numbers = config.structure.numbering->numbers(config, index);
  std::vector<std::string> texts;
  for (const int64_t number : numbers) texts.push_back(std::to_string(number));
  return io::fill_pattern(name, {texts.begin(), texts.end()});
}

// `from` and `to` may contain asterisks. Names with the same ending are distinguished by their
// order: those of the attention come first.
void add_layer(KeyMap& map, const EncoderLayerKeys& keys, const EncoderConfig& config,
               const std::string& from, const std::string& to) {
  const EncoderStructure& structure = config.structure;
  const LayerNames names = {map, config, keys, from, to};
  if (structure.layer_names != nullptr) structure.layer_names(names);
  const std::string attention = structure.attention, network = structure.network;
  names.add({keys.query, keys.key, keys.value}, attention + "in_proj_*");
  names.add({keys.out}, attention + "out_proj.*");
  names.add({keys.wide, keys.gate}, network + "linear1.*");
  names.add({keys.narrow}, network + "linear2.*");
  const std::pair<const char*, const char*> norms[] = {{keys.norm1, "norm1"},
                                                       {keys.norm2, structure.norm2},
                                                       {keys.post_norm1, "post_norm1"},
                                                       {keys.post_norm2, "post_norm2"},
                                                       {keys.q_norm, "self_attn.q_norm"},
                                                       {keys.k_norm, "self_attn.k_norm"}};
  for (const auto& [in_file, name] : norms) {
    if (is_named(in_file)) add_norm(map, from + in_file, to + name);
  }
}

// Without them, transformers ignores the biases of query, key and value that a file has.
bool has_qkv_bias(const EncoderConfig& config) {
  return !config.options.patches() || !config.settings.is_known("qkv_bias") ||
         config.settings.flag("qkv_bias");
}

void add_layers(KeyMap& map, const EncoderConfig& config,
                std::span<const EncoderLayerKeys> layouts) {
  for (const EncoderLayerKeys& keys : layouts) {
    if (!has_qkv_bias(config)) {
      for (const char* part : {keys.query, keys.key, keys.value}) {
        map.emplace_back(keys.layer + std::string(part) + ".bias", "");
      }
    }
    const std::string layer = keys.layer, own = config.structure.own_layers;
    if (std::count(layer.begin(), layer.end(), '*') <= std::count(own.begin(), own.end(), '*')) {
      add_layer(map, keys, config, layer, own);
      continue;
    }
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      add_layer(map, keys, config, layer_name(layer, config, i),
                io::fill_pattern(own, {std::to_string(i)}));
    }
  }
}

// The embeddings' modules are named by the last component of their names in the file.
void add_embeddings(KeyMap& map, const EncoderConfig& config) {
  if (config.options.patches()) {  // its names are those of the files
    const VisionEmbeddingsOptions& patches = *config.options.patches();
    // Models for masked images have a mask token, which encoding does not need.
    if (!patches.mask_token()) drop_unused(map, {"embeddings.mask_token"});
    if (is_named(config.structure.patch_norm))
      add_norm(map, config.structure.patch_norm, "embeddings." + patches.names().norm);
    map.emplace_back("embeddings.position_ids", "");  // a buffer of older releases
    return;
  }
  if (!config.options.embeddings()) return;  // features have none
  const auto& structure = config.structure;
  const embeddings::Names& names = config.options.embeddings()->names();
  const std::string to = "embeddings.";
  add_norm(map, structure.embeddings + names.norm, to + names.norm);
  if (is_named(structure.norm)) add_norm(map, structure.norm, to + names.norm);
  if (structure.embeddings != to) {
    for (const std::string& name : {names.tokens, names.positions, names.token_types}) {
      map.emplace_back(structure.embeddings + name + ".*", to + name + ".*");
    }
  }
  if (is_named(structure.projection)) {
    map.emplace_back(structure.projection + std::string(".*"), to + names.projection + ".*");
  }
}

void add_pooling(KeyMap& map, const EncoderConfig& config) {
  const std::string own = config.structure.pooler;
  switch (config.options.pooling()) {
    case encoder::Pooling::NormOfFirst:
    case encoder::Pooling::NormOfMean: add_norm(map, own, "pooler_norm"); break;
    case encoder::Pooling::Attention:
      map.emplace_back(own + ".mlp.fc1.*", "attention_pooler.linear1.*");
      map.emplace_back(own + ".mlp.fc2.*", "attention_pooler.linear2.*");
      map.emplace_back(own + ".*", "attention_pooler.*");
      break;
    default: map.emplace_back(own + ".*", has_pooler(config.options) ? "pooler.*" : "");
  }
}

KeyMap key_map_of(const EncoderConfig& config, std::span<const EncoderLayerKeys> layouts) {
  const auto& structure = config.structure;
  KeyMap map = encoder_dropped_map(structure);
  if (structure.names != nullptr) structure.names(map, config);
  add_embeddings(map, config);
  add_layers(map, config, layouts);
  const auto& windows = config.options.windows();
  const bool has_norm = windows ? windows->norm() : config.options.encoder().norm();
  if (is_named(structure.last_norm) && has_norm) {
    add_norm(map, structure.last_norm, "encoder.norm");
  } else if (is_named(structure.last_norm)) {  // BEiT, whose pooler has it instead
    drop_unused(map, {structure.last_norm + std::string(".*")});
  }
  if (is_named(structure.relative_bias)) {
    const TransformerEncoderOptions& stack = config.options.encoder();
    const std::string to = stack.layer().relative() ? "encoder.layers.*.self_attn." : "encoder.";
    map.emplace_back(structure.relative_bias, to + "relative_attention_bias.weight");
  }
  add_pooling(map, config);
  return map;
}

// For a file whose names have another prefix.
WeightsError missing_first_layer(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& given) {
  const auto expected = encoder_layer_names(config, "", 0, first_part_of_layer(config));
  for (const auto& entry : source.entries()) {
    for (const auto& name : expected) {
      if (!entry.name.ends_with("." + name)) continue;
      std::string prefix = entry.name.substr(0, entry.name.size() - name.size());
      const std::string own = config.model.prefix;
      if (!own.empty() && prefix.ends_with(own)) prefix.erase(prefix.size() - own.size());
      return WeightsError(WeightsErrorCode::MissingKeys,
                          "is not in the file, which has " + io::in_quotes(entry.name),
                          "LoadOptions().prefix(\"" + prefix + "\") reads it")
          .in_tensor(given + expected.front());
    }
  }
  return missing_tensor(source, given + expected.front());
}

}  // namespace

void LayerNames::add(const std::vector<std::string>& parts, const std::string& name) const {
  std::vector<KeySource> sources;
  for (const std::string& part : parts) {
    if (!part.empty()) sources.emplace_back(from + part + ".*");
  }
  if (!sources.empty()) map.emplace_back(KeySources(std::move(sources)), to + name);
}

void name_packed(const LayerNames& names,
                 c10::function_ref<KeySource(const std::string& in_file)> change) {
  for (const std::string part : {"weight", "bias"}) {
    names.map.emplace_back(change(names.from + names.keys.query + "." + part),
                           names.to + "self_attn.in_proj_" + part);
  }
}

void name_heads_of_layer(const LayerNames& names) {
  const int64_t heads = names.config.options.encoder().layer().num_heads();
  name_packed(
      names, [&](const std::string& in_file) { return KeySource::heads_to_parts(in_file, heads); });
}

void add_norm(KeyMap& map, const std::string& from, const std::string& to) {
  // Messages have the first of two names.
  map.emplace_back(from + ".weight", to + ".weight");
  map.emplace_back(from + ".bias", to + ".bias");
  map.emplace_back(from + ".gamma", to + ".weight");
  map.emplace_back(from + ".beta", to + ".bias");
}

void drop_unused(KeyMap& map, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) map.emplace_back(pattern, "");
}

void drop_absent_positions(KeyMap& map, const EncoderConfig& config) {
  const VisionEmbeddingsOptions& patches = *config.options.patches();
  if (patches.position_table() == vision::PositionTable::None)
    drop_unused(map, {"embeddings." + patches.names().positions});
}

std::vector<std::string> words_in(const char* text) {
  std::istringstream words(text);
  return {std::istream_iterator<std::string>(words), {}};
}

KeyMap encoder_dropped_map(const EncoderStructure& structure) {
  KeyMap map;
  drop_unused(map, words_in(structure.dropped));
  return map;
}

const char* EncoderLayerKeys::*first_part_of_layer(const EncoderConfig& config) {
  const bool attends = is_named(config.structure.keys.front().query);
  return attends ? &EncoderLayerKeys::query : &EncoderLayerKeys::wide;
}

std::set<std::string> encoder_layer_patterns(const EncoderLayerKeys& keys) {
  if (is_named(keys.layer)) return {keys.layer};
  std::set<std::string> patterns;
  for (const std::string name : {keys.query, keys.wide, keys.norm1, keys.norm2}) {
    patterns.insert(name.substr(0, name.find('*') + 1) + ".");
  }
  return patterns;
}

std::vector<std::string> encoder_layer_names(const EncoderConfig& config, const std::string& prefix,
                                             int64_t index, Part part) {
  std::vector<std::string> names;
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    names.push_back(prefix + layer_name(keys.layer + std::string(keys.*part), config, index) +
                    ".weight");
  }
  return names;
}

std::string encoder_prefix(const EncoderConfig& config, const io::TensorSource& source,
                           const std::string& given) {
  const hf::ModelType& model = config.model;
  for (const std::string& prefix : {given + model.prefix, given + model.old_prefix, given}) {
    for (const auto& name : encoder_layer_names(config, prefix, 0, first_part_of_layer(config))) {
      if (find_entry(source, name) != nullptr) return prefix;
    }
  }
  throw missing_first_layer(config, source, given);
}

int64_t encoder_layout(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix) {
  const auto names = encoder_layer_names(config, prefix, 0, first_part_of_layer(config));
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (find_entry(source, names[i]) != nullptr) return static_cast<int64_t>(i);
  }
  return 0;
}

std::vector<std::string> encoder_pooler_names(const EncoderConfig& config,
                                              const std::string& prefix) {
  if (config.options.pooling() == encoder::Pooling::Attention)
    return {prefix + config.structure.pooler + ".probe"};
  const bool has_norm = config.options.pooling() == encoder::Pooling::NormOfMean;
  if (!has_pooler(config.options) && !has_norm) return {};
  return {prefix + config.structure.pooler + ".weight", prefix + config.structure.pooler + ".bias"};
}

std::vector<std::string> encoder_token_table_names(const EncoderConfig& config,
                                                   const std::string& prefix) {
  if (!config.options.embeddings()) return {};
  const std::string own = config.options.embeddings()->names().tokens;
  std::vector<std::string> names = {prefix + config.structure.embeddings + own + ".weight"};
  if (is_named(config.structure.shared)) names.push_back(prefix + config.structure.shared);
  return names;
}

KeyMap encoder_key_map(const EncoderConfig& config) {
  return key_map_of(config, config.structure.keys);
}

KeyMap encoder_later_layers(const EncoderConfig& config, const io::TensorSource& source,
                            const std::string& prefix) {
  KeyMap map;
  if (config.structure.numbering != nullptr) {
    config.structure.numbering->drop_later(map, config, source, prefix);
    return map;
  }
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    for (const std::string& layer : encoder_layer_patterns(keys))
      drop_later_layers(map, source, prefix, layer, {config.options.encoder().num_layers()});
  }
  return map;
}

LoadOptions encoder_load_options(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& prefix, bool drops_later) {
  KeyMap map;
  if (drops_later) map = encoder_later_layers(config, source, prefix);
  const std::string shared = config.structure.shared;
  if (!shared.empty() && find_entry(source, encoder_token_table_names(config, prefix).front()))
    map.emplace_back(shared, "");  // not the encoder's, which has its own
  for (KeyRule& rule : encoder_key_map(config)) map.push_back(std::move(rule));
  return LoadOptions().prefix(prefix).cast(true).key_map(std::move(map));
}

LoadOptions encoder_save_options(const EncoderConfig& config) {
  const encoder::Origin& origin = config.options.origin();
  const auto layout = config.structure.keys.subspan(static_cast<std::size_t>(origin.layout), 1);
  KeyMap map;
  if (is_named(config.structure.norm) && origin.layout == config.structure.original_keys) {
    add_norm(map, config.structure.norm, "embeddings." + config.options.embeddings()->names().norm);
  }
  for (KeyRule& rule : key_map_of(config, layout)) map.push_back(std::move(rule));
  return LoadOptions().prefix(origin.prefix).key_map(std::move(map));
}

io::FormatNames encoder_format_names(const EncoderConfig& config) {
  io::FormatNames names;
  names.is_new = true;
  if (is_named(config.structure.shared)) {
    const std::string tokens = config.options.embeddings()->names().tokens;
    names.tied = {{config.structure.shared, "embeddings." + tokens + ".weight"}};
  }
  if (!has_qkv_bias(config) && !config.options.windows()) {  // zeros then
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      names.optional.insert("encoder.layers." + std::to_string(i) + ".self_attn.in_proj_bias");
    }
  }
  return names;
}

std::unique_ptr<io::LoadPlan> encoder_plan(const char* caller, const std::string& folder,
                                           const EncoderConfig& config,
                                           const io::TensorSource& source,
                                           const LoadOptions& load) {
  const auto make = [&](const Settings* changed) {
    EncoderOptions options = config.options;
    if (changed != nullptr) options = encoder_options_of(*changed, config.model);
    options.pooling(config.options.pooling());
    return config.settings.placing_errors([&] { return Encoder(options).ptr(); });
  };
  return plan_of({caller, folder, &config.settings, make}, source, load,
                 encoder_format_names(config));
}

std::vector<AbsentBias> absent_biases(const EncoderConfig& config, const std::string& prefix) {
  std::vector<AbsentBias> absent;
  const auto& layer = config.options.encoder().layer();
  const auto width_of = [&](int64_t i) {
    if (!config.options.windows()) return layer.d_model();
    const auto [stage, own] = config.options.windows()->locate_layer(i);
    return config.options.windows()
        ->stages()[static_cast<std::size_t>(stage)]
        .layers()[static_cast<std::size_t>(own)]
        .layer()
        .d_model();
  };
  const std::pair<bool, const char * EncoderLayerKeys::*> biases[] = {
      {layer.query_bias(), &EncoderLayerKeys::query},
      {layer.key_bias(), &EncoderLayerKeys::key},
      {layer.value_bias(), &EncoderLayerKeys::value}};
  const auto layout = static_cast<std::size_t>(config.options.origin().layout);
  for (const auto& [is_there, part] : biases) {
    if (is_there) continue;
    const std::string whole = config.structure.keys[layout].k_bias;
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      if (!whole.empty()) {
        const std::string of_layers = config.structure.keys[layout].layer + whole;
        absent.push_back({prefix + io::fill_pattern(of_layers, {std::to_string(i)}), width_of(i)});
        continue;
      }
      const std::string weight = encoder_layer_names(config, prefix, i, part)[layout];
      absent.push_back({weight.substr(0, weight.rfind("weight")) + "bias", width_of(i)});
    }
  }
  return absent;
}

}  // namespace posenc
