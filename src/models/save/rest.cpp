#include "models/save/tensors.h"

#include <algorithm>
#include <charconv>
#include <set>

#include "models/config/model_folder.h"
#include "models/encoder/names.h"
#include "weights/load/key_map.h"
#include "weights/load/mapped_source.h"

namespace posenc {
namespace {

constexpr const char* kSaveRest = "save_pretrained";

// Whether a tensor that a key map drops is that of a layer, which the encoder has or is without.
bool is_of_layer(std::string_view name, const EncoderConfig& config) {
  KeyMap layers;
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    for (const std::string& layer : encoder_layer_patterns(keys))
      layers.emplace_back(layer + "*", "");
  }
  return io::find_rule(name, layers).has_value();
}

// The number of the layer that a tensor is in; nothing for a tensor of no layer.
std::optional<int64_t> layer_of(std::string_view name) {
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    int64_t number = 0;
    const char* const last = name.data() + end;
    const auto [stop, error] = std::from_chars(name.data() + begin, last, number);
    if (error == std::errc() && stop == last) return number;
    begin = end + 1;
  }
  return std::nullopt;
}

// Whether a tensor of a layer is one that the encoder does not have, as LUKE's of entities.
bool is_beside_encoder(std::string_view name, const EncoderConfig& config) {
  const auto layer = layer_of(name);
  if (!layer || *layer >= config.options.encoder().num_layers()) return false;
  KeyMap map = encoder_dropped_map(config.structure);
  drop_unused(map, words_in(config.structure.in_layers));
  return io::find_rule(name, map).has_value();
}

std::string first_component(const std::string& name) { return name.substr(0, name.find('.')); }

// The first components of the names that a map knows, of which those of a head are none.
std::set<std::string> components_of(const KeyMap& map, const EncoderConfig& config) {
  std::set<std::string> known = {"embeddings"};
  if (*config.structure.shared != '\0') known.insert(first_component(config.structure.shared));
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

// The entries of the source that are the encoder's own.
std::set<std::size_t> own_entries(const EncoderConfig& config, const io::TensorSource& source,
                                  const std::string& prefix) {
  std::set<std::size_t> own;
  LoadOptions load = encoder_load_options(config, source, prefix);
  drop_heads(load.key_map(), config, source, prefix);
  const io::MappedSource mapped(source, load);
  for (const auto& entry : mapped.entries()) {
    for (const auto& part : entry.parts) {
      if (part.index == io::MappedSource::kAbsent) continue;
      const std::string_view name = std::string_view(part.name).substr(prefix.size());
      const bool rotates = *config.structure.frequencies != '\0';
      const bool is_of_encoder = entry.name.has_value() || (rotates && name.ends_with(".inv_freq"));
      const bool is_own_part = is_of_layer(name, config) && !is_beside_encoder(name, config);
      if (is_of_encoder || is_own_part) own.insert(part.index);
    }
  }
  return own;
}

// The table of tokens under any of its names; null for an encoder of images.
const io::TensorSource::Entry* token_table(const EncoderConfig& config,
                                           const io::TensorSource& source,
                                           const std::string& prefix) {
  for (const std::string& name : encoder_token_table_names(config, prefix)) {
    if (const auto* entry = find_entry(source, name)) return entry;
  }
  return nullptr;
}

}  // namespace

RestOfFolder rest_of_folder(const EncoderConfig& config, const std::string& folder) {
  const std::string path = weights_in(kSaveRest, folder);
  return io::in_context(kSaveRest, path, [&] {
    const io::FileSource source(path);
    const std::string prefix = encoder_prefix(config, source, "");
    RestOfFolder rest;
    rest.origin.prefix = prefix;
    rest.origin.layout = encoder_layout(config, source, prefix);
    const std::set<std::size_t> own = own_entries(config, source, prefix);
    const auto* const tokens = token_table(config, source, prefix);
    const bool ties = config.settings.flag("tie_word_embeddings", true);
    const auto& entries = source.entries();
    for (std::size_t i = 0; i < entries.size(); ++i) {
      if (own.count(i) != 0) continue;
      if (entries[i].is_unreadable) io::refuse_unreadable_entry(entries[i]);
      if (!entries[i].is_tensor) continue;
      const bool is_tied = ties && tokens != nullptr && &entries[i] != tokens &&
                           entries[i].sizes == tokens->sizes &&
                           source.equal(i, static_cast<std::size_t>(tokens - entries.data()));
      if (is_tied) continue;
      const at::Tensor tensor = source.tensor(i);
      rest.tensors.insert(entries[i].name,
                          tensor.is_floating_point() ? tensor.to(at::kFloat) : tensor);
    }
    return rest;
  });
}

}  // namespace posenc
