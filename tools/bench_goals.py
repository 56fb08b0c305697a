"""The goals of the benchmarks, one row per comparison: (section, title, ours, theirs, at least),
where `at least` is the minimum speedup of ours over theirs, or None if there is no goal.
Names are those in tests/benchmarks: Google Benchmark's, or for Python those in peers.py."""

SECTIONS = {
    "embed": "Embedding forward, eval, float32",
    "out": "Into an existing tensor",
    "bf16": "Embedding forward, eval, bfloat16",
    "train": "Training forward, dropout 0.1",
    "backward": "Backward, dense gradient",
    "step": "Training step: forward, dropout, backward, sparse SGD",
    "threads": "Two threads against one",
    "adam": "Optimisers",
    "tables": "Tables",
    "rotary": "Rotary embedding of q and k (32 heads of 128 channels each)",
    "relative": "Relative positions: biases, and the scores and weights of attention, against transformers' classes",
    "embeddings": "BERT's embeddings (D = 768), eval",
    "embeddings_train": "BERT's embeddings, a training step: forward, dropout 0.1, backward",
    "maxsim": "Late interaction: a query of 32 vectors with 1,000 documents, of 128 entries",
    "load": "Loading weights",
    "transformer": "Transformer encoder, eval",
    "encode": "Encoder of a frozen Transformer (d 512, 8 heads, d_ff 2048, 6 layers)",
    "minilm": "MiniLM from ids to its last hidden state (d 384, 12 heads, d_ff 1536, 6 layers), frozen",
    "bert": "BERT-base from ids to its last hidden state (d 768, 12 heads, d_ff 3072, 12 layers), frozen",
    "modernbert": "ModernBERT-base from ids to its last hidden state (d 768, 12 heads, d_ff 1152 with gates, 22 layers), frozen",
    "t5": "T5-base's encoder from ids to its last hidden state (d 768, 12 heads, d_ff 3072, 12 layers), frozen",
    "deberta": "DeBERTa-v3-base from ids to its last hidden state (d 768, 12 heads, d_ff 3072, 12 layers), frozen",
    "decode": "Decoding 64 tokens with a frozen Transformer (6 + 6 layers, V = 32,000), sources of 32 tokens",
    "nllb_decode": "Decoding 24 tokens with the shape of NLLB-600M (d 1024, d_ff 4096, 12 + 12 layers, V = 256,206), sources of 16 tokens",
    "t5_decode": "Decoding 24 tokens with the shape of T5-base (d 768, d_ff 3072, 12 + 12 layers, V = 32,128), sources of 16 tokens",
    "sparse": "SPLADE with the shape of BERT-base, V = 30,522, against sentence-transformers",
    "retrieval": "A cross-encoder of MiniLM's shape, and 100,000 vectors of 384 entries, against sentence-transformers and numpy",
    "train_step": "Training step of a Transformer: forward, label-smoothed loss, backward, clipping, Adam",
}
SIZE = "{:,} tokens"
IN_8_BITS = ", in 8 bits"  # of ours, after the title of a case


def goals() -> list[tuple]:
    rows = []

    def add(section, title, ours, theirs, least=None):
        rows.append((section, title, ours, theirs, least))

    def against(section, family, tokens, title, ours="module", threads=1, **leasts):
        """Adds one row per competitor: composed=4 or eager=None."""
        for theirs, least in leasts.items():
            case = f"{tokens}/512/{threads}"
            add(section, title, f"{family}/{ours}/{case}", f"{family}/{theirs}/{case}", least)

    for tokens, leasts in {
        1: {"composed": 15, "eager": 30, "compile": None},
        16: {"composed": 4, "eager": None, "compile": 4},
        128: {"composed": 4, "eager": None, "compile": 4},
        4096: {"composed": 2.5, "eager": 3.5, "compile": 2},
        32768: {"composed": 5, "eager": 7, "compile": 3},
    }.items():  # fmt: skip
        against("embed", "embed", tokens, SIZE.format(tokens).replace("1 tokens", "1 token (decode)"), **leasts)
    for tokens in (24, 160, 4000, 32000):  # of runs that were recorded by hand
        against("embed", "embed", tokens, SIZE.format(tokens), composed=None)
    add("embed", "3 x 700 tokens, D = 768", "embed/module/3x700/768/1", "embed/composed/3x700/768/1")
    for tokens in (4096, 32768):
        against("out", "embed", tokens, SIZE.format(tokens), ours="out", copy=1 / 1.3)
    against("out", "embed", 32768, SIZE.format(32768), ours="out", composed=12)
    for tokens in (128, 4096):
        against("bf16", "embed_bf16", tokens, SIZE.format(tokens), composed=3, eager=None, compile=None)
    for tokens in (16, 128, 4096):
        against("train", "embed_train", tokens, SIZE.format(tokens), composed=8, eager=None, compile=None)
    against("backward", "embed_backward", 4096, "4,096 tokens", composed=3, eager=None, compile=None)
    against("backward", "embed_backward_existing", 4096, "4,096 tokens, added to an existing gradient", composed=20, eager=None, compile=None)
    for tokens in (128, 4096):
        against("step", "embed_step", tokens, SIZE.format(tokens), composed=5, eager=None)
    for kind, tokens in (("module", 4096), ("module", 32768), ("out", 4096), ("out", 32768)):
        add("threads", f"{SIZE.format(tokens)}, {kind}", f"embed/{kind}/{tokens}/512/2", f"embed/{kind}/{tokens}/512/1", 1.5)
    add("threads", "4,096 tokens, training", "embed_train/module/4096/512/2", "embed_train/module/4096/512/1", 1.5)
    add("threads", "4,096 tokens, backward", "embed_backward/module/4096/512/2", "embed_backward/module/4096/512/1", 1.5)
    for threads in (1, 2):
        title = "Adam, 32,000 x 512" + (", two threads" if threads == 2 else "")
        for theirs, least in {"libtorch": 7, "python": None, "python_fused": None}.items():
            add("adam", title, f"adam/fused/32000/512/{threads}", f"adam/{theirs}/32000/512/{threads}",
                least if threads == 1 else None)  # fmt: skip
    for tokens in (128, 4096):
        add("adam", f"SparseAdam, {tokens:,} ids", f"sparse_adam/rows/{tokens}/512/1", f"sparse_adam/python/{tokens}/512/1")
        for theirs in ("libtorch", "python"):
            add("adam", f"sparse SGD, {tokens:,} ids", f"sgd_rows/rows/{tokens}/512/1", f"sgd_rows/{theirs}/{tokens}/512/1")
    for kind, size, least in (("exact", "5000/512", 6), ("exact", "131072/1024", 10), ("reference", "5000/512", 1),
                              ("reference", "131072/1024", 1)):  # fmt: skip
        length, width = map(int, size.split("/"))
        add("tables", f"{kind} table {length:,} x {width:,}", f"table/{kind}/{size}", f"table/pytorch_recipe/{size}", least)
    add("tables", "32,768 scattered rows of 1e6", "rows/factored", "rows/full_table", 1.5)
    for family, batch, length, least in (("embeddings", 1, 1, 6), ("embeddings", 1, 16, 6), ("embeddings", 1, 128, 4), ("embeddings", 8, 128, 4),
                                         ("embeddings", 32, 128, None), ("embeddings_train", 1, 16, None), ("embeddings_train", 8, 128, 3)):  # fmt: skip
        for threads in (1, 2):
            case, title = f"{batch}/{length}/{threads}", f"{batch} x {length}" + (", two threads" if threads == 2 else "")
            add(family, title, f"{family}/fused/{case}", f"{family}/composed/{case}", least if threads == 1 else None)
    for bits, dtype in ((32, "float32"), (16, "bfloat16")):
        for length, eager in ((1, 5), (128, None), (2048, 8)):
            case, title = f"{length}/{bits}", SIZE.format(length).replace("1 tokens", "1 token") + f", {dtype}"
            for theirs, least in {"composed": eager, "eager": None, "compile": 1.2 if eager else None}.items():
                add("rotary", title, f"rotary/fused/{case}", f"rotary/{theirs}/{case}", least)
            add("rotary", f"{title}, module", f"rotary/module/{case}", f"rotary/composed/{case}")
            add("rotary", f"{title}, rows of a cache by position_ids", f"rotary/looked_up/{case}", f"rotary/composed/{case}")
            for ours, where in (("out", "into existing tensors"), ("in_place", "in place")):
                add("rotary", f"{title}, {where}", f"rotary/{ours}/{case}", f"rotary/copy/{case}", 1 / 1.5 if length == 2048 else None)
            add("rotary", f"{title}, backward", f"rotary/backward/fused/{case}", f"rotary/backward/composed/{case}", eager)
    for kind, least in (("exact", 5), ("reference", None)):
        add("rotary", f"{kind} cos and sin of 131,072 positions", f"rotary_cos_sin/{kind}/131072", "rotary_cos_sin/pytorch_recipe/131072", least)
    for case, size, title, least in (
        ("t5_bias", 128, "T5's bias, 12 heads, 128 x 128", None), ("t5_bias", 512, "T5's bias, 12 heads, 512 x 512", 5),
        ("t5_bias", 1024, "T5's bias, 12 heads, 1,024 x 1,024", None),
        ("t5_bias_train", 512, "T5's bias, 12 heads, 512 x 512, with the gradient of its table", 4),
        ("t5_step", 64, "T5's bias of a decoder's step, 64 keys", None), ("t5_step", 512, "T5's bias of a decoder's step, 512 keys", 10),
        ("t5_step", 2048, "T5's bias of a decoder's step, 2,048 keys", None),
        ("alibi", 512, "BLOOM's weights, 12 heads, 512 x 512", 5), ("alibi_scores", 512, "BLOOM's scores with its bits, 12 heads, 512 x 512", None), ("swin", 7, "Swin's weights, 64 windows of 7 x 7, 3 heads", 2),
        ("swin", 12, "Swin's weights, 64 windows of 12 x 12, 3 heads", 2), ("deberta", 128, "DeBERTa's scores, 12 heads, 128 x 128, of tables that are projected once", 3),
        ("xl", 512, "Transformer-XL's scores, 8 heads, 512 x 512, of a table that is projected once", 3),
        ("xl_weights", 512, "Transformer-XL's weights, 8 heads, 512 x 512, of a table that is projected once", None)):  # fmt: skip
        add("relative", title, f"relative/{case}/posenc/{size}", f"relative/{case}/transformers/{size}", least)
    for case, title in (("alibi", "BLOOM's: LibTorch's product alone, the time that is left to nothing else"),
                        ("xl", "Transformer-XL's: LibTorch's two products of 512 x 512 alone")):  # fmt: skip
        add("relative", title, f"relative/{case}/products/512", f"relative/{case}/transformers/512")
    add("relative", "T5's bias, 12 heads, 512 x 512, against a contiguous one", "relative/t5_bias/posenc/512",
        "relative/t5_bias_contiguous/transformers/512")  # fmt: skip
    for case in ("32-64", "90-180"):
        for theirs, least in {"package": 1 / 0.35, "padded": 1 / 0.75, "product": 1 / 1.25}.items():
            add("maxsim", f"documents of {case.replace('-', ' to ')} vectors", f"maxsim/posenc/{case}", f"maxsim/{theirs}/{case}", least)
    for kind, theirs, least in (("pt", "memcpy", 1 / 1.3), ("safetensors", "memcpy", 1 / 1.3), ("pt", "torch_load", 4),
                                ("safetensors", "load_file", 1), ("script", "jit_load", 1 / 0.3)):  # fmt: skip
        add("load", f"1 GiB {kind} into a module", f"load/1GiB/{kind}", f"load/1GiB/{theirs}", least)
    add("load", "ten tensors of TorchScript", "load/ten/script", "load/ten/jit_load", 20)
    add("load", "index of 20,000 tensors, safetensors", "index/20000/safetensors", "load/20000/load_file", 10)
    add("load", "index of 20,000 tensors, .pt", "index/20000/pt", "load/20000/torch_load", 1 / 0.15)
    for threads in (1, 2):
        for batch, length in ((1, 16), (1, 128), (8, 128)):
            title = f"{batch} x {length} tokens" + (", two threads" if threads == 2 else "")
            case = f"{batch}/{length}/{threads}"
            add("transformer", title, f"transformer/encoder/posenc/{case}", f"transformer/encoder/torch_nn/{case}", 0.97)
    for threads in (1, 2):
        suffix = ", two threads" if threads == 2 else ""
        for size, least in (("1/16", (1.6, 1.6)), ("1/128", (1.15, 1.3)), ("8/128", (1.05, 1.1)), ("16/512", (None, 1.15))):
            peers = {"torch_nn": least[threads - 1], "ctranslate2": 1, "hf": None, "compile": None}
            for theirs in peers if size != "16/512" else ("torch_nn", "ctranslate2")[: 2 * (threads - 1)]:
                add("encode", size.replace("/", " x ") + " tokens" + suffix, f"decode/encode/posenc/{size}/{threads}",
                    f"decode/encode/{theirs}/{size}/{threads}", peers[theirs])  # fmt: skip
        for theirs, least in {"ctranslate2": 1.3, "torch_nn": 1.2}.items():
            add("encode", "32 unsorted sequences, about 30% filled" + suffix, f"decode/ragged/posenc/32/64/{threads}",
                f"decode/ragged/{theirs}/32/64/{threads}", least)  # fmt: skip
        sizes = {"1x16": "1 x 16 tokens", "1x128": "1 x 128 tokens", "8x128": "8 x 128 tokens", "1x2048": "1 x 2,048 tokens",
                 "8_unequal": "8 sequences of 16 to 128 tokens"}  # fmt: skip
        ragged = {"8_ragged": "8 sequences, 41% filled", "32_ragged": "32 sequences, 41% filled"}
        no_slower = {"onnxruntime": 1, "ctranslate2": 1}
        for model, peers in {"minilm": {"transformers": 1.3, **no_slower},
                             "bert": {"torch_nn": 1.1, "transformers": 1.3, "transformers_eager": 1.3, **no_slower},
                             "modernbert": {"transformers": 1.3, "onnxruntime": 1},
                             "t5": {"transformers": 1.5}, "deberta": {"transformers": 1.5}}.items():  # fmt: skip
            for case, title in (sizes | (ragged if model == "bert" else {})).items():
                for theirs, least in peers.items():
                    if theirs == "transformers" and (case == "8_unequal" or (model, case) == ("modernbert", "1x2048")):
                        least = 4
                    add(model, title + suffix, f"{model}/{case}/posenc/{threads}", f"{model}/{case}/{theirs}/{threads}", least)
                # In 8 bits: never slower, and twice as fast where a batch is of unequal lengths, which are packed.
                for theirs in ("onnxruntime_int8", "ctranslate2_int8", "posenc"):
                    if theirs == "posenc" or theirs.removesuffix("_int8") in peers:
                        least = {"onnxruntime_int8": 1 if case[0] == "1" or case == "8x128" else 2, "posenc": 1}.get(theirs)
                        add(model, f"{title}{suffix}{IN_8_BITS}", f"{model}/{case}/posenc_int8/{threads}",
                            f"{model}/{case}/{theirs}/{threads}", least)  # fmt: skip
        for batch, leasts in {1: (1.1, 1.1), 8: (1.5, 1.3), 32: (1.3, 1.8)}.items():
            for theirs, least in {"ctranslate2": leasts[threads - 1]}.items():
                add("decode", f"greedy, batch {batch}" + suffix, f"decode/decode/posenc/{batch}/32/{threads}",
                    f"decode/decode/{theirs}/{batch}/32/{threads}", least)  # fmt: skip
        for theirs, least in {"ctranslate2": 1, "hf": 2}.items():
            add("decode", "four beams, batch 8" + suffix, f"decode/decode_beams/posenc/8/32/{threads}",
                f"decode/decode_beams/{theirs}/8/32/{threads}", least)  # fmt: skip
        # In 8 bits, on a processor with AVX512-VNNI; without VNNI 1.1 in each case.
        for section, act, size, title, leasts in (
            ("encode", "encode", "1/16", "1 x 16 tokens", (1.1, 1.1)), ("encode", "encode", "1/128", "1 x 128 tokens", (1.3, 1.3)),
            ("encode", "encode", "8/128", "8 x 128 tokens", (1.35, 1.35)), ("decode", "decode", "1/32", "greedy, batch 1", (1.15, 1.15)),
            ("decode", "decode", "8/32", "greedy, batch 8", (1.2, 1.8)), ("decode", "decode", "32/32", "greedy, batch 32", (1.3, 1.3)),
            ("decode", "decode_beams", "8/32", "four beams, batch 8", (1.25, 1.25))):  # fmt: skip
            for theirs, least in {"ctranslate2_int8": leasts[threads - 1], "posenc": 1}.items():
                add(section, f"{title}{suffix}{IN_8_BITS}", f"decode/{act}/posenc_int8/{size}/{threads}", f"decode/{act}/{theirs}/{size}/{threads}", least)
    for shape, of_one_row in (("nllb", 1.7), ("t5", 2.3)):
        for batch, beams in ((1, 1), (8, 1), (32, 1), (1, 4), (8, 4)):
            title = f"greedy, batch {batch}" if beams == 1 else f"four beams, batch {batch}"
            act, case = f"{shape}/decode" + ("_beams" if beams > 1 else ""), f"{batch}/16/1"
            leasts = {1: (1.3, of_one_row, 1.5), 4: (1.8, 3, 1.1), 8: (1.8, 3, 1.1), 32: (1.05, 1.6, 1.1)}[batch * beams]
            for theirs, least in zip(("ctranslate2", "hf"), leasts):
                add(f"{shape}_decode", title, f"{act}/posenc/{case}", f"{act}/{theirs}/{case}", least)
            add(f"{shape}_decode", title + IN_8_BITS, f"{act}/posenc_int8/{case}", f"{act}/ctranslate2_int8/{case}", leasts[2])
            add(f"{shape}_decode", title + IN_8_BITS, f"{act}/posenc_int8/{case}", f"{act}/posenc/{case}", 1)
    task, base = "the model of `make pronounce`, 256 words", "60 million parameters, 16 x 64 tokens"
    for title, model, leasts in ((task, "task", {"eager": 1.2}), (base, "base", {"eager": 0.95, "libtorch": 1.3})):
        for theirs, least in leasts.items():
            add("train_step", title + ", two threads", f"train_step/posenc/{model}/2", f"train_step/{theirs}/{model}/2", least)
    for case, title, least in (("vocabulary", "the logits of 8 x 128 tokens and their pooling", 1 / 0.4),
                               ("documents", "8 documents of 16 to 128 tokens", 1 / 0.35), ("query", "a query that is a look at a table", 20)):  # fmt: skip
        add("sparse", title, f"sparse/{case}/posenc/1", f"sparse/{case}/sentence_transformers/1", least)
    for case, title, least in (("rank", "a query and 100 documents", 1 / 0.45), ("levels", "to int8", None), ("bits", "to bits", None),
                               ("hamming", "bits that differ", None)):  # fmt: skip
        add("retrieval", title, f"retrieval/{case}/posenc/1", f"retrieval/{case}/sentence_transformers/1", least)
    return rows


# Of tools/measure_programs.py --shapes: (ours, theirs, at least) for sequences of 16 tokens, of 128, and of others.
SHAPES = [
    ("posenc_float32", "openvino_float32", (1, 1, 1)),
    ("posenc_bfloat16", "openvino", (1, 1, 1)),
    ("posenc_bfloat16", "posenc_float32", (None, 1.6, 1.6)),
    ("posenc_int8", "openvino_int8_float32", (1.2, 1.2, 1)),
    ("posenc_int8_bfloat16", "openvino_int8", (1, 1, 1)),
    ("posenc_float32", "limit_float32", (0.6, 0.75, 0.75)),
    *((f"posenc_{dtype}", f"limit_{dtype}", (0.6, 0.7, 0.7)) for dtype in ("bfloat16", "int8", "int8_bfloat16")),
]


# Of the same with Whisper: (ours, its case, theirs, their case, at least).
SPEECH = [
    *(("posenc_float32", case, "faster_whisper", case, least) for case, least in {"encoder": 1.2, "token": 1.2, "beams": 1.3, "text": 1.2}.items()),
    *(("posenc_int8", case, "faster_whisper_int8", case, least) for case, least in {"encoder": 1.5, "token": 1.3}.items()),
    ("posenc_float32", "beams", "transformers", "beams", 3),
    ("posenc_float32", "text", "openai_whisper", "text", 1.5),
    *((ours, "many", ours, "alone", 1.3) for ours in ("posenc_float32_eight", "posenc_int8_eight")),
    ("posenc_float32_two_threads", "encoder", "posenc_float32", "encoder", 1.7),
]


def shape_goal(case: str, leasts: tuple) -> "float | None":
    return leasts[0 if case == "1 x 16" else 1 if case.endswith(" x 128") else 2]


# Where a forward's time goes, one row per table: title, tokens, parts, others, conclusion. Each part is timed by itself and shown as
# a share of the whole, `profile/TOKENS/forward`; the last name is for the remainder. Others are compared with the whole.
PROFILES = [
    ("Where the time of one token goes", 1,
     [("allocating and freeing the result: a tensor, its storage and 2 KB", "result"),
      ("checking tensors, ids and options", "checks"),
      ("reading, scaling, adding and writing the row", "kernel"),
      ("asking LibTorch whether a profiler is active", "profiler"),
      ("calls, options, thread-local modes, and the extra cost of the parts when they alternate", None)],
     [("allocating the result with LibTorch's allocator", "libtorch_result"),
      ("the forward in `InferenceMode`", "inference_mode"),
      ("the forward when autograd records it", "recorded"),
      ("LibTorch composition", "composed")],
     "Nearly half of the time is spent on the memory of the result, a cost of any call that returns a new tensor; `embed_out` avoids it. The\n"
     "speedup for one token therefore depends on the cost of malloc relative to LibTorch's dispatch on the machine."),
    ("Where the time of 32,768 tokens goes", 32768,
     [("the first touch of the result's pages, 64 MB that the system zeroes", "touched"),
      ("reading the rows and writing the result", None)],
     [("into an existing tensor (`embed_out`)", "out"), ("LibTorch composition", "composed")],
     "The system zeroes each page before its first byte is written, in huge pages where they are available, and no order of the work avoids\n"
     "that. Reusing memory does: `embed_out`, `reuse_output`, or [malloc's settings](../allocator.md)."),
]  # fmt: skip

# Display names of the competitors; the key is a part of the case's name.
COMPETITORS = {
    "composed": "LibTorch composition",
    "eager": "Python eager",
    "compile": "torch.compile",
    "copy": "`copy_` into an existing buffer",
    "libtorch": "LibTorch's optimiser",
    "python": "Python, default",
    "python_fused": "Python, fused",
    "pytorch_recipe": "PyTorch's operations",
    "full_table": "gather from a full table",
    "memcpy": "memcpy",
    "torch_load": "torch.load",
    "load_file": "safetensors.torch.load_file",
    "jit_load": "torch::jit::load",
    "torch_nn": "torch.nn.TransformerEncoder",
    "ctranslate2": "CTranslate2, float32",
    "ctranslate2_int8": "CTranslate2, int8",
    "onnxruntime": "ONNX Runtime, float32",
    "onnxruntime_int8": "ONNX Runtime, dynamic int8",
    "sentence_transformers": "sentence-transformers",
    "transformers": "transformers",
    "transformers_eager": "transformers, eager attention",
    "hf": "transformers",
    "posenc": "posenc, float32",
    "package": "sentence-transformers' operations",
    "padded": "the same of padded documents",
    "product": "the product alone",
}


def competitor(name: str) -> str:
    """The display name of the competitor in the case `name`."""
    for part in name.split("/"):
        if part in COMPETITORS:
            return COMPETITORS[part]
    return "one thread" if name.endswith("/1") else name
