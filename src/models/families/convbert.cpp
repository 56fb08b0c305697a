// ConvBERT: half of a head's channels are a convolution's.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// Half of each head's channels are the attention's, as many the convolution's.
void read_convbert(const Settings& config, const ModelType&, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  const int64_t ratio = config.integer("head_ratio", 1, INT32_MAX);
  const int64_t heads = std::max<int64_t>(1, layer.num_heads() / ratio);
  if (layer.d_model() % (2 * heads) != 0) {
    config.refuse("head_ratio",
                  "must leave a number of heads, num_attention_heads / head_ratio, "
                  "twice which divides hidden_size " +
                      std::to_string(layer.d_model()));
  }
  const int64_t kernel_size = config.integer("conv_kernel_size", 1, INT32_MAX);
  if (kernel_size % 2 == 0) config.refuse("conv_kernel_size", "must be odd");
  const int64_t groups = config.integer("num_groups", 1, INT32_MAX);
  if (layer.d_model() % groups != 0 || layer.d_ff() % groups != 0) {
    config.refuse("num_groups", "must divide hidden_size and intermediate_size");
  }
  layer.num_heads(heads).conv_kernel_size(kernel_size);
}

// What a layer has besides, and its feed-forward network if it is in groups.
void name_convbert_layer(const LayerNames& names) {
  const auto& [map, config, keys, from, to] = names;
  const std::string in_file = from + "attention.self.", own = to + "conv_attn.";
  const std::string separable = in_file + "key_conv_attn_layer.";
  map.emplace_back(KeySource::squeezed(separable + "depthwise.weight", 1),
                   own + "depthwise_weight");
  map.emplace_back(KeySource::squeezed(separable + "pointwise.weight", 2),
                   own + "pointwise.weight");
  map.emplace_back(KeySource::squeezed(separable + "bias", 1), own + "pointwise.bias");
  map.emplace_back(in_file + "conv_kernel_layer.*", own + "kernel.*");
  map.emplace_back(in_file + "conv_out_layer.*", own + "conv_out.*");
  const int64_t groups = config.settings.integer("num_groups", 1, INT32_MAX);
  if (groups == 1) return;
  // Before the network's, whose pattern its name matches too.
  map.emplace_back(from + keys.out + ".weight", to + "conv_attn.out_proj.weight");
  map.emplace_back(KeySource::block_diagonal(from + keys.wide + ".weight", groups),
                   to + "linear1.weight");
  map.emplace_back(KeySource::block_diagonal(from + keys.narrow + ".weight", groups),
                   to + "linear2.weight");
}

// clang-format off
constexpr EncoderStructure kConvBertLayers = {.keys = layers::kBertKeys,
    .attention = "conv_attn.", .projection = "embeddings_project", .mixing = Mixing::Convolution,
    .has_head_dim = true, .more = read_convbert, .layer_names = name_convbert_layer};

constexpr EmbeddingsStructure kConvBertTables = {.order = Order::PositionsFirst,
    .projection = Projection::Last, .projects_always = false,
    .projection_name = "embeddings_project"};

constexpr HeadStructures kConvBertHeads = {.sequence = heads::of_first("", "hidden_act"), .token = heads::kToken,
    .question = heads::kQuestion, .masked = heads::kGeneratorMasked};

constexpr ModelType kConvBertTypes[] = {
    {.type = "convbert", .embeddings = "squeezebert", .tables = &kConvBertTables,
     .layers = &kConvBertLayers, .heads = &kConvBertHeads, .prefix = "convbert."},
};
// clang-format on

}  // namespace

constinit const Family convbert = kConvBertTypes;

}  // namespace posenc::families
