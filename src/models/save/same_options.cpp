// posenc-budget: the values of all options, beside each other

#include <c10/util/Exception.h>

#include <string>
#include <utility>
#include <vector>

#include "models/encoder/config.h"
#include "models/encoder/parts.h"
#include "models/options/values.h"
#include "models/save/same.h"
#include "posenc/core/skip_init.h"
#include "posenc/models/encoder.h"

namespace posenc {
namespace {

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
  values.emplace_back("relative spare_rows", static_cast<double>(buckets.spare_rows));
}

void add_alibi(const std::optional<relative::Alibi>& alibi, NamedValues& values) {
  values.emplace_back("alibi slopes", alibi ? static_cast<double>(alibi->slopes) : -1.0);
  values.emplace_back("alibi bias_max", alibi ? alibi->bias_max : 0.0);
  values.emplace_back("alibi counts_tokens", alibi && alibi->counts_tokens ? 1.0 : 0.0);
  values.emplace_back("alibi factor", alibi ? alibi->factor : 0.0);
  values.emplace_back("alibi bfloat16", alibi && alibi->bfloat16 ? 1.0 : 0.0);
}

void add_grid(const std::optional<relative::Grid>& grid, NamedValues& values) {
  values.emplace_back("grid_bias height", grid ? static_cast<double>(grid->height) : 0.0);
  values.emplace_back("grid_bias width", grid ? static_cast<double>(grid->width) : 0.0);
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
  add("qk_norm_whole", layer.qk_norm_whole());
  add("qk_norm_bias", layer.qk_norm_bias());
  add("qk_norm_per_head", layer.qk_norm_per_head());
  add("qk_norm_after_rotary", layer.qk_norm_after_rotary());
  add("qkv_clip", layer.qkv_clip().value_or(-1.0));
  add("attention_softcap", layer.attention_softcap().value_or(0.0));
  add("query_growth beta", layer.query_growth().value_or(QueryGrowth()).beta);
  add("query_growth length", layer.query_growth().value_or(QueryGrowth()).length);
  add("value_norm", layer.value_norm());
  add("per_layer_input", layer.per_layer_input().value_or(0));
  add("output_factor", layer.output_factor());
  add("residual_scale", layer.residual_scale());
  add("adapter width", layer.adapter() ? layer.adapter()->width() : 0);
  if (const auto& own = layer.adapter()) {
    add("adapter norm", own->norm());
    add("adapter norm_before_residual", own->norm_before_residual());
  }
  add("post_norms", layer.post_norms());
  add("first_norm", layer.first_norm());
  add("second_norm", layer.second_norm());
  add("residual_of_norm", layer.residual_of_norm());
  add("parallel", layer.parallel());
  add("norm_affine", layer.norm_affine());
  add("query_bias", layer.query_bias());
  add("key_bias", layer.key_bias());
  add("value_bias", layer.value_bias());
  add("attention_scale", layer.attention_scale().value_or(0.0));
  add_relative(layer.relative(), values);
  add_grid(layer.grid_bias(), values);
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
  if (const auto& own = layer.transformer_xl()) {
    add("clamp_len", own->clamp_len());
    add("bi_data", own->bi_data());
    add("segments", own->segments());
    add("qkv_bias", layer.qkv_bias().value_or(layer.bias()));
    add("out_bias", layer.out_bias().value_or(layer.bias()));
  }
  if (const auto& own = layer.conformer()) {
    add("conv_kernel_size", own->conv_kernel_size());
    add("transformer_xl", layer.transformer_xl().has_value());
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

// Those of windows, of all layers.
NamedValues values_of_windows(const WindowEncoderOptions& options) {
  NamedValues values;
  const auto add = [&](const char* name, auto value) {
    values.emplace_back(name, static_cast<double>(value));
  };
  add("the number of stages", options.stages().size());
  add("norm", options.norm());
  add("output_channels", options.neck() ? options.neck()->channels() : 0);
  for (const WindowStageOptions& stage : options.stages()) {
    add("the number of layers of a stage", stage.layers().size());
    for (const WindowEncoderLayerOptions& one : stage.layers()) {
      const WindowOptions& windows = one.windows();
      add("d_model", one.layer().d_model());
      add("num_heads", one.layer().num_heads());
      add("activation", one.layer().activation());
      add("layer_norm_eps", one.layer().layer_norm_eps());
      add("key_bias", one.layer().key_bias());
      add("qkv_bias", one.layer().qkv_bias().value_or(true));
      add("the rows of a window", windows.window().height);
      add("the columns of a window", windows.window().width);
      add("shift", windows.shift());
      add("positions", windows.positions());
      add("pretrained_window", windows.pretrained_window().height);
      add("needs_room", windows.needs_room());
      add("res_post_norm", windows.res_post_norm());
    }
  }
  return values;
}

void check_equal(const Settings& where, const NamedValues& expected, const NamedValues& got,
                 const char* what) {
  TORCH_CHECK_VALUE(expected.size() == got.size(), where.where(), what,
                    " must be those of the encoder. Got others");
  for (std::size_t i = 0; i < expected.size(); ++i) {
    TORCH_CHECK_VALUE(expected[i].second == got[i].second, where.where(), expected[i].first,
                      " must be that of the encoder, ", expected[i].second, ". Got ",
                      got[i].second);
  }
}

void check_same_layers(const EncoderConfig& saved, const EncoderImpl& model) {
  const auto& where = saved.settings;
  TORCH_CHECK_VALUE(saved.options.windows().has_value() == model.options.windows().has_value(),
                    where.where(), "the layers must be those of the encoder. Got others");
  if (model.windows) {
    return check_equal(where, values_of_windows(model.windows->options),
                       values_of_windows(*saved.options.windows()), "the layers");
  }
  const std::vector<TransformerLayerOptions> layers = layer_options(model);
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const TransformerLayerOptions own = saved.options.encoder().layer_at(static_cast<int64_t>(i));
    NamedValues expected, got;
    add_layer(layers[i], expected);
    add_layer(own, got);
    TORCH_CHECK_VALUE(expected.size() == got.size(), where.where(),
                      "the layers must be those of the encoder. Got others for layer ", i);
    for (std::size_t j = 0; j < expected.size(); ++j) {
      TORCH_CHECK_VALUE(expected[j].second == got[j].second, where.where(), expected[j].first,
                        " of layer ", i, " must be that of the encoder, ", expected[j].second,
                        ". Got ", got[j].second);
    }
    const bool rotates = layers[i].rotary().has_value();
    const bool same = rotates == own.rotary().has_value() &&
                      (!rotates || layers[i].rotary()->rotary() == own.rotary()->rotary());
    TORCH_CHECK_VALUE(same, where.where(), "the rotary embedding of layer ", i,
                      " must be that of the encoder. Got another");
    TORCH_CHECK_VALUE(layers[i].transformer_xl() == own.transformer_xl(), where.where(),
                      "transformer_xl of layer ", i,
                      " must be that of the encoder: its sinusoid and mask_embedding. Got another");
  }
}

// The options of the modules inside others, which config.json does not tell apart from those of the
// modules around them.
void check_parts_of_modules(const Settings& where, const EncoderImpl& model) {
  EncoderOptions options = model.options;
  if (model.encoder && !model.encoder->layers->is_empty()) {
    const std::vector<TransformerLayerOptions> layers = layer_options(model);
    options.encoder().num_layers(static_cast<int64_t>(layers.size())).layers(layers);
  }
  const SkipInit skip;
  Encoder expected(options);
  if (model.encoder) {  // whose layers have been compared one by one
    const TransformerEncoderOptions& own = model.encoder->options;
    expected->encoder->options.num_layers(own.num_layers()).layers(own.layers());
  }
  const std::string other = first_with_other_options(model, *expected);
  TORCH_CHECK_VALUE(other.empty(), where.where(), "the options of ", other,
                    " must be those that the encoder gives it. Got others");
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
  add("masks_padding", options.masks_padding());
  add("output_dim", options.output_dim().value_or(0));
  add("zero_hidden_padding", options.zero_hidden_padding());
  add("raw_inputs_embeds", options.raw_inputs_embeds());
  add("token_dropout_id", options.token_dropout_id().value_or(-1));
  add("pos_embed_shift", options.pos_embed_shift());
  add("pos_embed_jitter", options.pos_embed_jitter());
  add("pos_embed_rescale", options.pos_embed_rescale());
  const auto& document = options.document_bias();
  add_relative(document ? std::optional<relative::Index>(document->places()) : std::nullopt,
               values);
  add_relative(document && document->boxes() ? std::optional<relative::Index>(*document->boxes())
                                             : std::nullopt,
               values);
  add("document_bias scale", document ? document->scale() : 0.0);
  add_relative(options.encoder().relative(), values);
  add_alibi(options.encoder().alibi(), values);
  add_grid(options.encoder().grid_bias(), values);
  add("norm after the layers", options.encoder().norm());
  add("final_norm_eps", options.encoder().final_norm_eps().value_or(layer.layer_norm_eps()));
  add("final_norm_bias",
      options.encoder().final_norm_bias().value_or(layer.norm_bias().value_or(layer.bias())));
  for (const int64_t i : options.encoder().order()) add("order of the layers", i);
  if (options.pooling() == encoder::Pooling::EndToken) add("eos_token_id", options.eos_token_id());
  if (options.embeddings()) add_embeddings(*options.embeddings(), values);
  return values;
}

void check_same_decoder(const EncoderConfig& saved, const EncoderImpl& model) {
  TransformerOptions expected = model.transformer->options;
  expected.num_encoder_layers(static_cast<int64_t>(model.transformer->encoder->layers->size()))
      .num_decoder_layers(static_cast<int64_t>(model.transformer->decoder->layers->size()));
  check_same(*saved.options.transformer(), expected, saved.settings);
  const auto ids = [](const EncoderOptions& options) {
    NamedValues values;
    const auto add = [&](const char* name, std::optional<int64_t> id) {
      values.emplace_back(name, static_cast<double>(id.value_or(-1)));
    };
    add("decoder_start_token_id", options.decoder_start_token_id());
    add("pad_token_id", options.pad_token_id());
    if (options.pooling() == encoder::Pooling::LastEndToken)
      add("eos_token_id", options.eos_token_id());
    return values;
  };
  check_equal(saved.settings, ids(model.options), ids(saved.options), "the ids of the encoder");
}

}  // namespace

void check_same(const EncoderConfig& saved, const EncoderImpl& model) {
  const auto& config = saved.settings;
  const std::string input = input_name(model.options);
  TORCH_CHECK_VALUE(input == input_name(saved.options), config.where(),
                    "model_type must be that of an encoder of ", input, ". Got ", saved.model.type);
  const auto pooling = model.options.pooling();
  TORCH_CHECK_VALUE(pooling == encoder::Pooling::None || pooling == saved.options.pooling(),
                    config.where(), "the pooling of model_type ", saved.model.type,
                    " must be that of the encoder. Got another");
  TORCH_CHECK_VALUE(
      model.options.transformer().has_value() == saved.options.transformer().has_value(),
      config.where(), "the encoder must be with a decoder if its head is on that. Got ",
      model.transformer ? "one with a decoder" : "one without");
  if (model.transformer) return check_same_decoder(saved, model);
  const NamedValues expected = values_of(model.options), got = values_of(saved.options);
  check_equal(config, expected, got, "the layers in their order");
  check_same_layers(saved, model);
  check_parts_of_modules(config, model);
}

}  // namespace posenc
