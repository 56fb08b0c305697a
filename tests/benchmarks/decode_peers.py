"""The peers that decode_benchmark.cpp compares with: `decode_peers.py FOLDER PEER`, one process per peer.

hf           transformers' MarianMTModel
ctranslate2  the same weights in CTranslate2, float32
ctranslate2_int8  the same in 8 bits
torch_nn     the encoder's weights in torch.nn.TransformerEncoder, eval mode, with its fast path
compile      the same under torch.compile
checkpoint   not a peer: writes FOLDER/model, the checkpoint that posenc loads

Answers each line of stdin, `ACT BATCH LENGTH BEAMS THREADS`, with `SECONDS FINGERPRINT MEGABYTES`: the time of one
call, a hash of the tokens that it produced (`-` for the encoder), and the peak memory of the process during the call.
ACT: `encode`, `ragged` (about 30% filled, unsorted), `decode` (STEPS tokens for each source).
"""

import multiprocessing
import re
import sys
import time
from pathlib import Path

VOCAB, WIDTH, HEADS, HIDDEN, LAYERS, STEPS = 32000, 512, 8, 2048, 6, 64
END, PAD = 0, VOCAB - 1


def marian():
    import torch
    from transformers import MarianConfig, MarianMTModel

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    stacks = {f"{side}_{name}": size for side in ("encoder", "decoder")
              for name, size in (("layers", LAYERS), ("attention_heads", HEADS), ("ffn_dim", HIDDEN))}  # fmt: skip
    model = MarianMTModel(MarianConfig(
        vocab_size=VOCAB, d_model=WIDTH, activation_function="relu", scale_embedding=True, max_position_embeddings=512,
        pad_token_id=PAD, eos_token_id=END, decoder_start_token_id=PAD, forced_eos_token_id=None, bad_words_ids=[[PAD]],
        **stacks)).eval()  # fmt: skip
    # With random weights, a tied output layer repeats its input; with signs flipped, the output has many different
    # words.
    norm = model.model.decoder.layers[-1].final_layer_norm
    norm.weight.mul_(torch.where(torch.rand(WIDTH) < 0.5, -1.0, 1.0))
    return model


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
        rows.append([1 + draw(PAD - 1) for _ in range(size)])
    return rows


def padded(rows: list[list[int]]):
    from torch import tensor
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence([tensor(row) for row in rows], True, PAD)


def fingerprint(rows: list[list[int]]) -> int:
    """The sum of token[i] (2 i + 1) over all rows, concatenated."""
    flat = [token for row in rows for token in row]
    return sum(token * (2 * i + 1) for i, token in enumerate(flat))


class HuggingFace:
    def __init__(self) -> None:
        self.model = marian()

    def encode(self, rows, threads):
        ids = padded(rows)
        mask = None if all(len(row) == len(rows[0]) for row in rows) else (ids != PAD).long()
        return lambda: self.model.model.encoder(input_ids=ids, attention_mask=mask) and None

    def decode(self, rows, beams, threads):
        ids = padded(rows)
        options = {"num_beams": beams, "max_new_tokens": STEPS, "min_new_tokens": STEPS, "do_sample": False}
        mask = (ids != PAD).long()
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
        options = {"beam_size": beams, "max_decoding_length": STEPS, "min_decoding_length": STEPS, "max_batch_size": 0}
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
    "checkpoint": lambda: marian().save_pretrained(FOLDER / "model"),
}
if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    peer = PEERS[sys.argv[2]]()
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(peer, line), flush=True)
