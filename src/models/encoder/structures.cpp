// posenc-budget: the layers of each class
#include "models/types/encoder_structures.h"

#include "models/encoder/layer_settings.h"

namespace posenc::layers {
namespace {

using encoder::Pooling;
using Rate = EncoderStructure::Rate;

constexpr EncoderLayerKeys bert_keys(const char* norm1, const char* norm2) {
  return {.layer = "encoder.layer.*.",
          .query = "attention.self.query",
          .key = "attention.self.key",
          .value = "attention.self.value",
          .out = "attention.output.dense",
          .wide = "intermediate.dense",
          .narrow = "output.dense",
          .norm1 = norm1,
          .norm2 = norm2};
}

// clang-format off
const EncoderLayerKeys kBertKeys[] = {
    bert_keys("attention.output.LayerNorm", "output.LayerNorm")};
const EncoderLayerKeys kPreLayerNormKeys[] = {
    bert_keys("attention.LayerNorm", "intermediate.LayerNorm")};
const EncoderLayerKeys kMegatronBertKeys[] = {bert_keys("attention.ln", "ln")};
const EncoderLayerKeys kEsmKeys[] = {bert_keys("attention.LayerNorm", "LayerNorm")};
const EncoderLayerKeys kRobertaXLKeys[] = {
    bert_keys("attention.self_attn_layer_norm", "LayerNorm")};

const EncoderLayerKeys kDistilBertKeys[] = {{
    .layer = "transformer.layer.*.",
    .query = "attention.q_lin", .key = "attention.k_lin", .value = "attention.v_lin",
    .out = "attention.out_lin", .wide = "ffn.lin1", .narrow = "ffn.lin2",
    .norm1 = "sa_layer_norm", .norm2 = "output_layer_norm"}};

const EncoderLayerKeys kDebertaV2Keys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.self.query_proj", .key = "attention.self.key_proj",
    .value = "attention.self.value_proj", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.output.LayerNorm", .norm2 = "output.LayerNorm",
    .pos_key = "attention.self.pos_key_proj", .pos_query = "attention.self.pos_query_proj"}};

const EncoderLayerKeys kDebertaKeys[] = {{
    .layer = "encoder.layer.*.", .query = "attention.self.in_proj", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.output.LayerNorm", .norm2 = "output.LayerNorm",
    .pos_key = "attention.self.pos_proj", .pos_query = "attention.self.pos_q_proj",
    .q_bias = "attention.self.q_bias", .k_bias = "attention.self.k_bias",
    .v_bias = "attention.self.v_bias"}};

const EncoderLayerKeys kMPNetKeys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attn.q", .key = "attention.attn.k", .value = "attention.attn.v",
    .out = "attention.attn.o", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "attention.LayerNorm", .norm2 = "output.LayerNorm"}};

// Layer j of group g is encoder.albert_layer_groups.g.albert_layers.j.
const EncoderLayerKeys kAlbertKeys[] = {{
    .layer = "encoder.albert_layer_groups.*.albert_layers.*.",
    .query = "attention.query", .key = "attention.key", .value = "attention.value",
    .out = "attention.dense", .wide = "ffn", .narrow = "ffn_output",
    .norm1 = "attention.LayerNorm", .norm2 = "full_layer_layer_norm"}};

const EncoderLayerKeys kBartKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.out_proj", .wide = "fc1", .narrow = "fc2",
    .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"}};

const EncoderLayerKeys kClipKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.out_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layer_norm1", .norm2 = "layer_norm2"}};

// transformers 5 renames the tensors of these when it loads, and back when it saves.
constexpr EncoderLayerKeys kViTKeys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attention.query", .key = "attention.attention.key",
    .value = "attention.attention.value", .out = "attention.output.dense",
    .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}, {
    .layer = "layers.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after"}};

constexpr EncoderLayerKeys beit_keys(const EncoderLayerKeys& of_vit, const char* grid_bias,
                                     const char* shared_grid_bias) {
  EncoderLayerKeys keys = of_vit;
  keys.scale1 = "lambda_1", keys.scale2 = "lambda_2";
  keys.grid_bias = grid_bias, keys.shared_grid_bias = shared_grid_bias;
  return keys;
}

const EncoderLayerKeys kBeitKeys[] = {
    beit_keys(kViTKeys[0], "attention.attention.relative_position_bias.relative_position_bias_table",
              "encoder.relative_position_bias.relative_position_bias_table"),
    beit_keys(kViTKeys[1], "relative_position_bias.relative_position_bias_table",
              "shared_position_bias.relative_position_bias_table")};

const EncoderLayerKeys kBloomKeys[] = {{
    .layer = "h.*.", .query = "self_attention.query_key_value", .out = "self_attention.dense",
    .wide = "mlp.dense_h_to_4h", .narrow = "mlp.dense_4h_to_h", .norm1 = "input_layernorm",
    .norm2 = "post_attention_layernorm", .packs_heads = true}};

const EncoderLayerKeys kMptKeys[] = {{
    .layer = "blocks.*.", .query = "attn.Wqkv", .out = "attn.out_proj", .wide = "ffn.up_proj",
    .narrow = "ffn.down_proj", .norm1 = "norm_1", .norm2 = "norm_2"}};

constexpr EncoderLayerKeys jina_bert_keys() {
  EncoderLayerKeys keys = bert_keys("attention.output.LayerNorm", "mlp.layernorm");
  keys.wide = "mlp.gated_layers", keys.narrow = "mlp.wo";
  return keys;
}
const EncoderLayerKeys kJinaBertKeys[] = {jina_bert_keys()};

const EncoderLayerKeys kDinov2Keys[] = {{
    .layer = "encoder.layer.*.",
    .query = "attention.attention.query", .key = "attention.attention.key",
    .value = "attention.attention.value", .out = "attention.output.dense",
    .wide = "mlp.fc1", .narrow = "mlp.fc2", .norm1 = "norm1", .norm2 = "norm2"}, {
    .layer = "encoder.layer.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "norm1", .norm2 = "norm2"}};

constexpr EncoderLayerKeys dinov3_keys(const char* layer) {
  return {.layer = layer,
          .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
          .out = "attention.o_proj", .wide = "mlp.up_proj", .activated = "mlp.gate_proj",
          .narrow = "mlp.down_proj", .norm1 = "norm1", .norm2 = "norm2"};
}

const EncoderLayerKeys kDinov3Keys[] = {dinov3_keys("layer.*."), dinov3_keys("model.layer.*.")};

// A name each in transformers, and the names of the original files, which it saves too.
const EncoderLayerKeys kJinaKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "post_attention_layernorm", .norm2 = "post_mlp_layernorm"}, {
    .layer = "encoder.layers.*.", .query = "mixer.Wqkv", .out = "mixer.out_proj",
    .wide = "mlp.fc1", .narrow = "mlp.fc2", .norm1 = "norm1", .norm2 = "norm2"}};

const EncoderLayerKeys kNomicKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "post_attention_layernorm",
    .norm2 = "post_mlp_layernorm"}, {
    .layer = "encoder.layers.*.", .query = "attn.Wqkv", .out = "attn.out_proj",
    .wide = "mlp.fc12", .gate = "mlp.fc11", .narrow = "mlp.fc2", .norm1 = "norm1",
    .norm2 = "norm2"}};

const EncoderLayerKeys kGteKeys[] = {kNomicKeys[0], {
    .layer = "encoder.layer.*.", .query = "attention.qkv_proj", .out = "attention.o_proj",
    .wide = "mlp.up_gate_proj", .gate_first = true, .narrow = "mlp.down_proj",
    .norm1 = "attn_ln", .norm2 = "mlp_ln"}};

const EncoderLayerKeys kModernBertKeys[] = {{
    .layer = "layers.*.", .query = "attn.Wqkv", .out = "attn.Wo", .wide = "mlp.Wi",
    .narrow = "mlp.Wo", .norm1 = "attn_norm", .norm2 = "mlp_norm"}};

const EncoderLayerKeys kLlamaKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "post_attention_layernorm",
    .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"}};

const EncoderLayerKeys kGemma3Keys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "input_layernorm", .norm2 = "pre_feedforward_layernorm",
    .post_norm1 = "post_attention_layernorm", .post_norm2 = "post_feedforward_layernorm",
    .q_norm = "self_attn.q_norm", .k_norm = "self_attn.k_norm"}};

const EncoderLayerKeys kSqueezeBertKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "attention.query", .key = "attention.key", .value = "attention.value",
    .out = "post_attention.conv1d", .wide = "intermediate.conv1d", .narrow = "output.conv1d",
    .norm1 = "post_attention.layernorm", .norm2 = "output.layernorm"}};

const EncoderLayerKeys kFNetKeys[] = {{
    .layer = "encoder.layer.*.", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "fourier.output.LayerNorm", .norm2 = "output.LayerNorm"}};

const EncoderLayerKeys kT5Keys[] = {{
    .layer = "encoder.block.*.",
    .query = "layer.0.SelfAttention.q", .key = "layer.0.SelfAttention.k",
    .value = "layer.0.SelfAttention.v", .out = "layer.0.SelfAttention.o",
    .wide = "layer.1.DenseReluDense.wi", .gate = "layer.1.DenseReluDense.wi_1",
    .gated_wide = "layer.1.DenseReluDense.wi_0", .narrow = "layer.1.DenseReluDense.wo",
    .norm1 = "layer.0.layer_norm", .norm2 = "layer.1.layer_norm"}};

const EncoderLayerKeys kXlmKeys[] = {{
    .layer = "", .query = "attentions.*.q_lin", .key = "attentions.*.k_lin",
    .value = "attentions.*.v_lin", .out = "attentions.*.out_lin", .wide = "ffns.*.lin1",
    .narrow = "ffns.*.lin2", .norm1 = "layer_norm1.*", .norm2 = "layer_norm2.*"}};

// The projections of its attention have names of their own, add_transformer_xl().
const EncoderLayerKeys kXlnetKeys[] = {{
    .layer = "layer.*.", .wide = "ff.layer_1", .narrow = "ff.layer_2",
    .norm1 = "rel_attn.layer_norm", .norm2 = "ff.layer_norm"}};

// The rest of a conformer has names of its own, add_conformer().
const EncoderLayerKeys kConformerKeys[] = {{
    .layer = "encoder.layers.*.",
    .query = "self_attn.linear_q", .key = "self_attn.linear_k", .value = "self_attn.linear_v",
    .out = "self_attn.linear_out", .wide = "ffn1.intermediate_dense", .narrow = "ffn1.output_dense",
    .norm1 = "self_attn_layer_norm", .norm2 = "final_layer_norm"}};
// As for ViT, transformers 5 renames the tensors of Swin.
const EncoderLayerKeys kSwinKeys[] = {{
    .layer = "encoder.layers.*.blocks.*.",
    .query = "attention.self.query", .key = "attention.self.key", .value = "attention.self.value",
    .out = "attention.output.dense", .wide = "intermediate.dense", .narrow = "output.dense",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after", .window_positions = "attention.self."}, {
    .layer = "encoder.layers.*.blocks.*.",
    .query = "attention.q_proj", .key = "attention.k_proj", .value = "attention.v_proj",
    .out = "attention.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "layernorm_before", .norm2 = "layernorm_after",
    .window_positions = "attention.relative_position_bias."}};

const EncoderLayerKeys kSamKeys[] = {{
    .layer = "layers.*.", .query = "attn.qkv", .out = "attn.proj", .wide = "mlp.lin1",
    .narrow = "mlp.lin2", .norm1 = "layer_norm1", .norm2 = "layer_norm2", .window_positions = "attn."}};

// What older files have of windows, which is computed.
constexpr const char* kComputedTables = "*.relative_position_index *.relative_coords_table";

constexpr EncoderStructure swin(std::span<const EncoderLayerKeys> keys, const char* last_norm,
                                ReadWindows* windows, const char* index = "") {
  return {.keys = keys, .last_norm = last_norm, .raw_hidden_states = true,
          .pooling = Pooling::Mean, .dropped = kComputedTables, .windows = windows,
          .window_index = index};
}

constexpr EncoderStructure t5(const char* relative_bias, ReadLayers* more) {
  return {.keys = kT5Keys, .embeddings = "encoder.", .shared = "shared.weight", .norm_first = true,
          .norm_kind = NormKind::RMS, .last_norm = "encoder.final_layer_norm",
          .relative_bias = relative_bias, .has_head_dim = true, .dropped = "decoder.*",
          .beside = "decoder", .more = more};
}

constexpr EncoderStructure llama(void (*more)(const Settings&, const hf::ModelType&,
                                              EncoderOptions&)) {
  return {.keys = kLlamaKeys, .embeddings = "", .norm_first = true, .norm_kind = NormKind::RMS,
          .feed_forward = FeedForward::Gated, .rotates = true, .last_norm = "norm",
          .dropped = "*.rotary_emb.inv_freq", .more = more};
}

}  // namespace

const EncoderStructure kBert = {.keys = kBertKeys, .pooling = Pooling::TanhOfFirst};
const EncoderStructure kLayoutLMv3 = {.keys = kBertKeys,
    .dropped = "cls_token pos_embed patch_embed.* norm.* LayerNorm.* visual_bbox "
               "embeddings.position_ids",
    .beside = "patch_embed", .more = read_layoutlmv3};
const EncoderStructure kBertWithoutPooler = {.keys = kBertKeys};
const EncoderStructure kChineseClipText = {.keys = kBertKeys, .pooling = Pooling::TanhOfFirst,
    .zeroes_padding_row = true};
const EncoderStructure kElectra = {.keys = kBertKeys, .projection = "embeddings_project"};
const EncoderStructure kRemBert = {.keys = kBertKeys,
    .projection = "encoder.embedding_hidden_mapping_in", .pooling = Pooling::TanhOfFirst};
const EncoderStructure kMegatronBert = {.keys = kMegatronBertKeys, .norm_first = true,
    .last_norm = "encoder.ln", .pooling = Pooling::TanhOfFirst};
const EncoderStructure kRobertaPreLayerNorm = {.keys = kPreLayerNormKeys, .norm_first = true,
    .last_norm = "LayerNorm", .pooling = Pooling::TanhOfFirst};
const EncoderStructure kRobertaXL = {.keys = kRobertaXLKeys, .norm_first = true,
    .output_dropout = Rate::None,
    .last_norm = "encoder.LayerNorm", .pooling = Pooling::TanhOfFirst};
const EncoderStructure kDistilBert = {.keys = kDistilBertKeys,
    .attention_output_dropout = Rate::None};
const EncoderStructure kMPNet = {.keys = kMPNetKeys, .pooling = Pooling::TanhOfFirst,
    .relative_bias = "encoder.relative_attention_bias.weight", .more = read_mpnet};
const EncoderStructure kAlbert = {.keys = kAlbertKeys,
    .projection = "encoder.embedding_hidden_mapping_in", .output_dropout = Rate::None,
    .pooling = Pooling::TanhOfFirst, .pooler = "pooler", .shares_layers = true};
const EncoderStructure kBart = {.keys = kBartKeys, .embeddings = "encoder.",
    .shared = "shared.weight", .dropped = "decoder.*", .beside = "decoder"};
const EncoderStructure kMBart = {.keys = kBartKeys, .embeddings = "encoder.",
    .shared = "shared.weight", .norm_first = true, .last_norm = "encoder.layer_norm",
    .dropped = "decoder.*", .beside = "decoder"};
const EncoderStructure kClipText = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "final_layer_norm", .raw_hidden_states = true, .is_causal = true,
    .pooling = Pooling::EndToken};
const EncoderStructure kSiglipText = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "final_layer_norm", .raw_hidden_states = true,
    .pooling = Pooling::LinearOfLast, .pooler = "head"};
const EncoderStructure kClipVision = {.keys = kClipKeys, .patch_norm = "pre_layrnorm",
    .norm_first = true, .raw_hidden_states = true, .pooling = Pooling::NormOfFirst,
    .pooler = "post_layernorm"};
const EncoderStructure kSiglipVision = {.keys = kClipKeys, .norm_first = true,
    .last_norm = "post_layernorm", .raw_hidden_states = true, .pooling = Pooling::Attention,
    .pooler = "head"};
const EncoderStructure kJina = {.keys = kJinaKeys, .original_keys = 1, .norm = "emb_ln", .rotates = true,
    .pooling = Pooling::TanhOfFirst};
const EncoderStructure kNomic = {.keys = kNomicKeys, .original_keys = 1, .norm = "emb_ln",
    .feed_forward = FeedForward::Gated, .rotates = true, .more = without_biases};
const EncoderStructure kGte = {.keys = kGteKeys, .original_keys = 1,
    .feed_forward = FeedForward::Gated, .rotates = true, .activation_dropout = Rate::Hidden, .pooling = Pooling::TanhOfFirst, .more = without_wide_bias};
const EncoderStructure kDeberta = {.keys = kDebertaKeys, .dropped = "embeddings.position_ids",
    .is_disentangled = true, .more = read_deberta};
const EncoderStructure kDebertaV2 = {.keys = kDebertaV2Keys, .dropped = "embeddings.position_ids",
    .is_disentangled = true, .more = read_deberta_v2};
const EncoderStructure kMobileBert = {.keys = kBertKeys, .pooling = Pooling::TanhOfFirst,
    .has_bottleneck = true, .more = read_mobilebert_layers};
const EncoderStructure kModernBert = {.keys = kModernBertKeys, .norm_first = true,
    .feed_forward = FeedForward::Gated, .attention_output_dropout = Rate::Attention,
    .output_dropout = Rate::None, .last_norm = "final_norm", .more = read_modernbert};
const EncoderStructure kEuroBert = llama(read_eurobert);
const EncoderStructure kLlama = llama(read_llama);
const EncoderStructure kMistral = llama(read_mistral);
const EncoderStructure kQwen2 = llama(read_qwen2);
const EncoderStructure kQwen3 = llama(read_qwen3);
const EncoderStructure kGemma3 = {.keys = kGemma3Keys, .embeddings = "", .norm_first = true,
    .norm_kind = NormKind::RMSPlusOne, .feed_forward = FeedForward::Gated, .last_norm = "norm",
    .dropped = "*.rotary_emb.inv_freq", .more = read_gemma3};
const EncoderStructure kLuke = {.keys = kBertKeys, .pooling = Pooling::TanhOfFirst,
    .dropped = "entity_embeddings.* *_query.*", .beside = "entity_embeddings"};
const EncoderStructure kSqueezeBert = {.keys = kSqueezeBertKeys, .pooling = Pooling::TanhOfFirst,
    .is_grouped = true, .more = read_squeezebert};
const EncoderStructure kSwin = swin(kSwinKeys, "layernorm", read_swin);
const EncoderStructure kSwinV2 =
    swin(std::span(kSwinKeys).first(1), "layernorm", read_swin_v2);
const EncoderStructure kDonutSwin = swin(std::span(kSwinKeys).first(1), "", read_donut_swin,
    "encoder.layers.*.blocks.*.attention.self.relative_position_index");
const EncoderStructure kSam = {.keys = kSamKeys, .raw_hidden_states = true, .windows = read_sam,
    .patches = "patch_embed.projection", .positions = "pos_embed"};
const EncoderStructure kT5 =
    t5("encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight", read_t5);
const EncoderStructure kUmt5 =
    t5("encoder.block.*.layer.0.SelfAttention.relative_attention_bias.weight", read_umt5);
const EncoderStructure kXlm = {.keys = kXlmKeys, .embeddings = "", .dropped = "lang_embeddings.*",
    .beside = "lang_embeddings", .more = read_xlm};
const EncoderStructure kWav2Vec2Conformer = {.keys = kConformerKeys,
    .attention_output_dropout = Rate::Attention, .last_norm = "encoder.layer_norm",
    .raw_hidden_states = true,
    .dropped = "masked_spec_embed feature_extractor.* feature_projection.* adapter.* "
               "encoder.pos_conv_embed.* *.inv_freq",
    .beside = "feature_extractor", .frequencies = "encoder.embed_positions.inv_freq",
    .is_conformer = true, .more = read_wav2vec2_conformer};
const EncoderStructure kXlnet = {.keys = kXlnetKeys, .embeddings = "", .raw_hidden_states = true,
    .is_transformer_xl = true, .more = read_xlnet};
const EncoderStructure kEsm = {.keys = kEsmKeys, .norm_first = true,
    .last_norm = "encoder.emb_layer_norm_after", .pooling = Pooling::TanhOfFirst,
    .dropped = "*.inv_freq contact_head.* *position_ids", .beside = "contact_head",
    .frequencies = "rotary_embeddings.inv_freq", .more = read_esm_layers};
const EncoderStructure kRoFormer = {.keys = kBertKeys, .projection = "embeddings_project",
    .rotates = true, .dropped = "encoder.embed_positions.weight",
    .rotary_table = "encoder.embed_positions.weight"};
const EncoderStructure kConvBert = {.keys = kBertKeys, .projection = "embeddings_project",
    .mixing = Mixing::Convolution, .more = read_convbert};
const EncoderStructure kFNet = {.keys = kFNetKeys, .mixing = Mixing::Fourier,
    .attention_output_dropout = Rate::None, .pooling = Pooling::TanhOfFirst,
    .more = read_fnet};
const EncoderStructure kViT = {.keys = kViTKeys, .norm_first = true, .last_norm = "layernorm",
    .raw_hidden_states = true, .pooling = Pooling::TanhOfFirst};
const EncoderStructure kBeit = {.keys = kBeitKeys, .norm_first = true, .last_norm = "layernorm",
    .raw_hidden_states = true, .pooling = Pooling::NormOfMean, .pooler = "pooler.layernorm",
    .dropped = "*relative_position_index", .more = read_beit};
const EncoderStructure kBloom = {.keys = kBloomKeys, .embeddings = "", .norm_first = true,
    .last_norm = "ln_f", .is_causal = true, .more = read_bloom};
const EncoderStructure kMpt = {.keys = kMptKeys, .embeddings = "", .norm_first = true,
    .last_norm = "norm_f", .is_causal = true, .more = read_mpt};
const EncoderStructure kJinaBert = {.keys = kJinaBertKeys, .feed_forward = FeedForward::Gated,
    .activation_dropout = Rate::Hidden, .output_dropout = Rate::None,
    .pooling = Pooling::TanhOfFirst, .more = read_jina_bert};
const EncoderStructure kDinov2 = {.keys = kDinov2Keys, .norm_first = true,
    .attention_output_dropout = Rate::None, .output_dropout = Rate::None,
    .last_norm = "layernorm", .raw_hidden_states = true, .pooling = Pooling::First,
    .has_layer_scale = true};
const EncoderStructure kDinov3 = {.keys = kDinov3Keys, .norm_first = true, .rotates = true,
    .attention_output_dropout = Rate::None, .output_dropout = Rate::None, .last_norm = "norm",
    .raw_hidden_states = true, .pooling = Pooling::First, .has_layer_scale = true,
    .more = read_dinov3};
// clang-format on

}  // namespace posenc::layers
