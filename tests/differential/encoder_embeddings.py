"""Embeddings of random configurations against transformers' own classes: outputs and all gradients, in bits."""

import importlib
import inspect
import json

import torch
from torch import Tensor, nn

import rotary_models
from harness import DTYPES, Case, Draw, Failure, Programs, run
from rotary_models import folders
from written import read, written

CASES = 40
# Errors of transformers for configurations that it rejects: such a case is skipped.
REFUSALS = (AssertionError, AttributeError, KeyError, RuntimeError, ValueError)

# Embeddings with a class whose name does not follow from the model type.
CLASSES = {
    "altclip_text_model": "AltRobertaEmbeddings", "distilbert": "Embeddings", "vilt": "TextEmbeddings",
    "blip_text_model": "BlipTextEmbeddings", "blip_2_qformer": "Blip2TextEmbeddings",
    "bridgetower_text_model": "BridgeTowerTextEmbeddings", "chinese_clip_text_model": "ChineseCLIPTextEmbeddings",
    "instructblip_qformer": "InstructBlipQFormerEmbeddings", "modernbert-decoder": "ModernBertDecoderEmbeddings",
    "instructblipvideo_qformer": "InstructBlipVideoQFormerEmbeddings", "tvp": "TvpTextInputEmbeddings",
}  # fmt: skip
# Embeddings that are part of a model: the class, and the module whose first argument is the embeddings' result.
WHOLE = {
    "albert": ("AlbertModel", "encoder.albert_layer_groups.0"), "electra": ("ElectraModel", "encoder"),
    "rembert": ("RemBertModel", "encoder.layer.0"), "convbert": ("ConvBertModel", "encoder"),
    "roformer": ("RoFormerModel", "encoder"), "gpt2": ("GPT2Model", "h.0"), "gpt_neo": ("GPTNeoModel", "h.0"),
    "gpt_bigcode": ("GPTBigCodeModel", "h.0"), "imagegpt": ("ImageGPTModel", "h.0"), "openai-gpt": ("OpenAIGPTModel", "h.0"),
    "bart": ("BartEncoder", "layers.0"), "mbart": ("MBartEncoder", "layers.0"), "mvp": ("MvpEncoder", "layers.0"),
    "plbart": ("PLBartEncoder", "layers.0"), "led": ("LEDEncoder", "layers.0"),
    "blenderbot": ("BlenderbotEncoder", "layers.0"), "blenderbot-small": ("BlenderbotSmallEncoder", "layers.0"),
    "bigbird_pegasus": ("BigBirdPegasusEncoder", "layers.0"), "trocr": ("TrOCRDecoder", "layers.0"),
    "pp_formulanet_text": ("PPFormulaNetTextModel", "layers.0"),
    "opt": ("OPTDecoder", "layers.0"), "biogpt": ("BioGptModel", "layers.0"),
    "eurobert": ("EuroBertModel", "layers.0"), "gemma3_text": ("Gemma3TextModel", "layers.0"),
    "llama": ("LlamaModel", "layers.0"), "mistral": ("MistralModel", "layers.0"),
    "qwen2": ("Qwen2Model", "layers.0"), "qwen3": ("Qwen3Model", "layers.0"),
    "t5": ("T5Stack", "block.0"), "mt5": ("MT5Stack", "block.0"), "umt5": ("UMT5Stack", "block.0"),
}  # fmt: skip
GPT = {"hidden_size": "n_embd", "max_position_embeddings": "n_positions", "num_attention_heads": "n_head",
       "num_hidden_layers": "n_layer", "hidden_dropout_prob": "embd_pdrop"}  # fmt: skip
BART = {"hidden_size": "d_model", "hidden_dropout_prob": "dropout", "num_attention_heads": "encoder_attention_heads",
        "num_hidden_layers": "encoder_layers", "intermediate_size": "encoder_ffn_dim"}  # fmt: skip
T5 = {"hidden_size": "d_model", "hidden_dropout_prob": "dropout_rate", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers",
      "intermediate_size": "d_ff", "layer_norm_eps": "layer_norm_epsilon"}  # fmt: skip
MODERN = {"hidden_dropout_prob": "embedding_dropout", "layer_norm_eps": "norm_eps"}
# The names of common settings in configurations that use other names.
SPELLINGS = {
    "distilbert": {"hidden_size": "dim", "hidden_dropout_prob": "dropout", "num_attention_heads": "n_heads",
                   "num_hidden_layers": "n_layers", "intermediate_size": "hidden_dim"},
    "gpt2": GPT, "gpt_bigcode": GPT, "imagegpt": GPT, "openai-gpt": GPT, "modernbert": MODERN, "modernbert-decoder": MODERN,
    "gpt_neo": {"hidden_dropout_prob": "embed_dropout", "num_attention_heads": "num_heads", "num_hidden_layers": "num_layers"},
    "led": BART | {"max_position_embeddings": "max_encoder_position_embeddings"},
    "funnel": {"hidden_size": "d_model", "hidden_dropout_prob": "hidden_dropout", "num_attention_heads": "n_head"},
} | dict.fromkeys(["t5", "mt5", "umt5"], T5) | dict.fromkeys(["bart", "mbart", "mvp", "plbart", "blenderbot", "blenderbot-small", "bigbird_pegasus"], BART) | dict.fromkeys(
    ["trocr", "pp_formulanet_text"], {k: v.replace("encoder", "decoder") for k, v in BART.items()})  # fmt: skip
NEEDED = {"vocab_size", "hidden_size", "num_attention_heads", "num_hidden_layers", "intermediate_size",
          "max_position_embeddings", "attention_types", "attention_window"}  # fmt: skip


DATA2VEC = "transformers.models.data2vec.{}_data2vec_text"
# Classes that require token types: without them they read a buffer that does not exist.
NEED_TYPES = {"lxmert", "luke"}
# Classes that take position ids and ignore them.
NO_POSITIONS = {"nomic_bert", "jina_embeddings_v3", "gte", "eurobert", "gemma3_text", "llama", "mistral", "qwen2", "qwen3"}
# Whose result is multiplied by the mask of padding in the same function, and those with layers of their own: `encoders` compares them.
MASKED = {"bloom", "deberta", "deberta-v2", "esm", "flaubert", "layoutlmv3", "mpt", "xlm"}
# Which round the scale of the tokens to half precision first.
FLOAT_ONLY = {"gemma3_text"}


def modeling(model_type: str):
    return importlib.import_module(DATA2VEC.format("modeling")) if model_type == "data2vec-text" else rotary_models.modeling(model_type)


def config_class(model_type: str):
    if model_type == "data2vec-text":
        return importlib.import_module(DATA2VEC.format("configuration")).Data2VecTextConfig
    return rotary_models.config_class(model_type)


class Found(Exception):
    """Carries the embeddings' result out of a model."""


class Embeddings(nn.Module):
    """The embeddings of a model type, with the inputs that it takes."""

    def __init__(self, model_type: str, config):
        super().__init__()
        if model_type in WHOLE:
            name, inner = WHOLE[model_type]
            if name.endswith("T5Stack"):
                config.use_cache = False  # as T5's model gives it to the encoder
            self.model = getattr(modeling(model_type), name)(config)
            self.model.get_submodule(inner).register_forward_pre_hook(self._leave, with_kwargs=True)
        else:
            self.model = embeddings_class(model_type)(config)
        self.takes = set(inspect.signature(self.model.forward).parameters)

    @staticmethod
    def _leave(_, args, kwargs):
        raise Found(args[0] if args else kwargs["hidden_states"])

    def forward(self, ids: Tensor, **given: Tensor) -> Tensor:
        try:
            out = self.model(input_ids=ids, **given)
        except Found as found:
            return found.args[0]
        return out[0] if isinstance(out, tuple) else out

    def used(self) -> dict[str, nn.Parameter]:
        """The parameters that got a gradient, by the last two parts of their names."""
        return {".".join(name.split(".")[-2:]): p for name, p in self.named_parameters() if p.grad is not None}


def embeddings_class(model_type: str) -> type[nn.Module]:
    module = modeling(model_type)
    if model_type == "blip_text_model":  # the name is there twice
        module = importlib.import_module("transformers.models.blip.modeling_blip_text")
    if model_type in CLASSES:
        return getattr(module, CLASSES[model_type])
    own = [value for name, value in vars(module).items() if isinstance(value, type) and value.__module__ == module.__name__
           and name.endswith("Embeddings") and "input_ids" in inspect.signature(value.forward).parameters]  # fmt: skip
    (only,) = own
    return only


def arguments(draw: Draw, model_type: str) -> dict:
    """Settings of a small model: the required ones, and a random selection of the others."""
    heads, vocab = draw.choice([1, 2, 4]), draw.randint(6, 60)
    hidden = heads * 2 * draw.choice([1, 2, 3, 8, 25])
    rows = draw.randint(8, 40)
    narrow = draw.choice([hidden, 3, 16])
    drawn = {
        "vocab_size": vocab, "hidden_size": hidden, "num_attention_heads": heads, "num_hidden_layers": 1,
        "intermediate_size": 8, "max_position_embeddings": rows, "type_vocab_size": draw.randint(1, 4),
        "layer_norm_eps": draw.choice([1e-12, 1e-5, 1e-2]), "hidden_dropout_prob": draw.choice([0.0, 0.1, 0.5]),
        "pad_token_id": draw.choice([0, 1, 1, draw.randrange(min(vocab, rows - 3))]),
    }  # fmt: skip
    own = {
        "embedding_size": hidden if model_type == "squeezebert" else narrow, "input_embedding_size": narrow,
        "word_embed_proj_dim": narrow, "scale_embedding": draw.coin(), "rescale_embeddings": draw.coin(),
        "use_task_id": draw.coin(), "task_type_vocab_size": draw.randint(1, 4), "norm_bias": draw.coin(),
        "sinusoidal_pos_embds": draw.coin(), "layernorm_embedding": draw.coin(), "trigram_input": narrow == hidden or draw.coin(),
        "normalization_type": draw.choice(["no_norm", "layer_norm"]), "attention_window": 4, "attention_types": [[["global"], 1]],
    }  # fmt: skip
    needs = {"embedding_size", "input_embedding_size", "word_embed_proj_dim"}
    taken = set(inspect.signature(config_class(model_type).__init__).parameters) | set(dir(config_class(model_type)))
    drawn |= {key: value for key, value in own.items() if key in taken and (model_type == "gpt_neo" or key != "attention_types")}
    if model_type == "funnel":
        del drawn["num_hidden_layers"]  # its blocks determine how many
    spelling = SPELLINGS.get(model_type, {})
    return {spelling.get(key, key): value for key, value in drawn.items()
            if key in NEEDED or key in needs or draw.coin(0.75)}  # fmt: skip


def inputs(draw: Draw, embeddings: Embeddings, config, batch: int, length: int) -> dict[str, Tensor]:
    """Optional inputs besides the ids, each in some of the cases."""
    vocab, given = config.vocab_size, {}
    if "token_type_ids" in embeddings.takes and (config.model_type in NEED_TYPES or draw.coin()):
        kinds = getattr(config, "type_vocab_size", None) or vocab
        given["token_type_ids"] = draw.integers(kinds, batch, length)
    if "task_type_ids" in embeddings.takes and getattr(config, "use_task_id", False) and draw.coin():
        given["task_type_ids"] = draw.integers(config.task_type_vocab_size, batch, length)
    if "position_ids" in embeddings.takes and config.model_type not in NO_POSITIONS and draw.coin(0.3):
        rows = getattr(config, "max_position_embeddings", length)
        given["position_ids"] = draw.integers(rows, *draw.choice([(1, length), (batch, length)]))
    if "bbox" in embeddings.takes:  # transformers' model gives zeros to the embeddings
        corners = draw.integers(config.max_2d_position_embeddings, batch, length, 2, 2).sort(2).values
        given["bbox"] = corners.flatten(2) * draw.choice([0, 1, 1])
    if "attention_mask" in embeddings.takes and draw.coin(0.7):
        mask = draw.bits(0.7, batch, length)
        mask[:, 0] |= ~mask.any(1)
        given["attention_mask"] = mask.long()
    return given


def case(draw: Draw, model_type: str) -> Case | None:
    settings = arguments(draw, model_type)
    dtype = draw.choice(["float32", "float32", "float32" if model_type in FLOAT_ONLY else "bfloat16"])
    try:
        config = config_class(model_type)(**settings)
        # as transformers saves it, or what somebody wrote by hand
        settings = json.loads(config.to_json_string(use_diff=True)) if draw.coin() else {"model_type": model_type} | settings
        settings = written(draw, config_class(model_type), settings)
        config = read(config_class(model_type), settings)
        embeddings = Embeddings(model_type, config).to(DTYPES[dtype])
    except REFUSALS:
        return None
    with torch.no_grad():
        for parameter in embeddings.parameters():
            parameter.copy_(draw.normal(*parameter.shape))
    pad, rows = getattr(config, "pad_token_id", None), getattr(config, "max_position_embeddings", None) or 30
    batch, length = draw.randint(1, 5), draw.randint(1, rows)
    if model_type == "led":  # which pads to whole windows
        length = 4 * draw.randint(1, getattr(config, "max_encoder_position_embeddings") // 4)
    ids = draw.integers(config.vocab_size, batch, length)
    if pad is not None:
        ids[draw.bits(0.2, batch, length)] = pad
    given = inputs(draw, embeddings, config, batch, length)
    options = {"op": "embeddings", "train": draw.coin(), "seed": draw.getrandbits(31), "dtype": dtype}
    embeddings.train(options["train"])
    torch.manual_seed(options["seed"])
    refused = ""
    try:
        out = embeddings(ids, **given)
    except (IndexError, RuntimeError) as error:  # RoBERTa's table holds fewer tokens than it has rows
        if "out of range" not in str(error) and "out of bounds" not in str(error):
            return None
        need = {"token_type_ids": ids[:, :1] * 0} if model_type in NEED_TYPES else {}
        need |= {"bbox": given["bbox"][:, :1]} if "bbox" in given else {}
        refused, out = "position", embeddings(ids[:, :1], **need)
    except REFUSALS:
        return None
    tensors = {f"in.{key}": value for key, value in ({"ids": ids} | given).items()}
    if draw.coin(0.3):
        tensors = {key: value.int() for key, value in tensors.items()}
    tensors["cotangent"] = draw.normal(*out.shape).to(out.dtype)
    expected = {"out": out.detach().contiguous()}
    (out * tensors["cotangent"]).sum().backward()
    tensors |= {f"param.{key}": value.detach() for key, value in embeddings.used().items()}
    expected |= {f"grad.param.{key}": value.grad for key, value in embeddings.used().items()}
    options["config"] = json.dumps(settings)
    return Case(options, tensors, expected, "bits", refused=refused)


def model_types(programs: Programs) -> list[str]:
    """The model types that posenc knows and transformers has."""
    presets = json.loads(programs.posenc("presets", "--embeddings", "--json").stdout)
    names = sorted(name for entry in presets for name in entry["model_types"])
    unknown = set(names) - set(folders())
    if unknown:
        raise LookupError(f"transformers does not have {sorted(unknown)}")
    return [name for name in names if name not in MASKED]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    names = model_types(programs)
    drawn = [case(draw, name) for name in draw.sample(names, min(CASES, len(names)))]
    cases = [one for one in drawn if one]
    if len(cases) < len(drawn) // 2:
        raise RuntimeError(f"transformers takes only {len(cases)} of {len(drawn)} configurations: they are drawn wrongly")
    return run(programs, cases)
