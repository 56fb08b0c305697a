"""Configurations as people, other tools and older releases write them, and what transformers reads in them."""

import copy
import json

import transformers
from huggingface_hub.errors import StrictDataclassError

from harness import Draw

transformers.logging.set_verbosity_error()  # of odd settings

# Keys that mean nothing to the classes here, as old files have them.
EXTRA = {
    "_name_or_path": "somewhere/model", "transformers_version": "4.9.2", "torch_dtype": "float32", "use_cache": True,
    "gradient_checkpointing": False, "finetuning_task": None, "output_past": True, "architectures": ["AnyModel"],
    "_num_labels": 3, "summary_type": "first", "tokenizer_class": "AnyTokenizer", "xla_device": None, "_commit_hash": None,
}  # fmt: skip
# Names that a class takes for others, beside those of its attribute_map.
OLD_NAMES = {"bloom": {"n_embed": "hidden_size"}, "falcon": {"n_embed": "hidden_size"}}
# Errors of a class for what it does not take: the file then stays as it was.
REFUSALS = (AssertionError, AttributeError, KeyError, LookupError, RuntimeError, StrictDataclassError, TypeError, ValueError)


def read(kind: type, settings: dict):
    """The configuration that transformers reads from a file with these settings."""
    return kind.from_dict(kind._decode_special_floats(copy.deepcopy(settings)))


def default_of(kind: type) -> dict:
    try:
        return json.loads(kind().to_json_string(use_diff=False))
    except REFUSALS:
        return {}


def with_aliases(draw: Draw, kind: type, settings: dict) -> dict:
    names = kind.attribute_map | OLD_NAMES.get(kind.model_type, {})
    pairs = [(alias, own) for alias, own in names.items() if own in settings and alias not in settings and draw.coin()]
    renamed = {own: alias for alias, own in pairs}
    return {renamed.get(key, key): value for key, value in settings.items()}


def without_defaults(draw: Draw, kind: type, settings: dict) -> dict:
    default, nothing = default_of(kind), object()
    return {key: value for key, value in settings.items()
            if key == "model_type" or default.get(kind.attribute_map.get(key, key), nothing) != value or draw.coin(0.3)}  # fmt: skip


def with_nulls(draw: Draw, kind: type, settings: dict) -> dict:
    """Null where it is the default, and where the class fills the default in."""
    free = [name for name, field in kind.__dataclass_fields__.items()
            if field.default is None and name not in settings and name not in kind.attribute_map.values()
            and not name.endswith("_config")]  # fmt: skip
    return settings | dict.fromkeys(draw.sample(free, min(len(free), draw.randint(0, 4))))


def with_extra(draw: Draw, kind: type, settings: dict) -> dict:
    return {key: EXTRA[key] for key in draw.sample(sorted(EXTRA), draw.randint(0, 6))} | settings


def with_old_scaling(draw: Draw, kind: type, settings: dict) -> dict:
    """rope_theta and rope_scaling, as before transformers 5."""
    rope = settings.get("rope_parameters")
    if not isinstance(rope, dict) or any(isinstance(value, dict) for value in rope.values()) or draw.coin():
        return settings
    old = {key: value for key, value in settings.items() if key != "rope_parameters"}
    scaling = dict(rope)
    if "rope_theta" in scaling:
        old["rope_theta"] = scaling.pop("rope_theta")
    kinds = scaling.pop("rope_type", "default")
    return old | {"rope_scaling": scaling | {draw.choice(["type", "rope_type"]): kinds} if scaling or kinds != "default" else None}


def shuffled(draw: Draw, kind: type, settings: dict) -> dict:
    return {key: settings[key] for key in draw.sample(list(settings), len(settings))}


CHANGES = [with_old_scaling, without_defaults, with_aliases, with_nulls, with_extra, shuffled]


def written(draw: Draw, kind: type, settings: dict, same: bool = False) -> dict:
    """The settings of a file, changed in some of these ways; `same`: only in ways that do not change what is read.

    transformers may read something else in a file with other names, since it derives some defaults before it looks at
    aliases. So the caller must compare with read() of the result.
    """
    try:
        first = read(kind, settings).to_dict()
    except REFUSALS:
        return settings
    for change in CHANGES:
        if draw.coin(0.3):
            continue
        changed = change(draw, kind, settings)
        try:
            config = read(kind, changed).to_dict()
        except REFUSALS:
            continue
        meaning = [{key: value for key, value in one.items() if key not in EXTRA} for one in (config, first)]
        if not same or meaning[0] == meaning[1]:
            settings = changed
    return settings
