// posenc-budget: all that names the tensors of one encoder

#include "models/encoder/names.h"

#include <set>
#include <span>
#include <tuple>
#include <utility>

#include "io/base/text.h"
#include "io/load/key_map.h"
#include "models/encoder/parts.h"
#include "models/hf/setting_names.h"

namespace posenc {
namespace {

using Part = const char* EncoderLayerKeys::*;

bool is_named(const char* name) { return *name != '\0'; }

int64_t inner_layers(const EncoderConfig& config) {
  return config.settings.whole("inner_group_num", 1, INT64_MAX);
}

// The prefix of layer `index` in a file. ALBERT numbers the layers of each group.
std::string layer_prefix(const EncoderLayerKeys& keys, const EncoderConfig& config, int64_t index) {
  if (!config.structure.shares_layers) return io::fill_pattern(keys.layer, {std::to_string(index)});
  const int64_t inner = inner_layers(config);
  const std::string group = std::to_string(index / inner), layer = std::to_string(index % inner);
  return io::fill_pattern(keys.layer, {group, layer});
}

// Old files have gamma and beta, as TensorFlow calls them. Messages have the first of two names.
void add_norm(KeyMap& map, const std::string& from, const std::string& to) {
  map.emplace_back(from + ".weight", to + ".weight");
  map.emplace_back(from + ".bias", to + ".bias");
  map.emplace_back(from + ".gamma", to + ".weight");
  map.emplace_back(from + ".beta", to + ".bias");
}

// `from` and `to` may contain asterisks. Names with the same ending are distinguished by their
// order: those of the attention come first.
void add_layer(KeyMap& map, const EncoderLayerKeys& keys, const std::string& from,
               const std::string& to) {
  const auto in_file = [&](Part part) { return from + keys.*part; };
  const auto tensors = [&](Part part) { return in_file(part) + ".*"; };
  // The weight and the bias, or the rows of them that the file has in several tensors.
  const auto add = [&](std::initializer_list<Part> parts, const std::string& name) {
    std::vector<KeySource> sources;
    for (const Part part : parts) {
      if (is_named(keys.*part)) sources.emplace_back(tensors(part));
    }
    map.emplace_back(KeySources(std::move(sources)), to + name);
  };
  add({&EncoderLayerKeys::query, &EncoderLayerKeys::key, &EncoderLayerKeys::value},
      "self_attn.in_proj_*");
  add({&EncoderLayerKeys::out}, "self_attn.out_proj.*");
  if (keys.gate_first) {
    map.emplace_back(KeySource::swapped_halves(tensors(&EncoderLayerKeys::wide)), to + "linear1.*");
  } else {
    add({&EncoderLayerKeys::wide, &EncoderLayerKeys::gate}, "linear1.*");
  }
  add({&EncoderLayerKeys::narrow}, "linear2.*");
  const std::pair<Part, const char*> norms[] = {{&EncoderLayerKeys::norm1, "norm1"},
                                                {&EncoderLayerKeys::norm2, "norm2"},
                                                {&EncoderLayerKeys::post_norm1, "post_norm1"},
                                                {&EncoderLayerKeys::post_norm2, "post_norm2"},
                                                {&EncoderLayerKeys::q_norm, "self_attn.q_norm"},
                                                {&EncoderLayerKeys::k_norm, "self_attn.k_norm"}};
  for (const auto& [part, name] : norms) {
    if (is_named(keys.*part)) add_norm(map, in_file(part), to + name);
  }
  map.emplace_back(from + "layer_scale*", to + "layer_scale*");
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
    if (!config.structure.shares_layers) {
      add_layer(map, keys, keys.layer, "encoder.layers.*.");
      continue;
    }
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      add_layer(map, keys, layer_prefix(keys, config, i),
                "encoder.layers." + std::to_string(i) + ".");
    }
  }
}

// The embeddings' modules are named by the last component of their names in the file.
void add_embeddings(KeyMap& map, const EncoderConfig& config) {
  if (config.options.patches()) {  // its names are those of the files
    // Models for masked images have a mask token, which encoding does not need.
    if (!config.options.patches()->mask_token()) map.emplace_back("embeddings.mask_token", "");
    if (is_named(config.structure.patch_norm)) {
      add_norm(map, config.structure.patch_norm,
               "embeddings." + config.options.patches()->names().norm);
    }
    map.emplace_back("embeddings.position_ids", "");  // a buffer of older releases
    return;
  }
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
    case encoder::Pooling::NormOfFirst: add_norm(map, own, "pooler_norm"); break;
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
  KeyMap map;
  if (is_named(structure.dropped)) map.emplace_back(structure.dropped, "");
  add_embeddings(map, config);
  add_layers(map, config, layouts);
  if (is_named(structure.last_norm)) add_norm(map, structure.last_norm, "encoder.norm");
  if (is_named(structure.relative_bias)) {
    map.emplace_back(structure.relative_bias, "relative_attention_bias.weight");
  }
  add_pooling(map, config);
  return map;
}

std::string first_component(const std::string& name) { return name.substr(0, name.find('.')); }

// The first components of the names that a map knows, of which those of a head are none.
std::set<std::string> components_of(const KeyMap& map, const EncoderConfig& config) {
  std::set<std::string> known = {"embeddings"};
  if (is_named(config.structure.shared)) known.insert(first_component(config.structure.shared));
  for (const auto& rule : map) {
    for (const auto& source : rule.sources.items) known.insert(first_component(source.pattern()));
  }
  return known;
}

// A head without a prefix around the encoder: BertForMaskedLM's `cls.*` beside `encoder.*`.
void drop_heads(KeyMap& map, const EncoderConfig& config, const io::TensorSource& source,
                const std::string& prefix) {
  for (const std::string own : {config.model.prefix, config.model.old_prefix}) {
    if (!own.empty() && prefix.ends_with(own)) return;
  }
  const std::set<std::string> known = components_of(map, config);
  std::set<std::string> heads;
  for (const auto& entry : source.entries()) {
    if (entry.name.rfind(prefix, 0) != 0) continue;
    const std::string component = first_component(entry.name.substr(prefix.size()));
    if (known.count(component) == 0) heads.insert(component);
  }
  for (const std::string& head : heads) {
    map.emplace_back(head, "");
    map.emplace_back(head + ".*", "");
  }
}

// For a file whose names have another prefix.
WeightsError missing_first_layer(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& given) {
  const auto wanted = encoder_layer_names(config, "", 0, &EncoderLayerKeys::query);
  for (const auto& entry : source.entries()) {
    for (const auto& name : wanted) {
      if (!entry.name.ends_with("." + name)) continue;
      std::string prefix = entry.name.substr(0, entry.name.size() - name.size());
      const std::string own = config.model.prefix;
      if (!own.empty() && prefix.ends_with(own)) prefix.erase(prefix.size() - own.size());
      return WeightsError(WeightsErrorCode::MissingKeys,
                          "is not in the file, which has " + io::in_quotes(entry.name),
                          "LoadOptions().prefix(\"" + prefix + "\") reads it")
          .in_tensor(given + wanted.front());
    }
  }
  return missing_tensor(given + wanted.front());
}

void add_pooler_size(std::vector<StatedSize>& sizes, const EncoderConfig& config,
                     const std::string& prefix) {
  const auto pooler = encoder_pooler_names(config, prefix);
  if (pooler.empty() || config.options.pooling() == encoder::Pooling::Attention) return;
  const auto& options = config.options;
  const char* own_setting = config.options.patches() ? "pooler_output_size" : "projection_size";
  const char* setting = config.settings.has(own_setting) ? own_setting : "hidden_size";
  sizes.push_back({config.settings.key(setting),
                   options.pooler_dim().value_or(options.encoder().layer().d_model()),
                   {pooler.front()},
                   0});
}

// `embeddings` is the prefix of the embeddings' tensors.
void add_patch_sizes(std::vector<StatedSize>& sizes, const EncoderConfig& config,
                     const std::string& embeddings) {
  const VisionEmbeddingsOptions& options = *config.options.patches();
  const std::vector<std::string> projection = {embeddings + options.names().patches + ".weight"};
  sizes.push_back({config.settings.key("hidden_size"), options.d_model(), projection, 0, 4});
  sizes.push_back({"num_channels", options.num_channels(), projection, 1, 4});
  sizes.push_back({"patch_size", options.patch_height(), projection, 2, 4});
  sizes.push_back({"patch_size", options.patch_width(), projection, 3, 4});
  const int64_t patches = (options.image_height() / options.patch_height()) *
                          (options.image_width() / options.patch_width());
  const bool is_module = options.position_table() == vision::PositionTable::Embedding;
  sizes.push_back({"(image_size / patch_size)^2 + " + std::to_string(options.position_prefix()),
                   options.position_prefix() + patches,
                   {embeddings + options.names().positions + (is_module ? ".weight" : "")},
                   is_module ? 0U : 1U,
                   is_module ? 2U : 3U});
}

}  // namespace

std::vector<std::string> encoder_layer_names(const EncoderConfig& config, const std::string& prefix,
                                             int64_t index, Part part) {
  std::vector<std::string> names;
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    names.push_back(prefix + layer_prefix(keys, config, index) + keys.*part + ".weight");
  }
  return names;
}

std::string encoder_prefix(const EncoderConfig& config, const io::TensorSource& source,
                           const std::string& given) {
  const hf::ModelType& model = config.model;
  for (const std::string& prefix : {given + model.prefix, given + model.old_prefix, given}) {
    for (const auto& name : encoder_layer_names(config, prefix, 0, &EncoderLayerKeys::query)) {
      if (find_entry(source, name) != nullptr) return prefix;
    }
  }
  throw missing_first_layer(config, source, given);
}

int64_t encoder_layout(const EncoderConfig& config, const io::TensorSource& source,
                       const std::string& prefix) {
  const auto names = encoder_layer_names(config, prefix, 0, &EncoderLayerKeys::query);
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (find_entry(source, names[i]) != nullptr) return static_cast<int64_t>(i);
  }
  return 0;
}

std::vector<std::string> encoder_pooler_names(const EncoderConfig& config,
                                              const std::string& prefix) {
  if (config.options.pooling() == encoder::Pooling::Attention)
    return {prefix + config.structure.pooler + ".probe"};
  if (!has_pooler(config.options)) return {};
  return {prefix + config.structure.pooler + ".weight", prefix + config.structure.pooler + ".bias"};
}

std::vector<StatedSize> encoder_stated_sizes(const EncoderConfig& config,
                                             const std::string& prefix) {
  const auto& structure = config.structure;
  const auto& layer = config.options.encoder().layer();
  // The rows of gates may be in a tensor of their own or in the same, but columns are columns.
  const bool is_gated = layer.feed_forward() == FeedForward::Gated;
  const auto first = encoder_layer_names(
      config, prefix, 0, is_gated ? &EncoderLayerKeys::narrow : &EncoderLayerKeys::wide);
  const auto key = [&](const std::string& name) { return config.settings.key(name); };
  const std::string wide = config.settings.name_of(hf::kFeedForward);
  const std::string factor = wide == hf::kFeedForwardRatio ? " * " + key("hidden_size") : "";
  const size_t inner = is_gated ? 1 : 0;
  std::vector<StatedSize> sizes = {{wide + factor, layer.d_ff(), first, inner},
                                   {key("hidden_size"), layer.d_model(), first, 1 - inner}};
  if (layer.head_dim()) {
    sizes.push_back({key("num_attention_heads") + " * head_dim",
                     layer.num_heads() * *layer.head_dim(),
                     encoder_layer_names(config, prefix, 0, &EncoderLayerKeys::out), 1});
  }
  add_pooler_size(sizes, config, prefix);
  if (config.options.patches()) {
    add_patch_sizes(sizes, config, prefix + "embeddings.");
    return sizes;
  }
  if (is_named(structure.relative_bias)) {
    sizes.push_back({"relative_attention_num_buckets",
                     config.options.relative_rows().value_or(config.options.relative_buckets()),
                     {prefix + structure.relative_bias},
                     0});
  }
  const EncoderEmbeddingsOptions& embeddings = *config.options.embeddings();
  const auto in_file = [&](const std::string& name) {
    return prefix + structure.embeddings + name + ".weight";
  };
  std::vector<std::string> tokens = {in_file(embeddings.names().tokens)};
  if (is_named(structure.shared)) tokens.push_back(prefix + structure.shared);
  const char* narrow = config.settings.name_of(hf::kTableWidth);
  sizes.push_back({key("vocab_size"), embeddings.vocab_size(), tokens, 0});
  sizes.push_back({key(narrow ? narrow : "hidden_size"),
                   embeddings.embedding_dim().value_or(embeddings.d_model()), tokens, 1});
  const int64_t offset = embeddings.position_offset();
  const std::string plus = offset == 0 ? "" : " + " + std::to_string(offset);
  if (embeddings.position_ids() != embeddings::PositionIds::None) {
    sizes.push_back({key("max_position_embeddings") + plus,
                     embeddings.position_rows(),
                     {in_file(embeddings.names().positions)},
                     0});
  }
  const std::tuple<const char*, int64_t, std::string> types[] = {
      {"type_vocab_size", embeddings.type_vocab_size(), embeddings.names().token_types},
      {"task_type_vocab_size", embeddings.task_type_vocab_size(), embeddings.names().task_types}};
  for (const auto& [setting, rows, table] : types) {
    if (rows > 0) sizes.push_back({setting, rows, {in_file(table)}, 0});
  }
  return sizes;
}

LoadOptions encoder_load_options(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& prefix) {
  KeyMap map = key_map_of(config, config.structure.keys);
  drop_heads(map, config, source, prefix);
  std::vector<int64_t> counts = {config.options.encoder().num_layers()};
  if (config.structure.shares_layers) {
    const int64_t inner = inner_layers(config);
    counts = {counts.front() / inner, inner};
  }
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    drop_later_layers(map, source, prefix, keys.layer, counts);
  }
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
  if (is_named(config.structure.shared)) {
    const std::string tokens = config.options.embeddings()->names().tokens;
    names.tied = {{config.structure.shared, "embeddings." + tokens + ".weight"}};
  }
  if (!has_qkv_bias(config)) {  // zeros then
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      names.optional.insert("encoder.layers." + std::to_string(i) + ".self_attn.in_proj_bias");
    }
  }
  return names;
}

}  // namespace posenc
