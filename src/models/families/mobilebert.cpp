// MobileBERT: layers that compute in a narrower width, between two projections.

#include <utility>

#include "models/embeddings/presets.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr int64_t kWidestBottleneck = int64_t{1} << 20;

// MobileBertOutput has a norm with the epsilon of torch.nn.
void read_mobilebert_layers(const Settings& config, const ModelType&, EncoderOptions& options) {
  constexpr double kTorchEpsilon = 1e-5;
  TransformerLayerOptions& layer = own_layer(options);
  const bool uses = config.flag("use_bottleneck");
  const int64_t width =
      uses ? config.integer("intra_bottleneck_size", 1, kWidestBottleneck) : layer.d_model();
  if (width % layer.num_heads() != 0) {
    config.refuse("num_attention_heads", std::string("must divide ") +
                                             (uses ? "intra_bottleneck_size " : "hidden_size ") +
                                             std::to_string(width));
  }
  const bool all_inside = config.flag("use_bottleneck_attention");
  const bool shares = config.flag("key_query_shared_bottleneck");
  if (uses && !all_inside && !shares && width != layer.d_model()) {
    config.refuse("key_query_shared_bottleneck",
                  "must be true without use_bottleneck_attention and with an "
                  "intra_bottleneck_size other than hidden_size");
  }
  layer.bottleneck(
      BottleneckOptions(width)
          .use_bottleneck(uses)
          .use_bottleneck_attention(all_inside)
          .key_query_shared_bottleneck(shares)
          .num_feedforward_networks(config.integer("num_feedforward_networks", 1, 1000))
          .last_norm_eps(kTorchEpsilon));
  layer.norm_kind(no_norm_in(config) ? NormKind::Affine : NormKind::Layer);
  if (uses) {
    LayerDropouts drops = *layer.dropouts();
    drops.attention_output = 0.0;
    layer.dropouts(drops);
  }
  if (!config.flag("classifier_activation")) options.pooling(encoder::Pooling::First);
}

// What a layer has besides. The projections of the attention are apart where values are wider.
void name_mobilebert_layer(const LayerNames& names) {
  const auto& [map, config, keys, from, to] = names;
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

// A table of tokens that is narrower than the encoder's output.
constexpr HeadStructure mobile_masked() {
  HeadStructure head = heads::kBertMasked;
  head.beside_table = "cls.predictions.dense";
  return head;
}

// clang-format off
constexpr EncoderStructure kMobileBertLayers = {.keys = layers::kBertKeys, .network = "last_ffn.",
    .norm2 = "last_ffn.norm", .pooling = Pooling::TanhOfFirst, .has_head_dim = true,
    .more = read_mobilebert_layers, .layer_names = name_mobilebert_layer};

constexpr HeadStructures kMobileBertHeads = {.sequence = heads::kOfPooler, .token = heads::kToken,
    .question = heads::kQuestion, .masked = mobile_masked()};

constexpr ModelType kMobileBertTypes[] = {
    {.type = "mobilebert", .embeddings = "mobilebert", .layers = &kMobileBertLayers,
     .heads = &kMobileBertHeads, .prefix = "mobilebert."},
};
// clang-format on

}  // namespace

constinit const Family mobilebert = kMobileBertTypes;

}  // namespace posenc::families
