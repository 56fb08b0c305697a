// The sizes in config.json that the tensors of an encoder must have.

#include <tuple>

#include "base/text.h"
#include "models/config/setting_names.h"
#include "models/encoder/names.h"
#include "models/encoder/parts.h"

namespace posenc {
namespace {

void add_pooler_size(std::vector<StatedSize>& sizes, const EncoderConfig& config,
                     const std::string& prefix) {
  const auto pooler = encoder_pooler_names(config, prefix);
  if (pooler.empty() || !has_pooler(config.options)) return;
  const auto& options = config.options;
  const char* own_setting = config.options.patches() ? "pooler_output_size" : "projection_size";
  const char* setting = config.settings.has(own_setting) ? own_setting : "hidden_size";
  sizes.push_back({config.settings.key(setting),
                   options.pooler_dim().value_or(options.encoder().layer().d_model()),
                   {pooler.front()},
                   0});
}

// The tables of grid biases, by the names that each layout has for them.
void add_grid_sizes(std::vector<StatedSize>& sizes, const EncoderConfig& config,
                    const std::string& prefix) {
  const TransformerEncoderOptions& stack = config.options.encoder();
  if (!stack.layer().grid_bias() && !stack.grid_bias()) return;
  std::vector<std::string> own, shared;
  for (const EncoderLayerKeys& keys : config.structure.keys) {
    own.push_back(prefix + io::fill_pattern(keys.layer + std::string(keys.grid_bias), {"0"}));
    shared.push_back(prefix + keys.shared_grid_bias);
  }
  const std::pair<const std::optional<relative::Grid>&, const std::vector<std::string>&> tables[] =
      {{stack.layer().grid_bias(), own}, {stack.grid_bias(), shared}};
  for (const auto& [grid, names] : tables) {
    if (!grid) continue;
    sizes.push_back({"(2 rows of patches - 1) (2 columns of patches - 1) + 3 of image_size",
                     (2 * grid->height - 1) * (2 * grid->width - 1) + 3, names, 0});
    sizes.push_back(
        {config.settings.key("num_attention_heads"), stack.layer().num_heads(), names, 1});
  }
}

// `embeddings` is the prefix of the embeddings' tensors.
void add_patch_sizes(std::vector<StatedSize>& sizes, const EncoderConfig& config,
                     const std::string& embeddings) {
  const VisionEmbeddingsOptions& options = *config.options.patches();
  const std::vector<std::string> projection = {embeddings + options.names().patches + ".weight"};
  const char* const width = config.settings.is_known("embed_dim") ? "embed_dim" : "hidden_size";
  sizes.push_back({config.settings.key(width), options.d_model(), projection, 0, 4});
  sizes.push_back({"num_channels", options.num_channels(), projection, 1, 4});
  sizes.push_back({"patch_size", options.patch_height(), projection, 2, 4});
  sizes.push_back({"patch_size", options.patch_width(), projection, 3, 4});
  add_grid_sizes(sizes, config, embeddings.substr(0, embeddings.rfind("embeddings.")));
  if (options.position_table() == vision::PositionTable::None) return;
  if (options.position_table_dim() == 4) {
    sizes.push_back({"image_size / patch_size",
                     options.image_height() / options.patch_height(),
                     {embeddings + options.names().positions},
                     1,
                     4});
    return;
  }
  const int64_t patches = (options.image_height() / options.patch_height()) *
                          (options.image_width() / options.patch_width());
  const bool is_module = options.position_table() == vision::PositionTable::Embedding;
  sizes.push_back({"(image_size / patch_size)^2 + " + std::to_string(options.position_prefix()),
                   options.position_prefix() + patches,
                   {embeddings + options.names().positions + (is_module ? ".weight" : "")},
                   is_module ? 0U : 1U,
                   is_module ? 2U : 3U});
}

// Of the layers of each stage, whose sizes follow from those of the first.
std::vector<StatedSize> window_sizes(const EncoderConfig& config, const std::string& prefix) {
  const auto& keys = config.structure.keys;
  std::vector<StatedSize> sizes;
  int64_t number = 0;
  for (const WindowStageOptions& stage : config.options.windows()->stages()) {
    for (const WindowEncoderLayerOptions& one : stage.layers()) {
      const int64_t i = number++;
      const auto table = [&](const char* name) {
        std::vector<std::string> names;
        for (std::size_t layout = 0; layout < keys.size(); ++layout) {
          const std::string query =
              encoder_layer_names(config, prefix, i, &EncoderLayerKeys::query)[layout];
          const std::string own = keys[layout].query + std::string(".weight");
          names.push_back(query.substr(0, query.size() - own.size()) +
                          keys[layout].window_positions + name);
        }
        return names;
      };
      const auto [height, width] = one.windows().window();
      const auto& layer = one.layer();
      sizes.push_back({"the width of the network", layer.d_ff(),
                       encoder_layer_names(config, prefix, i, &EncoderLayerKeys::wide), 0});
      sizes.push_back({"the width of the layers", layer.d_model(),
                       encoder_layer_names(config, prefix, i, &EncoderLayerKeys::wide), 1});
      switch (one.windows().positions()) {
        case WindowPositions::None: break;
        case WindowPositions::Table:
          sizes.push_back({"(2 * window_size - 1)^2", (2 * height - 1) * (2 * width - 1),
                           table("relative_position_bias_table"), 0});
          sizes.push_back(
              {"num_heads", layer.num_heads(), table("relative_position_bias_table"), 1});
          break;
        case WindowPositions::Continuous:
          sizes.push_back(
              {"num_heads", layer.num_heads(), table("continuous_position_bias_mlp.2.weight"), 0});
          break;
        case WindowPositions::Axes:
          sizes.push_back({"2 * the rows of a window - 1", 2 * height - 1, table("rel_pos_h"), 0});
          sizes.push_back(
              {"2 * the columns of a window - 1", 2 * width - 1, table("rel_pos_w"), 0});
          break;
      }
    }
  }
  return sizes;
}

}  // namespace

std::vector<StatedSize> encoder_stated_sizes(const EncoderConfig& config,
                                             const std::string& prefix) {
  const auto& structure = config.structure;
  if (config.options.windows()) {
    std::vector<StatedSize> sizes = window_sizes(config, prefix);
    add_patch_sizes(sizes, config, prefix + (*structure.patches == '\0' ? "embeddings." : ""));
    return sizes;
  }
  const auto& layer = config.options.encoder().layer();
  // The rows of gates may be in a tensor of their own or in the same, but columns are columns.
  const bool is_gated = layer.feed_forward() == FeedForward::Gated;
  const auto first = encoder_layer_names(
      config, prefix, 0, is_gated ? &EncoderLayerKeys::narrow : &EncoderLayerKeys::wide);
  const auto key = [&](const std::string& name) { return config.settings.key(name); };
  const char* named = config.settings.name_of(hf::kFeedForward);
  const std::string wide = named == nullptr ? "4 * " + key("hidden_size") : named;
  const std::string factor = wide == hf::kFeedForwardRatio ? " * " + key("hidden_size") : "";
  const size_t inner = is_gated ? 1 : 0;
  const auto& bottleneck = layer.bottleneck();
  const char* const in_width =
      bottleneck && bottleneck->use_bottleneck() ? "intra_bottleneck_size" : "hidden_size";
  const int64_t in = bottleneck ? bottleneck->intra_bottleneck_size() : layer.d_model();
  std::vector<StatedSize> sizes = {{wide + factor, layer.d_ff(), first, inner},
                                   {key(in_width), in, first, 1 - inner}};
  if (structure.is_grouped) {
    const auto query = encoder_layer_names(config, prefix, 0, &EncoderLayerKeys::query);
    sizes = {{wide, layer.d_ff(), first, 0, 3}, {key("hidden_size"), layer.d_model(), query, 0, 3}};
  }
  const int64_t groups = config.settings.is_known("num_groups")
                             ? config.settings.integer("num_groups", 1, INT32_MAX)
                             : 1;
  if (groups > 1) {
    sizes = {{wide + " / num_groups", layer.d_ff() / groups, first, 2, 3},
             {key("hidden_size") + " / num_groups", layer.d_model() / groups, first, 1, 3}};
  }
  if (layer.head_dim()) {
    sizes.push_back({key("num_attention_heads") + " * " + key("head_dim"),
                     layer.num_heads() * *layer.head_dim(),
                     encoder_layer_names(config, prefix, 0, &EncoderLayerKeys::out), 1});
  }
  add_pooler_size(sizes, config, prefix);
  if (!config.options.embeddings() && !config.options.patches()) return sizes;
  if (config.options.patches()) {
    add_patch_sizes(sizes, config, prefix + "embeddings.");
    return sizes;
  }
  if (*structure.relative_bias != '\0') {
    const auto& index = layer.relative() ? layer.relative() : config.options.encoder().relative();
    sizes.push_back({"relative_attention_num_buckets",
                     relative_rows(*index),
                     {prefix + io::fill_pattern(structure.relative_bias, {"0"})},
                     0});
  }
  if (const auto& own = layer.disentangled(); own && own->relative_attention()) {
    const bool has_buckets = own->position_buckets() > 0;
    const bool has_most =
        config.settings.integer("max_relative_positions", -1, INT32_MIN, INT32_MAX) > 0;
    const char* const span = has_buckets ? "position_buckets"
                             : has_most  ? "max_relative_positions"
                                         : "max_position_embeddings";
    sizes.push_back({std::string("2 * ") + span,
                     2 * own->span(),
                     {prefix + "encoder.rel_embeddings.weight"},
                     0});
  }
  const EncoderEmbeddingsOptions& embeddings = *config.options.embeddings();
  const auto in_file = [&](const std::string& name) {
    return prefix + structure.embeddings + name + ".weight";
  };
  std::vector<std::string> tokens = {in_file(embeddings.names().tokens)};
  if (*structure.shared != '\0') tokens.push_back(prefix + structure.shared);
  const char* narrow = config.settings.name_of(hf::kTableWidth);
  if (narrow == nullptr && config.settings.has("embedding_size")) narrow = "embedding_size";
  sizes.push_back({key("vocab_size"), embeddings.vocab_size(), tokens, 0});
  if (bottleneck) {  // the tables of types have its width, those of tokens another
    sizes.push_back(
        {key("hidden_size"), layer.d_model(), {in_file(embeddings.names().token_types)}, 1});
  }
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
      {"task_type_vocab_size", embeddings.task_type_vocab_size(), embeddings.names().task_types},
      {"max_2d_position_embeddings", embeddings.box_positions(), "x_position_embeddings"}};
  for (const auto& [setting, rows, table] : types) {
    if (rows > 0) sizes.push_back({setting, rows, {in_file(table)}, 0});
  }
  return sizes;
}

}  // namespace posenc
