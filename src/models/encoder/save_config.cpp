#include "models/encoder/save_config.h"

#include <c10/util/Exception.h>

#include <utility>

#include "models/heads/save.h"
#include "models/hf/config_class.h"
#include "models/hf/setting_names.h"
#include "models/model_folder.h"

namespace posenc {
namespace {

using nlohmann::json;

constexpr const char* kSave = "save_pretrained";

// The config.json that is completed, and the settings of the caller over it.
json given_config(const EncoderImpl& model, const SavePretrainedOptions& options,
                  const ClassifierImpl* classifier) {
  json config = json::object();
  if (!options.rest_of().empty()) {
    config = model_config(kSave, options.rest_of()).object();
  } else if (!model.options.origin().config.empty()) {
    config =
        Settings::parse(kSave, "the configuration of the encoder", model.options.origin().config)
            .object();
  }
  if (classifier != nullptr) set_labels(config, classifier->options);
  if (!options.config().empty()) {
    config.update(
        Settings::parse(kSave, "SavePretrainedOptions::config", options.config()).object());
  }
  TORCH_CHECK_VALUE(config.contains("model_type"),
                    "[save_pretrained] the options of the encoder must come from load_encoder() or "
                    "encoder_options_from_hf(), or SavePretrainedOptions::config must have all "
                    "settings of its config.json. Got no model_type");
  return config;
}

// Sets what the weights have under the name that the file has for it, if it is something else.
void set_size(json& object, const Settings& settings, const std::string& name, int64_t value) {
  if (settings.value(name) == json(value)) return;
  object[settings.key(name)] = value;
}

// Sizes that a program may have changed.
void set_sizes(json& object, const Settings& settings, const EncoderImpl& model,
               const EncoderStructure& structure) {
  if (!structure.shares_layers) {
    set_size(object, settings, "num_hidden_layers",
             static_cast<int64_t>(model.encoder->layers->size()));
  }
  if (!model.embeddings) return;
  const auto& embeddings = *model.embeddings;
  set_size(object, settings, "vocab_size", embeddings.tokens->weight.size(0));
  if (embeddings.token_types && settings.is_known("type_vocab_size")) {
    set_size(object, settings, "type_vocab_size", embeddings.token_types->weight.size(0));
  }
  const char* const positions = settings.name_of(hf::kPositions);
  if (embeddings.positions && positions != nullptr) {
    set_size(object, settings, positions,
             embeddings.positions->weight.size(0) - embeddings.options.position_offset() -
                 embeddings.options.first_position());
  }
}

// Another release of transformers may have other defaults. Those of rotary embeddings would be
// taken for given ones, beside what the file has in `rope_parameters`.
void set_defaults(json& object, const Settings& settings, std::string_view model_type) {
  for (const auto& [name, value] : hf::ConfigClass::of(model_type).defaults().items()) {
    const bool is_rotary = name.find("rope") != std::string::npos || name.find("rota") == 0;
    if (value.is_primitive() && !value.is_null() && !is_rotary && !settings.mentions(name))
      object[name] = value;
  }
}

// The values of options that decide what is computed, and that the weights' shapes do not tell.
using NamedValues = std::vector<std::pair<const char*, double>>;

void add_embeddings(const EncoderEmbeddingsOptions& options, NamedValues& values) {
  const auto add = [&](const char* name, auto value) {
    values.emplace_back(name, static_cast<double>(value));
  };
  add("position_ids", options.position_ids());
  add("position_offset", options.position_offset());
  add("first_position", options.first_position());
  add("order", options.order());
  add("norm", options.norm());
  add("no_norm", options.no_norm());
  add("stepwise_norm", options.stepwise_norm());
  add("trigram_input", options.trigram_input());
  add("layer_norm_eps", options.layer_norm_eps());
  add("projection", options.projection());
  add("scale", options.scale().factor(options.d_model()));
  const bool counts = options.position_ids() == embeddings::PositionIds::FromIds;
  if (counts) add("padding_idx", options.padding_idx().value_or(-1));
}

// The buckets of T5, the only index that a config.json has: another is none of its values.
void add_relative(const std::optional<relative::Index>& index, NamedValues& values) {
  values.emplace_back("relative index", index ? static_cast<double>(index->index()) : -1.0);
  const auto* const own = index ? std::get_if<relative::Buckets>(&*index) : nullptr;
  const relative::Buckets buckets = own ? *own : relative::Buckets{0, 0, false};
  values.emplace_back("relative num_buckets", static_cast<double>(buckets.num_buckets));
  values.emplace_back("relative max_distance", static_cast<double>(buckets.max_distance));
  values.emplace_back("relative bidirectional", static_cast<double>(buckets.bidirectional));
  values.emplace_back("relative truncate_sum", static_cast<double>(buckets.truncate_sum));
}

// What decides the results of a layer besides.
void add_layer(const TransformerLayerOptions& layer, NamedValues& values) {
  const auto add = [&](const char* name, auto value) {
    values.emplace_back(name, static_cast<double>(value));
  };
  add("window", layer.window().value_or(-1));
  add("num_kv_heads", layer.num_kv_heads().value_or(layer.num_heads()));
  add("head_dim", layer.head_dim().value_or(layer.d_model() / layer.num_heads()));
  add("qk_norm", layer.qk_norm());
  add("post_norms", layer.post_norms());
  add("first_norm", layer.first_norm());
  add("query_bias", layer.query_bias());
  add("key_bias", layer.key_bias());
  add("value_bias", layer.value_bias());
  add("attention_scale", layer.attention_scale().value_or(0.0));
  add_relative(layer.relative(), values);
  if (layer.mixing() == Mixing::Convolution) add("conv_kernel_size", layer.conv_kernel_size());
  if (const auto& own = layer.disentangled()) {
    add("max_relative_positions", own->max_relative_positions());
    add("position_buckets", own->position_buckets());
    add("relative_attention", own->relative_attention());
    add("content_to_position", own->content_to_position());
    add("position_to_content", own->position_to_content());
    add("share_att_key", own->share_att_key());
    add("norm_relative_embeddings", own->norm_relative_embeddings());
    add("conv_kernel_size", own->conv_kernel_size());
    add("conv_groups", own->conv_groups());
    add("conv_act", own->conv_act());
  }
  if (const auto& own = layer.shifted()) {
    add("clamp_len", own->clamp_len());
    add("bi_data", own->bi_data());
    add("segments", own->segments());
  }
  if (const auto& own = layer.conformer()) {
    add("conv_kernel_size", own->conv_kernel_size());
    add("shifted", layer.shifted().has_value());
    add("layer_norm_eps", layer.layer_norm_eps());
  }
  if (!layer.bottleneck()) return;
  add("use_bottleneck", layer.bottleneck()->use_bottleneck());
  add("intra_bottleneck_size", layer.bottleneck()->intra_bottleneck_size());
  add("use_bottleneck_attention", layer.bottleneck()->use_bottleneck_attention());
  add("key_query_shared_bottleneck", layer.bottleneck()->key_query_shared_bottleneck());
  add("num_feedforward_networks", layer.bottleneck()->num_feedforward_networks());
  add("last_norm_eps", layer.bottleneck()->last_norm_eps().value_or(layer.layer_norm_eps()));
}

// Those of the layers that there are.
std::vector<TransformerLayerOptions> layer_options(const EncoderImpl& model) {
  std::vector<TransformerLayerOptions> all;
  for (const auto& layer : *model.encoder->layers)
    all.push_back(dynamic_cast<const EncoderLayerBase&>(*layer).layer_options());
  return all;
}

void check_same_layers(const EncoderConfig& saved, const EncoderImpl& model) {
  const auto& where = saved.settings;
  const std::vector<TransformerLayerOptions> layers = layer_options(model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TransformerLayerOptions own = saved.options.encoder().layer_at(static_cast<int64_t>(i));
    NamedValues wanted, got;
    add_layer(layers[i], wanted);
    add_layer(own, got);
    TORCH_CHECK_VALUE(wanted.size() == got.size(), where.where(),
                      "the layers must be those of the encoder. Got others for layer ", i);
    for (std::size_t j = 0; j < wanted.size(); ++j) {
      TORCH_CHECK_VALUE(wanted[j].second == got[j].second, where.where(), wanted[j].first,
                        " of layer ", i, " must be that of the encoder, ", wanted[j].second,
                        ". Got ", got[j].second);
    }
    const bool rotates = layers[i].rotary().has_value();
    const bool same = rotates == own.rotary().has_value() &&
                      (!rotates || layers[i].rotary()->rotary() == own.rotary()->rotary());
    TORCH_CHECK_VALUE(same, where.where(), "the rotary embedding of layer ", i,
                      " must be that of the encoder. Got another");
  }
}

NamedValues values_of(const EncoderOptions& options) {
  NamedValues values;
  const auto add = [&](const char* name, auto value) {
    values.emplace_back(name, static_cast<double>(value));
  };
  const auto& layer = options.encoder().layer();
  add("num_heads", layer.num_heads());
  add("activation", layer.activation());
  add("norm_first", layer.norm_first());
  add("norm_kind", layer.norm_kind());
  add("mixing", layer.mixing());
  add("feed_forward", layer.feed_forward());
  add("layer_norm_eps", layer.layer_norm_eps());
  add("causal", options.causal());
  add("zero_padding", options.zero_padding());
  add("zero_hidden_padding", options.zero_hidden_padding());
  add("raw_inputs_embeds", options.raw_inputs_embeds());
  add("token_dropout_id", options.token_dropout_id().value_or(-1));
  add("pos_embed_shift", options.pos_embed_shift());
  add("pos_embed_jitter", options.pos_embed_jitter());
  add("pos_embed_rescale", options.pos_embed_rescale());
  add("relative_buckets", options.relative_buckets());
  add_relative(options.encoder().relative(), values);
  add("norm after the layers", options.encoder().norm());
  for (const int64_t i : options.encoder().order()) add("order of the layers", i);
  if (options.pooling() == encoder::Pooling::EndToken) add("eos_token_id", options.eos_token_id());
  if (options.embeddings()) add_embeddings(*options.embeddings(), values);
  return values;
}

void check_same(const EncoderConfig& saved, const EncoderImpl& model) {
  const auto& config = saved.settings;
  const std::string input = input_name(model.options);
  TORCH_CHECK_VALUE(input == input_name(saved.options), config.where(),
                    "model_type must be that of an encoder of ", input, ". Got ", saved.model.type);
  const auto pooling = model.options.pooling();
  TORCH_CHECK_VALUE(pooling == encoder::Pooling::None || pooling == saved.options.pooling(),
                    config.where(), "the pooling of model_type ", saved.model.type,
                    " must be that of the encoder. Got another");
  const NamedValues wanted = values_of(model.options), got = values_of(saved.options);
  TORCH_CHECK_VALUE(wanted.size() == got.size(), config.where(),
                    "the layers must be those of the encoder. Got another order");
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    TORCH_CHECK_VALUE(wanted[i].second == got[i].second, config.where(), wanted[i].first,
                      " must be that of the encoder, ", wanted[i].second, ". Got ", got[i].second);
  }
  check_same_layers(saved, model);
}

void set_dtype(json& object) {
  object.erase("torch_dtype");  // its name in older releases
  object["dtype"] = "float32";
}

}  // namespace

SavedConfig saved_config(const EncoderImpl& model, const SavePretrainedOptions& options,
                         const ClassifierImpl* classifier) {
  json object = given_config(model, options, classifier);
  const auto read = [&] { return read_encoder_config(Settings::of_object(kSave, object)); };
  const EncoderConfig before = read();
  const hf::ModelType* const whole = hf::find_model_type(object["model_type"].get<std::string>());
  const std::string part = whole == nullptr ? "" : whole->part;
  const bool keeps_whole = part.empty() || !options.rest_of().empty();
  json own = before.settings.object();
  own["model_type"] = before.model.type;
  set_sizes(own, before.settings, model, before.structure);
  set_defaults(own, before.settings, before.model.type);
  if (part.empty() || !keeps_whole) {
    object = std::move(own);
  } else {
    object[part] = std::move(own);
    object.erase(part + "_dict");  // which would replace it
    object[part].erase("torch_dtype");
    if (object[part].contains("dtype")) set_dtype(object[part]);
  }
  set_dtype(object);
  SavedConfig saved{object, read(), !part.empty() && keeps_whole, {}, std::nullopt};
  saved.pooling = saved.encoder.options.pooling();
  if (classifier != nullptr) {
    saved.head.emplace(read_head_config(saved.encoder, classifier->options.kind()));
  }
  saved.encoder.options.origin() = model.options.origin();
  check_same(saved.encoder, model);
  saved.encoder.options.pooling(model.options.pooling());
  return saved;
}

}  // namespace posenc
