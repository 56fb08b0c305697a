"""Random folders of tokenizers for folder_test.py."""

import io
import json
import random
import shutil
from pathlib import Path

from transformers.models.auto.tokenization_auto import MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS, TOKENIZER_MAPPING_NAMES

# What posenc says of folders that it refuses and transformers does not: those without their vocabulary, of which
# transformers makes a tokenizer of a few tokens, those where two tokens get one id, and other classes.
REFUSED = r"its files: must include|holes where tokens are added|must be there for (Splinter|MBart|Nllb|Seamless)|none for|one id|must be Unigram|begin with <unk>|one that posenc has|each\. Got|another token than those before|tokens of Whisper|be a token of ESMC"

CLASSES = {
    "WordPiece": "Bert DistilBert ConvBert MPNet Funnel Splinter Electra DPRReader DPRQuestionEncoder".split(),
    "BPE": """Roberta Bart Deberta GPT2 CodeGen GPTNeoX Cohere Qwen2 Qwen3_5 Blenderbot CLIP Llama CodeLlama Gemma Siglip2 OpenAIGPT
        Herbert Reformer Nllb SeamlessM4T Whisper Nougat Tipsv2 Esmc""".split(),
    "Unigram": """XLMRoberta Camembert T5 Lasr MBart MBart50 Pegasus DebertaV2 XLNet Albert FNet RemBert BigBird XGLM
        Barthez VideoPrism""".split(),
    "any": ["PreTrained", "Nope", None, "Parakeet", "Bloom"],
}  # fmt: skip
FILES = {
    "tokenizer.model": ["Llama", "CodeLlama", "Gemma", "Siglip2", "Tipsv2", None, "PreTrained", "Parakeet", "GPT2"],
    "sentencepiece.bpe.model": ["XLMRoberta", "Camembert", "MBart", "MBart50", "Nllb", "SeamlessM4T", "Barthez"],
    "spiece.model": ["T5", "VideoPrism", "Lasr", "Pegasus", "XLNet", "Albert", "FNet", "BigBird", "Reformer"],
    "spm.model": ["DebertaV2"],
    "sentencepiece.model": ["RemBert"],
}
OF_BPE = "Llama CodeLlama Gemma Siglip2 Tipsv2 Nllb SeamlessM4T Reformer GPT2".split()
SPECIALS = """[PAD] [UNK] [CLS] [SEP] [MASK] <s> </s> <unk> <pad> <mask> <|endoftext|> <|startoftext|> <cls> <sep> <bos> <eos>
    <BOS_TOKEN> <PAD> <UNK> [QUESTION] . en_XX eng_Latn <eop> <eod> <mask_1> <mask_2> <extra_id_0> <extra_id_5> __eng__ ▁<PRE>
    de_DE fra_Latn <|startoftranscript|> <|startofprev|> <|notimestamps|> <|transcribe|> <|en|> <|0.00|>""".split()
LETTERS = [*"abcdefghijklmnop", *"é中ß▁Ġ", "##a", "##b", "ab", "abc", "▁a", "▁ab", "Ġa"]
NAMES = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token", "prefix_token"]


def vocabulary(rng: random.Random) -> "list[str]":
    tokens = rng.sample(SPECIALS, rng.randint(3, len(SPECIALS))) + rng.sample(LETTERS, rng.randint(5, len(LETTERS)))
    tokens += [token for token in ("[UNK]", "<unk>", "[CLS]", "[SEP]") if token not in tokens and rng.random() < 0.8]
    rng.shuffle(tokens)
    return tokens


def ids(rng: random.Random, tokens: "list[str]") -> "dict[str, int]":
    numbers = list(range(len(tokens)))
    if rng.random() < 0.02:
        numbers = sorted(rng.sample(range(len(tokens) + 5), len(tokens)))
    if rng.random() < 0.3:
        rng.shuffle(numbers)
    return dict(zip(tokens, numbers))


def merges(rng: random.Random, tokens) -> "list[tuple[str, str]]":
    found = [(token[:at], token[at:]) for token in tokens for at in range(1, len(token)) if token[:at] in tokens and token[at:] in tokens]
    rng.shuffle(found)
    return found


def flags(rng: random.Random) -> dict:
    return {"single_word": rng.random() < 0.1, "lstrip": rng.random() < 0.3, "rstrip": rng.random() < 0.2, "normalized": rng.random() < 0.4}


def added(rng: random.Random, most: int) -> "list[dict]":
    tokens = rng.sample([*SPECIALS, "new", "two words", "Neu", "<x>", "y1"], rng.randint(0, most))
    return [{"content": token, **flags(rng), "special": rng.random() < 0.6} for token in tokens]


def model(rng: random.Random, kind: str) -> dict:
    tokens = vocabulary(rng)
    if kind == "Unigram":
        vocab = [[token, 0.0 if token in SPECIALS and rng.random() < 0.9 else -round(rng.uniform(0, 12), rng.randint(3, 16))] for token in tokens]
        return {"type": kind, "unk_id": rng.choice([0, 1, None]), "vocab": vocab, "byte_fallback": False}
    vocab = ids(rng, tokens)
    if kind == "WordPiece":
        return {"type": kind, "unk_token": "[UNK]", "continuing_subword_prefix": "##", "max_input_chars_per_word": rng.choice([10, 100]), "vocab": vocab}
    if kind == "WordLevel":
        return {"type": kind, "unk_token": "<unk>", "vocab": vocab}
    pairs = merges(rng, vocab)
    return {"type": "BPE", "dropout": None, "unk_token": rng.choice([None, "<unk>"]), "continuing_subword_prefix": None, "end_of_word_suffix": None,
            "fuse_unk": rng.random() < 0.5, "byte_fallback": rng.random() < 0.3, "ignore_merges": rng.random() < 0.3, "vocab": vocab,
            "merges": [" ".join(pair) for pair in pairs] if rng.random() < 0.5 else pairs}  # fmt: skip


def byte_level(**options) -> dict:
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True, **options}


def tokenizer_file(rng: random.Random, kind: str) -> dict:
    made = model(rng, kind)
    places = {token: at for at, (token, _) in enumerate(made["vocab"])} if kind == "Unigram" else made["vocab"]
    tokens, following = [], len(places)
    for token in added(rng, 4):
        known = places.get(token["content"])
        tokens.append({"id": following if known is None else known, **token})
        following += known is None
    if rng.random() < 0.5:
        tokens.sort(key=lambda token: token["id"])
    bert = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None, "lowercase": False}
    template = {
        "type": "TemplateProcessing",
        "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
        "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
        "special_tokens": {"<s>": {"id": "<s>", "ids": [1], "tokens": ["<s>"]}},
    }
    sides = ["Left", "Right"]
    truncation = {"direction": rng.choice(sides), "max_length": 7, "strategy": "LongestFirst", "stride": 0}
    padding = {"strategy": "BatchLongest", "direction": rng.choice(sides), "pad_to_multiple_of": None, "pad_id": 1, "pad_type_id": 0,
               "pad_token": rng.choice(["<pad>", "[PAD]", "padX"])}  # fmt: skip
    return {
        "version": "1.0",
        "truncation": rng.choice([None, None, truncation]),
        "padding": rng.choice([None, None, padding]),
        "added_tokens": tokens,
        "normalizer": rng.choice([None, {"type": "Lowercase"}, bert, {"type": "NFC"}]),
        "pre_tokenizer": rng.choice([None, {"type": "Whitespace"}, byte_level()]),
        "post_processor": rng.choice([None, template, byte_level(add_prefix_space=True, trim_offsets=False)]),
        "decoder": rng.choice([None, {"type": "Fuse"}]),
        "model": made,
    }


def token_setting(rng: random.Random, token: str):
    return {"__type": "AddedToken", "content": token, **flags(rng)} if rng.random() < 0.3 else token


def tokenizer_config(rng: random.Random, name) -> dict:
    config = {"tokenizer_class": name + rng.choice(["", "Fast"])} if name else {}
    if name and name.startswith("DPR"):  # of whose two classes transformers takes one or the other, by what it has loaded before
        config["tokenizer_class"] = name
    for token in NAMES:
        drawn = rng.random()
        if drawn < 0.2:
            config[token] = token_setting(rng, rng.choice([*SPECIALS, "nn1", "nn2"]))
        elif drawn < 0.22:
            config[token] = None
    for option in """do_lower_case tokenize_chinese_chars add_prefix_space trim_offsets keep_accents split_by_punct clean_text legacy_behaviour
            legacy clean_up_tokenization_spaces add_bos_token add_eos_token split_special_tokens""".split():
        if rng.random() < 0.2:
            config[option] = rng.random() < 0.5
    choices = {"strip_accents": [True, False, None], "extra_ids": [0, 1, 5], "unk_id": [0, 1, 2], "src_lang": ["de_DE", "fra_Latn", "eng"], "tgt_lang": ["de_DE", "fra_Latn", "eng", None], "language": ["English", "de", "castilian"],
               "task": ["transcribe", "translate"], "predict_timestamps": [True, False],
               "model_max_length": [512, 10**30, 77, float("inf")], "padding_side": ["left", "right"], "truncation_side": ["left", "right"]}  # fmt: skip
    for option, values in choices.items():
        if rng.random() < 0.2:
            config[option] = rng.choice(values)
    for option in ("additional_special_tokens", "extra_special_tokens"):
        if rng.random() < 0.15:
            config[option] = [token_setting(rng, token) for token in rng.sample([*SPECIALS, "ex1", "ex2"], rng.randint(0, 3))]
    if rng.random() < 0.07:
        config["extra_special_tokens"] = {"boi_token": "<boi>", "eoi_token": rng.choice(SPECIALS)}
    if rng.random() < 0.3:
        config["added_tokens_decoder"] = {str(rng.randint(0, 60)): token for token in added(rng, 5)}
    items = list(config.items())
    rng.shuffle(items)
    return dict(items)


def write(folder: Path, name: str, value, **options):
    (folder / name).write_text(json.dumps(value, **options), encoding="utf-8")


def old_files(rng: random.Random, folder: Path):
    if rng.random() < 0.3:
        tokens = {name: rng.choice([rng.choice(SPECIALS), {"content": rng.choice(SPECIALS), **flags(rng)}]) for name in NAMES[:-2] if rng.random() < 0.4}
        if rng.random() < 0.3:
            tokens["additional_special_tokens"] = rng.sample([*SPECIALS, "am1"], 2)
        if rng.random() < 0.1:
            tokens["extra_special_tokens"] = [rng.choice(SPECIALS), {"content": "em1", **flags(rng)}]
        write(folder, "special_tokens_map.json", tokens)
    if rng.random() < 0.2:
        write(folder, "added_tokens.json", {token: rng.randint(0, 80) for token in rng.sample([*SPECIALS, "aj1", "aj2"], 3)})


def json_folder(rng: random.Random, folder: Path):
    """A folder with tokenizer.json, or with vocab.txt, or with vocab.json and merges.txt."""
    kind = rng.choice(list(CLASSES))
    name = rng.choice(CLASSES[kind])
    if kind == "any" or rng.random() < 0.05:
        kind = rng.choice(["WordPiece", "BPE", "Unigram", "WordLevel"])
    if rng.random() < 0.8 or kind in ("Unigram", "WordLevel"):
        write(folder, "tokenizer.json", tokenizer_file(rng, kind), ensure_ascii=rng.random() < 0.5)
    elif kind == "WordPiece":
        lines = [token + rng.choice(["\n", "\r\n", " \n"]) for token in vocabulary(rng)]
        (folder / "vocab.txt").write_text("".join(lines) + rng.choice(["", "", "dup\ndup\n", "last"]), encoding="utf-8", newline="")
    else:
        tokens = ids(rng, vocabulary(rng))
        write(folder, "vocab.json", tokens)
        lines = [" ".join(pair) + "\n" for pair in merges(rng, tokens)]
        (folder / "merges.txt").write_text(rng.choice(["", "#version: 0.2\n"]) + "".join(lines), encoding="utf-8", newline="")
    if name or rng.random() < 0.9:
        write(folder, "tokenizer_config.json", tokenizer_config(rng, name and name + "Tokenizer"))
    if rng.random() < 0.3:
        types = [*rng.sample(list(TOKENIZER_MAPPING_NAMES), 20), *MODELS_WITH_INCORRECT_HUB_TOKENIZER_CLASS, "foo", "mega"]
        config = {"model_type": rng.choice(sorted(types))} if rng.random() < 0.8 else {}
        if rng.random() < 0.2:
            config["tokenizer_class"] = rng.choice(["BertTokenizer", "RobertaTokenizerFast", "T5Tokenizer", "NopeTokenizer"])
        write(folder, "config.json", config)
    old_files(rng, folder)


SENTENCES = """hello world tokenizer ﬁne Ａｂｃ naïve straße 中文 日本語 tést the of and quick brown fox jump over lazy dog １２ Ⅷ ½ hi!
    don't x<y""".split()


def sentencepiece_models(folder: Path, kinds=("unigram", "bpe")) -> "dict[str, list[Path]]":
    """Small models with SentencePiece's options."""
    import sentencepiece

    rng = random.Random(5)
    lines = [" ".join(rng.choices(SENTENCES, k=12)) for _ in range(400)]
    options = [
        {},
        {"byte_fallback": True, "vocab_size": 400},
        {"user_defined_symbols": ["<mask>", "foo bar", "<ud>"], "control_symbols": ["<ctl>"]},
        {"normalization_rule_name": "identity", "pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1},
        {"unk_piece": "[UNK]", "bos_piece": "[CLS]", "eos_piece": "[SEP]", "pad_id": 0, "unk_id": 1, "bos_id": 2, "eos_id": 3,
         "normalization_rule_name": "nfkc_cf"},
        {"add_dummy_prefix": False, "bos_id": 1, "eos_id": 2},
        {"remove_extra_whitespaces": False, "treat_whitespace_as_suffix": True, "unk_surface": " ?? "},
    ]  # fmt: skip
    files = {kind: [] for kind in kinds}
    for kind, made in files.items():
        for given in options:
            model = io.BytesIO()
            sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, model_type=kind, minloglevel=2,
                                                     **{"vocab_size": 140, "hard_vocab_limit": False, "character_coverage": 1.0, **given})  # fmt: skip
            made.append(folder / f"{kind}{len(made)}.model")
            made[-1].write_bytes(model.getvalue())
    return files


def sentencepiece_folder(rng: random.Random, folder: Path, models: "dict[str, list[Path]]"):
    """A folder with a SentencePiece model and no tokenizer.json."""
    file = rng.choice(list(FILES))
    name = rng.choice(FILES[file])
    kind = "bpe" if name in OF_BPE else "unigram"
    if rng.random() < 0.15 or name in (None, "PreTrained", "Parakeet"):
        kind = rng.choice(["unigram", "bpe"])
    shutil.copy(rng.choice(models[kind]), folder / file)
    if name or rng.random() < 0.9:
        write(folder, "tokenizer_config.json", tokenizer_config(rng, name and name + "Tokenizer"))
    if rng.random() < 0.2:
        write(folder, "special_tokens_map.json", {"bos_token": rng.choice(SPECIALS), "additional_special_tokens": ["am1"]})


def settings_of(tokenizer) -> dict:
    """What the program says of a loaded tokenizer, as transformers has it."""
    length = tokenizer.model_max_length
    backend = getattr(tokenizer, "backend_tokenizer", None)  # none of a class in Python
    ignores_clean_up = type(getattr(backend, "model", None)).__name__ == "BPE"
    return {
        "class": type(tokenizer).__name__,
        "padding_side": tokenizer.padding_side,
        "truncation_side": tokenizer.truncation_side,
        "model_max_length": length if length < 10**18 else None,
        "special_tokens": [[name, str(token)] for name, token in tokenizer._special_tokens_map.items() if token is not None],
        "extra_special_tokens": [str(token) for token in tokenizer._extra_special_tokens],
        "model_input_names": tokenizer.model_input_names,
        "clean_up_tokenization_spaces": bool(tokenizer.clean_up_tokenization_spaces) and not ignores_clean_up,
        "split_special_tokens": bool(tokenizer.split_special_tokens),
    }
