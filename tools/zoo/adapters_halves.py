"""Halves sin | cos (or cos | sin): frequencies by exp with shift 1, and timesteps."""

import math
from types import SimpleNamespace as Namespace

import torch
from torch import nn

from registry import module, package, real_positions, repository, zeros
from sources import installed

HF = "transformers==5.23.0"


def _hf(model: str):
    return installed(f"transformers.models.{model}.modeling_{model}")


def _pad(padding_idx):
    return None if padding_idx < 0 else padding_idx


@package("nemo_tts", "nemo_toolkit==3.0.0", "NeMo TTS PositionalEmbedding")
def nemo_tts(length, dim):
    m = module("nemo_toolkit==3.0.0", "nemo/collections/tts/modules/transformer.py")
    return m.PositionalEmbedding(dim)(torch.arange(length, dtype=torch.float32))[0]


@package("fairseq", "fairseq==0.12.2", "fairseq SinusoidalPositionalEmbedding")
def fairseq(length, dim, padding_idx):
    m = module("fairseq==0.12.2", "fairseq/modules/sinusoidal_positional_embedding.py")
    rows = max(length, padding_idx + 1)
    return m.SinusoidalPositionalEmbedding(dim, _pad(padding_idx), rows).weights[:length]


def _fairseq_descendant(model, cls):
    def build(length, dim, padding_idx):
        rows = max(length, padding_idx + 1)
        return getattr(_hf(model), cls)(rows, dim, _pad(padding_idx)).weights[:length]

    return build


for _name, _model, _cls in (
    ("m2m100", "m2m_100", "M2M100SinusoidalPositionalEmbedding"),
    ("xglm", "xglm", "XGLMSinusoidalPositionalEmbedding"),
    ("nllb_moe", "nllb_moe", "NllbMoeSinusoidalPositionalEmbedding"),
    ("speech_to_text", "speech_to_text", "Speech2TextSinusoidalPositionalEmbedding"),
    ("seamless_m4t", "seamless_m4t", "SeamlessM4TSinusoidalPositionalEmbedding"),
    ("trocr", "trocr", "TrOCRSinusoidalPositionalEmbedding"),
    ("speecht5", "speecht5", "SpeechT5SinusoidalPositionalEmbedding"),
):
    package(_name, HF, _cls)(_fairseq_descendant(_model, _cls))


@package("fsmt", HF, "FSMT SinusoidalPositionalEmbedding")
def fsmt(length, dim, padding_idx):
    rows, pad = max(length, padding_idx + 1), _pad(padding_idx)
    embedding = _hf("fsmt").SinusoidalPositionalEmbedding(rows, dim, pad)
    embedding.make_weight(rows, dim, pad)  # the constructor leaves the weight random
    return embedding.weight[:length]


@package("musicgen", HF, "MusicgenSinusoidalPositionalEmbedding")
def musicgen(length, dim):
    return _hf("musicgen").MusicgenSinusoidalPositionalEmbedding(length, dim).weights


@package("opennmt_py_concat", "OpenNMT-py==3.5.1", "OpenNMT-py PositionalEncoding, SinusoidalConcat")
def opennmt_py_concat(length, dim):
    m = module("OpenNMT-py==3.5.1", "onmt/modules/embeddings.py")
    return m.PositionalEncoding(dim, "SinusoidalConcat", length).pe[:, 0]


@package("whisper", "openai-whisper==20250625", "OpenAI Whisper sinusoids")
def whisper(length, dim, max_timescale):
    return module("openai-whisper==20250625", "whisper/model.py").sinusoids(length, dim, max_timescale)


@package("hf_whisper", HF, "transformers Whisper sinusoids")
def hf_whisper(length, dim, max_timescale):
    return _hf("whisper").sinusoids(length, dim, max_timescale)


@package("pegasus_x", HF, "PegasusXSinusoidalPositionalEmbedding")
def pegasus_x(length, dim):
    return _hf("pegasus_x").PegasusXSinusoidalPositionalEmbedding(dim)(zeros(1, length, dim))[0]


class _TexarBase(nn.Module):
    """texar's EmbedderBase only merges hparams into the defaults, as far as the table is concerned."""

    def __init__(self, hparams=None):
        super().__init__()
        self._hparams = Namespace(**{**self.default_hparams(), **(hparams or {})})


@package("texar", "texar-pytorch==0.1.4", "texar SinusoidsPositionEmbedder")
def texar(length, dim):
    base = "texar.torch.modules.embedders.embedder_base"
    m = module(
        "texar-pytorch==0.1.4",
        "texar/torch/modules/embedders/position_embedders.py",
        {base: Namespace(EmbedderBase=_TexarBase, EmbeddingDropout=nn.Dropout)},
    )
    return m.SinusoidsPositionEmbedder(length, {"dim": dim}).signal


@package("timesfm", HF, "TimesFmPositionalEmbedding")
def timesfm(length, dim, max_timescale):
    config = Namespace(min_timescale=1, max_timescale=max_timescale, hidden_size=dim)
    return _hf("timesfm").TimesFmPositionalEmbedding(config)(seq_length=length)[0]


@package("fairseq2", "fairseq2==0.8.1", "fairseq2 SinusoidalPositionEncoder")
def fairseq2(length, dim, legacy_pad_idx):
    m = module("fairseq2==0.8.1", "fairseq2/nn/position_encoder.py")
    encoder = m.SinusoidalPositionEncoder(dim, length, _legacy_pad_idx=_pad(legacy_pad_idx))
    return encoder.freqs[:length]


@package("funasr", "funasr==1.4.16", "FunASR SinusoidalPositionEncoder")
def funasr(length, dim):
    m = module("funasr==1.4.16", "funasr/models/transformer/embedding.py")
    return m.SinusoidalPositionEncoder()(zeros(1, length, dim))[0]


# --- timesteps -----------------------------------------------------------------------------------


@package("diffusers_timesteps", "diffusers==0.42.1", "diffusers get_timestep_embedding")
def diffusers_timesteps(length, dim, start, step, flip_sin_to_cos, downscale_freq_shift, scale, max_period):
    return installed("diffusers.models.embeddings").get_timestep_embedding(
        real_positions(length, start, step),
        dim,
        flip_sin_to_cos=bool(flip_sin_to_cos),
        downscale_freq_shift=downscale_freq_shift,
        scale=scale,
        max_period=max_period,
    )


def _optional_import(*_, **__):
    return None, False


@package("monai_timesteps", "monai==1.6.1", "MONAI get_timestep_embedding")
def monai_timesteps(length, dim, start, step, max_period):
    m = module(
        "monai==1.6.1",
        "monai/networks/nets/diffusion_model_unet.py",
        {"monai.utils": Namespace(optional_import=_optional_import, ensure_tuple_rep=None)},
    )
    return m.get_timestep_embedding(real_positions(length, start, step), dim, max_period)


@package("ddpm_lucidrains", "denoising-diffusion-pytorch==2.3.4", "lucidrains SinusoidalPosEmb")
def ddpm_lucidrains(length, dim, start, step, theta):
    m = module("denoising-diffusion-pytorch==2.3.4", "denoising_diffusion_pytorch/denoising_diffusion_pytorch.py")
    return m.SinusoidalPosEmb(dim, theta)(real_positions(length, start, step))


def _cos_sin_timesteps(length, dim, start, step, max_period):
    n = dim // 2
    product = torch.arange(n, dtype=torch.float32) * -math.log(max_period)  # rounded, then divided
    angle = real_positions(length, start, step).unsqueeze(1) * (product / n).exp()
    table = torch.zeros(length, dim)  # an odd dim keeps its zero column
    table[:, :n], table[:, n : 2 * n] = angle.cos(), angle.sin()
    return table


repository("guided_diffusion", "openai/guided-diffusion@22e0df81", "guided-diffusion timestep_embedding")(
    _cos_sin_timesteps
)
repository("dit", "facebookresearch/DiT@ed81ce22", "DiT TimestepEmbedder")(_cos_sin_timesteps)


# --- TensorFlow: order of operations only --------------------------------------------------------


@repository(
    "tensor2tensor",
    "tensorflow/tensor2tensor@unversioned",
    "tensor2tensor get_timing_signal_1d",
    bit_comparable=False,
)
def tensor2tensor(length, dim, start_index):
    n = dim // 2
    log = torch.tensor(math.log(10000.0), dtype=torch.float32)
    increment = log / torch.tensor(float(max(n - 1, 1)), dtype=torch.float32)
    f = torch.exp(torch.arange(n, dtype=torch.float32) * -increment)
    angle = (torch.arange(length, dtype=torch.float32) + start_index)[:, None] * f[None]
    return torch.nn.functional.pad(torch.cat([angle.sin(), angle.cos()], dim=1), (0, dim % 2))


@repository(
    "opennmt_tf",
    "OpenNMT/OpenNMT-tf@unversioned",
    "OpenNMT-tf SinusoidalPositionEncoder",
    bit_comparable=False,
)
def opennmt_tf(length, dim):
    if dim % 2:
        raise ValueError("SinusoidalPositionEncoder expects the depth to be divisible by 2")
    f = torch.exp(torch.arange(dim / 2, dtype=torch.float32) * -(math.log(10000) / (dim / 2 - 1)))
    angle = torch.arange(1, length + 1, dtype=torch.float32)[:, None] * f[None]
    return torch.cat([angle.sin(), angle.cos()], dim=1)
