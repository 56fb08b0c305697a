"""What retrieval_benchmark.cpp compares with: `retrieval_peers.py FOLDER`, one thread. It writes FOLDER/model, a cross-encoder of MiniLM's
shape with random weights, and FOLDER/cases.safetensors: its scores of the pairs of FOLDER/pairs.txt, vectors `x` (N, 384), and what
sentence-transformers makes of the first rows.

Answers each line of stdin with the seconds of one call:

rank      CrossEncoder.rank() of a query and 100 documents of 20 to 60 words
levels    quantize_embeddings() of sentence-transformers of x to int8, with given ranges
bits      the same to ubinary, which is numpy.packbits()
hamming   the bits in which the first vector of x differs from all, by numpy.bitwise_count()
"""

import sys
import time
from pathlib import Path

import numpy
import torch
from safetensors.torch import save_file
from sentence_transformers import CrossEncoder
from sentence_transformers.util.quantization import quantize_embeddings
from transformers import BertConfig, BertForSequenceClassification, BertTokenizer

VECTORS, CHECKED, WIDTH, DOCUMENTS = 100_000, 1_000, 384, 100


def cross_encoder(folder: Path) -> CrossEncoder:
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(30_000))]
    config = BertConfig(vocab_size=len(words), hidden_size=WIDTH, num_attention_heads=12, intermediate_size=4 * WIDTH, num_hidden_layers=6, num_labels=1)
    BertForSequenceClassification(config).save_pretrained(folder / "model")
    BertTokenizer(vocab={word: i for i, word in enumerate(words)}, model_max_length=512).save_pretrained(folder / "model")
    return CrossEncoder(str(folder / "model"), device="cpu")


def main() -> None:
    folder, random = Path(sys.argv[1]), numpy.random.default_rng(1)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = cross_encoder(folder)
    query, *documents = [" ".join(f"w{i}" for i in random.integers(0, 30_000, count)) for count in [8, *random.integers(20, 61, DOCUMENTS)]]
    (folder / "pairs.txt").write_text("\n".join([query, *documents]))
    x = random.standard_normal((VECTORS, WIDTH), dtype=numpy.float32)
    ranges = numpy.stack([x.min(0), x.max(0)])
    bits = quantize_embeddings(x, "ubinary")
    save_file({"scores": model.predict([(query, document) for document in documents], convert_to_tensor=True), "x": torch.from_numpy(x),
               "ranges": torch.from_numpy(ranges), "levels": torch.from_numpy(quantize_embeddings(x[:CHECKED], "int8", ranges)),
               "bits": torch.from_numpy(bits[:CHECKED])}, folder / "cases.safetensors")  # fmt: skip
    calls = {"rank": lambda: model.rank(query, documents), "levels": lambda: quantize_embeddings(x, "int8", ranges),
             "bits": lambda: quantize_embeddings(x, "ubinary"),
             "hamming": lambda: numpy.bitwise_count(bits[:1] ^ bits).sum(1)}  # fmt: skip
    print("ready", flush=True)
    for line in sys.stdin:
        start = time.perf_counter()
        calls[line.strip()]()
        print(time.perf_counter() - start, flush=True)


if __name__ == "__main__":
    main()
