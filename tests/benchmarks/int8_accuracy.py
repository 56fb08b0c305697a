"""How far models in 8 bits are from float32, beside CTranslate2's and ONNX Runtime's: the table of docs/int8.md.

    int8_accuracy.py --driver posenc-differential [--pronouncer build/pronounce/model.safetensors --dictionary FILE] [--seed N]
                     [--only pronouncer|marian|encoder] [--layers 12]

Each program is compared with its own float32, on the same weights. `pronouncer` is a model that examples/pronounce has
trained: WORDS words of the dictionary, the log probability of each phoneme of their first pronunciation given those
before it, and a greedy search. `marian` draws Marian models with random weights. `encoder` is a BERT of random weights and
BERT-base's shape, in which six channels of all norms are multiplied by 20, as trained models have them: its hidden states,
and their means over the tokens of a sentence. tools/measure_programs.py --accuracy has a published model.
"""

import argparse
import random
import re
import secrets
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open

import decode_peers
import encoder_peers

sys.path.append(str(Path(__file__).resolve().parent.parent / "differential"))
from harness import Case, Programs  # noqa: E402

WORDS, MODELS, SENTENCES = 2000, 6, 16
# The options of the driver.
WIDE = {"weights": "float32"}
DTYPES = {"int8": {"weights": "int8"}, "int8, blocks of 128": {"weights": "int8", "block": 128},
          "int8, blocks of 64": {"weights": "int8", "block": 64}, "bfloat16": {"weights": "bfloat16"}}  # fmt: skip


def rms(values) -> float:
    return float(np.sqrt(np.mean(np.square(np.asarray(values, np.float64)))))


def padded(rows: list[list[int]], pad: int) -> torch.Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [pad] * (width - len(row)) for row in rows])


def edits(a: list, b: list) -> int:
    """The number of insertions, deletions and substitutions."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (x != y))
    return row[-1]


class Outcome:
    """What one program makes of sources and targets: log probabilities of each target's tokens, and a greedy search's tokens."""

    def __init__(self, log_probs: list, found: list) -> None:
        self.log_probs, self.found = log_probs, found


def ours(programs: Programs, options: dict, src: list, tgt: list, dtype: dict) -> Outcome:
    tensors = {"src": padded(src, options["pad"]), "tgt": padded(tgt, 0)}
    got = programs.compute([Case(options | dtype | {"op": "converted_transformer"}, tensors, {})])[0]
    if isinstance(got, str):
        sys.exit(got)
    log_probs = [row[: len(tokens)].tolist() for row, tokens in zip(got["log_probs"], tgt)]
    found = [[token for token in got[f"tokens.{b}"].tolist() if token != options["end"]] for b in range(len(src))]
    return Outcome(log_probs, found)


def ctranslate2(folder: Path, src: list, tgt: list, most: int, compute_type: str) -> Outcome:
    """The targets end with the end token, which it adds itself."""
    import ctranslate2

    model = ctranslate2.Translator(str(folder), compute_type=compute_type, intra_threads=1, inter_threads=1)
    texts = [[f"w{i}" for i in row] for row in src]
    scores = model.score_batch(texts, [[f"w{i}" for i in row[:-1]] for row in tgt])
    found = model.translate_batch(texts, beam_size=1, max_decoding_length=most, length_penalty=0)
    return Outcome([list(one.log_probs) for one in scores], [[int(word[1:]) for word in one.hypotheses[0]] for one in found])


def compared(title: str, wide: Outcome, narrow: Outcome, references: "list | None") -> str:
    off = [a - b for x, y in zip(narrow.log_probs, wide.log_probs) for a, b in zip(x, y)]
    equal = np.mean([a == b for a, b in zip(narrow.found, wide.found)])
    line = f"| {title} | {rms(off):.4f} |"
    if references:
        total = sum(map(len, references))
        for outcome in (wide, narrow):
            line += f" {np.mean([p for row in outcome.log_probs for p in row]):.4f} |"
        for outcome in (wide, narrow):
            line += f" {100 * sum(edits(a, b) for a, b in zip(outcome.found, references)) / total:.2f}% |"
    return line + f" {100 * equal:.1f}% |"


def pronouncer_spec(tensors: dict, sizes: dict, folder: Path, tokens: int) -> None:
    from ctranslate2.specs import transformer_spec

    spec = transformer_spec.TransformerSpec.from_config(sizes["layers"], sizes["heads"], pre_norm=True)

    def linear(to, name: str, rows: slice = slice(None), prefix: str = ".") -> None:
        to.weight = tensors[f"{name}{prefix}weight"][rows].numpy()
        to.bias = tensors[f"{name}{prefix}bias"][rows].numpy()

    def norm(to, name: str) -> None:
        to.gamma, to.beta = tensors[f"{name}.weight"].numpy(), tensors[f"{name}.bias"].numpy()

    d_model = sizes["d_model"]
    for side, own in (("encoder", "src"), ("decoder", "tgt")):
        stack = getattr(spec, side)
        table = stack.embeddings[0] if side == "encoder" else stack.embeddings
        table.weight, stack.scale_embeddings = tensors[f"{own}_embedding.token_embedding.weight"].numpy(), True
        stack.position_encodings.encodings = tensors[f"{own}_embedding.position_encoding.pe"][0].numpy()
        norm(stack.layer_norm, f"{side}.norm")
        for i, layer in enumerate(stack.layer):
            name = f"{side}.layers.{i}"
            norms = iter(("norm1", "norm2", "norm3"))
            norm(layer.self_attention.layer_norm, f"{name}.{next(norms)}")
            linear(layer.self_attention.linear[0], f"{name}.self_attn", prefix=".in_proj_")
            linear(layer.self_attention.linear[1], f"{name}.self_attn.out_proj")
            if side == "decoder":
                norm(layer.attention.layer_norm, f"{name}.{next(norms)}")
                linear(layer.attention.linear[0], f"{name}.multihead_attn", slice(d_model), ".in_proj_")
                linear(layer.attention.linear[1], f"{name}.multihead_attn", slice(d_model, None), ".in_proj_")
                linear(layer.attention.linear[2], f"{name}.multihead_attn.out_proj")
            norm(layer.ffn.layer_norm, f"{name}.{next(norms)}")
            linear(layer.ffn.linear_0, f"{name}.linear1")
            linear(layer.ffn.linear_1, f"{name}.linear2")
    linear(spec.decoder.projection, "final_layer")
    spec.register_source_vocabulary(decode_peers.words(27))
    spec.register_target_vocabulary(decode_peers.words(tokens))
    spec.config.bos_token = spec.config.decoder_start_token = "w1"
    spec.config.eos_token, spec.config.unk_token = "w2", "w0"
    decode_peers.save_ctranslate2(spec, folder)


def pronouncer(programs: Programs, file: Path, dictionary: Path, draw: random.Random) -> None:
    with safe_open(file, "pt") as stored:
        metadata, tensors = stored.metadata(), {key: stored.get_tensor(key) for key in stored.keys()}
    phonemes = metadata["pronounce.phonemes"].split()
    sizes = {name: int(metadata[f"pronounce.{key}"]) for name, key in
             {"d_model": "d_model", "heads": "num_heads", "layers": "layers", "d_ff": "d_ff"}.items()}  # fmt: skip
    entries = [line.split("#")[0].split() for line in dictionary.read_text(encoding="utf8").splitlines()]
    chosen = draw.sample([entry for entry in entries if re.fullmatch("[a-z]+", entry[0])], WORDS)
    src = [[ord(letter) - ord("a") + 1 for letter in word] for word, *_ in chosen]
    tgt = [[3 + phonemes.index(re.sub(r"\d", "", one)) for one in said] + [2] for _, *said in chosen]
    options = sizes | {"src_vocab": 27, "tgt_vocab": 3 + len(phonemes), "max_len": 66, "file": str(file.resolve()),
                       "begin": 1, "end": 2, "pad": 0, "most": 64}  # fmt: skip
    folder = programs.folder / "pronouncer"
    pronouncer_spec(tensors, sizes, folder, 3 + len(phonemes))
    references = [row[:-1] for row in tgt]
    print(f"\npronouncer, {WORDS} words: rms of log p - its own float32's; mean log p in float32, in fewer bits; phoneme error, both; "
          "equal hypotheses")  # fmt: skip
    wide = ours(programs, options, src, tgt, WIDE)
    for name, dtype in DTYPES.items():
        print(compared(f"posenc {name}", wide, ours(programs, options, src, tgt, dtype), references))
    peer = ctranslate2(folder, src, tgt, 64, "float32")
    print(compared("CTranslate2 int8", peer, ctranslate2(folder, src, tgt, 64, "int8"), references))
    print(compared("CTranslate2 float32 against posenc float32", wide, peer, references))


def random_marian(draw: random.Random):
    from transformers import MarianConfig, MarianMTModel

    heads = draw.choice([2, 4, 8])
    vocab, width = draw.randint(200, 3000), heads * draw.choice([16, 24, 32])
    stacks = {f"{side}_{name}": size for side in ("encoder", "decoder")
              for name, size in (("layers", draw.randint(2, 4)), ("attention_heads", heads), ("ffn_dim", draw.choice([2, 4]) * width))}  # fmt: skip
    torch.manual_seed(draw.getrandbits(40))
    config = MarianConfig(vocab_size=vocab, d_model=width, activation_function=draw.choice(["relu", "swish"]), scale_embedding=True,
                          max_position_embeddings=128, pad_token_id=vocab - 1, eos_token_id=0, decoder_start_token_id=vocab - 1,
                          forced_eos_token_id=None, bad_words_ids=[[vocab - 1]], **stacks)  # fmt: skip
    model = MarianMTModel(config).eval()
    for name, parameter in model.named_parameters():
        if parameter.dim() == 2 and "embed" not in name:
            torch.nn.init.xavier_uniform_(parameter)
        elif parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return model


def marian(programs: Programs, draw: random.Random) -> None:
    print("\nrandom Marian models: rms of log p - its own float32's; equal hypotheses")
    for number in range(MODELS):
        model, folder = random_marian(draw), programs.folder / f"marian-{number}"
        pad, pair = model.config.pad_token_id, folder / "ctranslate2"
        model.save_pretrained(folder)
        decode_peers.write_ctranslate2(model, pair)
        src = [[draw.randrange(1, pad) for _ in range(draw.randint(3, 30))] for _ in range(24)]
        tgt = [[draw.randrange(1, pad) for _ in range(draw.randint(3, 20))] + [0] for _ in range(24)]
        options = {"folder": str(folder), "begin": pad, "end": 0, "pad": pad, "most": 12}
        wide, peer = ours(programs, options, src, tgt, WIDE), ctranslate2(pair, src, tgt, 12, "float32")
        what = f"d {model.config.d_model}, {model.config.encoder_layers} layers, {pad + 1} words"
        for name, dtype in DTYPES.items():
            print(compared(f"{what}: posenc {name}", wide, ours(programs, options, src, tgt, dtype), None))
        print(compared(f"{what}: CTranslate2 int8", peer, ctranslate2(pair, src, tgt, 12, "int8"), None))


def onnx_outputs(model, folder: Path, ids: np.ndarray, mask: np.ndarray) -> list[np.ndarray]:
    """In float32 and in 8 bits."""
    import onnxruntime

    encoder_peers.write_onnx(model, folder / "model.onnx")
    encoder_peers.write_int8_onnx(folder / "model.onnx", folder / "int8.onnx")
    sessions = [onnxruntime.InferenceSession(folder / name, providers=["CPUExecutionProvider"]) for name in ("model.onnx", "int8.onnx")]
    return [one.run(None, {"input_ids": ids, "attention_mask": mask})[0] for one in sessions]


def encoder(programs: Programs, draw: random.Random, layers: int, with_onnx: bool) -> None:
    import ctranslate2

    encoder_peers.BERT_SIZES["bert"] = (768, 3072, layers)
    model, folder = encoder_peers.bert("bert"), programs.folder / "bert"
    channels = torch.tensor(draw.sample(range(768), 6))
    for module in model.modules():
        if isinstance(module, torch.nn.LayerNorm):
            module.weight[channels] *= 20
    encoder_peers.write_ctranslate2(model, folder / "ctranslate2")  # which needs the pooler
    model = encoder_peers.without_pooler(model)
    model.save_pretrained(folder / "model")
    rows = [[draw.randrange(1, encoder_peers.VOCAB) for _ in range(draw.randint(8, 40))] for _ in range(SENTENCES)]
    ids = padded(rows, encoder_peers.PAD)
    mask = (ids != encoder_peers.PAD).long()

    def by_us(dtype: dict) -> np.ndarray:
        got = programs.compute([Case(dtype | {"op": "converted_encoder", "folder": str(folder / "model")},
                                     {"input_ids": ids, "attention_mask": mask}, {})])[0]  # fmt: skip
        return sys.exit(got) if isinstance(got, str) else got["out"].numpy()

    def by_ctranslate2(compute_type: str) -> np.ndarray:
        one = ctranslate2.Encoder(str(folder / "ctranslate2"), compute_type=compute_type, intra_threads=1, inter_threads=1)
        out = one.forward_batch(rows, token_type_ids=[[0] * len(row) for row in rows]).last_hidden_state
        return np.array(out)

    results = {"posenc": (by_us(WIDE), {name: by_us(dtype) for name, dtype in DTYPES.items()})}
    if with_onnx:
        wide, narrow = onnx_outputs(model, folder, ids.numpy(), mask.numpy())
        results["ONNX Runtime, dynamic"] = (wide, {"int8": narrow})
    results["CTranslate2"] = (by_ctranslate2("float32"), {"int8": by_ctranslate2("int8")})
    real = mask.numpy().astype(bool)
    print(f"\nBERT of {layers} layers with six outlier channels: relative error of hidden states; 1 - cosine of the sentences' means, mean and worst")
    for name, (wide, narrower) in results.items():
        for dtype, narrow in narrower.items():
            error = np.linalg.norm((narrow - wide)[real]) / np.linalg.norm(wide[real])
            means = [[out[i][real[i]].mean(0) for i in range(len(rows))] for out in (wide, narrow)]
            cosines = [float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)) for a, b in zip(*means)]
            print(f"| {name} {dtype} | {error:.4f} | {1 - np.mean(cosines):.2g} | {1 - min(cosines):.2g} |")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--driver", required=True)
    parser.add_argument("--pronouncer", type=Path)
    parser.add_argument("--dictionary", type=Path)
    parser.add_argument("--seed", type=int, default=None)
    parser.add_argument("--only", nargs="+", choices=["pronouncer", "marian", "encoder"], default=["pronouncer", "marian", "encoder"])
    parser.add_argument("--layers", type=int, default=12, help="of the encoder")
    parser.add_argument("--no-onnx", action="store_true", help="whose export takes minutes")
    options = parser.parse_args()
    seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    print(f"seed {seed}", flush=True)
    torch.set_grad_enabled(False)
    with tempfile.TemporaryDirectory(prefix="posenc-int8-") as folder:
        programs = Programs("", options.driver, Path(folder))
        if "pronouncer" in options.only and options.pronouncer:
            pronouncer(programs, options.pronouncer, options.dictionary, random.Random(seed))
        if "marian" in options.only:
            marian(programs, random.Random(seed))
        if "encoder" in options.only:
            encoder(programs, random.Random(seed), options.layers, not options.no_onnx)
    return 0


if __name__ == "__main__":
    sys.exit(main())
