#!/usr/bin/env python3
"""The speed of tokenizers beside the package: trains them on the lines of a file, compares ids and offsets, and prints a table.

    tests/benchmarks/tokenize_peers.py --program build/release/tests/posenc-tokenize-speed TEXT [--models "WordPiece,BPE,Unigram,Llama,GPT-2"]

The models are those named here, trained on TEXT, and the kinds of tests/tokenizers/kinds.py, which are trained on their own lines. "cold" is a
tokenizer that has met no word yet, "short" a line of 30 to 40 bytes, and "long" the whole text as one line, whose memory is only seen beyond that of
loading: with 10 MB or more. Both sides take one thread, batches of 1,000 lines and processor time, so a busy machine slows both."""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers  # noqa: E402


def word_piece(lines):
    made = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    made.normalizer, made.pre_tokenizer, made.decoder = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    made.train_from_iterator(lines, trainers.WordPieceTrainer(vocab_size=30_000, special_tokens=["[PAD]", "[UNK]"], show_progress=False))
    return made


def bpe(lines):
    made = Tokenizer(models.BPE())
    made.pre_tokenizer, made.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    made.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=50_257, initial_alphabet=alphabet, show_progress=False))
    return made


def unigram(lines):
    made = Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    made.decoder = decoders.Metaspace()
    made.train_from_iterator(lines[::2], trainers.UnigramTrainer(vocab_size=32_000, unk_token="<unk>", special_tokens=["<unk>"], show_progress=False))
    return made


def llama(lines):
    """Trained on words, but then without a pre-tokenizer, so that a line is one word."""
    made = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    special = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256))]
    made.train_from_iterator(lines, trainers.BpeTrainer(vocab_size=32_000, special_tokens=special, show_progress=False))
    file = json.loads(made.to_str())
    blank = {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}
    file |= {"pre_tokenizer": None, "added_tokens": [], "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"}, blank]}}
    file["decoder"] = {"type": "Sequence", "decoders": [{**blank, "pattern": {"String": "▁"}, "content": " "}, {"type": "ByteFallback"}, {"type": "Fuse"}]}
    return Tokenizer.from_str(json.dumps(file))


def kind(name):
    """One of the kinds of tests/tokenizers/kinds.py, as its tokenizer.json."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tokenizers"))
    import kinds

    def made(_):
        with tempfile.TemporaryDirectory() as folder:
            kinds.make(name, Path(folder))
            return Tokenizer.from_file(str(Path(folder, "tokenizer.json")))

    return made


def timed(work):
    begin = time.process_time()
    result = work()
    return time.process_time() - begin, result


def package(path, lines, size):
    load, tokenizer = min((timed(lambda: Tokenizer.from_file(str(path))) for _ in range(3)), key=lambda result: result[0])
    batches = [lines[i : i + 1000] for i in range(0, len(lines), 1000)]

    def encode(method):
        best = float("inf")
        for _ in range(2):
            taken, _ = timed(lambda: [None for batch in batches if method(batch) is None])
            best = min(best, taken)
        return size / best / 1e6

    cold, _ = timed(lambda: [None for batch in batches if tokenizer.encode_batch(batch) is None])
    short = next(line for line in lines if 30 <= len(line.encode()) <= 40)
    calls, _ = timed(lambda: [None for _ in range(2000) if tokenizer.encode(short) is None])
    whole, _ = timed(lambda: tokenizer.encode(" ".join(lines)))
    speeds = {"load": load, "offsets": encode(tokenizer.encode_batch), "ids": encode(tokenizer.encode_batch_fast), "cold": size / cold / 1e6,
              "short": calls / 2000, "long": size / whole / 1e6}  # fmt: skip
    fingerprint, ids = 0, []
    for batch in batches:
        ids.append([])
        for encoding in tokenizer.encode_batch(batch):
            ids[-1] += encoding.ids
            for one, (begin, end) in zip(encoding.ids, encoding.offsets):
                fingerprint = (fingerprint * 31 + one * 7 + begin * 3 + end) % 2147483647
    taken, _ = timed(lambda: [None for batch in ids if tokenizer.decode(batch) is None])
    return speeds | {"decode": sum(map(len, ids)) / taken, "fingerprint": fingerprint}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path)
    parser.add_argument("--program", required=True)
    parser.add_argument("--models", default="WordPiece,BPE,Unigram,Llama")
    options = parser.parse_args()
    makers = {"WordPiece": word_piece, "BPE": bpe, "Unigram": unigram, "Llama": llama}
    text = options.text.read_text()
    lines = [line for line in text.split("\n") if line]
    columns = (("load", "load ms", 1e3), ("offsets", "ids and offsets MB/s", 1), ("ids", "ids only MB/s", 1), ("cold", "cold MB/s", 1),
               ("short", "short us", 1e6), ("long", "long MB/s", 1), ("decode", "decoding Mid/s", 1e-6))  # fmt: skip
    print("| model | " + " | ".join(name for _, name, _ in columns) + " | memory of long, bytes a byte |\n" + "|---" * (len(columns) + 2) + "|")
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder, "lines.txt")
        corpus.write_text("\n".join(lines))
        for name in options.models.split(","):
            path = Path(folder, f"{name}.json")
            (makers[name] if name in makers else kind(name))(lines).save(str(path))
            theirs = package(path, lines, corpus.stat().st_size)
            ours = json.loads(subprocess.run([options.program, path, corpus], check=True, capture_output=True).stdout)
            if ours["fingerprint"] != theirs["fingerprint"]:
                raise SystemExit(f"{name}: posenc and the package differ in ids or offsets")
            cells = [f"{ours[key] * unit:.1f} / {theirs[key] * unit:.1f} ({ours[key] / theirs[key]:.2f}x)" for key, _, unit in columns]
            print(f"| {name} | " + " | ".join(cells) + f" | {ours['memory']:.0f} |", flush=True)


if __name__ == "__main__":
    main()
