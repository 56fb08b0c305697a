// LayoutLM and LayoutLMv3: tokens have boxes on a page.

#include <ATen/ops/zeros.h>

#include <cmath>
#include <tuple>

#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr int64_t kMostBoxes = int64_t{1} << 28, kWidestBoxes = int64_t{1} << 20;

void read_boxes(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.box_positions(config.integer("max_2d_position_embeddings", 1, kMostBoxes));
}

void read_boxes_side_by_side(const Settings& config, EncoderEmbeddingsOptions& options) {
  read_boxes(config, options);
  options.coordinate_size(config.integer("coordinate_size", 1, kWidestBoxes))
      .shape_size(config.integer("shape_size", 1, kWidestBoxes));
  if (4 * options.coordinate_size() + 2 * options.shape_size() == options.d_model()) return;
  config.refuse("coordinate_size",
                "must be such that 4 coordinate_size + 2 shape_size is hidden_size " +
                    std::to_string(options.d_model()));
}

// The boxes count only beside the places. The tables are those of the text; images are refused.
void read_layoutlmv3(const Settings& config, const ModelType&, EncoderOptions& options) {
  constexpr int64_t kMostBuckets = 1 << 20;
  if (!config.flag("text_embed", true)) {
    config.refuse("text_embed",
                  "must be true, since posenc encodes no images with this model_type");
  }
  if (!config.flag("has_relative_attention_bias")) return;
  const auto buckets = [&](const char* bins, const char* most) {
    return relative::Buckets{.num_buckets = config.integer(bins, 1, kMostBuckets),
                             .max_distance = config.integer(most, 1, INT32_MAX)};
  };
  const TransformerLayerOptions& layer = own_layer(options);
  DocumentPositionBiasOptions own(layer.num_heads(), buckets("rel_pos_bins", "max_rel_pos"));
  if (config.flag("has_spatial_attention_bias"))
    own.boxes(buckets("rel_2d_pos_bins", "max_rel_2d_pos"));
  const auto width = static_cast<double>(layer.d_model() / layer.num_heads());
  options.document_bias(own.scale(1.0 / std::sqrt(width)));
}

// The tables are weights of linear layers. Those that are not used are dropped.
void name_document_bias(KeyMap& map, const EncoderConfig& config) {
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

// The class has tables of boxes even where it does not use them: beside no table of places.
void save_unused_tables(StateDict& tensors, const EncoderConfig& config, const EncoderImpl&) {
  const Settings& settings = config.settings;
  if (!settings.flag("has_spatial_attention_bias") || settings.flag("has_relative_attention_bias"))
    return;
  const int64_t heads = config.options.encoder().layer().num_heads();
  for (const char* const table : {"rel_pos_x_bias", "rel_pos_y_bias"}) {
    const std::string name = config.options.origin().prefix + "encoder." + table + ".weight";
    if (!tensors.contains(name))
      tensors.insert(name, at::zeros({heads, settings.integer("rel_2d_pos_bins", 1, INT32_MAX)}));
  }
}

bool embeds_images(const Settings& config) { return config.flag("visual_embed", true); }

// clang-format off
constexpr EncoderStructure kLayoutLMv3Layers = {.keys = layers::kBertKeys,
    .dropped = "cls_token pos_embed patch_embed.* norm.* LayerNorm.* visual_bbox "
               "embeddings.position_ids",
    .beside = "patch_embed", .has_beside = embeds_images, .more = read_layoutlmv3,
    .names = name_document_bias, .save = save_unused_tables};

constexpr EmbeddingsStructure kLayoutLMTables = {.order = Order::PositionsFirst, .more = read_boxes};
constexpr EmbeddingsStructure kLayoutLMv3Tables = {.position_ids = PositionIds::FromIds,
    .more = read_boxes_side_by_side};

// LayoutLMv3 has a layer before the labels of tokens where they are many.
constexpr HeadStructure kManyLabels = {.out = "classifier.out_proj", .dense = "classifier.dense",
    .activation = "tanh"};
constexpr HeadStructures kLayoutLMv3Heads = {.sequence = heads::of_first("tanh"),
    .token = {.out = "classifier", .variant = &kManyLabels, .labels_of_variant = 10},
    .question = {.out = "qa_outputs.out_proj", .dense = "qa_outputs.dense", .activation = "tanh"}};

constexpr ModelType kLayoutLMTypes[] = {
    {.type = "layoutlm", .embeddings = "squeezebert", .tables = &kLayoutLMTables,
     .layers = &layers::kBert, .heads = &heads::kBert, .prefix = "layoutlm."},
    {.type = "layoutlmv3", .embeddings = "roberta", .tables = &kLayoutLMv3Tables,
     .layers = &kLayoutLMv3Layers, .heads = &kLayoutLMv3Heads, .prefix = "layoutlmv3."},
};
// clang-format on

}  // namespace

constinit const Family layoutlm = kLayoutLMTypes;

}  // namespace posenc::families
