"""The peers that decode_benchmark.cpp compares with: `decode_peers.py FOLDER PEER[:SHAPE]`, one process per peer.

hf           transformers' model
ctranslate2  the same weights in CTranslate2, float32
ctranslate2_int8  the same in 8 bits
torch_nn     the encoder's weights in torch.nn.TransformerEncoder, eval mode, with its fast path
compile      the same under torch.compile
checkpoint   not a peer: writes FOLDER/model, the checkpoint that posenc loads

Answers each line of stdin, `ACT BATCH LENGTH BEAMS THREADS`, with `SECONDS FINGERPRINT MEGABYTES`: the time of one
call, a hash of the tokens that it produced (`-` for the encoder), and the peak memory of the process during the call.
ACT: `encode`, `ragged` (about 30% filled, unsorted), `decode` (as many tokens for each source as the shape has steps).

SHAPE, of random weights: `marian`, the default, of which alone there are encoders; `nllb`, that of NLLB-200's 600 million
parameters; `t5`, that of T5-base.
"""

import multiprocessing
import re
import sys
import time
from dataclasses import dataclass
from pathlib import Path

VOCAB, WIDTH, HEADS, HIDDEN, LAYERS = 32000, 512, 8, 2048, 6
END, PAD = 0, VOCAB - 1


@dataclass
class Shape:
    """Special tokens, the first id and the number of those that sources have, and the tokens that a search writes."""

    start: int
    end: int
    pad: int
    first: int
    ids: int
    steps: int


SHAPES = {"marian": Shape(PAD, END, PAD, 1, PAD - 1, 64), "nllb": Shape(2, 2, 1, 4, 256202, 24), "t5": Shape(0, 1, 0, 2, 32126, 24)}


def marian():
    import torch
    from transformers import MarianConfig, MarianMTModel

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    stacks = {f"{side}_{name}": size for side in ("encoder", "decoder")
              for name, size in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", HIDDEN))}  # fmt: skip
    made = MarianMTModel(MarianConfig(
        vocab_size=VOCAB, d_model=WIDTH, activation_function="relu", scale_embedding=True, max_position_embeddings=512,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, forced_eos_token_id=None, bad_words_ids=[[PAD]],
        **stacks)).eval()  # fmt: skip
    # With random weights, a tied output layer repeats its input; with signs flipped, the output has many different
    # words.
    norm = made.model.decoder.layers[-1].final_layer_norm
    norm.weight.mul_(torch.where(torch.rand(WIDTH) < 0.5, -1.0, 1.0))
    return made


def nllb():
    from transformers import M2M100Config, M2M100ForConditionalGeneration

    sizes = {f"{side}_{name}": size for side in ("encoder", "decoder")
             for name, size in (("layers", 12), ("attention_heads", 16), ("ffn_dim", 4096))}  # fmt: skip
    return M2M100ForConditionalGeneration(M2M100Config(vocab_size=256206, d_model=1024, **sizes))


def t5():
    from transformers import T5Config, T5ForConditionalGeneration

    sizes = {"d_model": 768, "d_kv": 64, "d_ff": 3072, "num_layers": 12, "num_heads": 12}
    return T5ForConditionalGeneration(T5Config(vocab_size=32128, decoder_start_token_id=0, **sizes))


def model():
    """The shape's."""
    import torch

    if SHAPE == "marian":
        return marian()
    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    return {"nllb": nllb, "t5": t5}[SHAPE]().eval()


def sources(act: str, batch: int, length: int) -> list[list[int]]:
    """Ids from a linear congruential generator, the same as in decode_benchmark.cpp."""
    state = batch * 1000 + length

    def draw(end: int) -> int:
        nonlocal state
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (state >> 33) % end

    rows = []
    for row in range(batch):  # `ragged`: a product of two draws, usually short; the last row is the longest
        short = 1 + draw(length) * (1 + draw(length)) // length
        size = short if act == "ragged" and row + 1 < batch else length
        rows.append([SHAPES[SHAPE].first + draw(SHAPES[SHAPE].ids) for _ in range(size)])
    return rows


def padded(rows: list[list[int]]):
    from torch import tensor
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence([tensor(row) for row in rows], True, SHAPES[SHAPE].pad)


def fingerprint(rows: list[list[int]]) -> int:
    """The sum of token[i] (2 i + 1) over all rows, concatenated."""
    flat = [token for row in rows for token in row]
    return sum(token * (2 * i + 1) for i, token in enumerate(flat))


class HuggingFace:
    def __init__(self) -> None:
        self.model = model()

    def encode(self, rows, threads):
        ids = padded(rows)
        mask = None if all(len(row) == len(rows[0]) for row in rows) else (ids != PAD).long()
        return lambda: self.model.model.encoder(input_ids=ids, attention_mask=mask) and None

    def decode(self, rows, beams, threads):
        ids, shape = padded(rows), SHAPES[SHAPE]
        options = {"num_beams": beams, "max_new_tokens": shape.steps, "min_new_tokens": shape.steps, "do_sample": False,
                   "bad_words_ids": [[shape.pad]]}  # fmt: skip
        mask = (ids != shape.pad).long()
        return lambda: [row[1:] for row in self.model.generate(ids, attention_mask=mask, **options).tolist()]


class TorchNN:
    def __init__(self, compiled: bool) -> None:
        import torch
        from torch import nn

        source = marian().model.encoder
        self.embed = lambda ids: source.embed_tokens(ids) * source.embed_scale + source.embed_positions(ids.shape)
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, HIDDEN, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, LAYERS).eval()
        for ours, theirs in zip(self.encoder.layers, source.layers, strict=True):
            parts = [theirs.self_attn.q_proj, theirs.self_attn.k_proj, theirs.self_attn.v_proj]
            ours.self_attn.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
            ours.self_attn.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
            for mine, name in ((ours.self_attn.out_proj, "self_attn.out_proj"), (ours.linear1, "fc1"), (ours.linear2, "fc2"),
                               (ours.norm1, "self_attn_layer_norm"), (ours.norm2, "final_layer_norm")):  # fmt: skip
                mine.load_state_dict(theirs.get_submodule(name).state_dict())
        self.forward = torch.compile(self.encoder) if compiled else self.encoder

    def encode(self, rows, threads):
        ids = padded(rows)
        ragged = any(len(row) != len(rows[0]) for row in rows)
        x, mask = self.embed(ids), ids == PAD if ragged else None
        return lambda: self.forward(x, src_key_padding_mask=mask) is None or None


def words(count: int) -> list[str]:
    return [f"w{i}" for i in range(count)]


def save_ctranslate2(spec, folder: Path) -> None:
    folder.mkdir(parents=True)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


def write_ctranslate2(model, folder: Path) -> None:
    """Writes a Marian model whose padding has the last id; its vocabulary is without it, as in CTranslate2's converter."""
    from ctranslate2.converters.transformers import MarianMTLoader

    spec = MarianMTLoader().get_model_spec(model)
    vocabulary = words(model.config.vocab_size - 1)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.eos_token = spec.config.decoder_start_token = vocabulary[END]
    spec.config.unk_token = vocabulary[1]
    save_ctranslate2(spec, folder)


def write_ctranslate2_shape(folder: Path) -> None:
    from ctranslate2.converters.transformers import M2M100Loader, T5Loader

    of_shape, shape = model(), SHAPES[SHAPE]
    spec = {"nllb": M2M100Loader, "t5": T5Loader}[SHAPE]().get_model_spec(of_shape)
    vocabulary = words(of_shape.config.vocab_size)
    spec.register_source_vocabulary(vocabulary)
    spec.register_target_vocabulary(vocabulary)
    spec.config.bos_token = spec.config.unk_token = vocabulary[3]
    spec.config.eos_token, spec.config.decoder_start_token = vocabulary[shape.end], vocabulary[shape.start]
    save_ctranslate2(spec, folder)


class CTranslate2:
    def __init__(self, compute_type: str) -> None:
        self.compute_type = compute_type
        # In a separate process, so that the conversion does not count as CTranslate2's memory.
        writer = multiprocessing.Process(target=self.convert)
        writer.start()
        writer.join()
        self.opened = {}

    @staticmethod
    def convert() -> None:
        from ctranslate2.converters.transformers import MarianMTLoader
        from ctranslate2.specs import TransformerEncoderModelSpec

        if SHAPE != "marian":
            write_ctranslate2_shape(FOLDER / "model")
            return
        write_ctranslate2(marian(), FOLDER / "model")
        encoder = TransformerEncoderModelSpec(MarianMTLoader().get_model_spec(marian()).encoder)
        encoder.register_vocabulary(words(PAD))
        encoder.config.unk_token = words(PAD)[1]
        save_ctranslate2(encoder, FOLDER / "encoder")

    def open(self, kind: str, threads: int):
        import ctranslate2

        if (kind, threads) not in self.opened:
            self.opened.clear()  # one model at a time, as in a server
            make = {"model": ctranslate2.Translator, "encoder": ctranslate2.Encoder}[kind]
            self.opened[kind, threads] = make(str(FOLDER / kind), intra_threads=threads, inter_threads=1,
                                               compute_type=self.compute_type)
        return self.opened[kind, threads]

    def encode(self, rows, threads):
        encoder = self.open("encoder", threads)
        return lambda: encoder.forward_batch(rows) and None

    def decode(self, rows, beams, threads):
        translator = self.open("model", threads)
        texts = [[f"w{i}" for i in row] for row in rows]
        steps = SHAPES[SHAPE].steps
        options = {"beam_size": beams, "max_decoding_length": steps, "min_decoding_length": steps, "max_batch_size": 0}
        if SHAPE != "marian":  # whose vocabulary is without padding
            options["suppress_sequences"] = [[f"w{SHAPES[SHAPE].pad}"]]
        return lambda: [[int(word[1:]) for word in result.hypotheses[0]]
                        for result in translator.translate_batch(texts, **options)]  # fmt: skip


def answer(peer, line: str) -> str:
    act, *numbers = line.split()
    batch, length, beams, threads = map(int, numbers)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    rows = sources(act, batch, length)
    call = peer.decode(rows, beams, threads) if act == "decode" else peer.encode(rows, threads)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to current usage
    start = time.perf_counter()
    written = call()
    taken = time.perf_counter() - start
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()).group(1)) // 1024
    return f"{taken} {fingerprint(written) if written else '-'} {peak}"


PEERS = {
    "hf": HuggingFace,
    "ctranslate2": lambda: CTranslate2("float32"),
    "ctranslate2_int8": lambda: CTranslate2("int8"),
    "torch_nn": lambda: TorchNN(False),
    "compile": lambda: TorchNN(True),
    "checkpoint": lambda: model().save_pretrained(FOLDER / "model"),
}
if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    name, _, SHAPE = sys.argv[2].partition(":")
    SHAPE = SHAPE or "marian"
    peer = PEERS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(peer, line), flush=True)
