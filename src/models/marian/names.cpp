#include "models/marian/names.h"

#include <c10/util/Exception.h>

#include "io/load/key_map.h"

namespace posenc {
namespace {

// {ours, theirs}, as in a KeyMap. {qkv} stands for the three tensors that ours packs into one.
const KeyMap kMarianNames = {
    {"src_embedding.token_embedding.weight", "model.encoder.embed_tokens.weight"},
    {"src_embedding.position_encoding.pe", "model.encoder.embed_positions.weight"},
    {"tgt_embedding.token_embedding.weight", "model.decoder.embed_tokens.weight"},
    {"tgt_embedding.position_encoding.pe", "model.decoder.embed_positions.weight"},
    {"encoder.layers.*.norm1.*", "model.encoder.layers.*.self_attn_layer_norm.*"},
    {"encoder.layers.*.norm2.*", "model.encoder.layers.*.final_layer_norm.*"},
    {"decoder.layers.*.norm1.*", "model.decoder.layers.*.self_attn_layer_norm.*"},
    {"decoder.layers.*.norm2.*", "model.decoder.layers.*.encoder_attn_layer_norm.*"},
    {"decoder.layers.*.norm3.*", "model.decoder.layers.*.final_layer_norm.*"},
    {"*.layers.*.self_attn.in_proj_*", "model.*.layers.*.self_attn.{qkv}_proj.*"},
    {"*.layers.*.self_attn.out_proj.*", "model.*.layers.*.self_attn.out_proj.*"},
    {"*.layers.*.multihead_attn.in_proj_*", "model.*.layers.*.encoder_attn.{qkv}_proj.*"},
    {"*.layers.*.multihead_attn.out_proj.*", "model.*.layers.*.encoder_attn.out_proj.*"},
    {"*.layers.*.linear1.*", "model.*.layers.*.fc1.*"},
    {"*.layers.*.linear2.*", "model.*.layers.*.fc2.*"},
    {"final_layer.weight", "lm_head.weight"},
    {"final_layer.bias", "final_logits_bias"},
};
const std::string kThreeInOne = "{qkv}";

}  // namespace

std::vector<std::string> marian_names(const std::string& name) {
  static const LoadOptions options = LoadOptions().key_map(kMarianNames);
  const std::string mapped = *io::mapped_name(name, options);
  const auto place = mapped.find(kThreeInOne);
  if (place == std::string::npos) return {mapped};
  std::vector<std::string> names;
  for (const char* part : {"q", "k", "v"}) {
    names.push_back(std::string(mapped).replace(place, kThreeInOne.size(), part));
  }
  return names;
}

}  // namespace posenc
