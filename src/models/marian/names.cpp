#include "models/marian/names.h"

#include "io/load/key_map.h"
#include "models/model_folder.h"

namespace posenc {
namespace {

const char* const kSourceTokens = "src_embedding.token_embedding.weight";
const char* const kSourcePositions = "src_embedding.position_encoding.pe";
const char* const kTargetPositions = "tgt_embedding.position_encoding.pe";
const char* const kLogitsBias = "final_layer.bias";

// {theirs, ours}.
KeyMap marian_key_map() {
  return {
      {"model.encoder.embed_tokens.weight", kSourceTokens},
      {KeySource::unsqueezed("model.encoder.embed_positions.weight", 0), kSourcePositions},
      {"model.decoder.embed_tokens.weight", "tgt_embedding.token_embedding.weight"},
      {KeySource::unsqueezed("model.decoder.embed_positions.weight", 0), kTargetPositions},
      {"model.encoder.layers.*.self_attn_layer_norm.*", "encoder.layers.*.norm1.*"},
      {"model.encoder.layers.*.final_layer_norm.*", "encoder.layers.*.norm2.*"},
      {"model.decoder.layers.*.self_attn_layer_norm.*", "decoder.layers.*.norm1.*"},
      {"model.decoder.layers.*.encoder_attn_layer_norm.*", "decoder.layers.*.norm2.*"},
      {"model.decoder.layers.*.final_layer_norm.*", "decoder.layers.*.norm3.*"},
      {{"model.*.layers.*.self_attn.q_proj.*", "model.*.layers.*.self_attn.k_proj.*",
        "model.*.layers.*.self_attn.v_proj.*"},
       "*.layers.*.self_attn.in_proj_*"},
      {"model.*.layers.*.self_attn.out_proj.*", "*.layers.*.self_attn.out_proj.*"},
      {{"model.*.layers.*.encoder_attn.q_proj.*", "model.*.layers.*.encoder_attn.k_proj.*",
        "model.*.layers.*.encoder_attn.v_proj.*"},
       "*.layers.*.multihead_attn.in_proj_*"},
      {"model.*.layers.*.encoder_attn.out_proj.*", "*.layers.*.multihead_attn.out_proj.*"},
      {"model.*.layers.*.fc1.*", "*.layers.*.linear1.*"},
      {"model.*.layers.*.fc2.*", "*.layers.*.linear2.*"},
      {"lm_head.weight", "final_layer.weight"},
      {KeySource::squeezed("final_logits_bias", 0), kLogitsBias},  // (1, V)
  };
}

}  // namespace

// Without the three-way tie nothing reads the shared matrix.
LoadOptions marian_load_options(const TransformerOptions& options, const io::TensorSource& source) {
  KeyMap map = marian_key_map();
  if (options.tie() != Tying::ThreeWay) map.emplace_back(kMarianShared, "");
  drop_later_layers(map, source, "", "model.encoder.layers.*.", {options.num_encoder_layers()});
  drop_later_layers(map, source, "", "model.decoder.layers.*.", {options.num_decoder_layers()});
  return LoadOptions().cast(true).key_map(std::move(map));
}

io::FormatNames marian_format_names(Tying tying) {
  io::FormatNames names;
  if (tying == Tying::ThreeWay) names.tied = {{kMarianShared, kSourceTokens}};
  // transformers computes the first two and uses zeros for the third.
  names.optional = {kSourcePositions, kTargetPositions, kLogitsBias};
  return names;
}

std::string marian_name(const std::string& name) {
  static const LoadOptions options = LoadOptions().key_map(marian_key_map());
  return io::names_in_file(name, options).front();
}

}  // namespace posenc
