"""The seeds of each fuzz target: parts of real and hostile files, in the form that it takes."""

import io
import json
import struct
import sys
import zipfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "speech"))
from sounds import FORMATS, chunk, format_chunk, quantised, sound, wav  # noqa: E402

READS_JSON = {"safetensors", "index", "pt2", "tokenizer", "frozen"}


def tokenizers():
    """Small tokenizer.json of each model, with many components, and texts."""
    words = {"[UNK]": 0, "a": 1, "b": 2, "ab": 3, "##b": 4, "c": 5, "\u0120": 6, "\u2581": 7, "<0x61>": 8, "abc": 9}
    added = [{"id": 9, "content": "<m>", "single_word": True, "lstrip": True, "rstrip": True, "normalized": True, "special": True}]
    replace = {"type": "Replace", "pattern": {"Regex": "a+|\\s{2,}"}, "content": "ab"}
    template = {"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<m>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 1}}],
                "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<m>": {"id": "<m>", "ids": [9], "tokens": ["<m>"]}}}  # fmt: skip
    parts = [
        ({"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": 9, "vocab": words},
         {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": True},
         {"type": "BertPreTokenizer"}, {"type": "BertProcessing", "sep": ["b", 2], "cls": ["a", 1]},
         {"type": "WordPiece", "prefix": "##", "cleanup": True}),
        ({"type": "BPE", "vocab": words, "merges": ["a b", "ab c"], "unk_token": "[UNK]", "byte_fallback": True, "fuse_unk": True},
         {"type": "Sequence", "normalizers": [{"type": "NFKC"}, replace, {"type": "Lowercase"}]},
         {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}, template,
         {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}, {"type": "Strip", "content": "a", "start": 1, "stop": 0}]}),
        ({"type": "Unigram", "vocab": [["<unk>", 0.0], ["a", -1.5], ["b", -2.25], ["ab", -1e1], ["\u2581", -3]], "unk_id": 0},
         {"type": "Prepend", "prepend": "\u2581"}, {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "first", "split": True}, None,
         {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True}),
        ({"type": "WordLevel", "vocab": words, "unk_token": "[UNK]"}, {"type": "Strip", "strip_left": True, "strip_right": True},
         {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": "\\p{L}+|(?=b)"}, "behavior": "Isolated", "invert": False},
                                                {"type": "Digits", "individual_digits": True}, {"type": "UnicodeScripts"}]},
         {"type": "RobertaProcessing", "sep": ["b", 2], "cls": ["a", 1], "trim_offsets": True, "add_prefix_space": True},
         {"type": "CTC", "pad_token": "a", "word_delimiter_token": "b", "cleanup": True}),
    ]  # fmt: skip
    keys = ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder")
    for entry in parts:
        data = json.dumps({"version": "1.0", "added_tokens": added, **dict(zip(keys, entry))}).encode()
        yield data
        yield data + b"\0" + "ab <m> abc \u00e9e\u0301 1\u00bd \ud55c\uae00 \U0001f917".encode()


def sentencepiece():
    """A model of a few pieces, with the settings that posenc reads."""

    def field(number, value):
        if isinstance(value, int):
            return bytes([number << 3, value])
        return bytes([number << 3 | (5 if isinstance(value, float) else 2)]) + (
            struct.pack("<f", value) if isinstance(value, float) else bytes([len(value)]) + value)

    pieces = [(b"<unk>", 0.0, 2), (b"<s>", 0.0, 3), (b"a", -1.5, 1), (b"\xe2\x96\x81b", -2.0, 1), (b"<0x41>", 0.0, 6)]
    model = b"".join(field(1, field(1, text) + field(2, score) + field(3, kind)) for text, score, kind in pieces)
    yield model
    yield model + field(2, field(3, 2)) + field(3, field(1, b"nmt_nfkc") + field(2, b"\x04\0\0\0abcd"))


def sounds():
    """WAV files of each format and arrays, of a few samples."""
    rng = np.random.default_rng(1)
    for tag, bits in FORMATS:
        for channels in (1, 2):
            data, _ = quantised(sound(rng, channels, 6, 8000), tag, bits)
            for extensible in (False, True):
                yield wav(chunk(b"LIST", b"odd"), format_chunk(tag, bits, channels, 8000, extensible), chunk(b"data", data, rng.choice([None, 0, 2**32 - 1])))
    for array in (np.zeros(5, "<f4"), np.zeros((2, 3), "<f8"), np.asfortranarray(np.zeros((2, 3), "<f4"))):
        for version in ((1, 0), (2, 0), (3, 0)):
            file = io.BytesIO()
            np.lib.format.write_array(file, array, version=version)
            yield file.getvalue()


def frozen():
    """A change of the options of each kind: their number, and JSON."""
    layer = {"d_ff": 24, "norm_kind": "RMS", "window": 3, "attention_scale": 0.5, "attention_softcap": 50.0, "activation": "GELUTanh"}
    stack = {"layer": layer, "num_layers": 2, "final_norm_eps": 1e-6}
    encoder = {"encoder": stack, "embeddings": {"vocab_size": 40, "position_ids": "None", "scale": "sqrt_dim"}, "causal": True}
    changes = [{"weights": "Int8", "int8_block": 64, "weights_to_not_convert": ["encoder.*"], "threads": 2}, encoder,
               {"encoder": encoder, "head": {"outputs": 4, "norm": 1e-5}, "labels": ["a", "b"]}, {"model": encoder, "tied": True, "logit_softcap": 30.0, "logit_scale": "inf"},
               {"d_model": 32, "tie": "ThreeWay", "max_len": 9}, stack]  # fmt: skip
    for kind, change in enumerate(changes):
        yield bytes([kind]) + json.dumps(change).encode()


def header(data):
    """The JSON of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    return [data[8:8 + length]] if 2 <= length <= len(data) - 8 else []


def records(data, ending):
    """The records of a zip archive whose names end with `ending`; none for a broken archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [archive.read(name) for name in archive.namelist() if name.endswith(ending)]
    except Exception:  # zipfile raises many kinds
        return []


def seeds(target, name, data):
    """The seeds of `target` in this file."""
    is_zip, is_legacy = data.startswith(b"PK"), data.startswith(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9")
    if target == "safetensors":
        return header(data)
    if target == "index":
        return [data] if data.lstrip().startswith(b"{") else []
    if target == "pickle":
        return records(data, ".pkl") if is_zip else [data] if is_legacy else []
    if target == "torch_legacy":
        return [data] if is_legacy else []
    if target == "pt2":
        return records(data, "model_weights_config.json")
    if target == "torchscript":  # the pickle and the code, as the target splits them
        code = b"".join(records(data, ".py"))
        return [pickle + b"#code" + code for pickle in records(data, "/data.pkl")]
    if target in ("zip_index", "torch_archive"):
        return [data] if is_zip else []
    return [data]
