// posenc-budget: one table; splitting it would hide which models share a preset
// The model types of transformers 5.23 whose rotary embeddings are known: adding a model is one
// row, and its defaults are those of its configuration class. What a row has besides is unusual.

#include "models/rotary/model_table.h"

#include "core/named.h"

namespace posenc {
namespace {

const RotaryStructure kPatches = {.scalings = "default axial"};
const RotaryStructure kLatentAttention = {.head_dim_key = "qk_rope_head_dim"};
const RotaryStructure kMemoryAttention = {.head_dim_key = "",
                                          .divisor_key = "memory_attention_downsample_rate",
                                          .hidden_key = "memory_attention_hidden_size",
                                          .heads_key = "memory_attention_num_attention_heads",
                                          .scalings = "default axial"};
const RotaryStructure kWav2Vec2 = {
    .head_dim_key = "", .theta_key = "rotary_embedding_base", .ignores_rope_parameters = true};
const RotaryStructure kGemma3 = {
    .layers = {{.layer_type = "sliding_attention", .theta_key = "rope_local_base_freq"},
               {.layer_type = "full_attention",
                .theta_key = "rope_theta",
                .partial_key = "partial_rotary_factor",
                .shared = SharedParameters::Override}},
    .merges = true};
const RotaryStructure kModernBert = {.layers = {{.layer_type = "sliding_attention",
                                                 .theta_key = "local_rope_theta",
                                                 .partial_key = "partial_rotary_factor",
                                                 .shared = SharedParameters::Override},
                                                {.layer_type = "full_attention",
                                                 .theta_key = "global_rope_theta",
                                                 .partial_key = "partial_rotary_factor",
                                                 .shared = SharedParameters::Override}},
                                     .merges = true,
                                     .only_layers = true};

}  // namespace

const std::vector<RotaryModelRow>& rotary_model_table() {
  static const std::vector<RotaryModelRow> table = {
      // clang-format off
      // blt
      {"blt_global_transformer", "blt"},
      {"blt_local_decoder", "blt"},
      {"blt_local_encoder", "blt"},
      {"blt_patcher", "blt"},
      // codegen
      {"codegen", "codegen", {.head_dim_key = "rotary_dim", .ignores_rope_parameters = true,
       .needs_head_dim = true}},
      // cohere
      {"cohere", "cohere"},
      {"cohere2", "cohere"},
      {"cohere2_moe", "cohere", {.partial_key = "", .ignores_rope_scaling = true}},
      // cohere_compass
      {"cohere_compass_text", "cohere_compass", {.head_dim_key = "",
       .layers = {{.layer_type = "full_attention"}, {.layer_type = "sliding_attention"}}}},
      // deepseek_v2
      {"deepseek_v2", "deepseek_v2", kLatentAttention},
      // deepseek_v3
      {"axk1", "deepseek_v3", {.rope_dim_key = "qk_rope_head_dim"}},
      {"axk2", "deepseek_v3", kLatentAttention},
      {"bailing_hybrid", "deepseek_v3", kLatentAttention},
      {"deepseek_v3", "deepseek_v3", {.rope_dim_key = "qk_rope_head_dim"}},
      {"deepseek_v32", "deepseek_v3", kLatentAttention},
      {"glm4_moe_lite", "deepseek_v3", {.rope_dim_key = "qk_rope_head_dim", .reads_partial = true}},
      {"glm_moe_dsa", "deepseek_v3", kLatentAttention},
      {"longcat_flash", "deepseek_v3"},
      {"mistral4", "deepseek_v3", {.head_dim_key = "", .rope_dim_key = "qk_rope_head_dim",
       .more_key = "qk_nope_head_dim"}},
      {"youtu", "deepseek_v3", {.rope_dim_key = "qk_rope_head_dim"}},
      // deepseek_v4
      {"deepseek_v4", "deepseek_v4", {.layers = {{.layer_type = "main", .theta_key = "rope_theta",
       .partial_key = "partial_rotary_factor"}, {.layer_type = "compress",
       .theta_key = "compress_rope_theta", .partial_key = "partial_rotary_factor",
       .shared = SharedParameters::Scaling, .yarn_attention_factor = 1.0}}}},
      // dots3_note
      {"dots3_note_text", "dots3_note", {.layers = {{.layer_type = "indexed_attention",
       .theta_key = "rope_theta", .shared = SharedParameters::All}, {.layer_type = "sliding_attention",
       .theta_key = "swa_rope_theta", .shared = SharedParameters::All}}, .reads_partial = true}},
      // ernie4_5
      {"ernie4_5", "ernie4_5"},
      {"ernie4_5_moe", "ernie4_5"},
      // ernie4_5_vl
      {"ernie4_5_vl_moe_text", "ernie4_5_vl", {.scalings = "default"}},
      // esm
      {"esm", "esm", {.ignores_rope_parameters = true}},
      {"evolla", "esm"},
      // gemma3
      {"gemma3_text", "gemma3", kGemma3},
      {"t5gemma2_text", "gemma3", kGemma3},
      {"ultrabert", "gemma3"},
      // gemma3n
      {"gemma3n_text", "gemma3n", kGemma3},
      // gemma4
      {"embedding_gemma2_text", "gemma4", {.global_head_dim = 512}},
      {"gemma4_text", "gemma4", {.global_head_dim = 512}},
      {"gemma4_unified_text", "gemma4", {.global_head_dim = 512}},
      // gemma4_partial
      {"diffusion_gemma_text", "gemma4_partial", {.global_head_dim = 512, .layers = {{.layer_type = "sliding_attention",
       .partial_key = "partial_rotary_factor"}}, .reads_partial = true}},
      // glm
      {"glm", "glm"},
      {"glm4", "glm"},
      {"moonshine", "glm"},
      {"moonshine_streaming", "glm"},
      // glm4v
      {"glm4v_text", "glm4v"},
      {"glm_ocr_text", "glm4v"},
      // glm4v_moe
      {"glm4v_moe_text", "glm4v_moe"},
      {"glm_image_text", "glm4v_moe"},
      // gpt_neox
      {"bamba", "gpt_neox", {.partial_key = ""}},
      {"dots3_note_audio_encoder", "gpt_neox"},
      {"glm4_moe", "gpt_neox"},
      {"glmasr_encoder", "gpt_neox"},
      {"gpt_neox", "gpt_neox", {.theta_key = "rotary_emb_base", .partial_key = "rotary_pct"}},
      {"gpt_neox_japanese", "gpt_neox", {.theta_key = "rotary_emb_base",
       .partial_key = "rotary_pct"}},
      {"minimax_m2", "gpt_neox", {.rotary_dim_key = "rotary_dim"}},
      {"minimax_m3_vl_text", "gpt_neox"},
      {"nemotron", "gpt_neox"},
      {"nemotron3_5_transcribe_asr_audio", "gpt_neox"},
      {"nemotron3_diarization_audio", "gpt_neox"},
      {"persimmon", "gpt_neox"},
      {"phi", "gpt_neox"},
      {"phi3", "gpt_neox", {.scalings = "default longrope", .longrope_names = true}},
      {"phi4_multimodal", "gpt_neox", {.scalings = "default longrope", .longrope_names = true}},
      {"qwen3_next", "gpt_neox"},
      {"recurrent_gemma", "gpt_neox", {.scalings = "default"}},
      {"solar_open", "gpt_neox"},
      {"stablelm", "gpt_neox"},
      // gpt_oss
      {"gpt_oss", "gpt_oss"},
      // gptj
      {"gptj", "gptj", {.head_dim_key = "rotary_dim", .ignores_rope_parameters = true,
       .needs_head_dim = true}},
      // helium
      {"helium", "helium"},
      // hunyuan_v1
      {"hunyuan_v1_dense", "hunyuan_v1"},
      {"hunyuan_v1_moe", "hunyuan_v1"},
      // hunyuan_vl
      {"hunyuan_vl_text", "hunyuan_vl"},
      // laguna
      {"laguna", "laguna"},
      {"step3p5", "laguna", {.layers = {{.layer_type = "full_attention", .theta_key = "rope_theta",
       .shared = SharedParameters::Override}}, .layers_key = "layer_types", .merges = true, .lists = true}},
      {"zaya", "laguna"},
      // llama
      {"afmoe", "llama"},
      {"apertus", "llama"},
      {"arcee", "llama"},
      {"aria_text", "llama"},
      {"bitnet", "llama"},
      {"chameleon", "llama"},
      {"csm", "llama"},
      {"csm_depth_decoder_model", "llama"},
      {"cwm", "llama"},
      {"dbrx", "llama"},
      {"deepseek_ocr2_encoder", "llama"},
      {"deepseek_ocr2_text", "llama", {.head_dim_key = ""}},
      {"dia_decoder", "llama"},
      {"dia_encoder", "llama"},
      {"diffllama", "llama"},
      {"doge", "llama"},
      {"dots1", "llama"},
      {"emu3_text_model", "llama"},
      {"esmc", "llama"},
      {"eurobert", "llama"},
      {"exaone4", "llama"},
      {"exaone_moe", "llama"},
      {"falcon", "llama", {.head_dim_key = ""}},
      {"falcon_h1", "llama"},
      {"flint", "llama"},
      {"gemma", "llama"},
      {"gemma2", "llama"},
      {"gradium_phonon_tts", "llama"},
      {"granite", "llama"},
      {"granite4_vision_text", "llama"},
      {"granite_docling_text", "llama"},
      {"granite_swa", "llama"},
      {"granitemoe", "llama"},
      {"granitemoe_swa", "llama"},
      {"granitemoehybrid", "llama"},
      {"granitemoeshared", "llama"},
      {"gte", "llama"},
      {"higgs_audio_v2", "llama"},
      {"hrm_text", "llama"},
      {"hy_v3", "llama"},
      {"hy_v4", "llama", kLatentAttention},
      {"hyperclovax", "llama"},
      {"idefics", "llama"},
      {"internlm3", "llama"},
      {"iquestcoder", "llama"},
      {"jais2", "llama"},
      {"jetmoe", "llama"},
      {"jina_embeddings_v3", "llama"},
      {"kolibri1", "llama"},
      {"kyutai_speech_to_text", "llama"},
      {"lasr_encoder", "llama"},
      {"lfm2", "llama"},
      {"lfm2_moe", "llama"},
      {"llama", "llama"},
      {"mimi", "llama"},
      {"minicpm3", "llama", kLatentAttention},
      {"minimax", "llama"},
      {"ministral", "llama"},
      {"ministral3", "llama"},
      {"mistral", "llama"},
      {"mixtral", "llama"},
      {"mllama_text_model", "llama"},
      {"moshi", "llama"},
      {"muse_glimmer_assistant", "llama"},
      {"muse_glimmer_text", "llama"},
      {"muse_spark_text", "llama"},
      {"nomic_bert", "llama"},
      {"olmoe", "llama"},
      {"pocket_tts", "llama"},
      {"pocket_tts_audio_tokenizer", "llama"},
      {"qwen2", "llama"},
      {"qwen2_moe", "llama"},
      {"qwen3", "llama"},
      {"qwen3_moe", "llama"},
      {"qwen3_omni_moe_talker_code_predictor", "llama"},
      {"seed_oss", "llama"},
      {"smollm3", "llama"},
      {"starcoder2", "llama"},
      {"t5_gemma_module", "llama"},
      {"timesfm2_5", "llama"},
      {"unlimited_ocr_text", "llama", {.head_dim_key = ""}},
      {"vaultgemma", "llama"},
      {"voxtral_realtime_encoder", "llama"},
      {"voxtral_realtime_text", "llama"},
      {"zamba2", "llama", {.times = 2}},
      // llama4
      {"llama4_text", "llama4"},
      // mellum
      {"mellum", "mellum", {.reads_partial = true}},
      // mimo_v2_flash
      {"mimo_v2_flash", "mimo_v2_flash", {.unscaled_partial = 0.334}},
      // mistral_large4
      {"mistral_large4_text", "mistral_large4", kLatentAttention},
      // modernbert
      {"modernbert", "modernbert", kModernBert},
      {"modernbert-decoder", "modernbert", kModernBert},
      // molmo2
      {"molmo2_text", "molmo2", {.unscaled_layers = true}},
      // nanochat
      {"nanochat", "nanochat"},
      // neomme
      {"neomme", "neomme", {.layers = {{.layer_type = "full_attention", .theta_key = "rope_theta"},
       {.layer_type = "sliding_attention", .theta_key = "rope_theta"}}, .merges = true,
       .only_layers = true}},
      // olmo
      {"flex_olmo", "olmo"},
      {"olmo", "olmo"},
      {"olmo2", "olmo"},
      {"olmo_hybrid", "olmo"},
      // olmo3
      {"beam", "olmo3", {.layers_key = "rope_parameters"}},
      {"lfm3", "olmo3"},
      {"olmo3", "olmo3", {.layers = {{.layer_type = "full_attention", .theta_key = "rope_theta",
       .partial_key = "partial_rotary_factor", .shared = SharedParameters::Override}}, .merges = true}},
      // pe_audio
      {"pe_audio_encoder", "pe_audio"},
      {"pe_audio_video_encoder", "pe_audio"},
      {"pe_video_encoder", "pe_audio"},
      // phimoe
      {"phimoe", "phimoe", {.scalings = "default longrope"}},
      // privacy_filter
      {"openai_privacy_filter", "privacy_filter"},
      // qwen2_vl
      {"paddleocr_vl_text", "qwen2_vl"},
      {"qwen2_5_omni_talker", "qwen2_vl"},
      {"qwen2_5_omni_text", "qwen2_vl"},
      {"qwen2_5_vl_text", "qwen2_vl"},
      {"qwen2_vl_text", "qwen2_vl"},
      // qwen3_5
      {"qwen3_5_moe_text", "qwen3_5"},
      {"qwen3_5_text", "qwen3_5"},
      {"qwen4_exp_text", "qwen3_5"},
      // qwen3_vl
      {"cosmos3_edge_text", "qwen3_vl"},
      {"qwen3_omni_moe_talker_text", "qwen3_vl"},
      {"qwen3_omni_moe_text", "qwen3_vl"},
      {"qwen3_vl_moe_text", "qwen3_vl"},
      {"qwen3_vl_text", "qwen3_vl"},
      // xcodec2
      {"neucodec", "xcodec2"},
      {"xcodec2", "xcodec2"},
      // gemma4_vision
      {"gemma4_vision", "gemma4_vision", kPatches},
      // inkling2_vision
      {"inkling2_vision", "inkling2_vision", kPatches},
      // kimi_k25_vision
      {"kimi_k25_vision", "kimi_k25_vision", kPatches},
      // minimax_m3_vision
      {"minimax_m3_vl_vision", "minimax_m3_vision", kPatches},
      // muse_vision
      {"muse_glimmer_vision", "muse_vision", kPatches},
      {"muse_spark_vision", "muse_vision", kPatches},
      // pixtral
      {"pixtral", "pixtral", kPatches},
      // qwen2_vl_vision
      {"cohere_compass_vision", "qwen2_vl_vision", kPatches},
      {"dots3_note_vision_encoder", "qwen2_vl_vision", kPatches},
      {"ernie4_5_vl_moe_vision", "qwen2_vl_vision", kPatches},
      {"exaone4_5_vision", "qwen2_vl_vision", kPatches},
      {"glm4v_moe_vision", "qwen2_vl_vision", kPatches},
      {"glm4v_vision", "qwen2_vl_vision", kPatches},
      {"glm5_next_vision", "qwen2_vl_vision", kPatches},
      {"glm_ocr_vision", "qwen2_vl_vision", kPatches},
      {"lfm3_vl_vision", "qwen2_vl_vision", kPatches},
      {"mlcd_vision_model", "qwen2_vl_vision", {.scalings = "default axial", .merge = 1}},
      {"paddleocr_vl_vision", "qwen2_vl_vision", {.scalings = "default axial", .merge = 1}},
      {"qwen2_5_omni_vision_encoder", "qwen2_vl_vision", kPatches},
      {"qwen2_5_vl_vision", "qwen2_vl_vision", kPatches},
      {"qwen2_vl_vision", "qwen2_vl_vision", {.hidden_key = "embed_dim",
       .scalings = "default axial"}},
      {"qwen3_5_moe_vision", "qwen2_vl_vision", kPatches},
      {"qwen3_5_vision", "qwen2_vl_vision", kPatches},
      {"qwen3_omni_moe_vision_encoder", "qwen2_vl_vision", kPatches},
      {"qwen3_vl_moe_vision", "qwen2_vl_vision", kPatches},
      {"qwen3_vl_vision", "qwen2_vl_vision", kPatches},
      {"qwen4_exp_vision", "qwen2_vl_vision", kPatches},
      {"video_llama_3_vision", "qwen2_vl_vision", {.scalings = "default axial", .merge = 0}},
      // step3p7_vision
      {"step3p5_vision", "step3p7_vision", kPatches},
      // patches with coordinates, sound, video
      {"clvp_encoder", "clvp", {.head_dim_key = "", .divisor = 2, .least = 32,
       .hidden_key = "projection_dim", .theta_key = "", .ignores_rope_parameters = true}},
      {"dinov3_vit", "dinov3", {.head_dim_key = "", .ignores_rope_parameters = true}},
      {"eomt_dinov3", "dinov3", {.head_dim_key = "", .scalings = "default"}},
      {"sapiens2", "dinov3", {.head_dim_key = "", .ignores_rope_parameters = true}},
      {"efficientloftr", "efficientloftr", {.scalings = "default", .reads_partial = true}},
      {"lightglue", "lightglue", {.head_dim_key = "", .hidden_key = "descriptor_dim",
       .ignores_rope_parameters = true}},
      {"llama4_vision_model", "llama4_vision", {.head_dim_key = "", .scalings = "default"}},
      {"qwen2_5_omni_dit", "qwen2_5_omni_dit"},
      {"roformer", "roformer", {.head_dim_key = "", .theta_key = "",
       .ignores_rope_parameters = true}},
      {"edgetam_video", "sam2_video", kMemoryAttention},
      {"sam2_video", "sam2_video", kMemoryAttention},
      {"sam3_tracker_video", "sam2_video", kMemoryAttention},
      {"sam3_vit_model", "sam3_vit", kPatches},
      {"vjepa2", "vjepa2", {.head_dim_key = "", .theta_key = "", .ignores_rope_parameters = true}},
      {"seamless_m4t", "wav2vec2_conformer", {.head_dim_key = "",
       .heads_key = "speech_encoder_attention_heads", .theta_key = "rotary_embedding_base",
       .ignores_rope_parameters = true}},
      {"wav2vec2-bert", "wav2vec2_conformer", kWav2Vec2},
      {"wav2vec2-conformer", "wav2vec2_conformer", kWav2Vec2},
      // clang-format on
  };
  return table;
}

const RotaryModelRow* find_rotary_model(std::string_view model_type) {
  return detail::find_named(rotary_model_table(), model_type);
}

}  // namespace posenc
