#include "models/encoder/config.h"

#include <c10/util/Exception.h>

#include <sstream>
#include <utility>

#include "models/config/setting_names.h"
#include "models/embeddings/presets.h"
#include "models/encoder/layer_settings.h"
#include "models/types/model_class.h"

namespace posenc {
namespace {

constexpr int64_t kWidest = 1 << 20;
constexpr int64_t kMostEncoderLayers = 1000;
constexpr const char* kPositionType = "position_embedding_type";

// Settings for which posenc supports a single value. Old files contain all of them, new files only
// those that their class knows.
const std::pair<const char*, nlohmann::json> kFixed[] = {
    {"attn_logit_softcapping", nullptr},
    {"causal", false},
    {"is_encoder", true},
    {"pre_norm", false},
    {"add_cross_attention", false},
    {"is_decoder", false},
    {"pooler_act", "tanh"},
    {kPositionType, "absolute"},
    {"use_swiglu_ffn", false},
};

LayerDropouts dropouts_in(const Settings& config, const EncoderStructure& structure,
                          double hidden) {
  using Rate = EncoderStructure::Rate;
  LayerDropouts drops;
  drops.attention = config.probability(hf::kAttentionDropout, 0.0);
  hidden = config.probability(hf::kResidualDropout, hidden);
  const auto rate = [&](Rate of) {
    return of == Rate::Hidden ? hidden : of == Rate::Attention ? drops.attention : 0.0;
  };
  drops.attention_output = rate(structure.attention_output_dropout);
  drops.activation = config.probability(hf::kActivationDropout, rate(structure.activation_dropout));
  drops.output = rate(structure.output_dropout);
  drops.path = config.probability(hf::kPathDropout, 0.0);
  return drops;
}

int64_t network_width(const Settings& config, int64_t hidden) {
  const char* wide = config.name_of(hf::kFeedForward);
  if (wide == nullptr) return hidden;
  if (!config.has(wide) && config.default_of(wide).is_null()) return 4 * hidden;
  const bool is_ratio = wide == std::string_view(hf::kFeedForwardRatio);
  return config.integer(wide, 1, kWidest) * (is_ratio ? hidden : 1);
}

// Where the class has no setting for the epsilon, it is that of the embeddings, `eps`.
TransformerEncoderLayerOptions layer_in(const Settings& config, const hf::ModelType& model,
                                        double eps) {
  const EncoderStructure& structure = *model.layers;
  const int64_t hidden = config.integer("hidden_size", 1, kWidest);
  const bool attends = structure.mixing != Mixing::Fourier;
  const int64_t heads = attends ? config.integer("num_attention_heads", 1, kWidest) : 1;
  const bool has_width =
      structure.has_head_dim || (*model.rotary != '\0' && config.has("head_dim"));
  if (hidden % heads != 0 && !has_width) {
    config.refuse("num_attention_heads",
                  "must divide " + config.key("hidden_size") + " " + std::to_string(hidden));
  }
  const bool is_rms =
      structure.norm_kind == NormKind::RMS || structure.norm_kind == NormKind::RMSPlusOne;
  TransformerEncoderLayerOptions layer(hidden, heads);
  layer.norm_first(structure.norm_first)
      .norm_kind(structure.norm_kind)
      .mixing(structure.mixing)
      .feed_forward(structure.feed_forward)
      .d_ff(network_width(config, hidden))
      .dropout(config.probability(hf::kDropout, 0.0))
      .activation(activation_in(config))
      .layer_norm_eps(is_rms ? config.not_negative(hf::kRMSEpsilon, eps)
                             : config.not_negative(hf::kEpsilon, eps));
  layer.dropouts(dropouts_in(config, structure, layer.dropout()));
  if (structure.rotates) set_rotary(config, model, "", layer);
  return layer;
}

TransformerEncoderOptions layers_in(const Settings& config, const hf::ModelType& model,
                                    double eps) {
  const EncoderStructure& structure = *model.layers;
  const int64_t layers = config.integer("num_hidden_layers", 1, kMostEncoderLayers);
  TransformerEncoderOptions options(layer_in(config, model, eps), layers);
  options.norm(*structure.last_norm != '\0')
      .layer_dropout(config.probability(hf::kLayerDropout, 0.0));
  return options;
}

// CLIP's first files have 2 in place of the real id.
void set_pooling(const Settings& config, const EncoderStructure& structure,
                 EncoderOptions& options) {
  using encoder::Pooling;
  options.pooling(structure.pooling);
  if (structure.pooling == Pooling::EndToken) {
    options.eos_token_id(config.integer("eos_token_id", 0, INT64_MAX));
    if (options.eos_token_id() == 2) options.pooling(Pooling::LargestToken);
  }
  const bool is_vision = options.patches().has_value();
  const char* width = is_vision ? "pooler_output_size" : "projection_size";
  const bool has_width =
      structure.pooling == (is_vision ? Pooling::TanhOfFirst : Pooling::LinearOfLast);
  const int64_t hidden = options.encoder().layer().d_model();
  if (has_width) options.pooler_dim(config.integer(width, hidden, 1, kWidest));
}

EncoderOptions embeddings_and_layers(const Settings& config, const hf::ModelType& model) {
  if (model.layers->windows != nullptr)
    return config.placing_errors([&] { return model.layers->windows(config); });
  if (*model.vision != '\0') {
    VisionEmbeddingsOptions embeddings = vision_embeddings_of(config, model);
    embeddings.norm(embeddings.norm() || *model.layers->patch_norm != '\0');
    return {embeddings, layers_in(config, model, embeddings.layer_norm_eps())};
  }
  if (*model.embeddings == '\0') return EncoderOptions(layers_in(config, model, 1e-5));
  const EncoderEmbeddingsOptions embeddings = embeddings_of(config, model);
  return {embeddings, layers_in(config, model, embeddings.layer_norm_eps())};
}

// Of classes with a rotary embedding, Jina's original files have `rotary` as
// position_embedding_type.
bool is_read(const hf::ModelType& model, std::string_view name) {
  std::istringstream words(model.layers->reads);
  for (std::string word; words >> word;)
    if (word == name) return true;
  if (model.decoder != nullptr && name == std::string_view("is_decoder")) return true;
  return *model.rotary != '\0' && name == kPositionType;
}

// What posenc knows of a model other than its layers.
std::string known_parts(const hf::ModelType& model) {
  if (*model.lacks != '\0') return std::string("it needs ") + model.lacks;
  if (*model.rotary != '\0') {
    return "its rotary embedding is known (rotary_options_from_hf), its layers are not. "
           "docs/decoders.md has the decoders that posenc runs";
  }
  const char* function = *model.vision != '\0' ? "vision_embeddings_options_from_hf"
                                               : "encoder_embeddings_options_from_hf";
  return std::string("its embeddings are known (") + function + "), its layers are not";
}

const hf::ModelType& encoder_model(const std::string& where, std::string_view type) {
  const hf::ModelType* model = hf::find_model_type(type);
  if (model != nullptr && model->layers != nullptr) return *model;
  TORCH_CHECK_VALUE(model == nullptr || model->seq2seq == nullptr, where, "model_type ", type,
                    " is an encoder-decoder: load_seq2seq() loads it");
  TORCH_CHECK_VALUE(model == nullptr, where, "model_type ", type, " is not supported: ",
                    hf::is_decoder_alone(type) ? "it is a decoder alone, and " : "",
                    known_parts(*model));
  TORCH_CHECK_VALUE(!hf::is_decoder_alone(type), where,
                    "model_type must be that of an encoder. Got ", type, ", a decoder alone");
  hf::refuse_model_type(where, "model_type must be that of an encoder", type,
                        encoder_model_types());
}

}  // namespace

EncoderOptions encoder_options_of(const Settings& config, const hf::ModelType& model) {
  EncoderOptions options = embeddings_and_layers(config, model);
  // Decoders may be configured as encoders: `is_causal: false`, as for sentence vectors.
  const bool is_causal =
      model.decoder != nullptr ? config.flag("is_causal", true) : model.layers->is_causal;
  options.causal(is_causal).hidden_states_before_norm(model.layers->raw_hidden_states);
  set_pooling(config, *model.layers, options);
  if (model.layers->more != nullptr) model.layers->more(config, model, options);
  return options;
}

EncoderConfig read_encoder_config(const Settings& config, const std::string& requested) {
  const std::string type = config.text("model_type", "");
  const hf::ModelType* whole = hf::find_model_type(type);
  const bool is_pair = whole != nullptr && *whole->part != '\0';
  const std::string part = !is_pair ? "" : requested.empty() ? whole->part : requested;
  const auto& of_type = encoder_model(
      config.where(), part.empty() ? type : hf::ConfigClass::of(type).part_type(part));
  const Settings own = (part.empty() ? config : config.part(part)).of(of_type.type);
  const hf::ModelType* const variant = of_type.variant == nullptr ? nullptr : of_type.variant(own);
  const hf::ModelType& model = variant == nullptr ? of_type : *variant;
  for (const auto& [name, value] : kFixed) {
    const bool is_of_decoder = model.decoder != nullptr && name == std::string_view("is_decoder");
    if (is_of_decoder || is_read(model, name)) continue;
    if (own.has(name) && own.value(name) != value) {
      own.refuse(name, "must be " + value.dump() + ", the only value that posenc has");
    }
  }
  EncoderOptions options = encoder_options_of(own, model);
  options.origin().config = config.object().dump();
  options.origin().layout = model.layers->original_keys;
  return {model, *model.layers, own, options, config};
}

}  // namespace posenc
