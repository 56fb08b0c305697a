#!/usr/bin/env python3
"""Writes src/tokenizers/folder/class_rows.inc: what the constructors of transformers' tokenizer classes make. With --check it only
compares, and fails if the file differs.

Each class is run on a small vocabulary with its arguments one way and another. A row has the components that come out, with a hole
for each part that follows an argument:
- "$name" is the argument itself, or the text of a named token; "$charsmap" the table of a SentencePiece model;
- {"if": name, "then": .., "else": ..} is one of two by a flag, or by whether there is a charsmap; without `then` or `else`, nothing;
- `arguments` has their defaults: null for a flag that may be null, [value] for one that null leaves at that value.
Further: `model` with the options that differ from the model's own, `files` that it is read from, `inputs` (model_input_names),
`pads_left`, `tokens` (the named ones, with flags where the class gives them some), `extra` (other special tokens, unless the folder
has a list of its own), `max_length`, `of_file` for a class without a constructor of its own, which takes tokenizer.json as it is, and
`calls`: what it calls at its end. `post_processor` has its templates as Python has them, {name} for a token, and `specials`: text,
whose id it has, and, if the token may be none, the id that stands for it, null for that of the unknown one, [id] for a fixed one.
`is_early` says that it is set before the base class looks at that of the file.

What follows neither an argument nor a token's text is code, in class_exceptions.cpp.
"""

import argparse
import base64
import copy
import inspect
import itertools
import json
import os
import re
import struct
import sys
from pathlib import Path

os.environ.update(HF_HUB_OFFLINE="1", TRANSFORMERS_VERBOSITY="critical")

ROOT = Path(__file__).resolve().parent.parent
ROWS = ROOT / "src/tokenizers/folder/class_rows.inc"
CLASSES = """Albert Barthez Bert BigBird Blenderbot CLIP Camembert CodeGen CodeLlama Cohere ConvBert DPRContextEncoder DPRQuestionEncoder
    DPRReader Deberta DebertaV2 DistilBert FNet Funnel GPT2 GPTNeoX Gemma Herbert Lasr Llama MBart MBart50 MPNet Nllb Nougat OpenAIGPT
    Pegasus Qwen2 Qwen3_5 Reformer RemBert Roberta SeamlessM4T Siglip2 Splinter T5 Tipsv2 VideoPrism Whisper XGLM XLMRoberta XLNet""".split()
FAST = ["DPRContextEncoder", "DPRQuestionEncoder", "DPRReader"]  # whose fast classes are others
FILES = {"XGLMTokenizer": ["sentencepiece.bpe.model"], "Qwen3_5Tokenizer": []}  # one that the class does not name, and one that no folder has
ABSENT = object()
CHARSMAP = struct.pack("<I", 1024) + bytes(1024)  # without keys
DEFAULTS = {"dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
            "byte_fallback": False, "ignore_merges": False, "max_input_chars_per_word": 100, "unk_id": None}  # fmt: skip


def mark(name):
    return f"«{name}»"


class Class:
    def __init__(self, name):
        import transformers
        from transformers.models.auto.tokenization_auto import tokenizer_class_from_name

        self.base = transformers.TokenizersBackend
        self.cls = tokenizer_class_from_name(name)
        self.inputs = list(self.cls.model_input_names)  # to which CodeGen's constructor adds
        self.has_constructor = "__init__" in vars(self.cls)
        self.source = next(inspect.getsource(c.__init__) for c in self.cls.__mro__ if "vocab" in inspect.signature(c.__init__).parameters)
        parameters = {}
        for each in self.cls.__mro__[:-1]:
            if issubclass(each, self.base) and each is not self.base and "__init__" in vars(each):
                for parameter in inspect.signature(each.__init__).parameters.values():
                    parameters.setdefault(parameter.name, parameter)
        named = [p for p in parameters.values() if p.kind is not p.VAR_KEYWORD and p.kind is not p.VAR_POSITIONAL and p.name != "self"]
        self.defaults = {p.name: p.default for p in named}
        self.tokens = [name for name, value in self.defaults.items() if name.endswith("_token") and not isinstance(value, bool)]
        self.kind = re.search(r"\b(WordPiece|BPE|Unigram)\(", self.source).group(1)
        self.flags = {name: [False, True] for name, value in self.defaults.items() if isinstance(value, bool)}
        for parameter in named:  # old files of Llama have null for `legacy`
            is_flag = isinstance(parameter.default, bool) or parameter.name in ("add_prefix_space", "strip_accents")
            if is_flag and (parameter.default is None or "None" in str(parameter.annotation) or parameter.name == "legacy"):
                self.flags[parameter.name] = [None, False, True]
        if "_spm_precompiled_charsmap" in self.defaults:
            self.flags["charsmap"] = [False, True]

    def vocabulary(self):
        texts = [f"<filler{i}>" for i in range(150)] + [mark(name) for name in self.tokens]
        texts += [value for name, value in self.defaults.items() if name in self.tokens and value]
        texts += ["[CLS]", "[SEP]", "</s>", ".", "eng_Latn", "en_XX", "__eng__", "__fra__", "<|startoftranscript|>", "<|notimestamps|>"]
        return list(dict.fromkeys(texts))

    def run(self, zero=False, **given):
        """The definition of the tokenizer of these arguments, and what the class gives its base."""
        from tokenizers import processors

        texts = self.vocabulary()
        arguments = {name: mark(name) for name in self.tokens}
        arguments.update(given)
        has_charsmap = arguments.pop("charsmap", False)
        if "_spm_precompiled_charsmap" in self.defaults:
            arguments["_spm_precompiled_charsmap"] = CHARSMAP if has_charsmap else None
        if self.kind == "Unigram":
            unk = str(arguments.get("unk_token") or self.defaults.get("unk_token"))
            arguments["vocab"] = [(text, 0.0 if zero and text == unk else -1.0) for text in texts]
        else:
            arguments["vocab"] = {text: i for i, text in enumerate(texts)}
        if self.kind == "BPE":
            arguments["merges"] = []
        if self.sets_post_processor() and not self.is_early():
            arguments["post_processor"] = processors.ByteLevel()  # so that _post_init() makes none
        passed = {}
        original = self.base.__init__

        def recorded(this, *args, **kwargs):
            passed.update({key: described(value) for key, value in kwargs.items()})
            original(this, *args, **kwargs)

        self.base.__init__ = recorded
        try:
            tokenizer = self.cls(**arguments)
        except ValueError:
            if zero or "unk_token" not in self.tokens:
                raise
            self.base.__init__ = original
            return self.run(zero=True, **given)  # Pegasus wants a score of 0
        finally:
            self.base.__init__ = original
        return json.loads(tokenizer.backend_tokenizer.to_str()), passed

    def definition(self, **given):
        return self.cleaned(self.run(**given)[0])

    def cleaned(self, definition):
        """The components, with holes for the texts of tokens."""
        text = json.dumps({name: definition[name] for name in ("normalizer", "pre_tokenizer", "decoder", "post_processor")})
        blob = json.dumps(base64.b64encode(CHARSMAP).decode())
        made = json.loads(text.replace(blob, '"$charsmap"'))
        model = {name: value for name, value in definition["model"].items() if name not in ("vocab", "merges")}
        model = {name: value for name, value in model.items() if value not in (DEFAULTS.get(name, ABSENT), "")}
        if model.get("unk_id") in [at for at, text in enumerate(self.vocabulary()) if text == mark("unk_token")]:
            del model["unk_id"]  # which the class searches for
        made["model"] = model
        for part in ("normalizer", "pre_tokenizer", "decoder", "model"):
            made[part] = json.loads(re.sub(r"«(\w+)»", r"$\1", json.dumps(made[part], ensure_ascii=False)))
        made["post_processor"] = self.templates(made["post_processor"]) if self.sets_post_processor() else None
        return made

    # The post-processor

    def sets_post_processor(self):
        return "_tokenizer.post_processor =" in self.source

    def is_early(self):
        return self.sets_post_processor() and self.source.index("_tokenizer.post_processor =") < self.source.index("super().__init__(")

    def templates(self, post):
        texts = self.vocabulary()
        braced = lambda text: re.sub(r"«(\w+)»", r"{\1}", text)  # noqa: E731

        def special(text, at):
            owner = re.fullmatch(r"«(\w+)»", texts[at])
            name = re.fullmatch(r"«(\w+)»", text)
            if owner is None:
                return [braced(text), name.group(1), [at]]
            entry = [braced(text), owner.group(1)]
            return entry + self.without(owner.group(1)) if name else entry

        if post["type"] in ("RobertaProcessing", "BertProcessing"):
            return {**post, "sep": special(*post["sep"]), "cls": special(*post["cls"])}
        if post["type"] != "TemplateProcessing":
            return post
        is_list = re.search(r"single=\s*\[", self.source) is not None
        has_types = re.search(r'single=\s*f?"[^"]*:0', self.source) is not None

        def written(pieces):
            made = []
            for piece in pieces:
                (kind, value), = piece.items()
                name = ("$" if kind == "Sequence" else "") + braced(value["id"])
                made.append(f"{name}:{value['type_id']}" if has_types else name)
            return made if is_list else " ".join(made)

        specials = [special(text, value["ids"][0]) for text, value in post["special_tokens"].items()]
        return {"type": post["type"], "single": written(post["single"]), "pair": written(post["pair"]), "specials": sorted(specials)}

    def without(self, name):
        """The id that stands for a token of the post-processor that is none: a list of it; an empty one if there has to be a token."""
        try:
            post = self.run(**{name: None})[0]["post_processor"]
        except Exception:  # noqa: B902
            return []
        ids = {text: value["ids"][0] for text, value in post.get("special_tokens", {}).items()}
        ids.update({post[side][0]: post[side][1] for side in ("sep", "cls") if side in post})
        if "None" not in ids:
            return []
        return [None if self.vocabulary()[ids["None"]] == mark("unk_token") else ids["None"]]

    # Holes

    def variants(self):
        """Each setting of the flags that change something, and what it makes; and the defaults of the arguments in it."""
        plain = self.definition()
        flags = {}
        for name, values in self.flags.items():
            if any(self.definition(**{name: value}) != plain for value in values):
                flags[name] = values
        names = list(flags)
        made = [(dict(zip(names, values)), self.definition(**dict(zip(names, values)))) for values in itertools.product(*flags.values())]
        arguments = {}
        for name in names:
            if name == "charsmap":
                continue
            arguments[name] = self.defaults[name]
            if None not in flags[name]:
                continue
            for value in (True, False):  # whether null means one of them
                at = lambda flag: [definition for setting, definition in made if setting[name] is flag]  # noqa: E731,B023
                if at(None) == at(value):
                    made = [variant for variant in made if variant[0][name] is not None]
                    arguments[name] = [value]
                    break
        return made, arguments

    def number_holes(self, row, arguments):
        for name, value in self.defaults.items():
            if name == "errors" or name in self.tokens or isinstance(value, bool) or not isinstance(value, (int, str)):
                continue
            other = 7 if isinstance(value, int) else mark(name)
            try:
                changed = self.definition(**{name: other})
            except Exception:  # noqa: B902
                continue
            plain = self.definition()
            for part, members in plain.items():
                for member, before in (members or {}).items():
                    after = changed[part].get(member)
                    if before == value and after in (other, f"${name}"):
                        row[part][member] = f"${name}"
                        arguments[name] = value


def merged(variants):
    """A part with holes, of which `variants` has each setting of the flags with what comes out."""
    values = [value for _, value in variants]
    if all(value == values[0] for value in values):
        return values[0]
    if all(isinstance(value, dict) for value in values) and all(value.keys() == values[0].keys() for value in values):
        return {name: merged([(setting, value[name]) for setting, value in variants]) for name in values[0]}
    if all(isinstance(value, list) for value in values):
        if all(len(value) == len(values[0]) for value in values):
            return [merged([(setting, value[at]) for setting, value in variants]) for at in range(len(values[0]))]
        keyed = [by_type(value) for value in values]
        longest = max(keyed, key=len)
        if all([key for key in longest if key in value] == list(value) for value in keyed):
            settings = [setting for setting, _ in variants]
            return [merged([(setting, value.get(key, ABSENT)) for setting, value in zip(settings, keyed)]) for key in longest]
    for name in variants[0][0]:
        if all(value is not ABSENT and value == setting[name] for setting, value in variants):
            return f"${name}"
    choices = []
    for name in variants[0][0]:
        sides = [[(setting, value) for setting, value in variants if bool(setting[name]) is flag] for flag in (True, False)]
        others = [{other: flag for other, flag in setting.items() if other != name} for setting, _ in sides[0]]
        opposite = [[value for setting, value in sides[1] if setting == {**rest, name: setting[name]}] for rest in others]
        if all(value == one for (_, value), found in zip(sides[0], opposite) for one in found):
            continue  # nothing follows it
        constant = [all(value == side[0][1] for _, value in side) for side in sides]
        choices.append((sum(constant), name, sides))
    _, name, sides = max(choices, key=lambda choice: choice[0])
    made = {"if": name, "then": merged(sides[0]), "else": merged(sides[1])}
    return {key: value for key, value in made.items() if value is not ABSENT and value is not None}


def by_type(elements):
    """Components by their type and its number among those of this type."""
    made = {}
    for element in elements:
        made[element["type"], sum(kind == element["type"] for kind, _ in made)] = element
    return made


def described(value):
    """An argument; of a token with flags its text and the flags."""
    from tokenizers import AddedToken

    if not isinstance(value, AddedToken):
        return copy.copy(value)
    flags = {"lstrip": value.lstrip, "special": value.special}
    normalized = value.normalized
    value.special = not value.special
    if value.normalized == normalized:  # otherwise it follows `special`
        flags["normalized"] = normalized
    value.special = not value.special
    return [value.content, flags]


def row_of(name):
    made = Class(name)
    cls = made.cls
    variants, arguments = made.variants()
    row = merged(variants)
    made.number_holes(row, arguments)
    files = [file for key, file in cls.vocab_files_names.items() if key in ("vocab_file", "merges_file") and file != "tokenizer.json"]
    defaults = {token: made.defaults[token] for token in made.tokens}
    passed = made.run(**defaults)[1]
    named = {token: value for token, value in passed.items() if token.endswith("_token") and not isinstance(value, bool)}
    row["tokens"] = [[token, *value] if isinstance(value, list) else [token, value] for token, value in named.items()]
    if "additional_special_tokens" in made.defaults:
        given = made.run(additional_special_tokens=["<given>"])[1]
        for name in ("additional_special_tokens", "extra_special_tokens"):
            if given.get(name) == ["<given>"] and passed.get(name):
                row["extra"] = passed[name]
    calls = {"post_init": r"\b_post_init\(\)", "update_post_processor": r"self\.update_post_processor\(\)", "restore_flags": r"self\.add_tokens\(\[AddedToken"}
    own = "update_post_processor" in vars(cls)
    row.update(
        arguments=arguments,
        files=FILES.get(name, files),
        inputs=made.inputs,
        pads_left=cls.padding_side == "left",
        max_length=made.defaults.get("model_max_length"),
        of_file=not made.has_constructor,
        calls=[call for call, pattern in calls.items() if re.search(pattern, made.source) and not (own and call == "update_post_processor")],
        is_early=made.is_early(),
    )
    if row["of_file"] and row["is_early"]:
        row["post_processor"] = None
    if row["post_processor"] is None:
        row["is_early"] = False
    return {key: value for key, value in sorted(row.items()) if value not in (None, False, [], {})}


def rows():
    import transformers

    lines = [f"// Written by tools/tokenizer_rows.py from transformers {transformers.__version__}.\n"]
    for name in sorted([*(name + "Tokenizer" for name in CLASSES), *(name + "TokenizerFast" for name in FAST)]):
        row = json.dumps(row_of(name), ensure_ascii=False, separators=(",", ":"))
        lines.append(f'{{"{name}", R"row({row})row"}},\n')
    return "".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()
    text = rows()
    if not arguments.check:
        ROWS.write_text(text, encoding="utf-8")
    elif ROWS.read_text(encoding="utf-8") != text:
        sys.exit(f"{ROWS.relative_to(ROOT)} is not what tools/tokenizer_rows.py writes")


if __name__ == "__main__":
    main()
