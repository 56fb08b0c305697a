#include "models/encoder/config.h"

#include <c10/util/Exception.h>

#include <utility>

#include "posenc/models/front_preset.h"
#include "posenc/models/vision_front_preset.h"

namespace posenc {
namespace {

constexpr int64_t kWidest = 1 << 20;
constexpr int64_t kMostEncoderLayers = 1000;
constexpr int64_t kMPNetBuckets = 32;
constexpr const char* kMPNetRows = "relative_attention_num_buckets";

// Settings for which posenc supports a single value. Old files contain all of them, new files only
// those that their class knows.
const std::pair<const char*, nlohmann::json> kFixed[] = {
    {"add_cross_attention", false},          {"is_decoder", false},     {"pooler_act", "tanh"},
    {"position_embedding_type", "absolute"}, {"use_swiglu_ffn", false},
};

Activation activation_in(const Settings& config, const EncoderConfigKeys& keys) {
  const std::string name = config.text(keys.activation, keys.default_activation);
  try {
    return activation_of(name == "gelu_python" ? "gelu" : name);
  } catch (const c10::ValueError&) {
    config.refuse(keys.activation,
                  "must be gelu, gelu_new, gelu_fast, gelu_accurate, gelu_pytorch_tanh, "
                  "gelu_python, quick_gelu, relu, silu or swish");
  }
}

TransformerEncoderLayerOptions layer_in(const Settings& config, const EncoderConfigKeys& keys) {
  const int64_t hidden = config.whole("hidden_size", keys.default_hidden, 1, kWidest);
  const int64_t heads = config.whole("num_attention_heads", keys.default_heads, 1, kWidest);
  if (hidden % heads != 0) {
    config.refuse("num_attention_heads",
                  "must divide " + config.key("hidden_size") + " " + std::to_string(hidden));
  }
  int64_t wide = config.whole(keys.wide, keys.default_wide, 1, kWidest);
  if (keys.wide_is_ratio) wide *= hidden;
  const std::string dropout = keys.dropout, eps = keys.eps;
  return TransformerEncoderLayerOptions(hidden, heads)
      .d_ff(wide)
      .dropout(dropout.empty() ? 0.0 : config.real(keys.dropout, keys.default_dropout))
      .activation(activation_in(config, keys))
      .layer_norm_eps(eps.empty() ? keys.default_eps : config.real(keys.eps, keys.default_eps));
}

// AlbertTransformer: which of the layers of all groups runs as the i-th.
std::vector<int64_t> shared_order(int64_t layers, int64_t groups, int64_t inner) {
  std::vector<int64_t> order;
  for (int64_t i = 0; i < layers; ++i) {
    const double per_group = static_cast<double>(layers) / static_cast<double>(groups);
    const auto group = static_cast<int64_t>(static_cast<double>(i) / per_group);
    for (int64_t j = 0; j < inner; ++j) order.push_back(group * inner + j);
  }
  return order;
}

TransformerEncoderOptions layers_in(const Settings& config, const EncoderModelRow& row) {
  auto layer = layer_in(config, row.config).norm_first(row.norm_first);
  if (row.has_layer_scale) layer.layer_scale(config.real("layerscale_value", 1.0));
  const int64_t layers =
      config.whole("num_hidden_layers", row.config.default_layers, 1, kMostEncoderLayers);
  TransformerEncoderOptions options(layer, layers);
  options.norm(*row.last_norm != '\0');
  if (row.shares_layers) {
    const int64_t groups = config.whole("num_hidden_groups", 1, 1, kMostEncoderLayers);
    const int64_t inner = config.whole("inner_group_num", 1, 1, kMostEncoderLayers);
    options.num_layers(groups * inner).order(shared_order(layers, groups, inner));
  }
  return options;
}

// CLIP's first files have 2 in place of the real id.
void set_pooling(const Settings& config, const EncoderModelRow& row, EncoderOptions& options) {
  using encoder::Pooling;
  options.pooling(row.pooling);
  if (row.pooling == Pooling::EndToken) {
    options.eos_token_id(config.whole("eos_token_id", 49407, 0, INT64_MAX));
    if (options.eos_token_id() == 2) options.pooling(Pooling::LargestToken);
  }
  const char* width = row.is_vision ? "pooler_output_size" : "projection_size";
  const bool has_width =
      row.is_vision ? row.pooling == Pooling::TanhOfFirst : row.pooling == Pooling::LinearOfLast;
  const int64_t hidden = options.encoder().layer().d_model();
  if (has_width) options.pooler_dim(config.whole(width, hidden, 1, kWidest));
}

// MPNetEncoder has a table with the number of rows in config.json, but always computes 32 buckets.
void set_relative_bias(const Settings& config, EncoderOptions& options) {
  const int64_t rows = config.whole(kMPNetRows, kMPNetBuckets, 1, kWidest);
  if (rows < kMPNetBuckets) {
    config.refuse(kMPNetRows, "must be at least 32, the number of buckets that MPNet computes");
  }
  options.relative_buckets(kMPNetBuckets).relative_rows(rows);
}

EncoderOptions front_and_layers(const Settings& config, const EncoderModelRow& row,
                                const TransformerEncoderOptions& layers) {
  nlohmann::json object = config.object();
  object["model_type"] = row.model_type;
  const std::string text = object.dump();
  try {
    if (row.is_vision) return {vision_front_options_from_hf(text), layers};
    return {front_options_from_hf(text), layers};
  } catch (const c10::ValueError& error) {
    refuse_settings(config, error);
  }
}

EncoderOptions options_in(const Settings& config, const EncoderModelRow& row) {
  EncoderOptions options = front_and_layers(config, row, layers_in(config, row));
  options.causal(row.is_causal);
  if (*row.relative_bias != '\0') set_relative_bias(config, options);
  set_pooling(config, row, options);
  return options;
}

}  // namespace

void refuse_settings(const Settings& config, const c10::ValueError& error) {
  std::string rule = error.what_without_backtrace();
  const std::string end_of_module = "] ", unnamed = "the configuration: ";
  if (rule.rfind('[', 0) == 0) rule.erase(0, rule.find(end_of_module) + end_of_module.size());
  if (rule.rfind(unnamed, 0) == 0) rule.erase(0, unnamed.size());
  TORCH_CHECK_VALUE(false, config.where(), rule);
}

EncoderConfig read_encoder_config(const Settings& config) {
  const std::string model_type = config.text("model_type", "");
  const CompositeModelRow* whole = find_composite_model(model_type);
  const auto& row = encoder_model(config.where(), whole ? whole->encoder : model_type);
  const Settings own = (whole ? config.part(whole->settings) : config).of(row.model_type);
  for (const auto& [name, value] : kFixed) {
    if (own.has(name) && own.value(name) != value) {
      own.refuse(name, "must be " + value.dump() + ", the only value that posenc has");
    }
  }
  return {row, own, options_in(own, row)};
}

}  // namespace posenc
