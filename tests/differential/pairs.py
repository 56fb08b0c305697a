"""Encoders of texts and images whose vectors are compared: CLIP, Chinese CLIP, CLIPSeg and SigLIP, with random settings."""

import logging

import torch

from encoders import KINDS, as_loaded, off_by, one_thread, saved, settings
from harness import Case, Draw, Failure, Programs

PAIRS = ("clip", "chinese_clip", "clipseg", "siglip")


def case_of(draw: Draw, programs: Programs, kind_name: str, number: int) -> tuple[Case, str]:
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    if kind_name != "siglip":
        chosen["projection_dim"] = draw.choice([4, 16])
    else:  # both vectors have one width
        chosen["vision_config"]["hidden_size"] = chosen["text_config"]["hidden_size"]
        chosen["vision_config"]["num_attention_heads"] = chosen["text_config"]["num_attention_heads"]
    config = getattr(transformers, kind.config)(**chosen)
    model = getattr(transformers, kind.model)(config).eval()
    for parameter in model.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.3)
    as_loaded(model)
    folder = programs.folder / f"{kind_name}-{number}"
    how = saved(draw, folder, model, None)
    texts, images, length = draw.randint(1, 4), draw.randint(1, 3), draw.randint(2, 12)
    given = {"input_ids": draw.integers(config.text_config.vocab_size, texts, length),
             "pixel_values": draw.normal(images, 3, config.vision_config.image_size, config.vision_config.image_size)}  # fmt: skip
    if draw.coin():
        given["attention_mask"] = (torch.arange(length) < torch.tensor([[draw.randint(1, length)] for _ in range(texts)])).long()
    out = model(**given)
    text = {key: value for key, value in given.items() if key != "pixel_values"}
    expected = {name: getattr(out, name) for name in ("text_embeds", "image_embeds", "logits_per_text")}
    expected["text_features"] = vectors(model.get_text_features(**text))
    expected["image_features"] = vectors(model.get_image_features(given["pixel_values"]))
    return Case({"op": "pair", "folder": str(folder)}, given, expected), f"{kind_name} ({how}) {chosen}"


def vectors(out) -> torch.Tensor:
    return out if isinstance(out, torch.Tensor) else out.pooler_output


def judged(case: Case, got) -> str:
    if isinstance(got, str):
        return got
    for key, b in case.expected.items():
        a = got[key]
        if a.shape != b.shape:
            return f"{key}: {tuple(a.shape)} for {tuple(b.shape)}"
        if why := off_by(a, b):
            return f"{key}: {why}"
    return ""


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL), torch.no_grad():
        made = [case_of(draw, programs, kind, number) for number, kind in enumerate(PAIRS)]
        results = programs.compute([case for case, _ in made])
    whys = [(what, judged(case, got)) for (case, what), got in zip(made, results)]
    return len(made), [Failure(what, why) for what, why in whys if why]
