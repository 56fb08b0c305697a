#include <c10/util/Exception.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "models/config/settings.h"
#include "models/save/same.h"
#include "posenc/positions/sinusoid/preset.h"
#include "posenc/transformer/transformer.h"

namespace posenc {
namespace {

using embeddings::PositionIds;

using NumberedOptions = std::vector<std::pair<const char*, double>>;

// The options that decide what is computed, by which they are compared.
NumberedOptions numbers_of(const TransformerOptions& o) {
  NumberedOptions all;
  const auto add = [&](const char* name, auto value) {
    all.emplace_back(name, static_cast<double>(value));
  };
  const int64_t width = o.d_model();
  const auto norm = o.embedding_norm();
  const double rate = o.dropout();
  const LayerDropouts dropouts = o.dropouts().value_or(LayerDropouts{rate, rate, rate, rate});
  const int64_t head_dim = o.head_dim().value_or(width / o.num_heads());
  add("src_vocab", o.src_vocab());
  add("tgt_vocab", o.tgt_vocab());
  add("d_model", width);
  add("num_heads", o.num_heads());
  add("decoder_num_heads", o.decoder_num_heads().value_or(o.num_heads()));
  add("num_encoder_layers", o.num_encoder_layers());
  add("num_decoder_layers", o.num_decoder_layers());
  add("d_ff", o.d_ff());
  add("decoder_d_ff", o.decoder_d_ff().value_or(o.d_ff()));
  add("dropout", rate);
  add("the dropout of attention", dropouts.attention);
  add("the dropout of an attention's output", dropouts.attention_output);
  add("the dropout of activations", dropouts.activation);
  add("the dropout of a feed-forward network's output", dropouts.output);
  add("scale", o.scale().factor(width));
  add("decoder_scale", o.decoder_scale().value_or(o.scale()).factor(width));
  add("position_ids", o.position_ids());
  if (o.position_ids() != PositionIds::None) add("max_len", o.max_len());
  if (o.position_ids() == PositionIds::FromIds) add("padding_idx", o.padding_idx().value_or(-1));
  add("learned_positions", o.learned_positions());
  add("position_offset", o.position_offset());
  add("embedding_norm", norm);
  add("decoder_embedding_norm", o.decoder_embedding_norm().value_or(norm));
  add("head_dim", head_dim);
  add("attention_scale", o.attention_scale().value_or(0.0));
  add("relative_in_each_layer", o.relative_in_each_layer());
  add("feed_forward", o.feed_forward());
  add("activation", o.activation());
  add("norm_first", o.norm_first());
  add("final_norm", o.final_norm().value_or(o.norm_first()));
  add("norm_kind", o.norm_kind());
  add("layer_norm_eps", o.layer_norm_eps());
  add("bias", o.bias());
  add("key_bias", o.key_bias());
  add("output_bias", o.output_bias());
  add("output_scale", o.output_scale());
  return all;
}

// With the sinusoid that the embeddings have where none is set.
std::optional<AudioEmbeddingsOptions> with_sinusoid(
    std::optional<AudioEmbeddingsOptions> features) {
  if (features && !features->learned_positions() && !features->sinusoid())
    features->sinusoid(preset("hf_whisper", features->d_model()));
  return features;
}

}  // namespace

void check_same(const TransformerOptions& saved, const TransformerOptions& expected,
                const Settings& config) {
  const NumberedOptions own = numbers_of(expected), got = numbers_of(saved);
  const std::string type = config.text("model_type");
  for (std::size_t i = 0; i < own.size() && i < got.size(); ++i) {
    TORCH_CHECK_VALUE(own[i] == got[i], config.where(), own[i].first,
                      " of the model must be that of ", "model_type ", type, " with its settings, ",
                      got[i].second, ". Got ", own[i].second);
  }
  const auto check = [&](const char* name, bool is_same) {
    TORCH_CHECK_VALUE(is_same, config.where(), name, " of the model must be that of model_type ",
                      type, " with its settings. Got another");
  };
  check("src_features",
        with_sinusoid(saved.src_features()) == with_sinusoid(expected.src_features()));
  check("relative", saved.relative() == expected.relative());
  check("decoder_relative", saved.decoder_relative() == expected.decoder_relative());
  check("alibi", saved.alibi() == expected.alibi());
  const bool has_sinusoid =
      expected.position_ids() != PositionIds::None && !expected.learned_positions();
  check("sinusoid", !has_sinusoid || saved.sinusoid() == expected.sinusoid());
}

}  // namespace posenc
