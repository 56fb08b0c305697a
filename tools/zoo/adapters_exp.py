"""Interleaved and relative tables, frequencies by exp, shift 0."""

import math
from types import SimpleNamespace as Namespace

import torch

from registry import module, package, repository, zeros
from sources import installed

HF = "transformers==5.23.0"
ESPNET = ("espnet==202511", "espnet/nets/pytorch_backend/transformer/embedding.py")
NEMO_ATTENTION = (
    "nemo_toolkit==3.0.0",
    "nemo/collections/asr/parts/submodules/multi_head_attention.py",
)
FAIRSEQ_PE = ("fairseq==0.12.2", "fairseq/modules/positional_encoding.py")


def _hf(model: str):
    return installed(f"transformers.models.{model}.modeling_{model}")


# --- interleaved ---------------------------------------------------------------------------------


@package("labml", "labml-nn==0.5.1", "labml_nn get_positional_encoding")
def labml(length, dim):
    m = module("labml-nn==0.5.1", "labml_nn/transformers/positional_encoding.py")
    return m.PositionalEncoding(dim, 0.0, length).positional_encodings[:, 0]


@package("espnet", ESPNET[0], "ESPnet PositionalEncoding")
def espnet(length, dim):
    return module(*ESPNET).PositionalEncoding(dim, 0.0, length).pe[0]


@package("opennmt_py", "OpenNMT-py==3.5.1", "OpenNMT-py PositionalEncoding, SinusoidalInterleaved")
def opennmt_py(length, dim):
    m = module("OpenNMT-py==3.5.1", "onmt/modules/embeddings.py")
    return m.PositionalEncoding(dim, "SinusoidalInterleaved", length).pe[:, 0]


@package("speechbrain", "speechbrain==1.1.2", "SpeechBrain PositionalEncoding")
def speechbrain(length, dim):
    m = module("speechbrain==1.1.2", "speechbrain/lobes/models/transformer/Transformer.py")
    return m.PositionalEncoding(dim, length).pe[0]


@package("joeynmt", "joeynmt==2.3.0", "JoeyNMT PositionalEncoding")
def joeynmt(length, dim):
    return module("joeynmt==2.3.0", "joeynmt/transformer_layers.py").PositionalEncoding(dim, length).pe[0]


@package("bert_pytorch", "bert_pytorch==0.0.1a4", "BERT-pytorch PositionalEmbedding")
def bert_pytorch(length, dim):
    m = module("bert_pytorch==0.0.1a4", "bert_pytorch/model/embedding/position.py")
    return m.PositionalEmbedding(dim, length).pe[0]


@package("nemo_asr", NEMO_ATTENTION[0], "NeMo ASR PositionalEncoding")
def nemo_asr(length, dim):
    pe = module(*NEMO_ATTENTION).PositionalEncoding(dim, 0.0, length)
    pe.extend_pe(length, torch.device("cpu"), torch.float32)
    return pe.pe[0]


@package("fairseq_conformer", FAIRSEQ_PE[0], "fairseq conformer PositionalEncoding")
def fairseq_conformer(length, dim):
    return module(*FAIRSEQ_PE).PositionalEncoding(dim, 0.0, length).pe[0]


@package("diffusers_sinusoidal", "diffusers==0.42.1", "diffusers SinusoidalPositionalEmbedding")
def diffusers_sinusoidal(length, dim):
    return installed("diffusers.models.embeddings").SinusoidalPositionalEmbedding(dim, length).pe[0]


@package("speecht5_scaled", HF, "SpeechT5ScaledPositionalEncoding")
def speecht5_scaled(length, dim):
    return _hf("speecht5").SpeechT5ScaledPositionalEncoding(0.0, dim, length).pe[0]


@package("nemo_nmt", "nemo_toolkit==3.0.0", "NeMo NMT FixedPositionalEncoding")
def nemo_nmt(length, dim):
    m = module("nemo_toolkit==3.0.0", "nemo/collections/asr/modules/transformer/transformer_modules.py")
    return m.FixedPositionalEncoding(dim, length).pos_enc


@package("softs_inc32", "neuralforecast==3.3.0", "neuralforecast SOFTS PositionalEmbedding")
def softs_inc32(length, dim):
    m = module("neuralforecast==3.3.0", "neuralforecast/models/softssharp.py")
    return m.PositionalEmbedding(dim, length).position_embedding[0]


@package("patchtst_sincos", HF, "PatchTSMixerPositionalEncoding, sincos")
def patchtst_sincos(length, dim):
    config = Namespace(use_positional_encoding=True, positional_encoding_type="sincos", num_patches=length, d_model=dim)
    return _hf("patchtsmixer").PatchTSMixerPositionalEncoding(config).position_enc


@package("tape", "tsai==1.0.1", "tsai tAPE")
def tape(length, dim):
    return module("tsai==1.0.1", "tsai/models/ConvTranPlus.py").tAPE(dim, length, 0.0).pe[0]


# --- relative ------------------------------------------------------------------------------------


@package("espnet_rel", ESPNET[0], "ESPnet RelPositionalEncoding")
def espnet_rel(length, dim):
    return module(*ESPNET).RelPositionalEncoding(dim, 0.0, length).pe[0]


@package("nemo_asr_rel", NEMO_ATTENTION[0], "NeMo ASR RelPositionalEncoding")
def nemo_asr_rel(length, dim):
    pe = module(*NEMO_ATTENTION).RelPositionalEncoding(dim, 0.0, length)
    pe.extend_pe(length, torch.device("cpu"), torch.float32)
    return pe.pe[0]


@package("wav2vec2_conformer_rel", HF, "Wav2Vec2ConformerRelPositionalEmbedding")
def wav2vec2_conformer_rel(length, dim):
    config = Namespace(max_source_positions=length, hidden_size=dim)
    return _hf("wav2vec2_conformer").Wav2Vec2ConformerRelPositionalEmbedding(config).pe[0]


@package("seamless_m4t_rel", HF, "SeamlessM4TConformerRelPositionalEmbedding")
def seamless_m4t_rel(length, dim):
    config = Namespace(max_source_positions=length, hidden_size=dim)
    return _hf("seamless_m4t").SeamlessM4TConformerRelPositionalEmbedding(config).pe[0]


@package("fastspeech2_conformer_rel", HF, "FastSpeech2ConformerRelPositionalEncoding")
def fastspeech2_conformer_rel(length, dim):
    m = _hf("fastspeech2_conformer")
    config = Namespace(hidden_size=dim)
    pe = m.FastSpeech2ConformerRelPositionalEncoding(config, {"positional_dropout_rate": 0.0})
    return pe(zeros(1, length, dim))[1][0]


@package("fairseq_conformer_rel", FAIRSEQ_PE[0], "fairseq conformer RelPositionalEncoding")
def fairseq_conformer_rel(length, dim):
    return module(*FAIRSEQ_PE).RelPositionalEncoding(length, dim).pe[0]


@package("speechbrain_rel_xl", "speechbrain==1.1.2", "SpeechBrain RelPosEncXL")
def speechbrain_rel_xl(length, dim):
    return module("speechbrain==1.1.2", "speechbrain/nnet/attention.py").RelPosEncXL(dim).make_pe(length)[0]


@package("xlnet", HF, "XLNetModel.relative_positional_encoding")
def xlnet(length, dim, attn_type):
    model = _hf("xlnet").XLNetModel
    this = Namespace(
        d_model=dim,
        attn_type=attn_type,
        bi_data=False,
        clamp_len=-1,
        positional_embedding=model.positional_embedding,
    )
    return model.relative_positional_encoding(this, length, length)[:, 0]


# --- repositories --------------------------------------------------------------------------------


def _tutorial(length, dim):
    f = (torch.arange(0.0, dim, 2.0) * (-math.log(10000.0) / dim)).exp()
    angle = torch.arange(length, dtype=torch.float32).outer(f)
    table = torch.empty(length, dim)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


for _name, _source, _system in (
    (
        "annotated_transformer",
        "harvardnlp/annotated-transformer@debc9fd7",
        "The Annotated Transformer PositionalEncoding",
    ),
    ("pytorch_tutorial", "pytorch/examples@77f55b91", "PyTorch word_language_model PositionalEncoding"),
    ("informer", "zhouhaoyi/Informer2020@29f2a739", "Informer PositionalEmbedding"),
    ("autoformer", "thuml/Autoformer@51c7d416", "Autoformer PositionalEmbedding"),
    ("wenet", "wenet-e2e/wenet@01546996", "WeNet PositionalEncoding"),
):
    repository(_name, _source, _system)(_tutorial)


@repository("wenet_firered", "wenet-e2e/wenet@01546996", "WeNet FireRedRelPositionalEncoding")
def wenet_firered(length, dim):
    log = float(torch.tensor(10000.0).log())  # the float32 logarithm, as a double
    f = (torch.arange(0.0, dim, 2.0) * -(log / dim)).exp()
    angle = torch.arange(length - 1, -length, -1, dtype=torch.float32).outer(f)
    table = torch.empty(2 * length - 1, dim)
    table[:, 0::2], table[:, 1::2] = angle.sin(), angle.cos()
    return table


@repository("transformer_xl", "kimiyoung/transformer-xl@44781ed2", "Transformer-XL PositionalEmbedding")
def transformer_xl(length, dim):
    f = 1 / 10000 ** (torch.arange(0.0, dim, 2.0) / dim)
    angle = torch.arange(length - 1, -1, -1, dtype=torch.float32).outer(f)
    return torch.hstack([angle.sin(), angle.cos()])
