#!/usr/bin/env python3
"""Times of decoder-only language models of random weights: posenc's beside CTranslate2's and transformers'.

    tools/bench_decoders.py [--binary build/release/tests/benchmarks/posenc-decoder-speed] [--model llama] [--who WHO]...
        [--rows 1 8] [--prompts 128 1024] [--threads 1] [--rounds 3]

Each peer is a process that answers `ROWS LENGTH TOKENS THREADS` with seconds, the fingerprint of its tokens, and its peak memory in MB. They
are asked in turn, the first another one in each round; of each the least time counts. A step is a sixteenth of the difference of 17 and 1
new tokens, and a prompt the time of 1. CTranslate2 and transformers are measured where they are installed.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VOCAB, STEPS = 32000, 16
OURS = ("float32", "int8", "bfloat16", "compute_bfloat16")


def config(name: str):
    from transformers import GPT2Config, LlamaConfig

    if name == "gpt2":
        return GPT2Config(vocab_size=VOCAB, bos_token_id=1, eos_token_id=2)
    return LlamaConfig(vocab_size=VOCAB, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, num_key_value_heads=4,
                       intermediate_size=2048, max_position_embeddings=4096, tie_word_embeddings=False)  # fmt: skip


def write_model(name: str, folder: Path) -> None:
    import torch
    from tokenizers import Tokenizer, models
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    torch.manual_seed(1)
    AutoModelForCausalLM.from_config(config(name)).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({f"t{i}": i for i in range(VOCAB)}, unk_token="t0"))  # CTranslate2 asks for one
    PreTrainedTokenizerFast(tokenizer_object=words, unk_token="t0", bos_token="t1", eos_token="t2").save_pretrained(folder)


def prompts(rows: int, length: int) -> list[list[int]]:
    """As in decoder_speed.cpp."""
    return [[3 + (i * 7919 + row * 104729 + i * i * 31) % (VOCAB - 3) for i in range(length)] for row in range(rows)]


def ctranslate2(folder: str, compute: str):
    import ctranslate2 as ct

    made = folder + "-ctranslate2"
    if not Path(made).exists():
        ct.converters.TransformersConverter(folder).convert(made)
    models = {}

    def run(rows: int, length: int, tokens: int, threads: int) -> tuple[float, list]:
        if threads not in models:
            models.clear()
            models[threads] = ct.Generator(made, compute_type=compute, intra_threads=threads)
        given = [[f"t{i}" for i in row] for row in prompts(rows, length)]
        start = time.perf_counter()
        found = models[threads].generate_batch(given, max_length=tokens, min_length=tokens, sampling_topk=1, include_prompt_in_result=False)
        return time.perf_counter() - start, [row.sequences_ids[0] for row in found]

    return run


def transformers(folder: str, dtype: str):
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_grad_enabled(False)
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=getattr(torch, dtype), attn_implementation="sdpa").eval()

    def run(rows: int, length: int, tokens: int, threads: int) -> tuple[float, list]:
        torch.set_num_threads(threads)
        ids = torch.tensor(prompts(rows, length))
        start = time.perf_counter()
        found = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=tokens, min_new_tokens=tokens, do_sample=False, pad_token_id=0)
        return time.perf_counter() - start, found[:, length:].tolist()

    return run


PEERS = {"ctranslate2": lambda folder: ctranslate2(folder, "float32"), "ctranslate2_int8": lambda folder: ctranslate2(folder, "int8"),
         "transformers": lambda folder: transformers(folder, "float32"), "transformers_bfloat16": lambda folder: transformers(folder, "bfloat16")}


def serve(who: str, folder: str) -> None:
    run = PEERS[who](folder)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds, rows = run(*map(int, line.split()))
        flat = [token for row in rows for token in row]
        peak = next(text.split()[1] for text in Path("/proc/self/status").read_text().splitlines() if text.startswith("VmHWM"))
        print(seconds, sum(token * (2 * i + 1) for i, token in enumerate(flat)), int(peak) // 1024, flush=True)


class Peer:
    def __init__(self, who: str, command: list[str]) -> None:
        environment = {**os.environ, "OMP_WAIT_POLICY": "PASSIVE"}
        self.who = who
        self.child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        if self.child.stdout.readline().strip() != "ready":
            raise RuntimeError(f"{who} has ended")

    def ask(self, *numbers: int) -> tuple[float, str, str]:
        self.child.stdin.write(" ".join(map(str, numbers)) + "\n")
        self.child.stdin.flush()
        seconds, tokens, peak = self.child.stdout.readline().split()
        return float(seconds), tokens, peak


def measure(peers: list[Peer], cases: list[tuple[int, int, int]], rounds: int) -> None:
    for rows, length, threads in cases:
        least: dict[tuple[str, int], float] = {}
        said: dict[str, tuple[str, str]] = {}
        for number in range(rounds + 1):  # the first warms up
            for peer in peers[number % len(peers):] + peers[: number % len(peers)]:
                for tokens in (1, 1 + STEPS):
                    seconds, *said[peer.who] = peer.ask(rows, length, tokens, threads)
                    if number > 0:
                        least[peer.who, tokens] = min(seconds, least.get((peer.who, tokens), seconds))
        print(f"\n{rows} rows, prompts of {length}, {threads} threads{'':14} prompt ms    step ms   peak MB")
        for peer in peers:
            prompt, whole = least[peer.who, 1], least[peer.who, 1 + STEPS]
            print(f"  {peer.who:42}{prompt * 1e3:10.1f} {(whole - prompt) / STEPS * 1e3:10.2f} {said[peer.who][1]:>9}   tokens {said[peer.who][0]}",
                  flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--binary", default=str(ROOT / "build/release/tests/benchmarks/posenc-decoder-speed"))
    parser.add_argument("--model", default="llama", choices=("llama", "gpt2"))
    parser.add_argument("--folder", help="where the model is kept")
    parser.add_argument("--who", nargs="+", default=[*OURS, *PEERS])
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 8])
    parser.add_argument("--prompts", type=int, nargs="+", default=[128, 1024])
    parser.add_argument("--threads", type=int, nargs="+", default=[1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.serve:
        serve(*asked.serve)
        return
    with tempfile.TemporaryDirectory() as made:
        folder = Path(asked.folder or made) / asked.model
        if not folder.exists():
            write_model(asked.model, folder)
        python = [sys.executable, "-W", "ignore", "-B", __file__, "--serve"]
        peers = [Peer(who, [asked.binary, str(folder), who] if who in OURS else [*python, who, str(folder)]) for who in asked.who]
        measure(peers, [(rows, length, threads) for threads in asked.threads for length in asked.prompts for rows in asked.rows], asked.rounds)


if __name__ == "__main__":
    main()
