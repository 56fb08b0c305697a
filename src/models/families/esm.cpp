// ESM-2, of proteins.

#include "models/families/family.h"

namespace posenc::families {
namespace {

// Absolute positions are those of RoBERTa; rotary ones are the layers'.
void read_esm(const Settings& config, EncoderEmbeddingsOptions& options) {
  const std::string type = config.text("position_embedding_type", "absolute");
  if (type != "absolute" && type != "rotary") {
    config.refuse("position_embedding_type", "must be absolute or rotary");
  }
  if (config.flag_if("emb_layer_norm_before").value_or(false)) options.norm(Norm::AfterSum);
  if (type == "rotary") return;
  if (!options.padding_idx()) {
    config.refuse("pad_token_id", "must be a token: positions are counted from it");
  }
  options.position_ids(PositionIds::FromIds).position_padding_idx(options.padding_idx());
}

void read_esm_layers(const Settings& config, const ModelType& model, EncoderOptions& options) {
  const bool rotates = options.embeddings()->position_ids() == embeddings::PositionIds::None;
  if (rotates) set_rotary(config, model, "", own_layer(options));
  options.zero_padding(true).raw_inputs_embeds(true);
  if (!config.flag_if("token_dropout").value_or(false)) return;
  options.token_dropout_id(
      config.integer("mask_token_id", 0, options.embeddings()->vocab_size() - 1));
}

constexpr HeadStructure esm_masked() {
  HeadStructure head = heads::kRobertaMasked;
  head.has_both_biases = false;
  return head;
}

// clang-format off
constexpr EncoderLayerKeys kEsmKeys[] = {layers::bert_keys("attention.LayerNorm", "LayerNorm")};

// Older files have the frequencies in each layer; those of transformers 5.23 an asterisk there.
constexpr EncoderStructure kEsmLayers = {.keys = kEsmKeys, .norm_first = true,
    .last_norm = "encoder.emb_layer_norm_after", .pooling = Pooling::TanhOfFirst,
    .dropped = "*.inv_freq contact_head.* *position_ids", .beside = "contact_head",
    .frequencies = "rotary_embeddings.inv_freq "
                   "encoder.layer.*.attention.self.rotary_embeddings.inv_freq "
                   "encoder.layer.0.attention.self.rotary_embeddings.inv_freq",
    .more = read_esm_layers};

constexpr EmbeddingsStructure kEsmTables = {.norm = Norm::None, .position_ids = PositionIds::None,
    .has_types = false, .has_dropout = false, .norm_name = "layer_norm", .more = read_esm};

constexpr HeadStructures kEsmHeads = {.sequence = heads::of_first("tanh"), .token = heads::kToken,
    .masked = esm_masked()};

constexpr ModelType kEsmTypes[] = {
    {.type = "esm", .embeddings = "llama", .tables = &kEsmTables, .rotary = "esm",
     .rope = {.ignores_rope_parameters = true}, .layers = &kEsmLayers, .heads = &kEsmHeads,
     .prefix = "esm."},
};
// clang-format on

}  // namespace

constinit const Family esm = kEsmTypes;

}  // namespace posenc::families
