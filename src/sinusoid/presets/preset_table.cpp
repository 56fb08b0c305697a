// Every preset: a name, the class and system that it reproduces, how that system keeps its table,
// and the recipe. Adding a system is one entry here; a recipe of its own goes into recipes_*.cpp.
// posenc-budget: one table; splitting it would hide which systems share a recipe.

#include "sinusoid/presets/recipes.h"

namespace posenc {
namespace {

using Params = std::vector<PresetParam>;

Params operator+(Params a, const Params& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

const Params kReal = {{"start", "0", "first position"}, {"step", "1", "distance of positions"}};
const Params kFlip = {{"flip_sin_to_cos", "0", "1: cosines first"}};
const Params kRealFlip = kReal + kFlip;
const Params kPeriod = kReal + Params{{"max_period", "10000", "base"}};
const Params kTheta = {{"theta", "10000", "base"}};
const Params kRealTheta = kReal + kTheta;
const Params kTimesteps =
    kPeriod + kFlip +
    Params{{"downscale_freq_shift", "1", "subtracted from the exponent's denominator"},
           {"scale", "1", "factor of the angle"}};
const Params kPadding = {{"padding_idx", "-1", "row of zeros, -1 for none"}};
const Params kLegacyPad = {{"legacy_pad_idx", "-1", "padding index of old models, -1 for none"}};
const Params kTimescale = {{"max_timescale", "10000", "base"}};
const Params kAttention = {{"attn_type", "bi", "bi: 2 L rows, uni: L + 1"}};
const Params kStartIndex = {{"start_index", "0", "first position"}};
const Params kKeras = kStartIndex + Params{{"max_wavelength", "10000", "base"}};
const Params kTemperature = {{"temperature", "10000", "base"}};
const Params kSquare = {{"height", "", "cells on each side"}};
const Params kSquareCls = kSquare + Params{{"cls_token", "0", "1: a row of zeros first"}};
const Params kGrid = {{"height", "", "cells down"}, {"width", "", "cells across"}};
const Params kGridTemperature = kGrid + kTemperature;
const Params kGridTemperature20 = kGrid + Params{{"temperature", "20", "base"}};
const Params kGridNormalize = kGrid + Params{{"normalize", "0", "1: coordinates scaled to 2 pi"}};
const Params kGridScaled =
    kGrid + Params{{"base_size", "16", "cells of the grid that was trained on"},
                   {"interpolation_scale", "1", "divides the coordinates"}};
const Params kTimm = kGridTemperature + Params{{"interleave_sin_cos", "0", "1: one block an axis"},
                                               {"reverse_coord", "0", "1: width first"}};
const Params kLoftr = kGrid + Params{{"temp_bug_fix", "1", "0: as released, with its bug"}};
const Params kBox = Params{{"depth", "", "cells deep"}} + kGrid;
const Params kPoints = {{"start", "0", "first x"}, {"step", "0.0009765625", "distance of x"}};
const Params kNerf = {{"multires", "10", "frequencies, (dim - 3) / 6"},
                      {"start", "-1", "first x"},
                      {"step", "0.0078125", "distance of x"}};
const Params kPerceiver = {{"num_bands", "64", "frequencies, (dim - 1) / 2"},
                           {"max_resolution", "224", "twice the last frequency"},
                           {"start", "-1", "first position"},
                           {"step", "0.0078125", "distance of positions"}};

const char* const kTensorFlow = "4 p 2^-24 + 1.2e-7: TensorFlow's exp, sin and cos are its own";

}  // namespace

const std::vector<Preset>& presets() {
  static const std::vector<Preset> table = {
      {"notebook_000", "notebook 00: PositionalEncoding", "persistent buffer pe (1,5000,D)",
       "tutorial", {}, recipes::tutorial, ""},
      {"notebook_003", "notebook 03: PositionalEncoding", "persistent buffer pe (1,5000,D)",
       "tutorial", {}, recipes::tutorial, ""},
      {"annotated_transformer", "harvardnlp/annotated-transformer@debc9fd7, the_annotated_transformer.py: PositionalEncoding", "persistent buffer pe (1,5000,D)", "tutorial", {}, recipes::tutorial, ""},
      {"pytorch_tutorial", "pytorch/examples@77f55b91, word_language_model/model.py: PositionalEncoding", "persistent buffer pe (5000,1,D)", "tutorial", {}, recipes::tutorial, ""},
      {"labml", "labml-nn 0.5.1, get_positional_encoding", "buffer positional_encodings (5000,1,D), persistent=False", "tutorial", {}, recipes::tutorial, ""},
      {"espnet", "espnet 202511, PositionalEncoding", "plain attribute pe (1,L,D); a load hook drops key pe", "tutorial", {}, recipes::tutorial, ""},
      {"opennmt_py", "OpenNMT_py 3.5.1, PositionalEncoding", "persistent buffer pe (5000,1,D)", "tutorial", {}, recipes::tutorial, ""},
      {"speechbrain", "speechbrain 1.1.2, PositionalEncoding", "persistent buffer pe (1,2500,D)", "tutorial", {}, recipes::tutorial, ""},
      {"joeynmt", "joeynmt 2.3.0, PositionalEncoding", "persistent buffer pe (1,5000,D)", "tutorial", {}, recipes::tutorial, ""},
      {"bert_pytorch", "bert_pytorch 0.0.1a4, PositionalEmbedding", "persistent buffer pe (1,512,D)", "tutorial", {}, recipes::tutorial, ""},
      {"informer", "zhouhaoyi/Informer2020@29f2a739, models/embed.py: PositionalEmbedding", "persistent buffer pe (1,5000,D)", "tutorial", {}, recipes::tutorial, ""},
      {"autoformer", "thuml/Autoformer@51c7d416, layers/Embed.py: PositionalEmbedding", "persistent buffer pe (1,5000,D)", "tutorial", {}, recipes::tutorial, ""},
      {"wenet", "wenet-e2e/wenet@01546996, wenet/models/transformer/embedding.py: PositionalEncoding", "persistent buffer pe (1,5000,D)", "tutorial", {}, recipes::tutorial, ""},
      {"nemo_asr", "nemo_toolkit 3.0.0, PositionalEncoding", "buffer pe persistent=False", "tutorial", {}, recipes::tutorial, ""},
      {"fairseq_conformer", "fairseq 0.12.2, PositionalEncoding", "plain attribute pe", "tutorial", {}, recipes::tutorial, ""},
      {"diffusers_sinusoidal", "diffusers 0.42.1, SinusoidalPositionalEmbedding", "persistent buffer pe (1,max_seq_length,D)", "tutorial", {}, recipes::tutorial, ""},
      {"speecht5_scaled", "transformers 5.23.0, SpeechT5ScaledPositionalEncoding", "buffer pe persistent=False + learned alpha", "tutorial", {}, recipes::tutorial, ""},
      {"notebook_001", "notebook 01: positional_encoding_table", "none", "notebook_001", {},
       recipes::notebook_001, ""},
      {"d2l", "d2l 1.0.3, PositionalEncoding", "plain attribute P (1,1000,D)", "notebook_001", {}, recipes::notebook_001, ""},
      {"notebook_002", "notebook 02: PositionalEncoding", "frozen nn.Embedding weight (L,D)",
       "notebook_002", {}, recipes::notebook_002, ""},
      {"notebook_004", "notebook 04: MyPositionEncoding", "persistent buffer pos_enc (L,D)",
       "notebook_004", {}, recipes::notebook_004, ""},
      {"nemo_nmt", "nemo_toolkit 3.0.0, FixedPositionalEncoding", "persistent buffer pos_enc (512,D)", "nemo_nmt", {}, recipes::nemo_nmt, ""},
      {"softs_inc32", "neuralforecast 3.3.0, PositionalEmbedding", "persistent buffer position_embedding (1,5000,D)", "float_increment", {}, recipes::float_increment, ""},
      {"patchtst_sincos", "transformers 5.23.0, PatchTSMixerPositionalEncoding", "frozen Parameter position_enc (L,D)", "standardized", {}, recipes::standardized, ""},
      {"tape", "tsai 1.0.1, tAPE", "persistent buffer pe (1,L,D)", "tape", {}, recipes::tape, ""},
      {"wenet_firered", "wenet-e2e/wenet@01546996, wenet/models/firered/attention.py: FireRedRelPositionalEncoding", "persistent buffer pe (1,2L-1,D)", "relative_float_log", {}, recipes::relative_float_log, ""},
      {"espnet_rel", "espnet 202511, RelPositionalEncoding", "not saved", "relative", {}, recipes::relative, ""},
      {"nemo_asr_rel", "nemo_toolkit 3.0.0, RelPositionalEncoding", "not saved", "relative", {}, recipes::relative, ""},
      {"wav2vec2_conformer_rel", "transformers 5.23.0, Wav2Vec2ConformerRelPositionalEmbedding", "not saved", "relative", {}, recipes::relative, ""},
      {"seamless_m4t_rel", "transformers 5.23.0, SeamlessM4TConformerRelPositionalEmbedding", "not saved", "relative", {}, recipes::relative, ""},
      {"fastspeech2_conformer_rel", "transformers 5.23.0, FastSpeech2ConformerRelPositionalEncoding", "not saved", "relative", {}, recipes::relative, ""},
      {"fairseq_conformer_rel", "fairseq 0.12.2, RelPositionalEncoding", "not saved", "relative", {}, recipes::relative, ""},
      {"speechbrain_rel_xl", "speechbrain 1.1.2, RelPosEncXL", "persistent buffer inv_freq", "relative_distance", {}, recipes::relative_distance, ""},
      {"transformer_xl", "kimiyoung/transformer-xl@44781ed2, pytorch/mem_transformer.py: PositionalEmbedding", "persistent buffer inv_freq (D/2)", "transformer_xl", {}, recipes::transformer_xl, ""},
      {"xlnet", "transformers 5.23.0, XLNetModel.relative_positional_encoding", "none", "xlnet", kAttention, recipes::xlnet, ""},
      {"nemo_tts", "nemo_toolkit 3.0.0, PositionalEmbedding", "persistent buffer inv_freq", "nemo_tts", {}, recipes::nemo_tts, ""},
      {"fairseq", "fairseq 0.12.2, SinusoidalPositionalEmbedding", "0.12.2: plain attribute weights + persistent buffer _float_tensor; main: buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"m2m100", "transformers 5.23.0, M2M100SinusoidalPositionalEmbedding", "buffer weights persistent=False (num+2 rows)", "fairseq", kPadding, recipes::fairseq, ""},
      {"xglm", "transformers 5.23.0, XGLMSinusoidalPositionalEmbedding", "buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"nllb_moe", "transformers 5.23.0, NllbMoeSinusoidalPositionalEmbedding", "buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"speech_to_text", "transformers 5.23.0, Speech2TextSinusoidalPositionalEmbedding", "buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"seamless_m4t", "transformers 5.23.0, SeamlessM4TSinusoidalPositionalEmbedding", "buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"trocr", "transformers 5.23.0, TrOCRSinusoidalPositionalEmbedding", "plain attribute weights", "fairseq", kPadding, recipes::fairseq, ""},
      {"speecht5", "transformers 5.23.0, SpeechT5SinusoidalPositionalEmbedding", "buffer weights persistent=False", "fairseq", kPadding, recipes::fairseq, ""},
      {"fsmt", "transformers 5.23.0, SinusoidalPositionalEmbedding", "nn.Embedding weight, frozen", "fairseq", kPadding, recipes::fairseq, ""},
      {"musicgen", "transformers 5.23.0, MusicgenSinusoidalPositionalEmbedding", "buffer weights persistent=False", "musicgen", {}, recipes::musicgen, ""},
      {"opennmt_py_concat", "OpenNMT_py 3.5.1, PositionalEncoding", "persistent buffer pe (5000,1,D)", "halves_shift1", {}, recipes::halves_shift1, ""},
      {"pegasus_x", "transformers 5.23.0, PegasusXSinusoidalPositionalEmbedding", "none", "halves_shift1", {}, recipes::halves_shift1, ""},
      {"whisper", "openai-whisper 20250625, sinusoids", "persistent buffer positional_embedding (1500,D)", "whisper", kTimescale, recipes::whisper, ""},
      {"hf_whisper", "transformers 5.23.0, sinusoids", "nn.Embedding embed_positions.weight, frozen, saved", "whisper", kTimescale, recipes::whisper, ""},
      {"texar", "texar_pytorch 0.1.4, SinusoidsPositionEmbedder", "buffer signal or inv_timescales", "halves_shift1_zero", {}, recipes::halves_shift1_zero, ""},
      {"timesfm", "transformers 5.23.0, TimesFmPositionalEmbedding", "persistent buffer inv_timescales (n)", "timesfm", kTimescale, recipes::timesfm, ""},
      {"fairseq2", "fairseq2 0.8.1, SinusoidalPositionEncoder", "buffer freqs (max+1,D) persistent=False", "fairseq2", kLegacyPad, recipes::fairseq2, ""},
      {"funasr", "funasr 1.4.16, SinusoidalPositionEncoder", "none", "funasr", {}, recipes::funasr, ""},
      {"hf_marian", "transformers 5.23.0, MarianSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"hf_pegasus", "transformers 5.23.0, PegasusSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"hf_roformer", "transformers 5.23.0, RoFormerSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"hf_informer", "transformers 5.23.0, InformerSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"hf_autoformer", "transformers 5.23.0, AutoformerSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"hf_time_series_transformer", "transformers 5.23.0, TimeSeriesSinusoidalPositionalEmbedding", "nn.Embedding weight (P,D), frozen", "marian", {}, recipes::marian, ""},
      {"xlm", "transformers 5.23.0, create_sinusoidal_embeddings", "nn.Embedding position_embeddings.weight, saved", "xlm", {}, recipes::xlm, ""},
      {"flaubert", "transformers 5.23.0, create_sinusoidal_embeddings", "nn.Embedding position_embeddings.weight, saved", "xlm", {}, recipes::xlm, ""},
      {"distilbert", "transformers 5.23.0, _create_sinusoidal_embeddings", "nn.Embedding position_embeddings.weight, saved", "xlm", {}, recipes::xlm, ""},
      {"attention_is_all_you_need_pytorch", "jadore801120/attention-is-all-you-need-pytorch@132907dd, transformer/Models.py: PositionalEncoding", "persistent buffer pos_table (1,200,D)", "xlm", {}, recipes::xlm, ""},
      {"videomae", "transformers 5.23.0, get_sinusoid_encoding_table", "plain attribute", "xlm", {}, recipes::xlm, ""},
      {"flax_wmt", "google/flax@18f8f311, examples/wmt/models.py: sinusoidal_init", "constant, not saved", "flax", {}, recipes::flax, ""},
      {"sam_lynn_evans", "SamLynnEvans/Transformer@49e01800, Embed.py: PositionalEncoder", "persistent buffer pe (1,200,D)", "unpaired", {}, recipes::unpaired, ""},
      {"diffusers_1d_sincos", "diffusers 0.42.1, get_1d_sincos_pos_embed_from_grid", "none", "diffusers_1d", kRealFlip, recipes::diffusers_1d, ""},
      {"cct", "vit-pytorch 1.26.11, sinusoidal_embedding", "frozen Parameter positional_emb (1,L,D)", "cct", {}, recipes::cct, ""},
      {"ctrl", "transformers 5.23.0, positional_encoding", "plain attribute pos_encoding", "ctrl", {}, recipes::ctrl, ""},
      {"x_transformers", "x-transformers 2.31.10, ScaledSinusoidalEmbedding", "Parameter scale (learned); buffer inv_freq persistent=False", "x_transformers", kTheta, recipes::x_transformers, ""},
      {"keras_sine", "keras-hub 0.32.0, SinePositionEncoding", "none", "keras_sine", kKeras, recipes::keras_sine, ""},
      {"simple_vit_1d", "vit-pytorch 1.26.11, posemb_sincos_1d", "none", "simple_vit_1d", kTemperature, recipes::simple_vit_1d, ""},
      {"sam2_1d", "sam2 1.1.0, get_1d_sine_pe", "none", "sam2_1d", kReal, recipes::sam2_1d, ""},
      {"positional_encodings_1d", "positional-encodings 6.0.3, PositionalEncoding1D", "persistent buffer inv_freq; cached_penc not saved", "positional_encodings_1d", {}, recipes::positional_encodings_1d, ""},
      {"positional_encodings_1d_v5_0", "positional_encodings 5.0.0, PositionalEncoding1D", "persistent buffer inv_freq", "positional_encodings_1d_halves", {}, recipes::positional_encodings_1d_halves, ""},
      {"diffusers_timesteps", "diffusers 0.42.1, get_timestep_embedding", "none (Timesteps has no buffer)", "diffusers_timesteps", kTimesteps, recipes::diffusers_timesteps, ""},
      {"guided_diffusion", "openai/guided-diffusion@22e0df81, guided_diffusion/nn.py: timestep_embedding", "none", "guided_diffusion", kPeriod, recipes::guided_diffusion, ""},
      {"dit", "facebookresearch/DiT@ed81ce22, models.py: TimestepEmbedder", "none", "guided_diffusion", kPeriod, recipes::guided_diffusion, ""},
      {"monai_timesteps", "monai 1.6.1, get_timestep_embedding", "none", "guided_diffusion", kPeriod, recipes::guided_diffusion, ""},
      {"ddpm_lucidrains", "denoising-diffusion-pytorch 2.3.4, SinusoidalPosEmb", "none", "ddpm", kRealTheta, recipes::ddpm, ""},
      {"mae_2d", "facebookresearch/mae@efb2a806, util/pos_embed.py: get_2d_sincos_pos_embed", "frozen Parameter pos_embed (1,N+1,D)", "mae", kSquareCls, recipes::mae, ""},
      {"vit_mae", "transformers 5.23.0, ViTMAEEmbeddings.initialize_weights", "frozen Parameter position_embeddings (1,N+1,D), saved", "vit_mae", kSquare, recipes::vit_mae, ""},
      {"diffusers_2d_sincos", "diffusers 0.42.1, get_2d_sincos_pos_embed", "PatchEmbed buffer pos_embed", "diffusers_2d", kGridScaled, recipes::diffusers_2d, ""},
      {"detr_2d", "facebookresearch/detr@29901c51, models/position_encoding.py: PositionEmbeddingSine", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"hf_detr_2d", "transformers 5.23.0, DetrSinePositionEmbedding", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"maskformer_2d", "transformers 5.23.0, MaskFormerSinePositionEmbedding", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"mask2former_2d", "facebookresearch/Mask2Former@9b0651c6, mask2former/modeling/transformer_decoder/position_encoding.py: PositionEmbeddingSine", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"mmdet_2d", "mmdet 3.3.0, SinePositionalEncoding", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"sam2_2d", "sam2 1.1.0, PositionEmbeddingSine", "none", "detr", kGridNormalize, recipes::detr, ""},
      {"deformable_detr_2d", "transformers 5.23.0, DeformableDetrSinePositionEmbedding", "none", "deformable_detr", kGrid, recipes::deformable_detr, ""},
      {"dab_detr_2d", "transformers 5.23.0, DabDetrSinePositionEmbedding", "none", "dab_detr", kGridTemperature20, recipes::dab_detr, ""},
      {"conditional_detr_points", "transformers 5.23.0, encode_sinusoidal_position_embedding", "none", "conditional_detr", kPoints, recipes::conditional_detr, ""},
      {"timm_2d", "timm 1.0.31, build_sincos2d_pos_embed", "persistent buffer or none (per model)", "timm", kTimm, recipes::timm, ""},
      {"rt_detr_2d", "transformers 5.23.0, RTDetrSinePositionEmbedding", "none (lru cache)", "rt_detr", kGridTemperature, recipes::rt_detr, ""},
      {"rt_detr_2d_v4", "transformers 4.46.3, RTDetrHybridEncoder.build_2d_sincos_position_embedding", "none", "rt_detr_v4", kGridTemperature, recipes::rt_detr_v4, ""},
      {"moco_v3_2d", "facebookresearch/moco-v3@c349e6e2, vits.py: VisionTransformerMoCo.build_2d_sincos_position_embedding", "frozen Parameter pos_embed (1,N+1,D)", "moco_v3", kGrid, recipes::moco_v3, ""},
      {"monai_2d", "monai 1.6.1, build_sincos_position_embedding", "frozen Parameter", "monai", kGrid, recipes::monai, ""},
      {"simple_vit_2d", "vit-pytorch 1.26.11, posemb_sincos_2d", "none (plain attribute)", "simple_vit_2d", kGridTemperature, recipes::simple_vit_2d, ""},
      {"loftr_2d", "kornia 0.9.0, PositionEncodingSine", "buffer pe (1,C,256,256) persistent=False", "loftr", kLoftr, recipes::loftr, ""},
      {"positional_encodings_2d", "positional-encodings 6.0.3, PositionalEncoding2D", "persistent buffer inv_freq", "positional_encodings_2d", kGrid, recipes::positional_encodings_2d, ""},
      {"diffusers_3d_sincos", "diffusers 0.42.1, get_3d_sincos_pos_embed", "buffer pos_embedding (CogVideoX)", "diffusers_3d", kBox, recipes::diffusers_3d, ""},
      {"positional_encodings_3d", "positional-encodings 6.0.3, PositionalEncoding3D", "persistent buffer inv_freq", "positional_encodings_3d", kBox, recipes::positional_encodings_3d, ""},
      {"simple_vit_3d", "vit-pytorch 1.26.11, posemb_sincos_3d", "none", "simple_vit_3d", kBox, recipes::simple_vit_3d, ""},
      {"nerf", "yenchenlin/nerf-pytorch@63a5a630, run_nerf_helpers.py: Embedder", "none", "nerf", kNerf, recipes::nerf, ""},
      {"perceiver_fourier", "transformers 5.23.0, generate_fourier_features", "none", "perceiver", kPerceiver, recipes::perceiver, ""},
      {"tensor2tensor", "tensor2tensor, layers/common_attention.py: get_timing_signal_1d", "none (graph op)", "tensor2tensor", kStartIndex, recipes::tensor2tensor, kTensorFlow},
      {"opennmt_tf", "OpenNMT-tf, layers/position.py: SinusoidalPositionEncoder", "none", "opennmt_tf", {}, recipes::opennmt_tf, kTensorFlow},
  };
  return table;
}

}  // namespace posenc
