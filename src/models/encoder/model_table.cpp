// posenc-budget: a row for each model type, and the names of each kind of layer
#include "models/encoder/model_table.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <utility>

#include "core/nearest.h"
#include "models/embeddings/model_table.h"
#include "models/embeddings/vision_table.h"
#include "models/rotary/model_table.h"

// To add a model type whose embeddings have a row: read its `...Layer` and `...Model` classes in
// transformers, then write a row of kEncoderModels. If its layers have new names, write an
// EncoderLayerKeys too. The differential area `encoders` (tests/differential/encoders.py) then
// needs its config class.

namespace posenc {
namespace {

using encoder::Pooling;

constexpr EncoderLayerKeys bert_layer(const char* norm1, const char* norm2) {
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

const EncoderLayerKeys kBert = bert_layer("attention.output.LayerNorm", "output.LayerNorm");
const EncoderLayerKeys kBertPreNorm = bert_layer("attention.LayerNorm", "intermediate.LayerNorm");
const EncoderLayerKeys kMegatronBert = bert_layer("attention.ln", "ln");
const EncoderLayerKeys kRobertaXL = bert_layer("attention.self_attn_layer_norm", "LayerNorm");

const EncoderLayerKeys kDistilBert = {.layer = "transformer.layer.*.",
                                      .query = "attention.q_lin",
                                      .key = "attention.k_lin",
                                      .value = "attention.v_lin",
                                      .out = "attention.out_lin",
                                      .wide = "ffn.lin1",
                                      .narrow = "ffn.lin2",
                                      .norm1 = "sa_layer_norm",
                                      .norm2 = "output_layer_norm"};

const EncoderLayerKeys kMPNet = {.layer = "encoder.layer.*.",
                                 .query = "attention.attn.q",
                                 .key = "attention.attn.k",
                                 .value = "attention.attn.v",
                                 .out = "attention.attn.o",
                                 .wide = "intermediate.dense",
                                 .narrow = "output.dense",
                                 .norm1 = "attention.LayerNorm",
                                 .norm2 = "output.LayerNorm"};

// Layer j of group g is encoder.albert_layer_groups.g.albert_layers.j.
const EncoderLayerKeys kAlbert = {.layer = "encoder.albert_layer_groups.*.albert_layers.*.",
                                  .query = "attention.query",
                                  .key = "attention.key",
                                  .value = "attention.value",
                                  .out = "attention.dense",
                                  .wide = "ffn",
                                  .narrow = "ffn_output",
                                  .norm1 = "attention.LayerNorm",
                                  .norm2 = "full_layer_layer_norm"};

const EncoderLayerKeys kBart = {.layer = "encoder.layers.*.",
                                .query = "self_attn.q_proj",
                                .key = "self_attn.k_proj",
                                .value = "self_attn.v_proj",
                                .out = "self_attn.out_proj",
                                .wide = "fc1",
                                .narrow = "fc2",
                                .norm1 = "self_attn_layer_norm",
                                .norm2 = "final_layer_norm"};

const EncoderLayerKeys kClip = {.layer = "encoder.layers.*.",
                                .query = "self_attn.q_proj",
                                .key = "self_attn.k_proj",
                                .value = "self_attn.v_proj",
                                .out = "self_attn.out_proj",
                                .wide = "mlp.fc1",
                                .narrow = "mlp.fc2",
                                .norm1 = "layer_norm1",
                                .norm2 = "layer_norm2"};

// transformers 5 renames the tensors of these when it loads, and back when it saves.
const EncoderLayerKeys kViTFile = {.layer = "encoder.layer.*.",
                                   .query = "attention.attention.query",
                                   .key = "attention.attention.key",
                                   .value = "attention.attention.value",
                                   .out = "attention.output.dense",
                                   .wide = "intermediate.dense",
                                   .narrow = "output.dense",
                                   .norm1 = "layernorm_before",
                                   .norm2 = "layernorm_after"};

const EncoderLayerKeys kViT = {.layer = "layers.*.",
                               .query = "attention.q_proj",
                               .key = "attention.k_proj",
                               .value = "attention.v_proj",
                               .out = "attention.o_proj",
                               .wide = "mlp.fc1",
                               .narrow = "mlp.fc2",
                               .norm1 = "layernorm_before",
                               .norm2 = "layernorm_after"};

const EncoderLayerKeys kDinov2File = {.layer = "encoder.layer.*.",
                                      .query = "attention.attention.query",
                                      .key = "attention.attention.key",
                                      .value = "attention.attention.value",
                                      .out = "attention.output.dense",
                                      .wide = "mlp.fc1",
                                      .narrow = "mlp.fc2",
                                      .norm1 = "norm1",
                                      .norm2 = "norm2"};

const EncoderLayerKeys kDinov2 = {.layer = "encoder.layer.*.",
                                  .query = "attention.q_proj",
                                  .key = "attention.k_proj",
                                  .value = "attention.v_proj",
                                  .out = "attention.o_proj",
                                  .wide = "mlp.fc1",
                                  .narrow = "mlp.fc2",
                                  .norm1 = "norm1",
                                  .norm2 = "norm2"};

EncoderModelRow bert(const char* model_type, const char* prefix) {
  return {.model_type = model_type,
          .layers = {&kBert},
          .prefix = prefix,
          .pooling = Pooling::TanhOfFirst};
}

EncoderModelRow bart(const char* model_type) {
  return {.model_type = model_type,
          .layers = {&kBart},
          .prefix = "model.",
          .embeddings = "encoder.",
          .shared = "shared.weight",
          .dropped = {"decoder.*"}};
}

EncoderModelRow mbart() {
  EncoderModelRow row = bart("mbart");
  row.norm_first = true;
  row.last_norm = "encoder.layer_norm";
  return row;
}

EncoderModelRow clip_text(const char* model_type) {
  return {.model_type = model_type,
          .layers = {&kClip},
          .prefix = "text_model.",
          .norm_first = true,
          .last_norm = "final_layer_norm",
          .is_causal = true,
          .pooling = Pooling::EndToken};
}

EncoderModelRow siglip_text(const char* model_type) {
  return {.model_type = model_type,
          .layers = {&kClip},
          .prefix = "text_model.",
          .norm_first = true,
          .last_norm = "final_layer_norm",
          .pooling = Pooling::LinearOfLast,
          .pooler = "head"};
}

EncoderModelRow vit(const char* model_type, const char* prefix) {
  return {.model_type = model_type,
          .layers = {&kViTFile, &kViT},
          .prefix = prefix,
          .norm_first = true,
          .last_norm = "layernorm",
          .pooling = Pooling::TanhOfFirst};
}

EncoderModelRow dinov2(const char* model_type, const char* prefix) {
  return {.model_type = model_type,
          .layers = {&kDinov2File, &kDinov2},
          .prefix = prefix,
          .norm_first = true,
          .last_norm = "layernorm",
          .pooling = Pooling::First,
          .has_layer_scale = true};
}

const std::vector<EncoderModelRow> kEncoderModels = {
    {.model_type = "albert",
     .layers = {&kAlbert},
     .prefix = "albert.",
     .projection = "encoder.embedding_hidden_mapping_in",
     .pooling = Pooling::TanhOfFirst,
     .pooler = "pooler",
     .shares_layers = true},
    bart("bart"),
    bert("bert", "bert."),
    {.model_type = "bert-generation", .layers = {&kBert}, .prefix = "bert."},
    bert("camembert", "roberta."),
    bert("chinese_clip_text_model", "text_model."),
    clip_text("clip_text_model"),
    clip_text("clipseg_text_model"),
    bert("data2vec-text", "data2vec_text."),
    vit("deit", "deit."),
    dinov2("dinov2", "dinov2."),
    dinov2("dinov2_with_registers", "dinov2_with_registers."),
    {.model_type = "distilbert", .layers = {&kDistilBert}, .prefix = "distilbert."},
    {.model_type = "electra",
     .layers = {&kBert},
     .prefix = "electra.",
     .projection = "embeddings_project"},
    bert("ernie", "ernie."),
    vit("ijepa", "ijepa."),
    mbart(),
    {.model_type = "megatron-bert",
     .layers = {&kMegatronBert},
     .prefix = "bert.",
     .norm_first = true,
     .last_norm = "encoder.ln",
     .pooling = Pooling::TanhOfFirst},
    {.model_type = "mpnet",
     .layers = {&kMPNet},
     .prefix = "mpnet.",
     .pooling = Pooling::TanhOfFirst,
     .relative_bias = "encoder.relative_attention_bias.weight"},
    bart("plbart"),
    {.model_type = "rembert",
     .layers = {&kBert},
     .prefix = "rembert.",
     .projection = "encoder.embedding_hidden_mapping_in",
     .pooling = Pooling::TanhOfFirst},
    bert("roberta", "roberta."),
    {.model_type = "roberta-prelayernorm",
     .layers = {&kBertPreNorm},
     .prefix = "roberta_prelayernorm.",
     .norm_first = true,
     .last_norm = "LayerNorm",
     .pooling = Pooling::TanhOfFirst},
    siglip_text("siglip2_text_model"),
    siglip_text("siglip_text_model"),
    {.model_type = "splinter", .layers = {&kBert}, .prefix = "splinter."},
    vit("vit", "vit."),
    bert("xlm-roberta", "roberta."),
    {.model_type = "xlm-roberta-xl",
     .layers = {&kRobertaXL},
     .prefix = "roberta.",
     .norm_first = true,
     .last_norm = "encoder.LayerNorm",
     .pooling = Pooling::TanhOfFirst},
};

// The keys of the text model always begin with `text_model.`.
const std::vector<const char*> kComposites = {"chinese_clip", "clip", "clipseg", "siglip",
                                              "siglip2"};

// Known encoders that are not supported, and what is missing for them.
const std::pair<const char*, const char*> kUnsupported[] = {
    {"beit", "a relative position bias in each layer"},
    {"big_bird", "block-sparse attention"},
    {"canine", "hashed characters and downsampling"},
    {"convbert", "span-based dynamic convolutions"},
    {"deberta", "disentangled attention"},
    {"deberta-v2", "disentangled attention"},
    {"dinov3_vit", "rotary positions of patches in the attention"},
    {"esm", "rotary positions and word dropout"},
    {"flaubert", "rows that are multiplied by the mask after each layer"},
    {"fnet", "Fourier transforms in place of attention"},
    {"funnel", "pooling between layers and relative attention"},
    {"gpt2", "a decoder's layers"},
    {"gte", "rotary positions and gated feed-forward networks"},
    {"jina_embeddings_v3", "rotary positions"},
    {"layoutlm", "embeddings of boxes"},
    {"layoutlmv3", "embeddings of boxes and relative attention"},
    {"longformer", "attention in a sliding window"},
    {"longt5", "relative attention in a model without embeddings of its own"},
    {"luke", "attention between words and entities"},
    {"lxmert", "attention between text and images"},
    {"mobilebert", "bottlenecks in each layer"},
    {"modernbert", "rotary positions and gated feed-forward networks"},
    {"mra", "multi-resolution attention"},
    {"mt5", "relative attention in a model without embeddings of its own"},
    {"nomic_bert", "rotary positions and gated feed-forward networks"},
    {"nystromformer", "attention by Nystrom's method"},
    {"reformer", "hashed attention"},
    {"roformer", "rotary positions"},
    {"squeezebert", "grouped convolutions in place of linear layers"},
    {"swin", "attention in shifted windows"},
    {"t5", "relative attention in a model without embeddings of its own"},
    {"umt5", "relative attention in a model without embeddings of its own"},
    {"tapas", "embeddings of table cells"},
    {"vit_mae", "a random choice of patches"},
    {"whisper", "embeddings of audio"},
    {"xlm", "rows that are multiplied by the mask after each layer"},
    {"xlnet", "two-stream attention"},
    {"yoso", "attention by sampling"},
};

}  // namespace

const std::vector<EncoderModelRow>& encoder_model_table() { return kEncoderModels; }
const std::vector<const char*>& composite_models() { return kComposites; }

bool is_composite_model(std::string_view model_type) {
  return std::find(kComposites.begin(), kComposites.end(), model_type) != kComposites.end();
}

const EncoderModelRow& encoder_model(const std::string& where, std::string_view model_type) {
  std::vector<std::string> names;
  for (const EncoderModelRow& row : kEncoderModels) {
    if (row.model_type == model_type) return row;
    names.emplace_back(row.model_type);
  }
  names.insert(names.end(), kComposites.begin(), kComposites.end());
  for (const auto& [known, lack] : kUnsupported) {
    TORCH_CHECK_VALUE(known != model_type, where, "model_type ", model_type,
                      " is not supported: it needs ", lack);
  }
  TORCH_CHECK_VALUE(model_type != "marian", where,
                    "model_type marian is a translator: load_marian() loads it");
  TORCH_CHECK_VALUE(
      find_rotary_model(model_type) == nullptr, where, "model_type ", model_type,
      " is not supported: its rotary embedding is known (rotary_options_from_hf), its "
      "layers are not. For a decoder, such as Llama, docs/llama.md has the layers and "
      "loads their weights");
  TORCH_CHECK_VALUE(find_embeddings_model(model_type) == nullptr, where, "model_type ", model_type,
                    " is not supported: its embeddings are known "
                    "(encoder_embeddings_options_from_hf), its layers are "
                    "not");
  TORCH_CHECK_VALUE(
      find_vision_model(model_type) == nullptr, where, "model_type ", model_type,
      " is not supported: its embeddings are known (vision_embeddings_options_from_hf), its "
      "layers are not");
  TORCH_CHECK_VALUE(false, where, "model_type must be that of an encoder; the nearest are ",
                    detail::nearest_text(model_type, names), ". Got ",
                    model_type.empty() ? "no model_type" : model_type);
}

}  // namespace posenc
