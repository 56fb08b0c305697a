// The rotary embedding of every system, described by the options in rotary_axes.h. Adding a system
// takes one row. Options that a row omits are those of Llama. Base, dim, scaling and sections come
// from a model's configuration (models/rotary/).

#include "core/named.h"
#include "positions/rotary/preset_rows.h"

namespace posenc {
namespace rotary {
namespace {

RotaryOptions adjacent_to_halves() { return {0, Pairing::AdjacentToHalves}; }

std::vector<RotaryPreset> make() {
  std::vector<RotaryPreset> rows = {
      // halves
      {"llama", "transformers 5.23 LlamaRotaryEmbedding", "the common case", halves(), nullptr,
       diffusers({"AnimaRotaryEmbedding"})},
      {"gpt_neox", "transformers 5.23 GPTNeoXRotaryEmbedding", "the first part of a head rotates",
       halves().part(Part::First), nullptr,
       diffusers({"MiniMaxMusic3RotaryEmbedding (q and k are (B, L, H, D))"})},
      {"nanochat", "transformers 5.23 NanoChatRotaryEmbedding", "rotates the other way",
       halves().reversed(true)},
      {"olmo", "transformers 5.23 OlmoRotaryEmbedding", "cos and sin stay float32",
       halves().cos_type(kept).arithmetic(Arithmetic::Promoted), nullptr,
       diffusers({"OmniGenSuScaledRotaryEmbedding (rotary::LongRope)"})},
      {"esm", "transformers 5.23 EsmRotaryEmbedding",
       "cos and sin rounded, q and k rotated in float32", halves().arithmetic(f32), nullptr,
       diffusers({"AudioDiTRotaryEmbedding (q and k are (B, L, H, D))",
                  "_ace_step_rotary_freqs of ACE-Step"})},
      {"gpt_oss", "transformers 5.23 GptOssRotaryEmbedding", "cos and sin of half the width",
       halves().cos_layout(CosLayout::Single)},
      {"xcodec2", "transformers 5.23 Xcodec2RotaryEmbedding, NeuCodecRotaryEmbedding",
       "the position is the number of the head",
       halves().head_axis(HeadAxis::AfterLength).applied_to(AppliedTo::HeadsByHead)},
      {"gemma3", "transformers 5.23 Gemma3RotaryEmbedding", "as llama, one for each layer type",
       halves()},
      {"gemma3n", "transformers 5.23 Gemma3nRotaryEmbedding", "as gemma3", halves()},
      {"gemma4", "transformers 5.23 Gemma4TextRotaryEmbedding",
       "as gemma3, with a head width for each layer type", halves()},
      {"gemma4_partial", "transformers 5.23 DiffusionGemmaTextRotaryEmbedding", "as gemma4",
       halves()},
      {"hunyuan_v1", "transformers 5.23 HunYuanDenseV1RotaryEmbedding",
       "as llama, with a base by alpha", halves()},
      {"molmo2", "transformers 5.23 Molmo2RotaryEmbedding", "as llama", halves()},
      {"phimoe", "transformers 5.23 PhimoeRotaryEmbedding",
       "as llama, with factors of cos and sin by length", halves()},
      {"mellum", "transformers 5.23 MellumRotaryEmbedding", "as gemma3", halves()},
      {"modernbert", "transformers 5.23 ModernBertRotaryEmbedding",
       "as esm, one for each layer type", halves().arithmetic(f32)},
      {"olmo3", "transformers 5.23 Olmo3RotaryEmbedding", "as olmo, one for each layer type",
       halves().cos_type(kept).arithmetic(Arithmetic::Promoted)},
      {"laguna", "transformers 5.23 LagunaRotaryEmbedding", "as gpt_neox, one for each layer type",
       halves().part(Part::First)},
      {"mimo_v2_flash", "transformers 5.23 MiMoV2FlashRotaryEmbedding", "as laguna",
       halves().part(Part::First)},
      {"wav2vec2_conformer",
       "transformers 5.23 Wav2Vec2ConformerRotaryPositionalEmbedding, Wav2Vec2Bert's, "
       "SeamlessM4T's",
       "as llama; rotates the hidden states before their projections",
       halves().head_axis(HeadAxis::AfterLength).applied_to(AppliedTo::HiddenStates)},
      {"clvp", "transformers 5.23 ClvpRotaryPositionalEmbedding",
       "the first part of q, k and v rotates; they become float32",
       halves()
           .cos_type(kept)
           .part(Part::First)
           .arithmetic(Arithmetic::Widened)
           .rotary_value(true)},
      // adjacent pairs
      {"blt", "transformers 5.23 BltRotaryEmbedding", "cos and sin of adjacent pairs",
       adjacent().cos_layout(CosLayout::Pairs)},
      {"cohere", "transformers 5.23 CohereRotaryEmbedding", "the same, rotated in float32",
       adjacent().cos_layout(CosLayout::Pairs).arithmetic(f32)},
      {"privacy_filter", "transformers 5.23 OpenAIPrivacyFilterRotaryEmbedding",
       "cos and sin of half the width", adjacent().cos_layout(CosLayout::Single)},
      {"helium", "transformers 5.23 HeliumRotaryEmbedding",
       "cos and sin of halves, of which the first is used", adjacent()},
      {"pe_audio", "transformers 5.23 PeAudioEncoderRotaryEmbedding", "as helium", adjacent()},
      {"glm", "transformers 5.23 GlmRotaryEmbedding",
       "the same, and the first part of a head rotates", adjacent().part(Part::First)},
      {"ernie4_5", "transformers 5.23 Ernie4_5RotaryEmbedding",
       "as helium; cos and sin stay float32, and so does the rotation",
       adjacent().cos_type(kept).arithmetic(f32)},
      {"deepseek_v3", "transformers 5.23 DeepseekV3RotaryEmbedding",
       "reads adjacent pairs, writes halves", adjacent_to_halves()},
      {"mistral_large4", "transformers 5.23 MistralLarge4TextRotaryEmbedding", "as deepseek_v3",
       adjacent_to_halves()},
      {"dots3_note", "transformers 5.23 Dots3NoteTextRotaryEmbedding",
       "as deepseek_v3, one for each layer type", adjacent_to_halves()},
      {"qwen2_5_omni_dit", "transformers 5.23 Qwen2_5OmniDiTRotaryEmbedding",
       "as deepseek_v3, the first head only", adjacent_to_halves().rotary_heads(1)},
      {"deepseek_v2", "transformers 5.23 DeepseekV2RotaryEmbedding", "complex numbers", complex()},
      {"llama4", "transformers 5.23 Llama4TextRotaryEmbedding",
       "complex numbers; q and k are (B, L, H, D)", complex().head_axis(HeadAxis::AfterLength)},
      {"deepseek_v4", "transformers 5.23 DeepseekV4RotaryEmbedding",
       "the last part of a head rotates, in float32, and that of the result back",
       adjacent()
           .cos_layout(CosLayout::Single)
           .part(Part::Last)
           .arithmetic(f32)
           .applied_to(AppliedTo::HeadsAndOutput)},
      {"gptj", "transformers 5.23 GPTJAttention", "a table; the first part of a head rotates",
       adjacent().cos_layout(CosLayout::Single).part(Part::First).head_axis(HeadAxis::AfterLength),
       nullptr, diffusers({"RotaryEmbedding (ChatGLM of Kolors)"})},
      {"codegen", "transformers 5.23 CodeGenAttention",
       "the same with float32 cos and sin: q and k become float32",
       adjacent()
           .cos_layout(CosLayout::Single)
           .cos_type(kept)
           .part(Part::First)
           .arithmetic(Arithmetic::Widened)
           .head_axis(HeadAxis::AfterLength)},
      {"roformer", "transformers 5.23 RoFormerSinusoidalPositionalEmbedding",
       "a table computed in float64, its angles by division",
       adjacent()
           .frequency(Frequency::PowerDivisor)
           .angle_type(AngleType::Float64)
           .cos_layout(CosLayout::Single)},
      // several position planes
      {"qwen2_vl", "transformers 5.23 Qwen2VLRotaryEmbedding",
       "sections of frequencies for time, height, width",
       halves().planes(Planes::Chunked).sections({16, 24, 24})},
      {"qwen3_vl", "transformers 5.23 Qwen3VLTextRotaryEmbedding",
       "every third frequency for height and for width",
       halves().planes(Planes::Interleaved).sections({24, 20, 20}), nullptr,
       diffusers({"Cosmos3VLTextRotaryEmbedding (q and k are (L, H, D))",
                  "Ideogram4MRoPE (q and k are (B, L, H, D); positions (B, L, 3))"})},
      {"cohere_compass", "transformers 5.23 CohereCompassRotaryEmbedding",
       "as qwen3_vl, one for each layer type",
       halves().planes(Planes::Interleaved).sections({24, 20, 20})},
      {"qwen3_5", "transformers 5.23 Qwen3_5TextRotaryEmbedding",
       "the same, and the first part of a head rotates",
       halves().planes(Planes::Interleaved).sections({11, 11, 10}).part(Part::First)},
      {"glm4v", "transformers 5.23 Glm4vTextRotaryEmbedding",
       "sections, adjacent pairs, first part",
       adjacent()
           .planes(Planes::Chunked)
           .sections({8, 12, 12})
           .cos_layout(CosLayout::Pairs)
           .part(Part::First)},
      {"glm4v_moe", "transformers 5.23 Glm4vMoeTextRotaryEmbedding", "sections, halves, first part",
       halves().planes(Planes::Chunked).sections({8, 12, 12}).part(Part::First)},
      {"hunyuan_vl", "transformers 5.23 HunYuanVLRotaryEmbedding",
       "sections of the doubled row: the two of a pair may differ in angle",
       halves().planes(Planes::Doubled).arithmetic(f32)},
      {"ernie4_5_vl", "transformers 5.23 Ernie4_5_VLMoeTextRotaryEmbedding",
       "height and width take turns, then time",
       adjacent()
           .planes(Planes::HeightWidth)
           .sections({22, 22, 20})
           .cos_layout(CosLayout::Pairs)
           .cos_type(kept)
           .arithmetic(f32)},
      {"neomme", "transformers 5.23 NeoMMERotaryEmbedding",
       "even frequencies for rows, odd for columns",
       halves().planes(Planes::RowColumn).part(Part::First)},
  };
  for (const auto& more : {axial_presets(), diffusers_presets(), package_presets()}) {
    rows.insert(rows.end(), more.begin(), more.end());
  }
  return rows;
}

}  // namespace
}  // namespace rotary

const std::vector<RotaryPreset>& rotary_presets() {
  static const std::vector<RotaryPreset> all = rotary::make();
  return all;
}

const RotaryPreset& find_rotary_preset(std::string_view name) {
  return detail::find_named(rotary_presets(), name, "[rotary_preset] ",
                            "there is no preset `{}`; the nearest are {}");
}

RotaryOptions rotary_preset(std::string_view name, int64_t dim) {
  const RotaryPreset& preset = find_rotary_preset(name);
  RotaryOptions options = preset.options;
  options.dim(dim);
  if (preset.derive != nullptr) preset.derive(options);
  return options;
}

}  // namespace posenc
