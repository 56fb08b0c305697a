"""What encoders return besides the last hidden state: hidden_states, attentions; what they take besides ids:
inputs_embeds, with their gradients; and training with a seed, with each dropout that a configuration has."""

import logging

import torch

from encoders import KINDS, as_loaded, encoder_of, inputs_of, more_for, off_by, one_thread, settings
from harness import Case, Draw, Failure, Programs

MODELS = 6
RATES = ("hidden_dropout_prob", "attention_probs_dropout_prob", "dropout", "attention_dropout", "activation_dropout",
         "encoder_layerdrop", "layerdrop", "drop_path_rate", "mlp_dropout", "embedding_dropout", "hidden_dropout")  # fmt: skip
# Models whose vectors of tokens are their ids' alone: the text models of CLIP find the end among the ids.
WITHOUT = {"dpr"}  # whose classes return no last hidden state
WITHOUT_EMBEDS = ("clip", "features", "pair", "vision", "dino", "swin", "sam")


class FeaturesModel(torch.nn.Module):
    """The whole model with an encoder of features, which alone returns no hidden states, on features in place of sound."""

    def __init__(self, model):
        super().__init__()
        self.model, self.config = model, model.config

    def forward(self, inputs_embeds, attention_mask=None, **requested):
        tokens = None if attention_mask is None else attention_mask.bool()
        self.model.feature_projection.forward = lambda _: (inputs_embeds.clone(), None)
        self.model._get_feature_vector_attention_mask = lambda *_, **__: tokens
        return self.model(torch.zeros(len(inputs_embeds), 64), attention_mask=attention_mask, **requested)


def drawn_model(draw: Draw, kind_name: str):
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = 32
    config_class = getattr(transformers, kind.config)
    if kind.dialect != "pair":
        chosen |= {rate: draw.choice([0.0, 0.1, 0.4]) for rate in RATES if rate in config_class.__dataclass_fields__}
    config = config_class(**chosen)
    config._attn_implementation = "eager"
    for part in ("text_config", "vision_config"):
        if hasattr(config, part):
            getattr(config, part)._attn_implementation = "eager"
    model = getattr(transformers, kind.model)(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name or kind_name != "roformer":  # sinusoids
                parameter.copy_(draw.normal(*parameter.shape) * 0.2)
    return as_loaded(model)


def case_of(draw: Draw, programs: Programs, kind_name: str, number: int) -> tuple[Case, dict, str]:
    kind = KINDS[kind_name]
    model = drawn_model(draw, kind_name)
    folder = programs.folder / f"{kind_name}-{number}"
    model.save_pretrained(folder)
    base = FeaturesModel(model) if kind.dialect == "features" else encoder_of(model, kind.dialect)
    has_types = any("token_type_embeddings" in name for name in base.state_dict())
    given = inputs_of(draw, kind.dialect, model.config, has_types)
    # SqueezeBERT drops out transposed tensors, and returns scores in place of attention weights; FNet has none. T5 drops out
    # what the last norm returns too, XLNet what has the axis of tokens first, and a conformer's model masks features.
    training, cotangent = draw.coin() and kind_name != "squeezebert" and kind.dialect not in ("t5", "xlnet", "features"), None
    if kind.dialect in ("vision", "dino"):  # other sizes have areas of their own
        given["pixel_values"] = given["pixel_values"][..., :12, :12]
        given["pixel_values"] = draw.normal(*given["pixel_values"].shape[:2], 12, 12)
    if kind.dialect not in WITHOUT_EMBEDS and kind_name not in ("esmc", "layoutlmv3") and draw.coin():
        table = base.get_input_embeddings()
        ids = given.pop("input_ids")
        given["inputs_embeds"] = draw.normal(*ids.shape, table.weight.shape[1])
        if kind.dialect == "xlm":  # whose types are rows of the table of tokens, refused then
            given.pop("token_type_ids", None)
        cotangent = draw.normal(*ids.shape, base.config.embedding_dim if kind_name == "embedding_gemma2_text" else base.config.hidden_size)
    # An eager attention makes rows of only masked keys even, ours zeros.
    mask = given.get("attention_mask")
    if mask is not None:
        given["attention_mask"] = mask = torch.ones_like(mask) if training or cotangent is not None else mask.sort(1, descending=True).values
    options = {"op": "outputs", "folder": str(folder), "training": training, "seed": draw.getrandbits(31),
               "hidden_states": draw.coin(0.8), "attentions": draw.coin(0.8) and kind_name not in ("fnet", "squeezebert")}  # fmt: skip
    # Only the module has gradients and attention weights.
    if frozen := not training and cotangent is None and options["seed"] % 2 == 0:
        options["attentions"] = False
    options["frozen"] = frozen
    more = more_for(kind.dialect, model.config, given) if kind.dialect == "swin" else {}
    expected = expected_of(base, given, options, cotangent, more)
    if kind_name == "data2vec-vision" and not base.config.use_mean_pooling:  # a pooler without weights, which its class has with a head only
        expected["pooled"] = expected["last_hidden_state"][:, 0]
    if kind.dialect == "sam":  # its weights have no axis of their own for heads
        heads = base.config.num_attention_heads
        expected = {key: value.unflatten(0, (-1, heads)) if "attentions" in key else value for key, value in expected.items()}
    tensors = given if cotangent is None else given | {"cotangent": cotangent}
    return Case(options, tensors, expected), given, f"{kind_name} {options} {model.config}"


def expected_of(base, given: dict, options: dict, cotangent: torch.Tensor | None, more: dict) -> dict[str, torch.Tensor]:
    given = {key: value.clone() for key, value in given.items()}
    if cotangent is not None:
        given["inputs_embeds"].requires_grad_()
    base.train(options["training"])
    torch.manual_seed(options["seed"])
    out = base(**given, **more, output_hidden_states=options["hidden_states"], output_attentions=options["attentions"])
    expected = {"last_hidden_state": out.last_hidden_state}
    if getattr(out, "pooler_output", None) is not None:
        expected["pooled"] = out.pooler_output
    for name in ("hidden_states", "attentions"):
        if options[name]:
            expected |= {f"{name}.{i}": value for i, value in enumerate(getattr(out, name)) if value is not None}
    if cotangent is not None:
        total = (out.last_hidden_state * cotangent).sum()
        if options["attentions"]:
            total = total + sum(weights.square().sum() for weights in out.attentions if weights is not None)
        expected["grad.inputs_embeds"] = torch.autograd.grad(total, given["inputs_embeds"])[0]
    base.eval()
    return {key: value.detach() for key, value in expected.items()}


def judged(case: Case, got, given: dict) -> str:
    if isinstance(got, str):
        return got
    if set(got) - {"embeddings"} != set(case.expected):
        return f"{sorted(got)} for {sorted(case.expected)}"
    mask = given.get("attention_mask")
    for key, b in case.expected.items():
        a = got[key]
        if a.shape != b.shape:
            return f"{key}: {tuple(a.shape)} for {tuple(b.shape)}"
        if mask is not None and a.dim() == 3 and key != "pooled":
            a, b = a[mask != 0], b[mask != 0]
        elif mask is not None and a.dim() == 4:  # the weights of real tokens
            a, b = a.transpose(1, 2)[mask != 0], b.transpose(1, 2)[mask != 0]
        if why := off_by(a, b):
            return f"{key}: {why}"
    return ""


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL):
        made = [case_of(draw, programs, kind, number) for number, kind in enumerate(draw.sample(sorted(set(KINDS) - WITHOUT), MODELS))]
        results = programs.compute([case for case, *_ in made])
    whys = [(what, judged(case, got, given)) for (case, given, what), got in zip(made, results)]
    return len(made), [Failure(what, why) for what, why in whys if why]
