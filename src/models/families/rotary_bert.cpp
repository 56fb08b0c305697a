// BERT with a rotary embedding: RoFormer, Nomic BERT, GTE, Jina v3 and ModernBERT.

#include <ATen/ops/allclose.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/pow.h>

#include "models/encoder/folder.h"
#include "models/families/family.h"

namespace posenc::families {
namespace {

constexpr const char* kRoFormerTable = "encoder.embed_positions.weight";

// RoFormerSinusoidalPositionalEmbedding: sin in the first half of the columns, cos in the second.
void check_roformer_table(const EncoderConfig& config, const io::TensorSource& source,
                          const std::string& prefix, EncoderImpl&) {
  const std::string name = prefix + kRoFormerTable;
  const at::Tensor table = tensor_in(source, name);
  if (!table.defined()) return;
  const RotaryOptions& rotary = config.options.encoder().layer().rotary()->rotary();
  const int64_t pairs = rotary.rotary_dim() / 2;
  bool is_computed = table.dim() == 2 && table.size(1) == 2 * pairs;
  if (is_computed) {
    const auto rows = at::arange(table.size(0), at::kDouble).unsqueeze(1);
    const auto angles =
        rows / at::pow(rotary.base(), at::arange(pairs, at::kDouble) / static_cast<double>(pairs));
    const at::Tensor expected = at::cat({angles.sin(), angles.cos()}, 1).to(at::kFloat);
    is_computed = at::allclose(table, expected, /*rtol=*/0.0, /*atol=*/1e-5);
  }
  if (is_computed) return;
  throw WeightsError(WeightsErrorCode::ShapeMismatch,
                     "must be the sinusoid that RoFormer's positions are, which posenc computes. "
                     "Got other numbers")
      .in_tensor(name);
}

// clang-format off
constexpr EncoderStructure kRoFormerLayers = {.keys = layers::kBertKeys,
    .projection = "embeddings_project", .rotates = true, .dropped = kRoFormerTable,
    .load = check_roformer_table};

constexpr EmbeddingsStructure kRoFormerTables = {.position_ids = PositionIds::None,
    .projection = Projection::Last, .projects_always = false,
    .projection_name = "embeddings_project"};

constexpr HeadStructures kRoFormerHeads = {.sequence = heads::of_first("", "hidden_act"), .token = heads::kToken,
    .question = heads::kQuestion, .masked = heads::narrow_bert_masked()};
// clang-format on

// Without token types there is no table; the other classes need a row.
void read_types(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.type_vocab_size(config.integer("type_vocab_size", 0, INT32_MAX));
}

void without_biases(const Settings&, const ModelType&, EncoderOptions& options) {
  set_biases(own_layer(options), false, false);
}

void without_wide_bias(const Settings&, const ModelType&, EncoderOptions& options) {
  own_layer(options).linear1_bias(false);
}

// Original files have the rows of the gate before those that it gates.
void name_gte_layer(const LayerNames& names) {
  if (*names.keys.wide != '\0') return;
  names.map.emplace_back(KeySource::swapped_halves(names.from + "mlp.up_gate_proj.*"),
                         names.to + "linear1.*");
}

// clang-format off
// A name each in transformers, and the names of the original files, which it saves too.
const EncoderLayerKeys kJinaKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.fc1", .narrow = "mlp.fc2",
    .norm1 = "post_attention_layernorm", .norm2 = "post_mlp_layernorm"}, {
    .layer = "encoder.layers.*.", .query = "mixer.Wqkv", .out = "mixer.out_proj",
    .wide = "mlp.fc1", .narrow = "mlp.fc2", .norm1 = "norm1", .norm2 = "norm2"}};

constexpr EncoderLayerKeys kNomicKeys[] = {{
    .layer = "layers.*.",
    .query = "self_attn.q_proj", .key = "self_attn.k_proj", .value = "self_attn.v_proj",
    .out = "self_attn.o_proj", .wide = "mlp.gate_proj", .gate = "mlp.up_proj",
    .narrow = "mlp.down_proj", .norm1 = "post_attention_layernorm",
    .norm2 = "post_mlp_layernorm"}, {
    .layer = "encoder.layers.*.", .query = "attn.Wqkv", .out = "attn.out_proj",
    .wide = "mlp.fc12", .gate = "mlp.fc11", .narrow = "mlp.fc2", .norm1 = "norm1",
    .norm2 = "norm2"}};

constexpr EncoderLayerKeys kGteKeys[] = {kNomicKeys[0], {
    .layer = "encoder.layer.*.", .query = "attention.qkv_proj", .out = "attention.o_proj",
    .narrow = "mlp.down_proj", .norm1 = "attn_ln", .norm2 = "mlp_ln"}};

constexpr EncoderStructure kJinaLayers = {.keys = kJinaKeys, .original_keys = 1, .norm = "emb_ln", .rotates = true,
    .pooling = Pooling::TanhOfFirst};
constexpr EncoderStructure kNomicLayers = {.keys = kNomicKeys, .original_keys = 1, .norm = "emb_ln",
    .feed_forward = FeedForward::Gated, .rotates = true, .more = without_biases};
constexpr EncoderStructure kGteLayers = {.keys = kGteKeys, .original_keys = 1,
    .feed_forward = FeedForward::Gated, .rotates = true, .activation_dropout = Rate::Hidden,
    .pooling = Pooling::TanhOfFirst, .more = without_wide_bias, .layer_names = name_gte_layer};

constexpr EmbeddingsStructure kGteTables = {.position_ids = PositionIds::None, .more = read_types};

constexpr HeadStructures kGteHeads = {.sequence = heads::kOfPooler, .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "lm_head.decoder", .dense = "lm_head.dense",
               .activation = "gelu", .norm = "lm_head.norm", .other_norm = "lm_head.layer_norm", .is_tied = true}};
constexpr HeadStructures kNomicBertHeads = {
    .sequence = {.out = "classifier", .rows = Rows::Pooled, .pooling = Pooling::TanhOfFirst}, .token = heads::kToken, .question = heads::kQuestion,
    .masked = {.out = "cls.predictions.decoder", .dense = "cls.predictions.transform.dense",
               .activation_setting = "hidden_act", .norm = "cls.predictions.transform.layer_norm",
               .bias = "cls.predictions.bias", .is_tied = true}};
// clang-format on

void read_norm_bias(const Settings& config, EncoderEmbeddingsOptions& options) {
  options.norm_bias(config.flag("norm_bias"));
}

void read_modernbert(const Settings& config, const ModelType& model, EncoderOptions& options) {
  TransformerLayerOptions& layer = own_layer(options);
  set_biases(layer, config.flag("attention_bias"), config.flag("mlp_bias"));
  layer.norm_bias(config.flag("norm_bias"));
  const int64_t every = config.integer("global_attn_every_n_layers", 3, 1, INT32_MAX);
  const auto sliding = sliding_layers(config, options.encoder().num_layers(),
                                      [&](int64_t i) { return i % every != 0; });
  const TransformerLayerOptions plain = layer;
  set_rotary(config, model, kFull, layer);
  set_layers(options, sliding, [&](TransformerLayerOptions& other) {
    other = plain;
    set_rotary(config, model, kSliding, other);
    other.window(config.integer("local_attention", 0, kWidestWindow) / 2);
  });
  auto& layers = options.encoder().layers();
  if (layers.empty()) layers.assign(sliding.size(), layer);
  layers.front().first_norm(false);
}

constexpr HeadStructure modern(const char* out) {
  return {.out = out,
          .dense = "head.dense",
          .dense_bias = "classifier_bias",
          .activation_setting = "classifier_activation",
          .norm = "head.norm",
          .norm_bias = "norm_bias"};
}

constexpr HeadStructure modern_sequence() {
  HeadStructure head = modern("classifier");
  head.first_word = "cls";
  return head;
}

constexpr HeadStructure modern_masked() {
  HeadStructure head = modern("decoder");
  head.bias_setting = "decoder_bias";
  head.is_tied = true;
  return head;
}

// clang-format off
const EncoderLayerKeys kModernBertKeys[] = {{
    .layer = "layers.*.", .query = "attn.Wqkv", .out = "attn.Wo", .wide = "mlp.Wi",
    .narrow = "mlp.Wo", .norm1 = "attn_norm", .norm2 = "mlp_norm"}};

constexpr EncoderStructure kModernBertLayers = {.keys = kModernBertKeys, .norm_first = true,
    .feed_forward = FeedForward::Gated, .attention_output_dropout = Rate::Attention,
    .output_dropout = Rate::None, .last_norm = "final_norm", .more = read_modernbert};

constexpr EmbeddingsStructure kModernBertTables = {.position_ids = PositionIds::None, .has_types = false,
    .tokens = "tok_embeddings", .norm_name = "norm", .more = read_norm_bias};

constexpr HeadStructures kModernBertHeads = {.sequence = modern_sequence(), .token = modern("classifier"),
    .question = modern("classifier"), .masked = modern_masked()};

constexpr ModelType kRotaryBertTypes[] = {
    {.type = "gte", .embeddings = "nomic", .tables = &kGteTables, .rotary = "llama",
     .layers = &kGteLayers, .heads = &kGteHeads, .prefix = "gte.", .old_prefix = "new.",
     .has_pooler = false},
    {.type = "jina_embeddings_v3", .embeddings = "nomic", .rotary = "llama",
     .layers = &kJinaLayers, .heads = &heads::kRoberta, .prefix = "roberta."},
    {.type = "modernbert", .embeddings = "nomic", .tables = &kModernBertTables,
     .rotary = "modernbert", .rope = rope::kModernBert, .layers = &kModernBertLayers,
     .heads = &kModernBertHeads, .prefix = "model."},
    {.type = "modernbert-decoder", .embeddings = "nomic", .tables = &kModernBertTables,
     .rotary = "modernbert", .rope = rope::kModernBert},
    {.type = "nomic_bert", .embeddings = "nomic", .rotary = "llama", .layers = &kNomicLayers,
     .heads = &kNomicBertHeads, .prefix = "nomic_bert.", .old_prefix = "bert."},
    {.type = "roformer", .embeddings = "nomic", .tables = &kRoFormerTables, .rotary = "roformer",
     .rope = rope::kNoParameters, .layers = &kRoFormerLayers, .heads = &kRoFormerHeads,
     .prefix = "roformer."},
};
// clang-format on

}  // namespace

constinit const Family rotary_bert = kRotaryBertTypes;

}  // namespace posenc::families
