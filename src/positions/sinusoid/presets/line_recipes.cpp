// The presets of one axis: each recipe with its parameters and the systems that use it. A new
// system is one more row of its recipe.
// posenc-budget: one table; splitting it would hide which systems share a recipe.

#include <cmath>

#include "positions/sinusoid/presets/recipe.h"

namespace posenc::recipes {
namespace {

using namespace sinusoid;

// f = exp(i * -(ln b / (n - 1))), halves: the fairseq family
Options shift1() { return halves().shift(1); }

// f = exp((i * -ln b) / (n - shift)), halves, at real positions: the diffusion timestep family
Options timesteps() {
  return halves().frequency(Frequency::ExpDividedLast).odd_dim(OddDim::ZeroColumn);
}

Options reciprocal_halves() { return reciprocal().layout(Layout::Halves); }

// p / b ** (2 (j / 2) / D) for every channel j, in float64: the family of Marian and XLM in
// Hugging Face's transformers
Options all_channels() {
  return quotient().index(Index::Paired).arithmetic(Arithmetic::Float64).odd_dim(OddDim::ExtraSin);
}

// The base makes the last frequency that of the interleaved table: 10000 ** -((D - 2) / D).
void canary_base(Options& options) {
  const auto channels = static_cast<double>(options.dim());
  options.base(std::pow(10000.0, (channels - 2) / channels));
}

// Times between 0 and 1.
Parameters times() { return line("0", "0.0009765625", "time"); }

Parameters scale(const char* fallback, const char* meaning) {
  return {{{"scale", fallback, meaning},
           [](Options& o, const Value& v) { o.coordinates({{false, v.real()}}); }}};
}

Parameters padding() {
  return {{{"padding_idx", "-1", "index of a row of zeros, -1 for none"},
           [](Options& o, const Value& v) {
             if (v.integer() < -1) v.refuse("a row, or -1 for none");
             if (v.integer() >= 0) o.zero_row(v.integer());
           }}};
}

Parameters legacy_padding() {
  return {{{"legacy_pad_idx", "-1", "padding index of old models, -1 for none"},
           [](Options& o, const Value& v) {
             if (v.integer() < -1) v.refuse("an index, or -1 for none");
             o.start(static_cast<double>(v.integer()));
           }}};
}

Parameters start_index() {
  return {{{"start_index", "0", "first position"},
           [](Options& o, const Value& v) { o.start(static_cast<double>(v.integer())); }}};
}

Parameters attention() {
  return {{{"attn_type", "bi", "bi: 2 L rows, uni: L + 1"}, [](Options& o, const Value& v) {
             if (v.text != "bi" && v.text != "uni") v.refuse("bi or uni");
             o.position_range(v.text == "bi" ? PositionRange::RelativeEven
                                             : PositionRange::DownFromLength);
           }}};
}

Parameters angles() {
  return {{{"downscale_freq_shift", "1", "subtracted from the exponent's denominator"},
           [](Options& o, const Value& v) { o.shift(v.real()); }},
          {{"scale", "1", "factor applied to the angle"},
           [](Options& o, const Value& v) { o.angle_scale(v.real()); }}};
}

Parameters periods() {
  return {{{"min_period", "0.004", "shortest period"},
           [](Options& o, const Value& v) { o.min_period(v.positive()); }},
          {{"max_period", "4", "longest period"},
           [](Options& o, const Value& v) { o.base(v.positive() / o.min_period()); }}};
}

}  // namespace

std::vector<Family> line_recipes() {
  return {
      {{"tutorial", Options(0)},
       {{"vaswani2017",
         "notebook 00: PositionalEncoding",
         "persistent buffer pe (1,5000,D)",
         {},
         "notebook_000"},
        {"notebook_003", "notebook 03: PositionalEncoding", "persistent buffer pe (1,5000,D)"},
        {"annotated_transformer",
         "harvardnlp/annotated-transformer@debc9fd7, the_annotated_transformer.py: "
         "PositionalEncoding",
         "persistent buffer pe (1,5000,D)",
         {"florence2: Florence2VisionPositionalEmbeddingCosine1D",
          "nemotron3_5_transcribe: Nemotron3_5TranscribeSpeakerEmbedding"}},
        {"pytorch_tutorial",
         "pytorch/examples@77f55b91, word_language_model/model.py: PositionalEncoding",
         "persistent buffer pe (5000,1,D)"},
        {"labml", "labml-nn 0.5.1, get_positional_encoding",
         "buffer positional_encodings (5000,1,D), persistent=False"},
        {"espnet", "espnet 202511, PositionalEncoding",
         "plain attribute pe (1,L,D); a load hook drops key pe"},
        {"opennmt_py", "OpenNMT_py 3.5.1, PositionalEncoding", "persistent buffer pe (5000,1,D)"},
        {"speechbrain", "speechbrain 1.1.2, PositionalEncoding", "persistent buffer pe (1,2500,D)"},
        {"joeynmt", "joeynmt 2.3.0, PositionalEncoding", "persistent buffer pe (1,5000,D)"},
        {"bert_pytorch", "bert_pytorch 0.0.1a4, PositionalEmbedding",
         "persistent buffer pe (1,512,D)"},
        {"informer", "zhouhaoyi/Informer2020@29f2a739, models/embed.py: PositionalEmbedding",
         "persistent buffer pe (1,5000,D)"},
        {"autoformer", "thuml/Autoformer@51c7d416, layers/Embed.py: PositionalEmbedding",
         "persistent buffer pe (1,5000,D)"},
        {"wenet",
         "wenet-e2e/wenet@01546996, wenet/models/transformer/embedding.py: PositionalEncoding",
         "persistent buffer pe (1,5000,D)"},
        {"nemo_asr", "nemo_toolkit 3.0.0, PositionalEncoding", "buffer pe persistent=False"},
        {"fairseq_conformer", "fairseq 0.12.2, PositionalEncoding", "plain attribute pe"},
        {"diffusers_sinusoidal", "diffusers 0.42.1, SinusoidalPositionalEmbedding",
         "persistent buffer pe (1,max_seq_length,D)"},
        {"speecht5_scaled", "transformers 5.23.0, SpeechT5ScaledPositionalEncoding",
         "buffer pe persistent=False + learned alpha"}}},
      {{"notebook_001", quotient()},
       {{"notebook_001", "notebook 01: positional_encoding_table", "none"},
        {"d2l", "d2l 1.0.3, PositionalEncoding", "plain attribute P (1,1000,D)"}}},
      {{"notebook_002", quotient().power_shape(PowerShape::Grid)},
       {{"notebook_002", "notebook 02: PositionalEncoding", "frozen nn.Embedding weight (L,D)"}}},
      {{"notebook_004", reciprocal()},
       {{"notebook_004", "notebook 04: MyPositionEncoding", "persistent buffer pos_enc (L,D)"}}},
      {{"nemo_nmt", Options(0).post(Post::DivideBySqrtDim)},
       {{"nemo_nmt", "nemo_toolkit 3.0.0, FixedPositionalEncoding",
         "persistent buffer pos_enc (512,D)"}}},
      {{"float_increment", Options(0).frequency(Frequency::ExpInFloat)},
       {{"softs_inc32", "neuralforecast 3.3.0, PositionalEmbedding",
         "persistent buffer position_embedding (1,5000,D)"}}},
      {{"zoedepth",
        Options(0).frequency(Frequency::ExpInFloat).layout(Layout::Halves).odd_dim(OddDim::Widen)},
       {{"zoedepth", "transformers 5.23.0, ZoeDepthPatchTransformerEncoder.positional_encoding_1d",
         "none"}}},
      {{"standardized", Options(0).post(Post::Standardize)},
       {{"patchtst_sincos",
         "transformers 5.23.0, PatchTSMixerPositionalEncoding",
         "frozen Parameter position_enc (L,D)",
         {"patchtst: PatchTSTPositionalEncoding"}}}},
      {{"tape", Options(0).angle_by_length(true)},
       {{"tape", "tsai 1.0.1, tAPE", "persistent buffer pe (1,L,D)"}}},
      {{"relative_float_log",
        Options(0).frequency(Frequency::ExpOfFloatLog).position_range(PositionRange::Relative)},
       {{"wenet_firered",
         "wenet-e2e/wenet@01546996, wenet/models/firered/attention.py: "
         "FireRedRelPositionalEncoding",
         "persistent buffer pe (1,2L-1,D)"}}},
      {{"relative", Options(0).position_range(PositionRange::Relative)},
       {{"espnet_rel", "espnet 202511, RelPositionalEncoding", "not saved"},
        {"nemo_asr_rel", "nemo_toolkit 3.0.0, RelPositionalEncoding", "not saved"},
        {"wav2vec2_conformer_rel",
         "transformers 5.23.0, Wav2Vec2ConformerRelPositionalEmbedding",
         "not saved",
         {"wav2vec2_bert: Wav2Vec2BertRelPositionalEmbedding"}},
        {"seamless_m4t_rel", "transformers 5.23.0, SeamlessM4TConformerRelPositionalEmbedding",
         "not saved"},
        {"fastspeech2_conformer_rel",
         "transformers 5.23.0, FastSpeech2ConformerRelPositionalEncoding", "not saved"},
        {"fairseq_conformer_rel", "fairseq 0.12.2, RelPositionalEncoding", "not saved"}}},
      {{"parakeet", reciprocal().odd_dim(OddDim::Widen).position_range(PositionRange::Relative)},
       {{"parakeet_rel",
         "transformers 5.23.0, ParakeetEncoderRelPositionalEncoding",
         "buffer inv_freq persistent=False",
         {"nemotron_asr_streaming: NemotronAsrStreamingEncoderRelPositionalEncoding"}}}},
      {{"relative_distance", Options(0).position_range(PositionRange::RelativeDistance)},
       {{"speechbrain_rel_xl", "speechbrain 1.1.2, RelPosEncXL", "persistent buffer inv_freq"}}},
      {{"transformer_xl",
        reciprocal_halves().odd_dim(OddDim::Widen).position_range(PositionRange::Down)},
       {{"transformer_xl",
         "kimiyoung/transformer-xl@44781ed2, pytorch/mem_transformer.py: PositionalEmbedding",
         "persistent buffer inv_freq (D/2)"}}},
      {{"xlnet", reciprocal_halves().odd_dim(OddDim::Widen), attention()},
       {{"xlnet",
         "transformers 5.23.0, XLNetModel.relative_positional_encoding",
         "none",
         {"funnel: FunnelAttentionStructure, relative shift (attn_type=bi)"}}}},
      {{"nemo_tts", reciprocal_halves().odd_dim(OddDim::Widen)},
       {{"nemo_tts",
         "nemo_toolkit 3.0.0, PositionalEmbedding",
         "persistent buffer inv_freq",
         {"codegen: create_sinusoidal_positions (rotary)",
          "funnel: FunnelAttentionStructure, factorized (the halves of psi swapped)",
          "gptj: create_sinusoidal_positions (rotary)",
          "videoprism: create_sinusoidal_positions"}}}},
      {{"kimi", reciprocal_halves().cls_row(true)},
       {{"kimi_k25", "transformers 5.23.0, Kimi_K25VisionPositionEmbeddings.compute_pos_embed",
         "buffer time_position_embeddings (L+1,D) persistent=False"}}},
      {{"bros", reciprocal_halves(), line()},
       {{"bros", "transformers 5.23.0, BrosPositionalEmbedding1D",
         "persistent buffer inv_freq (D/2)"}}},
      // The exponent is divided by the number of pairs, so that the frequencies fall to 1 / b ** 2.
      {{"box_relation", reciprocal_halves().divisor(Divisor::Pairs),
        line("0", "0.015625", "x") + base("theta") + scale("100", "multiplies x")},
       {{"pp_doclayout_v2_relation",
         "transformers 5.23.0, PPDocLayoutV2PositionRelationEmbedding.get_position_embedding",
         "buffer inv_freq persistent=False"}}},
      {{"fairseq", shift1().odd_dim(OddDim::ZeroColumn), padding()},
       {{"fairseq", "fairseq 0.12.2, SinusoidalPositionalEmbedding",
         "0.12.2: plain attribute weights + persistent buffer _float_tensor; main: buffer weights "
         "persistent=False"},
        {"m2m100",
         "transformers 5.23.0, M2M100SinusoidalPositionalEmbedding",
         "buffer weights persistent=False (num+2 rows)",
         {"kosmos2: Kosmos2TextSinusoidalPositionalEmbedding",
          "kosmos2_5: Kosmos2_5TextSinusoidalPositionalEmbedding",
          "seamless_m4t_v2: SeamlessM4Tv2SinusoidalPositionalEmbedding",
          "tipsv2: Tipsv2SinusoidalPositionalEmbedding"}},
        {"xglm", "transformers 5.23.0, XGLMSinusoidalPositionalEmbedding",
         "buffer weights persistent=False"},
        {"nllb_moe", "transformers 5.23.0, NllbMoeSinusoidalPositionalEmbedding",
         "buffer weights persistent=False"},
        {"speech_to_text", "transformers 5.23.0, Speech2TextSinusoidalPositionalEmbedding",
         "buffer weights persistent=False"},
        {"seamless_m4t", "transformers 5.23.0, SeamlessM4TSinusoidalPositionalEmbedding",
         "buffer weights persistent=False"},
        {"trocr", "transformers 5.23.0, TrOCRSinusoidalPositionalEmbedding",
         "plain attribute weights"},
        {"speecht5", "transformers 5.23.0, SpeechT5SinusoidalPositionalEmbedding",
         "buffer weights persistent=False"},
        {"fsmt", "transformers 5.23.0, SinusoidalPositionalEmbedding",
         "nn.Embedding weight, frozen"}}},
      {{"musicgen", shift1().odd_dim(OddDim::ZeroColumn).cos_first(true)},
       {{"musicgen",
         "transformers 5.23.0, MusicgenSinusoidalPositionalEmbedding",
         "buffer weights persistent=False",
         {"musicgen_melody: MusicgenMelodySinusoidalPositionalEmbedding"}}}},
      {{"halves_shift1", shift1()},
       {{"opennmt_py_concat", "OpenNMT_py 3.5.1, PositionalEncoding",
         "persistent buffer pe (5000,1,D)"},
        {"pegasus_x", "transformers 5.23.0, PegasusXSinusoidalPositionalEmbedding", "none"}}},
      {{"whisper", shift1(), base("max_timescale")},
       {{"whisper", "openai-whisper 20250625, sinusoids",
         "persistent buffer positional_embedding (1500,D)"},
        {"hf_whisper",
         "transformers 5.23.0, sinusoids",
         "nn.Embedding embed_positions.weight, frozen, saved",
         {"qwen2_5_omni: SinusoidsPositionEmbedding", "qwen3_asr: SinusoidsPositionEmbedding",
          "qwen3_omni_moe: SinusoidsPositionEmbedding"}}}},
      {{"whisper_from_one", shift1().start(1), base("max_timescale")},
       {{"fun_asr_nano", "transformers 5.23.0, FunAsrNanoPositionEmbedding",
         "buffer positional_embedding (rows from 0) persistent=False"}}},
      {{"canary", shift1().post(Post::DivideBySqrtDim), {}, canary_base},
       {{"canary", "transformers 5.23.0, CanaryPositionalEmbedding",
         "buffer positional_embedding, not yet divided, persistent=False"}}},
      {{"halves_shift1_zero", shift1().odd_dim(OddDim::ZeroColumn)},
       {{"texar", "texar_pytorch 0.1.4, SinusoidsPositionEmbedder",
         "buffer signal or inv_timescales"}}},
      {{"timesfm", shift1().divisor_at_least_one(true).odd_dim(OddDim::ExtraRow),
        base("max_timescale")},
       {{"timesfm",
         "transformers 5.23.0, TimesFmPositionalEmbedding",
         "persistent buffer inv_timescales (n)",
         {"timesfm2_5: TimesFm2_5PositionalEmbedding"}}}},
      {{"gemma_audio", shift1().divisor_at_least_one(true).odd_dim(OddDim::Narrow),
        line("12", "-1")},
       {{"gemma3n_audio",
         "transformers 5.23.0, Gemma3nAudioRelativePositionEmbedding._get_timing_signal_1d_pos",
         "buffer inv_timescales (1,1,D/2) persistent=False",
         {"gemma4: Gemma4AudioRelPositionalEncoding (down to position 0)"}}}},
      {{"fairseq2", shift1().frequency(Frequency::ExpDividedLast).zero_row(0), legacy_padding()},
       {{"fairseq2", "fairseq2 0.8.1, SinusoidalPositionEncoder",
         "buffer freqs (max+1,D) persistent=False"}}},
      {{"funasr", shift1().frequency(Frequency::ExpInFloat).start(1)},
       {{"funasr", "funasr 1.4.16, SinusoidalPositionEncoder", "none"}}},
      {{"marian", all_channels().layout(Layout::Halves)},
       {{"hf_marian", "transformers 5.23.0, MarianSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"},
        {"hf_pegasus", "transformers 5.23.0, PegasusSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"},
        {"hf_roformer", "transformers 5.23.0, RoFormerSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"},
        {"hf_informer", "transformers 5.23.0, InformerSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"},
        {"hf_autoformer", "transformers 5.23.0, AutoformerSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"},
        {"hf_time_series_transformer",
         "transformers 5.23.0, TimeSeriesSinusoidalPositionalEmbedding",
         "nn.Embedding weight (P,D), frozen"}}},
      {{"xlm", all_channels()},
       {{"xlm", "transformers 5.23.0, create_sinusoidal_embeddings",
         "nn.Embedding position_embeddings.weight, saved"},
        {"flaubert", "transformers 5.23.0, create_sinusoidal_embeddings",
         "nn.Embedding position_embeddings.weight, saved"},
        {"distilbert", "transformers 5.23.0, _create_sinusoidal_embeddings",
         "nn.Embedding position_embeddings.weight, saved"},
        {"attention_is_all_you_need_pytorch",
         "jadore801120/attention-is-all-you-need-pytorch@132907dd, transformer/Models.py: "
         "PositionalEncoding",
         "persistent buffer pos_table (1,200,D)"},
        {"videomae", "transformers 5.23.0, get_sinusoid_encoding_table", "plain attribute"}}},
      {{"flax", shift1().arithmetic(Arithmetic::Float64).odd_dim(OddDim::ZeroColumn)},
       {{"flax_wmt", "google/flax@18f8f311, examples/wmt/models.py: sinusoidal_init",
         "constant, not saved"}}},
      {{"unpaired", all_channels().index(Index::Doubled).odd_dim(OddDim::Error)},
       {{"sam_lynn_evans", "SamLynnEvans/Transformer@49e01800, Embed.py: PositionalEncoder",
         "persistent buffer pe (1,200,D)"}}},
      {{"diffusers_1d", half_index().divisor(Divisor::HalfChannels).arithmetic(Arithmetic::Float64),
        line() + cos_first()},
       {{"diffusers_1d_sincos", "diffusers 0.42.1, get_1d_sincos_pos_embed_from_grid", "none"}}},
      {{"cct", all_channels().arithmetic(Arithmetic::Float64Angle)},
       {{"cct", "vit-pytorch 1.26.11, sinusoidal_embedding",
         "frozen Parameter positional_emb (1,L,D)"}}},
      {{"ctrl", reciprocal_halves().index(Index::Paired).odd_dim(OddDim::ExtraSin)},
       {{"ctrl", "transformers 5.23.0, positional_encoding", "plain attribute pos_encoding"}}},
      {{"x_transformers",
        half_index().frequency(Frequency::PowerNegative).post(Post::MultiplyByRsqrtDim),
        base("theta")},
       {{"x_transformers", "x-transformers 2.31.10, ScaledSinusoidalEmbedding",
         "Parameter scale (learned); buffer inv_freq persistent=False"}}},
      {{"keras_sine",
        Options(0)
            .frequency(Frequency::PowerInverseBase)
            .index(Index::Paired)
            .odd_dim(OddDim::ExtraSin),
        start_index() + base("max_wavelength")},
       {{"keras_sine", "keras-hub 0.32.0, SinePositionEncoding", "none"}}},
      {{"simple_vit_1d", half_index().shift(1), base("temperature")},
       {{"simple_vit_1d", "vit-pytorch 1.26.11, posemb_sincos_1d", "none"}}},
      {{"duration", half_index().shift(1).cos_first(true), line() + base("max_period")},
       {{"gradium_phonon_duration",
         "transformers 5.23.0, GradiumPhononTTSModel.get_condition_embeds", "none"}}},
      {{"sam2_1d",
        quotient()
            .index(Index::PairedHalf)
            .divisor(Divisor::Pairs)
            .layout(Layout::Halves)
            .odd_dim(OddDim::Narrow),
        line()},
       {{"sam2_1d",
         "sam2 1.1.0, get_1d_sine_pe",
         "none",
         {"edgetam_video: get_1d_sine_pe", "sam2_video: get_1d_sine_pe",
          "sam3_tracker_video: get_1d_sine_pe"}}}},
      {{"positional_encodings_1d", even_axes()},
       {{"positional_encodings_1d", "positional-encodings 6.0.3, PositionalEncoding1D",
         "persistent buffer inv_freq; cached_penc not saved"}}},
      {{"positional_encodings_1d_halves", even_axes().layout(Layout::Halves)},
       {{"positional_encodings_1d_v5_0", "positional_encodings 5.0.0, PositionalEncoding1D",
         "persistent buffer inv_freq"}}},
      {{"diffusers_timesteps", timesteps(), line() + base("max_period") + cos_first() + angles()},
       {{"diffusers_timesteps", "diffusers 0.42.1, get_timestep_embedding",
         "none (Timesteps has no buffer)"}}},
      {{"guided_diffusion", timesteps().cos_first(true), line() + base("max_period")},
       {{"guided_diffusion",
         "openai/guided-diffusion@22e0df81, guided_diffusion/nn.py: timestep_embedding",
         "none",
         {"gradium_phonon_tts: GradiumPhononTTSTimestepEmbedding",
          "pocket_tts: PocketTTSTimestepEmbedding",
          "vibevoice: VibeVoiceDiffusionHeadSinusoidalEmbedding",
          "voxtral_realtime: VoxtralRealtimeTimeEmbedding"}},
        {"dit", "facebookresearch/DiT@ed81ce22, models.py: TimestepEmbedder", "none"},
        {"monai_timesteps", "monai 1.6.1, get_timestep_embedding", "none"}}},
      {{"ddpm", shift1().odd_dim(OddDim::Narrow), line() + base("theta")},
       {{"ddpm_lucidrains", "denoising-diffusion-pytorch 2.3.4, SinusoidalPosEmb", "none"}}},
      {{"scaled_timesteps", shift1().odd_dim(OddDim::Narrow),
        times() + scale("1000", "multiplies the time")},
       {{"qwen2_5_omni_timesteps", "transformers 5.23.0, SinusPositionEmbedding", "none"}}},
      {{"pi0",
        Options(0).frequency(Frequency::Periods).layout(Layout::Halves).odd_dim(OddDim::Narrow),
        times() + periods()},
       {{"pi0_timesteps", "transformers 5.23.0, PI0TimestepEmbeddings",
         "buffer sinusoid_freq (D/2) persistent=False"}}},
  };
}

std::vector<Family> tensorflow_recipes() {
  const char* const bound =
      "4 p 2^-24 + 1.2e-7: TensorFlow's exp, sin and cos differ from PyTorch's";
  return {
      {{"tensor2tensor",
        shift1()
            .frequency(Frequency::ExpInFloat)
            .divisor_at_least_one(true)
            .odd_dim(OddDim::ZeroColumn),
        start_index(), nullptr, bound},
       {{"tensor2tensor", "tensor2tensor, layers/common_attention.py: get_timing_signal_1d",
         "none (graph op)"}}},
      {{"opennmt_tf", shift1().start(1), {}, nullptr, bound},
       {{"opennmt_tf", "OpenNMT-tf, layers/position.py: SinusoidalPositionEncoder", "none"}}},
  };
}

}  // namespace posenc::recipes
