"""Twelve kinds of tokenizer, trained here and put into folders as transformers saves them, and lines of every script for them."""

import base64
import collections
import functools
import json
import random
import unicodedata
from pathlib import Path

import cases
import sentencepiece
import tokenizers
import transformers
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

LLAMA_3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
EMOJI = """😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 1️⃣ ❤️ ☎︎ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 🤷🏿‍♀️ 🫨 🪿 ✨✨✨ 🧑🏻‍❤️‍💋‍🧑🏾 ©️ ™ ⌘ 🂡 🀄 𝔸𝕓 ㊗️""".split()


@functools.cache
def scripts() -> "list[list[str]]":
    """The letters, digits and marks that have a name, by its first word: a list for each script."""
    found = {}
    for point in range(0x110000):
        if unicodedata.category(chr(point))[0] in "LMN" and not 0xAC80 < point < 0xD780 and not 0x4F00 < point < 0x9F00:
            found.setdefault(unicodedata.name(chr(point), "?").split()[0], []).append(chr(point))
    return [characters for characters in found.values() if len(characters) > 4]


def word(rng: random.Random, characters: "list[str]") -> str:
    # Some characters of a script are frequent, so that training finds pieces.
    return "".join(characters[int(len(characters) * rng.random() ** 3)] for _ in range(rng.randint(1, 9)))


def part(rng: random.Random, special: "list[str]", words: "list[str]") -> str:
    kind = rng.random()
    if kind < 0.25:
        script = rng.choice(scripts())
        return " ".join(word(rng, script) for _ in range(rng.randint(1, 5)))
    if kind < 0.45:
        return " ".join(rng.choices(words, k=rng.randint(1, 8)))
    if kind < 0.55:
        return rng.choice(EMOJI) * rng.choice([1, 1, 2])
    if kind < 0.65:
        return rng.choice("aeouAé中क") + "".join(rng.choice(cases.MARKS) for _ in range(rng.randint(1, 6)))
    if kind < 0.7:
        return "".join(rng.choice(cases.CONTROLS) for _ in range(rng.randint(1, 3)))
    if kind < 0.8 and special:
        return rng.choice(["", " ", "x"]) + rng.choice(special) + rng.choice(["", " ", "x"])
    if kind < 0.9:
        return "".join(cases.character(rng) for _ in range(rng.randint(1, 6)))
    return cases.text(rng, special, 4)


def lines(rng: random.Random, special: "list[str]", count: int) -> "list[str]":
    words = documents()
    return [rng.choice(["", "", " ", ", ", "-"]).join(part(rng, special, words) for _ in range(rng.randint(1, 6))) for _ in range(count)]


@functools.cache
def documents() -> "list[str]":
    root = Path(__file__).resolve().parents[2]
    return [each for name in ("README.md", "CHANGELOG.md", "docs/tour.md", "docs/glossary.md") for each in (root / name).read_text("utf-8").split()]


@functools.cache
def corpus() -> "list[str]":
    rng = random.Random(1)
    words = documents()
    english = [" ".join(words[i : i + 20]) for i in range(0, len(words), 20)]
    drawn = english + lines(rng, [], 2000)
    count = collections.Counter(character for line in drawn for character in line)
    return ["".join(character for character in line if count[character] > 3) for line in drawn]  # a vocabulary has not all of them


def word_piece(lowercase: bool, special: "list[str]") -> "dict[str, int]":
    made = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer = normalizers.BertNormalizer(lowercase=lowercase), pre_tokenizers.BertPreTokenizer()
    made.train_from_iterator(corpus(), trainers.WordPieceTrainer(vocab_size=8000, special_tokens=special, show_progress=False))
    return made.get_vocab()


@functools.cache
def byte_bpe(*special: str) -> "tuple[dict[str, int], list[tuple[str, str]]]":
    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(corpus(), trainers.BpeTrainer(vocab_size=6000, initial_alphabet=alphabet, special_tokens=list(special), show_progress=False))
    return made.get_vocab(with_added_tokens=True), [tuple(merge) for merge in json.loads(made.to_str())["model"]["merges"]]


def llama_3():
    begin = "<|begin_of_text|>"
    special = [begin, "<|end_of_text|>", "<|start_header_id|>", "<|eot_id|>"]
    vocab, merges = byte_bpe()
    made = tokenizers.Tokenizer(models.BPE(vocab, merges, ignore_merges=True))
    split = pre_tokenizers.Split(tokenizers.Regex(LLAMA_3), "isolated")
    made.pre_tokenizer = pre_tokenizers.Sequence([split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens(special)
    template = processors.TemplateProcessing(f"{begin} $A", f"{begin} $A {begin}:1 $B:1", [(begin, made.token_to_id(begin))])
    made.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), template])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, bos_token=begin, eos_token=special[1])


def fields(message: bytes):
    """The numbers and the bytes of a protobuf message's fields."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte, at = message[at], at + 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        size = {0: 0, 1: 8, 5: 4}[key & 7] if key & 7 != 2 else varint()
        if key & 7 == 0:
            varint()
        yield key >> 3, message[at : at + size]
        at += size


@functools.cache
def charsmap() -> str:
    """The rules nmt_nfkc of SentencePiece, which these models were trained with."""
    model = dict(fields(sentencepiece.SentencePieceNormalizer(rule_name="nmt_nfkc").serialized_model_proto()))
    return base64.b64encode(dict(fields(model[3]))[2]).decode()


def of_metaspace(folder: Path, name: str, model, trainer, **components):
    """What transformers makes of a tokenizer.json with a model that is trained on words that begin with ▁."""
    made = tokenizers.Tokenizer(model)
    made.normalizer, made.pre_tokenizer = normalizers.NFKC(), pre_tokenizers.Metaspace()
    made.train_from_iterator(corpus(), trainer)
    file = json.loads(made.to_str()) | {"normalizer": {"type": "Precompiled", "precompiled_charsmap": charsmap()}} | components
    (folder / "tokenizer.json").write_text(json.dumps(file))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    return transformers.AutoTokenizer.from_pretrained(folder)


def unigram(folder: Path, name: str, special: "list[str]"):
    trainer = trainers.UnigramTrainer(vocab_size=8000, unk_token="<unk>", special_tokens=special, show_progress=False)
    return of_metaspace(folder, name, models.Unigram(), trainer)


def characters_bpe(folder: Path, name: str, special: "list[str]"):
    trainer = trainers.BpeTrainer(vocab_size=8000, special_tokens=special, show_progress=False)
    return of_metaspace(folder, name, models.BPE(unk_token="<unk>", fuse_unk=True), trainer)


BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
KINDS = {
    "BERT cased": lambda folder: transformers.BertTokenizer(vocab=word_piece(False, BERT), do_lower_case=False),
    "BERT uncased": lambda folder: transformers.BertTokenizer(vocab=word_piece(True, BERT)),
    "RoBERTa": lambda folder: transformers.RobertaTokenizer(*byte_bpe(*ROBERTA)),
    "XLM-R": lambda folder: unigram(folder, "XLMRobertaTokenizer", ROBERTA),
    "MPNet": lambda folder: transformers.MPNetTokenizer(vocab=word_piece(True, [*ROBERTA, "[UNK]"])),
    "T5": lambda folder: unigram(folder, "T5Tokenizer", ["<pad>", "</s>", "<unk>"]),
    "NLLB": lambda folder: characters_bpe(folder, "NllbTokenizer", ROBERTA),
    "mBART": lambda folder: unigram(folder, "MBartTokenizer", ROBERTA),
    "GPT-2": lambda folder: transformers.GPT2Tokenizer(*byte_bpe("<|endoftext|>")),
    "Llama 3": lambda folder: llama_3(),
    "Qwen": lambda folder: transformers.Qwen2Tokenizer(*byte_bpe("<|endoftext|>", "<|im_start|>", "<|im_end|>")),
    "Gemma": lambda folder: characters_bpe(folder, "GemmaTokenizer", ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *BYTES]),
}  # fmt: skip


def make(kind: str, folder: Path):
    """Writes the folder of a kind; returns transformers' tokenizer of it."""
    KINDS[kind](folder).save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)
