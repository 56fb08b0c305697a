#!/usr/bin/env python3
"""src/models/hf/attribute_maps.inc from the configuration classes of the installed transformers.

tools/hf_attribute_maps.py --write    rewrite the file
tools/hf_attribute_maps.py --check    exit 1 if it differs

A class's attribute_map names the settings that its files may give by another name. Of two names, one is a field of the
class and the other is set after all fields; `alias=own` has the own name as a field, `alias:own` the alias.
"""

import argparse
import importlib
import inspect
import re
import sys
from pathlib import Path

FILE = Path(__file__).resolve().parent.parent / "src/models/hf/attribute_maps.inc"


def config_classes() -> list[type]:
    import transformers

    transformers.logging.set_verbosity_error()
    found = []
    for file in sorted(Path(transformers.__file__).parent.glob("models/*/configuration_*.py")):
        module = importlib.import_module(f"transformers.models.{file.parent.name}.{file.stem}")
        found += [value for value in vars(module).values() if isinstance(value, type)
                  and issubclass(value, transformers.PreTrainedConfig) and value.__module__ == module.__name__]  # fmt: skip
    return [kind for kind in found if kind.model_type]


def pairs_of(kind: type) -> list[str]:
    """The pairs of a class. Of two fields the own one is set later, to its default if need be: such an alias is none."""
    fields, pairs = set(kind.__dataclass_fields__), []
    for alias, own in sorted(kind.attribute_map.items()):
        if alias == own or (alias in fields and own in fields):
            continue
        pairs.append(alias + (":" if alias in fields else "=") + own)
    return pairs


def has_config_dicts(kind: type) -> bool:
    """Whether `text_config_dict` replaces `text_config`."""
    own = vars(kind).get("__post_init__")
    return own is not None and bool(re.search(r'text_config_dict := kwargs\.pop\("text_config_dict"', inspect.getsource(own)))


def table() -> str:
    maps: dict[str, list[str]] = {}
    dicts = []
    for kind in config_classes():
        pairs = pairs_of(kind)
        if has_config_dicts(kind):
            dicts.append(kind.model_type)
        if pairs and maps.setdefault(kind.model_type, pairs) != pairs:
            sys.exit(f"two classes of the model type {kind.model_type} have different attribute maps")
    import transformers

    release = ".".join(transformers.__version__.split(".")[:2])
    lines = [f"// Written by tools/hf_attribute_maps.py from transformers {release}.", "constexpr MapRow kAttributeMaps[] = {"]
    for model_type in sorted(maps):
        lines += [f'    {{"{model_type}",', *wrapped(maps[model_type])]
    lines += ["};", "constexpr std::string_view kWithConfigDicts[] = {"]
    lines += [f'    "{model_type}",' for model_type in sorted(dicts)]
    return "\n".join([*lines, "};"]) + "\n"


def wrapped(pairs: list[str]) -> list[str]:
    lines = [f'     "{pairs[0]}']
    for pair in pairs[1:]:
        if len(lines[-1]) + len(pair) > 95:
            lines[-1] += '"'
            lines.append(f'     " {pair}')
        else:
            lines[-1] += f" {pair}"
    lines[-1] += '"},'
    return lines


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
    wanted = table()
    if options.write:
        FILE.write_text(wanted)
    elif not FILE.exists() or FILE.read_text() != wanted:
        print(f"{FILE.name} is not what the installed transformers has; tools/hf_attribute_maps.py --write")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
