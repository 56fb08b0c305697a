// SqueezeBERT, whose linear layers are convolutions in groups.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// SqueezeBertLayerNorm has an epsilon of its own.
void read_squeezebert(const Settings&, const ModelType&, EncoderOptions& options) {
  own_layer(options).layer_norm_eps(1e-12);
}

void name_squeezebert_layer(const LayerNames& names) {
  const auto grouped = [&](const char* part, const char* setting) {
    const int64_t groups = names.config.settings.integer(setting, 1, INT32_MAX);
    return KeySource::ungrouped(names.from + part + ".weight", groups);
  };
  const EncoderLayerKeys& keys = names.keys;
  names.map.emplace_back(KeySources{grouped(keys.query, "q_groups"), grouped(keys.key, "k_groups"),
                                    grouped(keys.value, "v_groups")},
                         names.to + "self_attn.in_proj_weight");
  names.map.emplace_back(grouped(keys.out, "post_attention_groups"),
                         names.to + "self_attn.out_proj.weight");
  names.map.emplace_back(grouped(keys.wide, "intermediate_groups"), names.to + "linear1.weight");
  names.map.emplace_back(grouped(keys.narrow, "output_groups"), names.to + "linear2.weight");
}

// Its layers have an epsilon of their own.
constexpr HeadStructure squeezed_masked() {
  HeadStructure head = heads::kBertMasked;
  head.norm_eps_setting = "layer_norm_eps";
  return head;
}

// clang-format off
const EncoderLayerKeys kSqueezeBertKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "attention.query", .key = "attention.key", .value = "attention.value",
    .out = "post_attention.conv1d", .wide = "intermediate.conv1d", .narrow = "output.conv1d",
    .norm1 = "post_attention.layernorm", .norm2 = "output.layernorm"}};

constexpr EncoderStructure kSqueezeBertLayers = {.keys = kSqueezeBertKeys,
    .pooling = Pooling::TanhOfFirst, .more = read_squeezebert,
    .layer_names = name_squeezebert_layer};

constexpr HeadStructures kSqueezeBertHeads = {.sequence = heads::kOfPooler, .token = heads::kToken, .question = heads::kQuestion,
    .masked = squeezed_masked()};

constexpr ModelType kSqueezeBertTypes[] = {
    {.type = "squeezebert", .embeddings = "squeezebert", .layers = &kSqueezeBertLayers,
     .heads = &kSqueezeBertHeads, .prefix = "transformer."},
};
// clang-format on

}  // namespace

constinit const Family squeezebert = kSqueezeBertTypes;

}  // namespace posenc::families
