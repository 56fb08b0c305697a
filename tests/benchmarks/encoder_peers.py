"""The peers that encoder_benchmark.cpp compares with: `encoder_peers.py FOLDER MODEL:PEER`, one process per peer. MODEL: one
of MODELS.

transformers        the model of transformers without its pooler, with scaled_dot_product_attention; t5 and deberta with what
                    transformers chooses for them
transformers_eager  the same with its own attention
torch_nn            the encoder's weights in torch.nn.TransformerEncoder, eval mode, with its fast path; takes the embeddings'
                    output
ctranslate2         the same weights in CTranslate2, float32; not of modernbert, which it does not support
ctranslate2_int8    the same in 8 bits
onnxruntime         the same model, exported by torch.onnx, in ONNX Runtime, float32, with all of its graph's optimizations
onnxruntime_int8    the same after onnxruntime.quantization.quantize_dynamic(), weights in signed 8 bits
checkpoint          not a peer: writes FOLDER/model, as save_pretrained() does, and FOLDER/out.safetensors, the results of
                    transformers for sequences of the lengths CHECKED

Its packages are installed by `make setup`: tools/setup.sh names their releases (ctranslate2; onnx, onnxscript and onnxruntime).
Another environment does as well: `python -m venv ENV`, `ENV/bin/pip install` torch, transformers and these, and
`tools/bench.py --python ENV/bin/python`.

Answers each line of stdin, `THREADS LENGTH...` (one length for each sequence), with `SECONDS MEGABYTES`: the time of one
call, and the peak memory of the process during the call.
"""

import multiprocessing
import re
import sys
import time
from pathlib import Path

VOCAB, HEADS, PAD, POSITIONS = 30522, 12, 0, 2048
CHECKED = [23, 40, 1, 9]
BERT_SIZES = {"minilm": (384, 1536, 6), "bert": (768, 3072, 12)}  # width, hidden width, layers


def bert(name: str, attention: str = "sdpa"):
    import torch
    from transformers import BertConfig, BertModel

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    width, hidden, layers = BERT_SIZES[name]
    config = BertConfig(vocab_size=VOCAB, hidden_size=width, num_attention_heads=HEADS, intermediate_size=hidden, num_hidden_layers=layers,
                        max_position_embeddings=POSITIONS, pad_token_id=PAD, attn_implementation=attention)  # fmt: skip
    return BertModel(config).eval()


def modernbert(name: str, attention: str = "sdpa"):
    import torch
    from transformers import ModernBertConfig, ModernBertModel

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    special = dict.fromkeys(("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"), 1)
    config = ModernBertConfig(vocab_size=VOCAB, pad_token_id=PAD, attn_implementation=attention, **special)
    return ModernBertModel(config).eval()


def t5(name: str, attention: "str | None" = None):
    import torch
    from transformers import T5Config, T5EncoderModel

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    config = T5Config(vocab_size=VOCAB, d_model=768, d_ff=3072, num_layers=12, num_heads=12, pad_token_id=PAD, attn_implementation=attention)
    return T5EncoderModel(config).eval()


def deberta(name: str, attention: "str | None" = None):
    import torch
    from transformers import DebertaV2Config, DebertaV2Model

    torch.set_grad_enabled(False)
    torch.manual_seed(1)
    config = DebertaV2Config(vocab_size=VOCAB, hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072,
                             max_position_embeddings=POSITIONS, relative_attention=True, position_buckets=256, norm_rel_ebd="layer_norm",
                             share_att_key=True, pos_att_type=["p2c", "c2p"], position_biased_input=False, type_vocab_size=0,
                             pad_token_id=PAD, attn_implementation=attention)  # fmt: skip
    return DebertaV2Model(config).eval()


MODELS = {"minilm": bert, "bert": bert, "modernbert": modernbert, "t5": t5, "deberta": deberta}


def without_pooler(model):
    model.pooler = None
    return model


def sources(lengths: list[int]) -> list[list[int]]:
    """Ids from a linear congruential generator, the same as in encoder_benchmark.cpp."""
    state = len(lengths) * 1000 + max(lengths)
    rows = []
    for length in lengths:
        rows.append([])
        for _ in range(length):
            state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
            rows[-1].append(1 + (state >> 33) % (VOCAB - 1))
    return rows


def padded(rows: list[list[int]]):
    from torch import tensor
    from torch.nn.utils.rnn import pad_sequence

    return pad_sequence([tensor(row) for row in rows], True, PAD)


def is_ragged(rows: list[list[int]]) -> bool:
    return any(len(row) != len(rows[0]) for row in rows)


def renamed(model) -> dict:
    """The layers of BertModel by torch.nn's names."""
    import torch

    tensors = {}
    for i, layer in enumerate(model.encoder.layer):
        attention, prefix = layer.attention, f"layers.{i}."
        parts = [attention.self.query, attention.self.key, attention.self.value]
        for kind in ("weight", "bias"):
            tensors[f"{prefix}self_attn.in_proj_{kind}"] = torch.cat([getattr(part, kind) for part in parts])
        for name, module in (("self_attn.out_proj", attention.output.dense), ("linear1", layer.intermediate.dense),
                             ("linear2", layer.output.dense), ("norm1", attention.output.LayerNorm),
                             ("norm2", layer.output.LayerNorm)):  # fmt: skip
            tensors[f"{prefix}{name}.weight"], tensors[f"{prefix}{name}.bias"] = module.weight.clone(), module.bias.clone()
    return tensors


class Transformers:
    def __init__(self, model) -> None:
        self.model = model

    def call(self, rows, threads):
        ids = padded(rows)
        mask = (ids != PAD).long() if is_ragged(rows) else None
        return lambda: self.model(input_ids=ids, attention_mask=mask)


class TorchNN:
    def __init__(self, name: str) -> None:
        from torch import nn

        source = bert(name)
        width, hidden, layers = BERT_SIZES[name]
        self.embeddings = source.embeddings
        layer = nn.TransformerEncoderLayer(width, HEADS, hidden, activation="gelu", layer_norm_eps=1e-12, batch_first=True)
        self.encoder = nn.TransformerEncoder(layer, layers).eval()
        self.encoder.load_state_dict(renamed(source))

    def call(self, rows, threads):
        ids = padded(rows)
        x, mask = self.embeddings(ids), ids == PAD if is_ragged(rows) else None
        return lambda: self.encoder(x, src_key_padding_mask=mask)


def in_own_process(work, *arguments) -> None:
    """So that a conversion does not count as the memory of the peer that runs its result."""
    worker = multiprocessing.Process(target=work, args=arguments)
    worker.start()
    worker.join()
    if worker.exitcode != 0:
        sys.exit(f"{work.__qualname__} has failed")


def write_ctranslate2(model, folder: Path) -> None:
    from ctranslate2.converters.transformers import BertLoader

    model.config.position_embedding_type = "absolute"  # which transformers 5 no longer writes
    spec = BertLoader().get_model_spec(model)
    words = [f"w{i}" for i in range(VOCAB)]
    spec.register_vocabulary(words)
    spec.config.unk_token, spec.config.layer_norm_epsilon = words[1], model.config.layer_norm_eps
    folder.mkdir(parents=True)
    spec.validate()
    spec.optimize()
    spec.save(str(folder))


class CTranslate2:
    def __init__(self, name: str, compute_type: str = "float32") -> None:
        in_own_process(self.convert, name)
        self.opened, self.compute_type = {}, compute_type

    @staticmethod
    def convert(name: str) -> None:
        write_ctranslate2(bert(name), FOLDER / "ctranslate2")

    def call(self, rows, threads):
        import ctranslate2

        if threads not in self.opened:
            self.opened = {threads: ctranslate2.Encoder(str(FOLDER / "ctranslate2"), intra_threads=threads, inter_threads=1,
                                                        compute_type=self.compute_type)}  # fmt: skip
        types = [[0] * len(row) for row in rows]
        return lambda: self.opened[threads].forward_batch(rows, token_type_ids=types)


def write_onnx(model, file: Path) -> None:
    import torch

    ids = padded(sources(CHECKED))
    axes = {0: torch.export.Dim("batch"), 1: torch.export.Dim("length")}
    sizes = {"input_ids": axes, "attention_mask": axes}
    inputs = {"input_ids": ids, "attention_mask": (ids != PAD).long()}
    torch.onnx.export(model, (), kwargs=inputs, dynamic_shapes=sizes, dynamo=True, verbose=False).save(file)


def write_int8_onnx(source: Path, target: Path) -> None:
    from onnxruntime.quantization import QuantType, quantize_dynamic

    quantize_dynamic(source, target, weight_type=QuantType.QInt8)


class OnnxRuntime:
    def __init__(self, name: str, in_8_bits: bool = False) -> None:
        in_own_process(self.export, name, in_8_bits)
        self.opened = {}

    @staticmethod
    def export(name: str, in_8_bits: bool) -> None:
        write_onnx(without_pooler(MODELS[name](name)), FOLDER / "model.onnx")
        if in_8_bits:
            write_int8_onnx(FOLDER / "model.onnx", FOLDER / "int8.onnx")
            (FOLDER / "int8.onnx").rename(FOLDER / "model.onnx")

    def call(self, rows, threads):
        import numpy
        import onnxruntime

        if threads not in self.opened:
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
            self.opened = {threads: onnxruntime.InferenceSession(FOLDER / "model.onnx", options, providers=["CPUExecutionProvider"])}
        ids = numpy.full((len(rows), max(map(len, rows))), PAD)
        for row, tokens in zip(ids, rows):
            row[: len(tokens)] = tokens
        inputs = {"input_ids": ids, "attention_mask": (ids != PAD).astype(int)}
        return lambda: self.opened[threads].run(None, inputs)


def write_checkpoint(model) -> None:
    from safetensors.torch import save_file

    ids = padded(sources(CHECKED))
    out = model(input_ids=ids, attention_mask=(ids != PAD).long()).last_hidden_state
    model.save_pretrained(FOLDER / "model")
    save_file({"out": out.contiguous()}, FOLDER / "out.safetensors")


def answer(peer, line: str) -> str:
    threads, *lengths = map(int, line.split())
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(threads)
    call = peer.call(sources(lengths), threads)
    Path("/proc/self/clear_refs").write_text("5")  # reset the peak to current usage
    start = time.perf_counter()
    call()
    taken = time.perf_counter() - start
    peak = int(re.search(r"VmHWM:\s*(\d+)", Path("/proc/self/status").read_text()).group(1)) // 1024
    return f"{taken} {peak}"


PEERS = {
    "transformers": lambda name: Transformers(without_pooler(MODELS[name](name))),
    "transformers_eager": lambda name: Transformers(without_pooler(MODELS[name](name, "eager"))),
    "torch_nn": TorchNN,
    "ctranslate2": CTranslate2,
    "ctranslate2_int8": lambda name: CTranslate2(name, "int8"),
    "onnxruntime": OnnxRuntime,
    "onnxruntime_int8": lambda name: OnnxRuntime(name, True),
    "checkpoint": lambda name: write_checkpoint(without_pooler(MODELS[name](name))),
}
if __name__ == "__main__":
    FOLDER = Path(sys.argv[1])
    name, who = sys.argv[2].split(":")
    peer = PEERS[who](name)
    print("ready", flush=True)
    for line in sys.stdin:
        print(answer(peer, line), flush=True)
