#!/usr/bin/env python3
"""src/models/types/file_names.inc from the classes of the installed transformers: what files of a model type may have besides.

tools/hf_file_names.py --write    rewrite the file
tools/hf_file_names.py --check    exit 1 if it differs

It has a row for each model type whose weights posenc loads, with what all classes of its module have:
- ignored: patterns of names in files that the classes ignore, `_keys_to_ignore_on_load_unexpected`, and of buffers that they
  compute, which older releases saved;
- modules: the first components of the names of their tensors, of which those that a model does not have are other heads.
"""

import argparse
import importlib
import inspect
import re
import sys
import warnings
from pathlib import Path

from hf_config_classes import FOLDER, config_classes, types_with

FEW_LAYERS = ("num_hidden_layers", "encoder_layers", "decoder_layers", "num_layers", "n_layers", "n_layer")
# Settings without which a class cannot be made.
NEEDED = {
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "beit": {"out_indices": [0, 1, 2, 3], "num_hidden_layers": 4, "add_fpn": False},
    **dict.fromkeys(("hunyuan_v1_dense", "ministral"), {"head_dim": 128}),
    "nemotron": {"num_key_value_heads": 48},
    "wav2vec2-conformer": {"vocab_size": 32},
}
WITHIN = ("T5GemmaEncoder", "T5GemmaDecoder", "T5GemmaEncoderModel")  # parts of others, which take no default configuration
FIRST = "(^|\\.)"  # which begins an expression of a first component, or of one after it
# Modules that files have by names that transformers changes when it loads them.
RENAMED = {"ultrabert": {"cls"}}
# Settings with which the classes have other tensors, each beside the defaults.
VARIANTS = {"deberta": [{"legacy": False}], "deberta-v2": [{"legacy": False}]}


def pattern_of(expression: str) -> str:
    """A pattern with asterisks for a regular expression that is searched for."""
    text = re.sub(r"\.\*|\\d\+", "*", expression.removeprefix(FIRST)).replace("\\.", ".")
    if not re.fullmatch(r"[\w.*-]+", text):
        raise ValueError(f"an expression of a new kind: {expression}")
    return re.sub(r"\*+", "*", f"*{text}*")


def classes_of(module) -> list[type]:
    import transformers

    return [kind for name, kind in vars(module).items() if inspect.isclass(kind) and issubclass(kind, transformers.PreTrainedModel)
            and kind.__module__ == module.__name__ and kind.__name__ == name]  # fmt: skip


def model_of(kind: type, model_type: str, settings: dict):
    """An instance without memory; None of a class that needs more than a configuration."""
    import torch

    config_class = kind.config_class
    if config_class is None or kind.__name__ in WITHIN or kind.__name__.endswith("PreTrainedModel") or "config" not in inspect.signature(kind).parameters:
        return None
    if len([p for p in inspect.signature(kind).parameters.values() if p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD]) > 1:
        return None
    own = (NEEDED.get(model_type, {}) | settings) if config_class.model_type == model_type else {}
    config = config_class(**own)
    for name in FEW_LAYERS:
        if getattr(config, name, 2) > 2 and name not in own:
            setattr(config, name, 2)
    if getattr(config, "layer_types", None):
        config.layer_types = config.layer_types[:2]
    with torch.device("meta"):
        return kind(config)


def row_of(model_type: str, config_class: type) -> str:
    module = importlib.import_module(config_class.__module__.replace("configuration_", "modeling_"))
    ignored, modules = set(), set(RENAMED.get(model_type, ()))
    for kind in classes_of(module):
        ignored |= {pattern_of(expression) for expression in kind._keys_to_ignore_on_load_unexpected or []}
        for settings in [{}, *VARIANTS.get(model_type, [])]:
            if (model := model_of(kind, model_type, settings)) is None:
                continue
            saved = set(model.state_dict())
            modules |= {name.split(".")[0] for name in saved}
            buffers = [name for name, _ in model.named_buffers() if name not in saved]
            # A buffer of the model itself by its whole name where other tensors end with that, as a bias does.
            whole = {name for name in buffers if "." not in name and any(key.endswith("." + name) for key in saved)}
            ignored |= whole | {"*" + re.sub(r"\.\d+(?=\.)", ".*", name) for name in buffers if name not in whole}
    ignored -= {pattern for pattern in ignored if pattern.strip("*") in modules}  # T5EncoderModel's: a part of other classes
    shortest = [pattern for pattern in sorted(ignored)
                if not any(other != pattern and pattern.endswith("." + other[1:]) for other in ignored)]  # fmt: skip
    return f'    {{"{model_type}", "{" ".join(shortest)}",\n     "{" ".join(sorted(modules))}"}},'


def table() -> str:
    import transformers

    transformers.logging.set_verbosity_error()
    warnings.filterwarnings("ignore")
    release = ".".join(transformers.__version__.split(".")[:2])
    classes = config_classes()
    lines = [f"// Written by tools/hf_file_names.py from transformers {release}.", "constexpr FileNames kFileNames[] = {"]
    return "\n".join([*lines, *(row_of(name, classes[name]) for name in types_with(r'\.(layers|seq2seq) = &|\.part = "')), "};"]) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true")
    action.add_argument("--check", action="store_true")
    options = parser.parse_args()
    try:
        import transformers  # noqa: F401
    except ImportError:
        print("skipped: transformers is not installed")
        return 0
    file, text = FOLDER / "types/file_names.inc", table()
    if options.write:
        file.write_text(text)
    elif not file.exists() or file.read_text() != text:
        print(f"{file.name} is not what the installed transformers has; tools/hf_file_names.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
