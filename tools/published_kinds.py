"""What is compared of a model's folder, chosen by its files: with the packages that are installed, text by text, and with `posenc`.

Each kind returns a Comparison. Whatever keeps a folder from being compared is a CannotCompare with the reason.
"""

import importlib
import json
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

import published_packages
import published_speech
from page_tables import ROOT
from published_packages import WEIGHTS, CannotCompare, last_line
from published_speech import Heard, Sound
from published_texts import real_images

sys.path.insert(0, str(ROOT / "tests/differential"))
from harness import Programs  # noqa: E402

DTYPES = {"float32": [], "bfloat16": ["--bfloat16"], "int8": ["--int8"]}
HEADS = {"ForSequenceClassification": "labels", "ForTokenClassification": "labels", "ForImageClassification": "labels",
         "ForQuestionAnswering": "answers", "ForMaskedLM": "words", "ForMultipleChoice": "choices"}  # fmt: skip
GENERATORS = ("ForConditionalGeneration", "MTModel")
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json", "vocab.txt", "vocab.json", "*.model", "*.spm")
MOST_TOKENS, MOST_NEW_TOKENS, MOST_NUMBERS = 128, 32, 1 << 26  # of a text, of a target, and in an output of all texts
Chooser = Callable[[torch.Tensor], list]


@dataclass
class Comparison:
    """`expected` and `got` have a tensor for each text: its vector, or a row for each of its tokens."""

    model_type: str
    compared: str
    of: str  # lines, pairs of lines, images
    packages: list[str]
    expected: list[torch.Tensor]
    got: dict[str, list[torch.Tensor]]  # by dtype
    kept: str = ""  # what else may differ: nearest neighbours, labels, ...
    choices: dict[str, list] = field(default_factory=dict)  # of `expected`, and by dtype
    notes: list[str] = field(default_factory=list)  # lines of the verdict that it does not depend on


@dataclass
class Folder:
    path: Path
    config: dict
    texts: list[str]
    programs: Programs

    @property
    def model_type(self) -> str:
        return self.config.get("model_type", "unknown")

    @property
    def sizes(self) -> dict:
        """Of the encoder of texts in a pair."""
        return self.config | (self.config.get("text_config") or {})

    @property
    def architecture(self) -> str:
        return (self.config.get("architectures") or [""])[0]

    def posenc(self, *arguments: object) -> str:
        done = self.programs.posenc(*arguments)
        if done.returncode:
            raise CannotCompare(last_line(done.stderr))
        return done.stdout

    def computed(self, command: str, given: dict[str, torch.Tensor], *options: str) -> dict[str, torch.Tensor]:
        """What a command makes of tensors."""
        inputs, out = self.programs.folder / "in.safetensors", self.programs.folder / "out.safetensors"
        save_file({name: value.contiguous() for name, value in given.items()}, inputs)
        self.posenc(command, self.path, "--in", inputs, "--out", out, *options)
        return load_file(out)

    def line_file(self, lines: list[str]) -> Path:
        file = self.programs.folder / "lines.txt"
        file.write_text("".join(line + "\n" for line in lines))
        return file


def package(name: str):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise CannotCompare(f"this kind of model needs the Python package {name}: {last_line(str(error))}") from None


def read_json(file: Path) -> dict:
    try:
        return json.loads(file.read_text()) if file.is_file() else {}
    except ValueError as error:
        raise CannotCompare(f"{file} is no JSON: {error}") from None


# --- vectors of texts ---


def nearest(rows: list[torch.Tensor]) -> list[int]:
    """The place of the nearest other text of each."""
    vectors = torch.nn.functional.normalize(torch.stack(rows).double(), dim=-1)
    return (vectors @ vectors.T).fill_diagonal_(-torch.inf).argmax(1).tolist()


def sentence_vectors(folder: Folder) -> Comparison:
    """Each text alone: in a batch some models see the padding."""
    sentences = package("sentence_transformers")
    model = sentences.SentenceTransformer(str(folder.path), device="cpu").float()  # by default it has the dtype of the file
    expected = list(model.encode(folder.texts, batch_size=1, convert_to_tensor=True, show_progress_bar=False))
    lines, out = folder.line_file(folder.texts), folder.programs.folder / "vectors.safetensors"
    is_static = "StaticEmbedding" in read_json(folder.path / "modules.json")[0].get("type", "")
    got = {}
    for dtype, options in DTYPES.items():
        if is_static and options:
            continue  # a table, which stays in float32
        folder.posenc("encode", folder.path, "--text", lines, "--out", out, *options)
        got[dtype] = list(load_file(out)["embeddings"])
    choices = {"expected": nearest(expected)} | {dtype: nearest(rows) for dtype, rows in got.items()}
    model_type = "static" if is_static else getattr(getattr(model[0], "auto_model", None), "config", None)
    return Comparison(getattr(model_type, "model_type", model_type or folder.model_type), "sentence vectors", "texts",
                      ["sentence-transformers", "transformers", "torch"], expected, got, "nearest neighbours", choices)  # fmt: skip


# --- inputs of models ---


def padded(rows: list[torch.Tensor], value: int) -> torch.Tensor:
    return torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=value)


def most_texts(folder: Folder, length: int, width: int) -> int:
    return max(1, min(len(folder.texts), MOST_NUMBERS // (length * max(1, width))))


def longest(folder: Folder, tokenizer_limit: int = MOST_TOKENS) -> int:
    """Some tables of positions begin at the third row."""
    positions = folder.sizes.get("max_position_embeddings") or MOST_TOKENS
    return max(2, min(MOST_TOKENS, tokenizer_limit, positions - 2))


def drawn_ids(folder: Folder, count: int) -> dict[str, torch.Tensor]:
    """For a model without a tokenizer."""
    source, vocabulary, most = torch.Generator().manual_seed(0), folder.sizes.get("vocab_size"), longest(folder)
    if not vocabulary:
        raise CannotCompare("it has no tokenizer, and its config.json no vocab_size to draw ids from")
    rows = [torch.randint(min(4, vocabulary - 1), vocabulary, (n,), generator=source) for n in torch.randint(2, most + 1, (count,), generator=source).tolist()]
    return {"input_ids": padded(rows, folder.sizes.get("pad_token_id") or 0), "attention_mask": padded([torch.ones_like(row) for row in rows], 0)}


def token_ids(folder: Folder, count: int, in_pairs: bool) -> tuple[dict[str, torch.Tensor], str]:
    """Those of transformers' tokenizer, which have to be posenc's; and what they are of."""
    if not any(any(folder.path.glob(name)) for name in TOKENIZER_FILES):
        return drawn_ids(folder, count), "drawn sequences of ids"
    tokenizer = package("transformers").AutoTokenizer.from_pretrained(folder.path)
    most = longest(folder, tokenizer.model_max_length)
    texts = folder.texts[:count]
    pairs = [(text, texts[(i + 1) % len(texts)]) if in_pairs else (text,) for i, text in enumerate(texts)]
    rows = [tokenizer(*pair, truncation=True, max_length=most) for pair in pairs]
    lines = folder.line_file(["\t".join(pair) for pair in pairs])
    written = folder.posenc("tokenize", folder.path, lines, "--max-length", most, *(["--pair"] if in_pairs else []))
    ours = [[int(word) for word in line.split()] for line in written.split("\n")[:-1]]
    for pair, row, ids in zip(pairs, rows, ours, strict=True):
        if ids != row["input_ids"]:
            raise CannotCompare(f"its tokenizer differs: {' | '.join(pair)[:60]!r} has ids {ids[:8]} for {row['input_ids'][:8]}")
    pads = {"input_ids": tokenizer.pad_token_id or 0}
    names = [name for name in ("input_ids", "attention_mask", "token_type_ids") if name in rows[0]]
    batch = {name: padded([torch.tensor(row[name]) for row in rows], pads.get(name, 0)) for name in names}
    batch.setdefault("attention_mask", padded([torch.ones(len(row["input_ids"]), dtype=torch.long) for row in rows], 0))
    return batch, "pairs of texts" if in_pairs else "texts"


def pixels(folder: Folder) -> dict[str, torch.Tensor]:
    """Images of the size that the model was trained on."""
    image, numpy, size = package("PIL.Image"), package("numpy"), folder.config.get("image_size", 224)
    height, width = size if isinstance(size, list) else (size, size)
    mode = {1: "L", 3: "RGB"}[folder.config.get("num_channels", 3)]
    pictures = [numpy.asarray(image.open(file).convert(mode).resize((width, height)), "float32").reshape(height, width, -1) for file in real_images()]
    return {"pixel_values": (torch.tensor(numpy.stack(pictures)).permute(0, 3, 1, 2) / 127.5 - 1).contiguous()}


def sees_images(folder: Folder) -> bool:
    return "image_size" in folder.config and "vocab_size" not in folder.config and "text_config" not in folder.config


def inputs(folder: Folder, width: int, in_pairs: bool = False) -> tuple[dict[str, torch.Tensor], str]:
    return (pixels(folder), "images") if sees_images(folder) else token_ids(folder, most_texts(folder, longest(folder), width), in_pairs)


def rows_of(batch: dict[str, torch.Tensor]) -> list[dict[str, torch.Tensor]]:
    """The inputs of each text alone, without padding."""
    first = next(iter(batch.values()))
    lengths = batch["attention_mask"].sum(1).tolist() if "attention_mask" in batch else [None] * len(first)
    return [{name: value[i : i + 1, :n] for name, value in batch.items()} for i, n in enumerate(lengths)]


def cut(output: torch.Tensor, batch: dict[str, torch.Tensor], per_token: bool) -> list[torch.Tensor]:
    """The rows of each text, without those of padding."""
    if not per_token or "attention_mask" not in batch:
        return list(output)
    return [row[:n] for row, n in zip(output, batch["attention_mask"].sum(1).tolist())]


# --- encoders, and their heads ---


def hidden_states(folder: Folder) -> Comparison:
    model = package("transformers").AutoModel.from_pretrained(folder.path, dtype=torch.float32).eval()
    if model.config.is_encoder_decoder:
        model = model.get_encoder()
    model = getattr(model, "text_model", model)  # of a pair
    batch, of = inputs(folder, getattr(model.config, "hidden_size", 0) or 1024)
    expected = [model(**row).last_hidden_state[0] for row in rows_of(batch)]
    got = {dtype: cut(folder.computed("encode", batch, *options)["last_hidden_state"], batch, True) for dtype, options in DTYPES.items()}
    return Comparison(folder.model_type, "last hidden states", of, ["transformers", "torch"], expected, got)


def logits_of(output, head: str) -> torch.Tensor:
    return torch.stack([output.start_logits, output.end_logits], -1)[0] if head == "ForQuestionAnswering" else output.logits[0]


def chosen(head: str) -> Chooser:
    """A label of the text, one of each token, or the first and the last token of an answer."""
    return lambda logits: logits.argmax(0 if head == "ForQuestionAnswering" else -1).flatten().tolist()


def with_head(folder: Folder, head: str) -> Comparison:
    transformers = package("transformers")
    model = getattr(transformers, f"AutoModel{head}").from_pretrained(folder.path, dtype=torch.float32).eval()
    is_score = head == "ForMultipleChoice" or (head == "ForSequenceClassification" and model.config.num_labels == 1)
    per_token = head in ("ForTokenClassification", "ForQuestionAnswering", "ForMaskedLM")
    width = model.config.vocab_size if head == "ForMaskedLM" else getattr(model.config, "hidden_size", 0) or 1024
    batch, of = inputs(folder, width, in_pairs=is_score or head == "ForQuestionAnswering")
    as_choices = (lambda row: {name: value[:, None] for name, value in row.items()}) if head == "ForMultipleChoice" else (lambda row: row)
    expected = [logits_of(model(**as_choices(row)), head) for row in rows_of(batch)]
    got = {dtype: cut(folder.computed("encode", batch, "--head", *options)["logits"], batch, per_token) for dtype, options in DTYPES.items()}
    if is_score:
        return Comparison(folder.model_type, "scores", of, ["transformers", "torch"], expected, got)
    choose = chosen(head)
    choices = {"expected": [one for row in expected for one in choose(row)]}
    choices |= {dtype: [one for row in rows for one in choose(row)] for dtype, rows in got.items()}
    return Comparison(folder.model_type, f"logits of {HEADS[head]}", of, ["transformers", "torch"], expected, got, HEADS[head], choices)


# --- encoder-decoders ---


def generated(folder: Folder) -> Comparison:
    """The logits of transformers' own greedy targets, and posenc's targets."""
    model = package("transformers").AutoModelForSeq2SeqLM.from_pretrained(folder.path, dtype=torch.float32).eval()
    count = min(24, most_texts(folder, MOST_NEW_TOKENS, getattr(model.config, "vocab_size", 0) or 50_000))
    batch, of = token_ids(folder, count, in_pairs=False)
    batch.pop("token_type_ids", None)
    settings = {"num_beams": 1, "do_sample": False, "max_length": min(MOST_NEW_TOKENS, longest(folder))}
    targets = [model.generate(**row, **settings)[0] for row in rows_of(batch)]
    expected = [model(**row, decoder_input_ids=target[None, :-1]).logits[0] for row, target in zip(rows_of(batch), targets)]
    forced = batch | {"decoder_input_ids": padded([target[:-1] for target in targets], model.config.pad_token_id or 0)}
    wanted = [part for name, value in settings.items() for part in ("--set", f"{name}={json.dumps(value)}")]
    got, choices = {}, {"expected": [target.tolist() for target in targets]}
    for dtype, options in DTYPES.items():
        logits = folder.computed("generate", forced, "--logits", *options)["logits"]
        got[dtype] = [row[: len(target) - 1] for row, target in zip(logits, targets)]
        found = folder.computed("generate", batch, *wanted, *options)["sequences"]
        choices[dtype] = [row[: len(target)].tolist() for row, target in zip(found, targets)]
    return Comparison(folder.model_type, "logits of targets", of, ["transformers", "torch"], expected, got, "targets", choices)


# --- speech ---


def transcribed(folder: Folder, given: list[Sound], *options: str) -> list[Heard]:
    files = [part for sound in given for part in ("--in", sound.file)]
    lines = folder.posenc("transcribe", folder.path, *files, "--timestamps", "word", "--threads", 1, *options).splitlines()
    return [published_speech.of_json(json.loads(line)) for line in lines]


def heard(folder: Folder) -> Comparison:
    """The logits of the tokens that transformers writes of speech, and posenc's texts, times and words."""
    transformers = package("transformers")
    model = transformers.AutoModelForSpeechSeq2Seq.from_pretrained(folder.path, dtype=torch.float32, attn_implementation="eager").eval()
    tokenizer, extractor = transformers.AutoTokenizer.from_pretrained(folder.path), transformers.AutoFeatureExtractor.from_pretrained(folder.path)
    given, window = published_speech.say(folder.programs.folder, extractor.n_samples), 2 * model.config.max_source_positions
    expected, got, written = [], {dtype: [] for dtype in DTYPES}, []
    for sound in given:
        features = published_speech.features(extractor, sound)
        text, tokens = published_speech.by_transformers(model, tokenizer, *features)
        forced = torch.tensor([[model.config.decoder_start_token_id, *tokens[: min(MOST_NEW_TOKENS, model.config.max_target_positions - 1)]]])
        tensors = {"input_features": features[0][None, :, :window], "decoder_input_ids": forced}
        expected.append(model(**tensors).logits[0])
        for dtype, options in DTYPES.items():
            got[dtype].append(folder.computed("transcribe", tensors, "--logits", *options)["logits"][0])
        written.append(text)
    ours = {dtype: transcribed(folder, given, *options) for dtype, options in DTYPES.items()}
    choices = {name: [part for sound, one in zip(given, texts, strict=True) for part in one.parts(sound).values()]
               for name, texts in {"expected": written, **ours}.items()}  # fmt: skip
    notes = [f"{dtype} differs: {line}" for dtype, texts in ours.items()
             for sound, one, other in zip(given, texts, written) for line in published_speech.differences(sound, one, other)]  # fmt: skip
    notes += beside_programs(folder, given, written)
    packages = ["transformers", "torch"] + (["faster-whisper"] if published_packages.source_of(folder.path) else [])
    return Comparison(folder.model_type, "logits of what is written", "sounds of speech", packages, expected, got, "texts, times and words", choices, notes)


def beside_programs(folder: Folder, given: list[Sound], written: list[Heard]) -> list[str]:
    """What faster-whisper writes, where the folder was made of its file, and how long each takes for the longest sound; nothing depends on it."""
    longest, source, notes = max(given, key=lambda sound: len(sound.samples)), published_packages.source_of(folder.path), []
    nothing = published_speech.sound_of("nothing", folder.programs.folder / "nothing.wav", longest.samples[:0], 0)
    calls = {"posenc": lambda: transcribed(folder, [longest]), "loading": lambda: transcribed(folder, [nothing]),
             "transformers": published_speech.generating(folder.path, longest)}  # fmt: skip
    if source:
        beside = published_speech.faster_whisper(source, "float32")
        texts = [beside(sound.samples) for sound in given]
        same = sum(one.text == other.text for one, other in zip(texts, written))
        notes.append(f"faster-whisper: {same} of {len(given)} texts the same")
        notes += [f"faster-whisper differs: {line}" for sound, one, other in zip(given, texts, written)
                  for line in published_speech.differences(sound, one, other, ("text", "times"))]  # fmt: skip
        calls |= {"posenc int8": lambda: transcribed(folder, [longest], "--int8"), "loading int8": lambda: transcribed(folder, [nothing], "--int8"),
                  "faster-whisper": lambda: beside(longest.samples)}  # fmt: skip
        in_8_bits = published_speech.faster_whisper(source, "int8")
        calls["faster-whisper int8"] = lambda: in_8_bits(longest.samples)
    return notes + [published_speech.seconds_line(longest, published_speech.medians(calls))]


# --- the choice ---


def compare(path: Path, texts: list[str], programs: Programs) -> Comparison:
    """By the files of a folder."""
    if not path.is_dir():
        raise CannotCompare("it is not a folder; `hf download` with --local-dir makes one of a model's name")
    listed, config = read_json(path / "modules.json"), read_json(path / "config.json")
    folder = Folder(path, config, texts, programs)
    if listed and read_json(path / "config_sentence_transformers.json").get("model_type") != "CrossEncoder":
        return sentence_vectors(folder)
    if not config:
        raise CannotCompare("it has no config.json")
    if not any((path / name).is_file() for name in WEIGHTS):
        raise CannotCompare(f"it has no weights: none of {', '.join(WEIGHTS)}")
    if folder.model_type == "whisper":
        return heard(folder)
    if config.get("is_encoder_decoder") and folder.architecture.endswith(GENERATORS):
        return generated(folder)
    head = next((head for head in HEADS if folder.architecture.endswith(head)), None)
    return with_head(folder, head) if head else hidden_states(folder)
