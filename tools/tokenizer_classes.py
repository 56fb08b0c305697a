#!/usr/bin/env python3
"""Writes src/tokenizers/folder/class_table.cpp: which class of transformers AutoTokenizer takes for a model type,
and which names mean the same class. With --check it only compares, and fails if the file differs.

Needs the version of transformers that the table names.
"""

import argparse
import os
import sys
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TRANSFORMERS_VERBOSITY"] = "error"

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "src/tokenizers/folder/class_table.cpp"
HEAD = """// Written by tools/tokenizer_classes.py from transformers {version}.
// posenc-budget: a table
#include "tokenizers/folder/tokenizer_class.h"

namespace posenc::text {{

"""


def is_tokenizer(found):
    try:
        return hasattr(found, "from_pretrained")
    except ImportError:  # of a package that is missing here
        return True


def facts():
    import transformers
    from transformers.models.auto import tokenization_auto as auto
    from transformers.convert_slow_tokenizer import SLOW_TO_FAST_CONVERTERS
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    types = []
    for model_type, name in sorted(auto.TOKENIZER_MAPPING_NAMES.items()):
        if name is None:  # needs a package that is missing here
            continue
        types.append((model_type, name, model_type in CONFIG_MAPPING_NAMES))
    names = {name for name in dir(transformers) if "Tokenizer" in name and not name.startswith("_")}
    names |= {name for _, name, _ in types}
    names |= set(SLOW_TO_FAST_CONVERTERS) | {name + "Fast" for name in SLOW_TO_FAST_CONVERTERS}
    names |= {"BloomTokenizer", "CpmTokenizerFast", "PythonBackend", "RagTokenizer", "SentencePieceBackend"}
    classes = {}
    for name in sorted(names):
        if name.endswith(("Config", "Model")) or name.startswith("Auto"):
            continue
        found = auto.tokenizer_class_from_name(name)
        if found is None or not is_tokenizer(found):
            continue
        plain = name.removesuffix("Fast")
        if name != plain and auto.tokenizer_class_from_name(plain) is found:
            continue  # the end is cut off where the name is not found
        classes[name] = found.__name__
    return transformers.__version__, types, sorted(auto.MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS), classes


def quoted(text):
    return '"' + text + '"'


def table():
    version, types, untrusted, classes = facts()
    lines = [HEAD.format(version=version)]
    lines.append("const std::vector<ModelTypeClass>& model_type_classes() {\n")
    lines.append("  static const std::vector<ModelTypeClass> table = {\n")
    for model_type, name, known in types:
        lines.append(f"      {{{quoted(model_type)}, {quoted(name)}, {'true' if known else 'false'}}},\n")
    lines.append("  };\n  return table;\n}\n\n")
    lines.append("const std::vector<std::string_view>& untrusted_model_types() {\n")
    lines.append("  static const std::vector<std::string_view> table = {\n")
    lines += [f"      {quoted(name)},\n" for name in untrusted]
    lines.append("  };\n  return table;\n}\n\n")
    lines.append("const std::vector<ClassName>& class_names() {\n")
    lines.append("  static const std::vector<ClassName> table = {\n")
    lines += [f"      {{{quoted(name)}, {quoted(of)}}},\n" for name, of in classes.items()]
    lines.append("  };\n  return table;\n}\n\n}  // namespace posenc::text\n")
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    text = table()
    if not arguments.check:
        TABLE.write_text(text)
    elif TABLE.read_text() != text:
        sys.exit(f"{TABLE.relative_to(ROOT)} is not what tools/tokenizer_classes.py writes")


if __name__ == "__main__":
    main()
