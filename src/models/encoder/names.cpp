// posenc-budget: all that names the tensors of one encoder

#include "models/encoder/names.h"

#include <algorithm>
#include <set>
#include <span>
#include <sstream>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "models/encoder/parts.h"
#include "models/types/model_types.h"
#include "weights/load/key_map.h"

namespace posenc {
namespace {

using Part = const char* EncoderLayerKeys::*;

bool is_named(const char* name) { return *name != '\0'; }

// Whether the names of layers have the number of a stage.
bool has_stages(const EncoderConfig& config) {
  const std::string layer = config.structure.keys.front().layer;
  return config.options.windows() && std::count(layer.begin(), layer.end(), '*') == 2;
}

int64_t inner_layers(const EncoderConfig& config) {
  return config.settings.integer("inner_group_num", 1, INT64_MAX);
}

// A name of layer `index` in a file. ALBERT numbers the layers of each group, Swin those of each
// stage.
std::string layer_name(const std::string& name, const EncoderConfig& config, int64_t index) {
  if (has_stages(config)) {
    const auto [stage, layer] = config.options.windows()->locate_layer(index);
    return io::fill_pattern(name, {std::to_string(stage), std::to_string(layer)});
  }
  if (!config.structure.shares_layers) return io::fill_pattern(name, {std::to_string(index)});
  const int64_t inner = inner_layers(config);
  const std::string group = std::to_string(index / inner), layer = std::to_string(index % inner);
  return io::fill_pattern(name, {group, layer});
}

// What the class has only with a switch that is off here, which transformers then ignores in a
// file.
void drop_unused(KeyMap& map, const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns) map.emplace_back(pattern, "");
}

// Old files have gamma and beta, as TensorFlow calls them. Messages have the first of two names.
void add_norm(KeyMap& map, const std::string& from, const std::string& to) {
  map.emplace_back(from + ".weight", to + ".weight");
  map.emplace_back(from + ".bias", to + ".bias");
  map.emplace_back(from + ".gamma", to + ".weight");
  map.emplace_back(from + ".beta", to + ".bias");
}

// The groups of a convolution of SqueezeBERT.
int64_t groups_of(const EncoderConfig& config, Part part) {
  const std::pair<Part, const char*> settings[] = {
      {&EncoderLayerKeys::query, "q_groups"},
      {&EncoderLayerKeys::key, "k_groups"},
      {&EncoderLayerKeys::value, "v_groups"},
      {&EncoderLayerKeys::out, "post_attention_groups"},
      {&EncoderLayerKeys::wide, "intermediate_groups"},
      {&EncoderLayerKeys::narrow, "output_groups"}};
  for (const auto& [own, setting] : settings) {
    if (own == part) return config.settings.integer(setting, 1, INT32_MAX);
  }
  return 1;
}

// What a MobileBertLayer has besides. The projections of the attention are apart where values are
// wider.
void add_bottleneck(KeyMap& map, const EncoderLayerKeys& keys, const EncoderConfig& config,
                    const std::string& from, const std::string& to) {
  const std::pair<const char*, const char*> projections[] = {{"bottleneck.input", "input"},
                                                             {"bottleneck.attention", "shared"},
                                                             {"output.bottleneck", "output"}};
  for (const auto& [in_file, own] : projections) {
    map.emplace_back(from + in_file + ".dense.*", to + own + ".*");
    add_norm(map, from + in_file + ".LayerNorm", to + own + "_norm");
  }
  map.emplace_back(from + "ffn.*.intermediate.dense.*", to + "ffn.*.linear1.*");
  map.emplace_back(from + "ffn.*.output.dense.*", to + "ffn.*.linear2.*");
  add_norm(map, from + "ffn.*.output.LayerNorm", to + "ffn.*.norm");
  const auto& layer = config.options.encoder().layer();
  const BottleneckOptions& own = *layer.bottleneck();
  if (own.use_bottleneck_attention() || own.intra_bottleneck_size() == layer.d_model()) return;
  map.emplace_back(from + keys.query + ".weight", to + "self_attn.q_proj_weight");
  map.emplace_back(from + keys.key + ".weight", to + "self_attn.k_proj_weight");
  map.emplace_back(from + keys.value + ".weight", to + "self_attn.v_proj_weight");
}

// What a ConvBertLayer has besides.
void add_convolution(KeyMap& map, const std::string& from, const std::string& to) {
  const std::string in_file = from + "attention.self.", own = to + "conv_attn.";
  const std::string separable = in_file + "key_conv_attn_layer.";
  map.emplace_back(KeySource::squeezed(separable + "depthwise.weight", 1),
                   own + "depthwise_weight");
  map.emplace_back(KeySource::squeezed(separable + "pointwise.weight", 2),
                   own + "pointwise.weight");
  map.emplace_back(KeySource::squeezed(separable + "bias", 1), own + "pointwise.bias");
  map.emplace_back(in_file + "conv_kernel_layer.*", own + "kernel.*");
  map.emplace_back(in_file + "conv_out_layer.*", own + "conv_out.*");
}

// What an encoder of DeBERTa has beside its layers. Files may have positions that it does not use.
void add_relative_positions(KeyMap& map, const EncoderConfig& config) {
  const DisentangledOptions& own = *config.options.encoder().layer().disentangled();
  if (own.relative_attention()) {
    map.emplace_back("encoder.rel_embeddings.weight", "encoder.relative_embeddings.weight");
  } else {
    drop_unused(map, {"encoder.rel_embeddings.*"});
  }
  if (own.norm_relative_embeddings()) {
    add_norm(map, "encoder.LayerNorm", "encoder.relative_embeddings.norm");
  } else {
    drop_unused(map, {"encoder.LayerNorm.*"});
  }
  if (own.conv_kernel_size() > 0) {
    map.emplace_back("encoder.conv.conv.*", "encoder.conv.conv.*");
    add_norm(map, "encoder.conv.LayerNorm", "encoder.conv.norm");
  } else {
    drop_unused(map, {"encoder.conv.*"});
  }
  const EncoderEmbeddingsOptions& embeddings = *config.options.embeddings();
  if (embeddings.position_ids() != embeddings::PositionIds::None) return;
  map.emplace_back("embeddings." + embeddings.names().positions + ".*", "");
}

// The attention of an XLNetLayer, whose projections have an axis of heads.
void add_transformer_xl(KeyMap& map, const EncoderConfig& config, const std::string& from,
                        const std::string& to) {
  const int64_t heads = config.options.encoder().layer().num_heads();
  const std::string in_file = from + "rel_attn.", own = to + "self_attn.";
  const auto rows = [&](const char* name) {
    return KeySource::heads_to_rows(in_file + name, heads);
  };
  map.emplace_back(KeySources{rows("q"), rows("k"), rows("v")}, own + "in_proj_weight");
  map.emplace_back(KeySource::heads_to_columns(in_file + "o", heads), own + "out_proj.weight");
  map.emplace_back(rows("r"), own + "position_proj.weight");
  map.emplace_back(in_file + "r_w_bias", own + "content_bias");
  map.emplace_back(in_file + "r_r_bias", own + "position_bias");
  map.emplace_back(in_file + "r_s_bias", own + "segment_bias");
  map.emplace_back(in_file + "seg_embed", own + "segment_embed");
}

// What a layer of a conformer has besides.
void add_conformer(KeyMap& map, const EncoderConfig& config, const std::string& from,
                   const std::string& to) {
  add_norm(map, from + "ffn1_layer_norm", to + "ffn1.norm");
  add_norm(map, from + "ffn2_layer_norm", to + "ffn2.norm");
  map.emplace_back(from + "ffn2.intermediate_dense.*", to + "ffn2.linear1.*");
  map.emplace_back(from + "ffn2.output_dense.*", to + "ffn2.linear2.*");
  const std::string attention = from + "self_attn.";
  if (config.options.encoder().layer().transformer_xl()) {
    map.emplace_back(attention + "linear_pos.*", to + "self_attn.position_proj.*");
    map.emplace_back(attention + "pos_bias_u", to + "self_attn.content_bias");
    map.emplace_back(attention + "pos_bias_v", to + "self_attn.position_bias");
  } else {
    drop_unused(map,
                {attention + "linear_pos.*", attention + "pos_bias_u", attention + "pos_bias_v"});
  }
  const std::string in_file = from + "conv_module.", own = to + "conv.";
  add_norm(map, in_file + "layer_norm", own + "norm");
  map.emplace_back(KeySource::squeezed(in_file + "pointwise_conv1.weight", 2),
                   own + "pointwise1.weight");
  map.emplace_back(KeySource::squeezed(in_file + "depthwise_conv.weight", 1),
                   own + "depthwise_weight");
  map.emplace_back(in_file + "batch_norm.*", own + "batch_norm.*");
  map.emplace_back(KeySource::squeezed(in_file + "pointwise_conv2.weight", 2),
                   own + "pointwise2.weight");
}

// Its feed-forward network, if it is in groups.
void add_groups(KeyMap& map, const EncoderLayerKeys& keys, const EncoderConfig& config,
                const std::string& from, const std::string& to) {
  const int64_t groups = config.settings.integer("num_groups", 1, INT32_MAX);
  if (groups == 1) return;
  map.emplace_back(KeySource::block_diagonal(from + keys.wide + ".weight", groups),
                   to + "linear1.weight");
  map.emplace_back(KeySource::block_diagonal(from + keys.narrow + ".weight", groups),
                   to + "linear2.weight");
}

// `from` and `to` may contain asterisks. Names with the same ending are distinguished by their
// order: those of the attention come first.
void add_layer(KeyMap& map, const EncoderLayerKeys& keys, const EncoderConfig& config,
               const std::string& from, const std::string& to) {
  const bool has_bottleneck = config.structure.has_bottleneck;
  if (has_bottleneck) add_bottleneck(map, keys, config, from, to);
  const bool convolves = config.structure.mixing == Mixing::Convolution;
  if (convolves) add_convolution(map, from, to);
  if (config.structure.is_transformer_xl) add_transformer_xl(map, config, from, to);
  if (config.structure.is_conformer) add_conformer(map, config, from, to);
  const std::string attention = convolves ? "conv_attn." : "self_attn.";
  const std::string network = has_bottleneck                  ? "last_ffn."
                              : config.structure.is_conformer ? "ffn1."
                                                              : "";
  const auto in_file = [&](Part part) { return from + keys.*part; };
  const auto tensors = [&](Part part) { return in_file(part) + ".*"; };
  // The weight and the bias, or the rows of them that the file has in several tensors.
  const auto add = [&](std::initializer_list<Part> parts, const std::string& name) {
    std::vector<KeySource> sources, grouped;
    for (const Part part : parts) {
      if (!is_named(keys.*part)) continue;
      sources.emplace_back(tensors(part));
      if (config.structure.is_grouped) {
        grouped.push_back(KeySource::ungrouped(in_file(part) + ".weight", groups_of(config, part)));
      }
    }
    if (sources.empty()) return;
    const std::string weight = to + name.substr(0, name.find('*')) + "weight";
    if (!grouped.empty()) map.emplace_back(KeySources(std::move(grouped)), weight);
    map.emplace_back(KeySources(std::move(sources)), to + name);
  };
  if (is_named(keys.q_bias)) {
    const int64_t heads = config.options.encoder().layer().num_heads();
    map.emplace_back(
        KeySource::heads_to_parts(in_file(&EncoderLayerKeys::query) + ".weight", heads),
        to + "self_attn.in_proj_weight");
    map.emplace_back(KeySources{from + keys.q_bias, from + keys.k_bias, from + keys.v_bias},
                     to + "self_attn.in_proj_bias");
  }
  if (keys.packs_heads) {
    const int64_t heads = config.options.encoder().layer().num_heads();
    for (const char* const part : {"weight", "bias"}) {
      const std::string own = std::string(".") + part;
      map.emplace_back(KeySource::heads_to_parts(in_file(&EncoderLayerKeys::query) + own, heads),
                       to + "self_attn.in_proj_" + part);
    }
  }
  add({&EncoderLayerKeys::query, &EncoderLayerKeys::key, &EncoderLayerKeys::value},
      attention + "in_proj_*");
  add({&EncoderLayerKeys::out}, attention + "out_proj.*");
  if (convolves) add_groups(map, keys, config, from, to);
  const bool is_gated = config.options.encoder().layer().feed_forward() == FeedForward::Gated;
  if (keys.gate_first) {
    map.emplace_back(KeySource::swapped_halves(tensors(&EncoderLayerKeys::wide)), to + "linear1.*");
  } else if (is_gated && is_named(keys.gated_wide)) {
    add({&EncoderLayerKeys::gated_wide, &EncoderLayerKeys::gate}, "linear1.*");
  } else if (is_named(keys.gated_wide)) {
    add({&EncoderLayerKeys::wide}, "linear1.*");
  } else if (is_gated && is_named(keys.activated)) {
    add({&EncoderLayerKeys::activated, &EncoderLayerKeys::wide}, "linear1.*");
  } else {
    add({&EncoderLayerKeys::wide, &EncoderLayerKeys::gate}, network + "linear1.*");
  }
  add({&EncoderLayerKeys::narrow}, network + "linear2.*");
  const char* const norm2 = has_bottleneck ? "last_ffn.norm" : "norm2";
  const std::pair<Part, const char*> norms[] = {{&EncoderLayerKeys::norm1, "norm1"},
                                                {&EncoderLayerKeys::norm2, norm2},
                                                {&EncoderLayerKeys::post_norm1, "post_norm1"},
                                                {&EncoderLayerKeys::post_norm2, "post_norm2"},
                                                {&EncoderLayerKeys::q_norm, "self_attn.q_norm"},
                                                {&EncoderLayerKeys::k_norm, "self_attn.k_norm"}};
  for (const auto& [part, name] : norms) {
    if (is_named(keys.*part)) add_norm(map, in_file(part), to + name);
  }
  if (keys.window_positions != nullptr) {
    const std::string prefix = from + keys.window_positions;
    const WindowEncoderLayerOptions& first = config.options.windows()->stages()[0].layers()[0];
    if (first.windows().positions() == WindowPositions::None)
      drop_unused(map, {prefix + "rel_pos_h", prefix + "rel_pos_w"});
    for (const char* name :
         {"relative_position_bias_table", "logit_scale", "rel_pos_h", "rel_pos_w"})
      map.emplace_back(prefix + name, to + "self_attn." + name);
    const std::string network = prefix + "continuous_position_bias_mlp.";
    map.emplace_back(network + "0.*", to + "self_attn.coordinates.*");
    map.emplace_back(network + "2.*", to + "self_attn.entries.*");
  }
  const TransformerLayerOptions& layer = config.options.encoder().layer();
  const auto& terms = layer.disentangled();
  const bool projects = terms && terms->relative_attention() && !terms->share_att_key();
  const std::tuple<Part, bool, const char*> of_positions[] = {
      {&EncoderLayerKeys::pos_key, projects && terms->content_to_position(), "self_attn.pos_key.*"},
      {&EncoderLayerKeys::pos_query, projects && terms->position_to_content(),
       "self_attn.pos_query.*"}};
  for (const auto& [part, is_used, name] : of_positions) {
    if (is_named(keys.*part)) map.emplace_back(tensors(part), is_used ? to + name : "");
  }
  const std::tuple<Part, bool, const char*> parameters[] = {
      {&EncoderLayerKeys::scale1, layer.layer_scale().has_value(), "layer_scale1.lambda1"},
      {&EncoderLayerKeys::scale2, layer.layer_scale().has_value(), "layer_scale2.lambda1"},
      {&EncoderLayerKeys::grid_bias, layer.grid_bias().has_value(), "grid_position_bias.weight"}};
  for (const auto& [part, is_used, name] : parameters) {
    if (is_named(keys.*part)) map.emplace_back(in_file(part), is_used ? to + name : "");
  }
  if (config.structure.has_layer_scale)
    map.emplace_back(from + "layer_scale*", to + "layer_scale*");
}

// Without them, transformers ignores the biases of query, key and value that a file has.
bool has_qkv_bias(const EncoderConfig& config) {
  return !config.options.patches() || !config.settings.is_known("qkv_bias") ||
         config.settings.flag("qkv_bias");
}

// What an encoder in windows has beside its layers.
void add_windows(KeyMap& map, const EncoderConfig& config) {
  const vision::Names& names = config.options.patches()->names();
  const EncoderStructure& structure = config.structure;
  if (is_named(structure.patches))
    map.emplace_back(structure.patches + std::string(".*"), "embeddings." + names.patches + ".*");
  if (is_named(structure.positions))
    map.emplace_back(structure.positions, "embeddings." + names.positions);
  map.emplace_back("encoder.layers.*.downsample.*", "encoder.stages.*.downsample.*");
  map.emplace_back("neck.*", "encoder.neck.*");
}

void add_layers(KeyMap& map, const EncoderConfig& config,
                std::span<const EncoderLayerKeys> layouts) {
  for (const EncoderLayerKeys& keys : layouts) {
    if (is_named(keys.shared_grid_bias)) {
      const bool is_used = config.options.encoder().grid_bias().has_value();
      map.emplace_back(keys.shared_grid_bias, is_used ? "encoder.grid_position_bias.weight" : "");
    }
    if (!has_qkv_bias(config)) {
      for (const char* part : {keys.query, keys.key, keys.value}) {
        map.emplace_back(keys.layer + std::string(part) + ".bias", "");
      }
    }
    if (!config.structure.shares_layers) {
      const char* const to = has_stages(config)         ? "encoder.stages.*.layers.*."
                             : config.options.windows() ? "encoder.stages.0.layers.*."
                                                        : "encoder.layers.*.";
      add_layer(map, keys, config, keys.layer, to);
      continue;
    }
    for (int64_t i = 0; i < config.options.encoder().num_layers(); ++i) {
      add_layer(map, keys, config, layer_name(keys.layer, config, i),
                "encoder.layers." + std::to_string(i) + ".");
    }
  }
}

// Whether the class has positions of patches by a setting.
bool may_have_positions(const EncoderConfig& config) {
  for (const char* setting :
       {"use_absolute_position_embeddings", "use_absolute_embeddings", "use_abs_pos"}) {
    if (config.settings.is_known(setting)) return true;
  }
  return false;
}

// The embeddings' modules are named by the last component of their names in the file.
void add_embeddings(KeyMap& map, const EncoderConfig& config) {
  if (config.options.patches()) {  // its names are those of the files
    const VisionEmbeddingsOptions& patches = *config.options.patches();
    if (patches.position_table() == vision::PositionTable::None && may_have_positions(config)) {
      const bool is_outside = is_named(config.structure.positions);
      drop_unused(map, {is_outside ? config.structure.positions
                                   : "embeddings." + patches.names().positions});
    }
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
  // With ALiBi, the code of JinaBERT has no positions.
  if (&config.model == &hf::jina_bert()) drop_unused(map, {to + names.positions + ".*"});
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

// LayoutLMv3's tables, which are weights of linear layers. Those that are not used are dropped.
void add_document_bias(KeyMap& map, const EncoderConfig& config) {
  const auto& own = config.options.document_bias();
  const std::tuple<const char*, const char*, bool> tables[] = {
      {"rel_pos_bias", "places", own.has_value()},
      {"rel_pos_x_bias", "x", own && own->boxes()},
      {"rel_pos_y_bias", "y", own && own->boxes()}};
  for (const auto& [in_file, name, is_used] : tables) {
    const std::string from = std::string("encoder.") + in_file + ".weight";
    if (is_used) {
      map.emplace_back(KeySource::transposed(from),
                       std::string("document_bias.") + name + ".weight");
    } else {
      map.emplace_back(from, "");
    }
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
  if (structure.is_disentangled) add_relative_positions(map, config);
  if (structure.is_transformer_xl)
    map.emplace_back("mask_emb", "encoder.shifted_positions.mask_emb");
  if (config.model.type == std::string_view("layoutlmv3")) add_document_bias(map, config);
  add_embeddings(map, config);
  if (config.options.windows()) add_windows(map, config);
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

// The layers of each stage beyond those of the model, the stages beyond them, and what the last has
// for the next.
void drop_later_layers_of_stages(KeyMap& map, const EncoderConfig& config,
                                 const io::TensorSource& source, const std::string& prefix) {
  const std::string layer = config.structure.keys.front().layer;
  const auto& stages = config.options.windows()->stages();
  const auto count = static_cast<int64_t>(stages.size());
  const std::string stage = layer.substr(0, layer.find('*'));
  drop_later_layers(map, source, prefix, stage + "*.", {count});
  map.emplace(map.begin(), stage + std::to_string(count - 1) + ".downsample.*", "");
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::size_t star = layer.find('*');
    const std::string own = layer.substr(0, star) + std::to_string(i) + layer.substr(star + 1);
    drop_later_layers(map, source, prefix, own, {static_cast<int64_t>(stages[i].layers().size())});
  }
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

KeyMap encoder_dropped_map(const EncoderStructure& structure) {
  KeyMap map;
  std::istringstream dropped(structure.dropped);
  for (std::string pattern; dropped >> pattern;) map.emplace_back(pattern, "");
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

LoadOptions encoder_load_options(const EncoderConfig& config, const io::TensorSource& source,
                                 const std::string& prefix) {
  KeyMap map = key_map_of(config, config.structure.keys);
  std::vector<int64_t> counts = {config.options.encoder().num_layers()};
  if (config.structure.shares_layers) {
    const int64_t inner = inner_layers(config);
    counts = {counts.front() / inner, inner};
  }
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    for (const std::string& layer : encoder_layer_patterns(keys)) {
      if (has_stages(config)) continue;
      drop_later_layers(map, source, prefix, layer, counts);
    }
  }
  if (has_stages(config)) drop_later_layers_of_stages(map, config, source, prefix);
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

}  // namespace posenc
