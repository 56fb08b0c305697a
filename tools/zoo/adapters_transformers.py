"""transformers: the presets that it alone has, and its classes that have the bits of another preset."""

from types import SimpleNamespace as Namespace

import torch

from registry import copy, package, real_positions, zeros
from sources import installed

HF = "transformers==5.23.0"
CPU = torch.device("cpu")


def _hf(model: str):
    return installed(f"transformers.models.{model}.modeling_{model}")


def _even(length, dim, params):
    return dim % 2 == 0


def _same(x):
    return x


def _rows(nchw):
    """[1, D, H, W] -> [H*W, D]"""
    return nchw[0].permute(1, 2, 0).flatten(0, 1)


# --- one axis ------------------------------------------------------------------------------------


@copy("annotated_transformer", HF, "florence2: Florence2VisionPositionalEmbeddingCosine1D")
def florence2(length, dim):
    config = Namespace(vision_config=Namespace(embed_dim=[dim], max_temporal_embeddings=length))
    return _hf("florence2").Florence2VisionPositionalEmbeddingCosine1D(config).pos_idx_to_embed


@copy("annotated_transformer", HF, "nemotron3_5_transcribe: Nemotron3_5TranscribeSpeakerEmbedding")
def nemotron3_5_transcribe(length, dim):
    config = Namespace(num_speakers=length, hidden_size=dim)
    return _hf("nemotron3_5_transcribe").Nemotron3_5TranscribeSpeakerEmbedding(config).weight


@copy("patchtst_sincos", HF, "patchtst: PatchTSTPositionalEncoding")
def patchtst(length, dim):
    config = Namespace(
        use_cls_token=False, num_input_channels=1, positional_encoding_type="sincos", d_model=dim, positional_dropout=0.0
    )
    return _hf("patchtst").PatchTSTPositionalEncoding(config, length).position_enc


@package("zoedepth", HF, "ZoeDepthPatchTransformerEncoder.positional_encoding_1d")
def zoedepth(length, dim):
    encoder = _hf("zoedepth").ZoeDepthPatchTransformerEncoder
    return encoder.positional_encoding_1d(None, 1, length, dim).reshape(length, -1)


@package("kimi_k25", HF, "Kimi_K25VisionPositionEmbeddings")
def kimi_k25(length, dim):
    config = Namespace(hidden_size=dim, pos_emb_time=length, pos_emb_height=1, pos_emb_width=1)
    return _hf("kimi_k25").Kimi_K25VisionPositionEmbeddings(config).time_position_embeddings


@package("bros", HF, "BrosPositionalEmbedding1D")
def bros(length, dim, start, step):
    embedding = _hf("bros").BrosPositionalEmbedding1D(Namespace(dim_bbox_sinusoid_emb_1d=dim))
    return embedding(real_positions(length, start, step)[None, None])[0, 0]


for _model, _note in (("codegen", " (rotary)"), ("gptj", " (rotary)"), ("videoprism", "")):

    @copy("nemo_tts", HF, f"{_model}: create_sinusoidal_positions{_note}")
    def create_sinusoidal_positions(length, dim, model=_model):
        return _hf(model).create_sinusoidal_positions(length, dim)


@package("canary", HF, "CanaryPositionalEmbedding")
def canary(length, dim):
    return _hf("canary").CanaryPositionalEmbedding(length, dim)(torch.arange(length))


@package("fun_asr_nano", HF, "FunAsrNanoPositionEmbedding")
def fun_asr_nano(length, dim, max_timescale):
    embedding = _hf("fun_asr_nano").FunAsrNanoPositionEmbedding(length + 1, dim, max_timescale)
    return embedding(zeros(1, length, dim))


for _model in ("qwen2_5_omni", "qwen3_asr", "qwen3_omni_moe"):

    @copy("hf_whisper", HF, f"{_model}: SinusoidsPositionEmbedding")
    def sinusoids_position_embedding(length, dim, max_timescale, model=_model):
        return _hf(model).SinusoidsPositionEmbedding(length, dim, max_timescale)(length)


def _fairseq_copy(model, cls):
    def build(length, dim, padding_idx):
        pad = None if padding_idx < 0 else padding_idx
        rows = max(length, padding_idx + 1)
        return getattr(_hf(model), cls).get_embedding(rows, dim, pad)[:length]

    return build


for _model, _cls in (
    ("kosmos2", "Kosmos2TextSinusoidalPositionalEmbedding"),
    ("kosmos2_5", "Kosmos2_5TextSinusoidalPositionalEmbedding"),
    ("seamless_m4t_v2", "SeamlessM4Tv2SinusoidalPositionalEmbedding"),
    ("tipsv2", "Tipsv2SinusoidalPositionalEmbedding"),
):
    copy("m2m100", HF, f"{_model}: {_cls}")(_fairseq_copy(_model, _cls))


@copy("musicgen", HF, "musicgen_melody: MusicgenMelodySinusoidalPositionalEmbedding")
def musicgen_melody(length, dim):
    return _hf("musicgen_melody").MusicgenMelodySinusoidalPositionalEmbedding(length, dim).weights


@copy("timesfm", HF, "timesfm2_5: TimesFm2_5PositionalEmbedding")
def timesfm2_5(length, dim, max_timescale):
    config = Namespace(min_timescale=1, max_timescale=max_timescale, hidden_size=dim)
    return _hf("timesfm2_5").TimesFm2_5PositionalEmbedding(config)(seq_length=length)[0]


for _model in ("edgetam_video", "sam2_video", "sam3_tracker_video"):

    @copy("sam2_1d", HF, f"{_model}: get_1d_sine_pe")
    def get_1d_sine_pe(length, dim, start, step, model=_model):
        return _hf(model).get_1d_sine_pe(real_positions(length, start, step), dim)


# --- relative ------------------------------------------------------------------------------------


@copy("wav2vec2_conformer_rel", HF, "wav2vec2_bert: Wav2Vec2BertRelPositionalEmbedding")
def wav2vec2_bert(length, dim):
    config = Namespace(max_source_positions=length, hidden_size=dim)
    return _hf("wav2vec2_bert").Wav2Vec2BertRelPositionalEmbedding(config).pe[0]


@package("parakeet_rel", HF, "ParakeetEncoderRelPositionalEncoding")
def parakeet(length, dim):
    config = Namespace(max_position_embeddings=length, hidden_size=dim)
    return _hf("parakeet").ParakeetEncoderRelPositionalEncoding(config)(zeros(1, length, dim))[0]


@copy("parakeet_rel", HF, "nemotron_asr_streaming: NemotronAsrStreamingEncoderRelPositionalEncoding")
def nemotron_asr_streaming(length, dim):
    config = Namespace(max_position_embeddings=length, hidden_size=dim)
    encoding = _hf("nemotron_asr_streaming").NemotronAsrStreamingEncoderRelPositionalEncoding(config)
    return encoding(zeros(1, length - length // 2, dim), cached_frames=length // 2)[0]


def _funnel(kind, dim, length):
    config = Namespace(hidden_dropout=0.0, d_model=dim, attention_type=kind, num_blocks=1, separate_cls=True)
    return _hf("funnel").FunnelAttentionStructure(config).get_position_embeds(length, torch.float32, CPU)


@copy(
    "xlnet",
    HF,
    "funnel: FunnelAttentionStructure, relative shift (attn_type=bi)",
    only=lambda length, dim, params: dim % 2 == 0 and params["attn_type"] == "bi",
)
def funnel_relative(length, dim, attn_type):
    return _funnel("relative_shift", dim, length)[0][0]


@copy("nemo_tts", HF, "funnel: FunnelAttentionStructure, factorized (the halves of psi swapped)", only=_even)
def funnel_factorized(length, dim):
    psi = _funnel("factorized", dim, length)[2]
    return psi.roll(dim // 2, 1)


def _descending(length, start):
    return torch.arange(int(start), int(start) - length, -1)


@package("gemma3n_audio", HF, "Gemma3nAudioRelativePositionEmbedding")
def gemma3n_audio(length, dim, start, step):
    config = Namespace(
        conf_num_attention_heads=1, hidden_size=dim, conf_attention_context_left=1, conf_attention_context_right=0
    )
    embedding = _hf("gemma3n").Gemma3nAudioRelativePositionEmbedding(config)
    return embedding._get_timing_signal_1d_pos(_descending(length, start)[None], torch.float32)[0]


@copy(
    "gemma3n_audio",
    HF,
    "gemma4: Gemma4AudioRelPositionalEncoding (down to position 0)",
    only=lambda length, dim, params: length <= params["start"] + 1,
)
def gemma4_audio(length, dim, start, step):
    config = Namespace(
        hidden_size=dim,
        attention_chunk_size=2 * int(start) + 1,
        attention_context_left=1,
        attention_context_right=0,
    )
    return _hf("gemma4").Gemma4AudioRelPositionalEncoding(config)(zeros(1))[0, :length]


# --- times, boxes and durations ------------------------------------------------------------------


def _without_mlp(cls, freqs, times):
    """The sinusoid of a timestep embedding, whose layers pass their input through."""
    this = Namespace(freqs=freqs, fc1=_same, fc2=_same, act_fn=_same, norm=_same)
    return cls.forward(this, times)


for _model, _cls in (
    ("gradium_phonon_tts", "GradiumPhononTTSTimestepEmbedding"),
    ("pocket_tts", "PocketTTSTimestepEmbedding"),
):

    @copy("guided_diffusion", HF, f"{_model}: {_cls}", only=_even)
    def flow_time(length, dim, start, step, max_period, model=_model, cls=_cls):
        embedding = getattr(_hf(model), cls)
        freqs = embedding.compute_default_freqs(Namespace(frequency_embedding_size=dim, max_period=max_period))
        return _without_mlp(embedding, freqs, real_positions(length, start, step)[:, None])


@copy("guided_diffusion", HF, "vibevoice: VibeVoiceDiffusionHeadSinusoidalEmbedding", only=_even)
def vibevoice(length, dim, start, step, max_period):
    config = Namespace(frequency_embedding_size=dim, diffusion_max_period=max_period)
    embedding = _hf("vibevoice").VibeVoiceDiffusionHeadSinusoidalEmbedding(config)
    return embedding(real_positions(length, start, step))


@copy("guided_diffusion", HF, "voxtral_realtime: VoxtralRealtimeTimeEmbedding", only=_even)
def voxtral_realtime(length, dim, start, step, max_period):
    embedding = _hf("voxtral_realtime").VoxtralRealtimeTimeEmbedding(dim, max_period)
    return torch.stack([embedding(time) for time in real_positions(length, start, step)])


@package("gradium_phonon_duration", HF, "GradiumPhononTTSModel.get_condition_embeds", element_loop=True)
def gradium_phonon_duration(length, dim, start, step, max_period):
    def row(duration):
        this = Namespace(
            config=Namespace(
                num_speakers=0,
                duration_delta_embedding_dim=dim,
                duration_delta_scale=1.0,
                duration_delta=duration,
                duration_delta_max_period=max_period,
            ),
            num_speakers_embed=_same,
            num_speakers_proj=lambda count: zeros(dim),
            duration_delta_proj=_same,
        )
        return _hf("gradium_phonon_tts").GradiumPhononTTSModel.get_condition_embeds(this, CPU)

    return torch.stack([row(duration) for duration in real_positions(length, start, step).tolist()])


@package("qwen2_5_omni_timesteps", HF, "SinusPositionEmbedding")
def qwen2_5_omni_timesteps(length, dim, start, step, scale):
    return _hf("qwen2_5_omni").SinusPositionEmbedding(dim)(real_positions(length, start, step), scale)


@package("pi0_timesteps", HF, "PI0TimestepEmbeddings")
def pi0_timesteps(length, dim, start, step, min_period, max_period):
    config = Namespace(dit_config=Namespace(hidden_size=dim), min_period=min_period, max_period=max_period)
    return _hf("pi0").PI0TimestepEmbeddings(config)(real_positions(length, start, step))


@package("pp_doclayout_v2_relation", HF, "PPDocLayoutV2PositionRelationEmbedding")
def pp_doclayout_v2_relation(length, dim, start, step, theta, scale):
    if dim % 2:
        raise ValueError("the projection takes 4 dim channels")
    config = Namespace(
        relation_bias_embed_dim=dim, relation_bias_scale=scale, relation_bias_theta=theta, num_attention_heads=1
    )
    embedding = _hf("pp_doclayout_v2").PPDocLayoutV2PositionRelationEmbedding(config)
    return embedding.get_position_embedding(real_positions(length, start, step)[:, None], embedding.scale)


# --- grids ---------------------------------------------------------------------------------------


@package("aimv2_2d", HF, "Aimv2VisionEmbeddings")
def aimv2_2d(length, dim, height, width):
    config = Namespace(
        patch_size=1, num_channels=1, hidden_size=dim, rms_norm_eps=1e-5, image_size=1, is_native=True
    )
    embeddings = _hf("aimv2").Aimv2VisionEmbeddings(config)
    for parameter in embeddings.patch_embed.parameters():
        parameter.zero_()  # only the table remains
    return embeddings(zeros(1, 1, height, width))[0]


@copy(
    "mae_2d", HF, "granite_docling: GraniteDoclingPositionEmbedding (cls_token=0)",
    only=lambda length, dim, params: not params["cls_token"],
)  # fmt: skip
def granite_docling(length, dim, height, cls_token):
    return _hf("granite_docling").GraniteDoclingPositionEmbedding(dim, height).pos_embed


for _model, _cls in (
    ("conditional_detr", "ConditionalDetrSinePositionEmbedding"),
    ("edgetam", "EdgeTamSinePositionEmbedding"),
    ("edgetam_video", "EdgeTamVideoPositionEmbeddingSine"),
    ("mask2former", "Mask2FormerSinePositionEmbedding"),
    ("oneformer", "OneFormerSinePositionEmbedding"),
    ("sam2", "Sam2SinePositionEmbedding"),
    ("sam2_video", "Sam2VideoPositionEmbeddingSine"),
    ("sam3", "Sam3SinePositionEmbedding"),
    ("sam3_lite_text", "Sam3LiteTextSinePositionEmbedding"),
    ("sam3_tracker_video", "Sam3TrackerVideoPositionEmbeddingSine"),
):

    @copy("hf_detr_2d", HF, f"{_model}: {_cls}")
    def detr_2d(length, dim, height, width, normalize, model=_model, cls=_cls):
        embedding = getattr(_hf(model), cls)(dim // 2, normalize=bool(normalize))
        return _rows(embedding(torch.Size((1, dim, height, width)), "cpu", torch.float32))


@copy("hf_detr_2d", HF, "table_transformer: TableTransformerSinePositionEmbedding")
def table_transformer(length, dim, height, width, normalize):
    embedding = _hf("table_transformer").TableTransformerSinePositionEmbedding(dim // 2, normalize=bool(normalize))
    return _rows(embedding(zeros(1, 3, height, width), torch.ones(1, height, width, dtype=torch.bool)))


def _grounding_dino(model, cls):
    def build(length, dim, height, width, temperature):
        config = Namespace(d_model=dim, positional_embedding_temperature=temperature)
        embedding = getattr(_hf(model), cls)(config)
        return _rows(embedding(zeros(1, 3, height, width), torch.ones(1, height, width, dtype=torch.bool)))

    return build


package("grounding_dino_2d", HF, "GroundingDinoSinePositionEmbedding")(
    _grounding_dino("grounding_dino", "GroundingDinoSinePositionEmbedding")
)
copy("grounding_dino_2d", HF, "mm_grounding_dino: MMGroundingDinoSinePositionEmbedding")(
    _grounding_dino("mm_grounding_dino", "MMGroundingDinoSinePositionEmbedding")
)

for _model, _cls in (
    ("d_fine", "DFineSinePositionEmbedding"),
    ("deimv2", "Deimv2SinePositionEmbedding"),
    ("pp_doclayout_v2", "PPDocLayoutV2SinePositionEmbedding"),
    ("pp_doclayout_v3", "PPDocLayoutV3SinePositionEmbedding"),
    ("pp_doclayout_v4", "PPDocLayoutV4SinePositionEmbedding"),
    ("rt_detr_v2", "RTDetrV2SinePositionEmbedding"),
):

    @copy("rt_detr_2d", HF, f"{_model}: {_cls}")
    def rt_detr_2d(length, dim, height, width, temperature, model=_model, cls=_cls):
        return getattr(_hf(model), cls)(dim, temperature)(width, height, CPU, torch.float32)[0]


@copy("rt_detr_2d_v4", HF, "omdet_turbo: OmDetTurboHybridEncoder.build_2d_sincos_position_embedding")
def omdet_turbo(length, dim, height, width, temperature):
    encoder = _hf("omdet_turbo").OmDetTurboHybridEncoder
    return encoder.build_2d_sincos_position_embedding(width, height, dim, float(temperature))[0]


# --- points and boxes ----------------------------------------------------------------------------


def _points(length, start, step):
    """x and 1 - x of the preset's points."""
    x = real_positions(length, start, step)
    return x, 1 - x


for _model in ("dab_detr", "grounding_dino", "lw_detr", "mm_grounding_dino", "rf_detr"):

    @copy("conditional_detr_points", HF, f"{_model}: encode_sinusoidal_position_embedding")
    def points(length, dim, start, step, model=_model):
        both = torch.stack(_points(length, start, step), dim=-1)
        return _hf(model).encode_sinusoidal_position_embedding(both, num_pos_feats=dim // 2)


@copy("conditional_detr_points", HF, "deformable_detr: DeformableDetrModel.get_proposal_pos_embed (first two coordinates)")
def deformable_detr_points(length, dim, start, step):
    x, y = _points(length, start, step)
    boxes = torch.stack([y, x, x, x], dim=-1)[None]
    proposals = Namespace(dtype=boxes.dtype, device=CPU, sigmoid=lambda: boxes)  # already between 0 and 1
    this = Namespace(config=Namespace(d_model=dim))
    return _hf("deformable_detr").DeformableDetrModel.get_proposal_pos_embed(this, proposals)[0, :, :dim]


for _model, _cls in (("sam3", "Sam3SinePositionEmbedding"), ("sam3_lite_text", "Sam3LiteTextSinePositionEmbedding")):

    @copy("conditional_detr_points", HF, f"{_model}: {_cls}.encode_boxes (first two coordinates)")
    def boxes(length, dim, start, step, model=_model, cls=_cls):
        x, y = _points(length, start, step)
        embedding = getattr(_hf(model), cls)(dim // 2, normalize=True)
        return embedding.encode_boxes(torch.stack([x, y, x, x], dim=-1)[None])[0, :, :dim]

    @copy("conditional_detr_points", HF, f"{_model}: {_cls}.encode_1d_positions")
    def coordinates(length, dim, start, step, model=_model, cls=_cls):
        x, y = _points(length, start, step)
        first, second = getattr(_hf(model), cls)(dim // 2, normalize=True).encode_1d_positions(x, y)
        return torch.cat([second, first], dim=1)
