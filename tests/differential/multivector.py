"""Vectors of tokens: random folders of MultiVectorEncoder, PyLate and Stanford's ColBERT beside sentence-transformers, which has
to be installed; otherwise nothing is compared. Late interaction and the pooling of tokens beside its functions and scipy's.

Each text is encoded alone by the package and among others by the library. The vectors may differ by 1e-5, relative to their
largest number where that is more than 1.
"""

import importlib.util
import json
import logging
import string
from contextlib import contextmanager
from pathlib import Path

import torch
from encoders import KINDS, TOLERANCE, one_thread
from harness import Case, Draw, Failure, Programs
from safetensors.torch import load_file, save_file
from sentence_texts import LIMITS, PROMPTS, TOKENIZERS, drawn_model
from sentences import compare, write
from sparse import adapted, frozen, without_base
from tokenizer_folders import WORDS, texts, tokenizer

MODELS, TEXTS, POOLS = 6, 5, 150
# Encoders with the tokenizer of another, and what they need.
OTHERS = {"albert": {}, "convbert": {}, "deberta": {}, "deberta-v2": {}, "esm": {"mask_token_id": 4, "token_dropout": False}, "fnet": {"use_tpu_fourier_optimizations": False},
          "megatron-bert": {}, "mobilebert": {}, "modernbert": {"local_attention": 80}, "squeezebert": {}}  # fmt: skip
TASKS = [None, "query", "document"]


def encoder_of(draw: Draw, folder: Path, more_tokens: list[str] | None = None):
    """A drawn encoder and its tokenizer, saved in the folder."""
    kind_name = draw.choice([*TOKENIZERS, *OTHERS]) if more_tokens is None else "bert"
    words = tokenizer(draw, TOKENIZERS.get(kind_name, "BertTokenizer"), **draw.choice([{}, {"model_max_length": draw.choice(LIMITS)}]))
    if more_tokens:
        words.add_tokens(more_tokens)
    model = drawn_model(draw, kind_name, KINDS[kind_name].model, words, **OTHERS.get(kind_name, {}))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return kind_name, model, words


def expansion_of(draw: Draw, model, words, length: int) -> dict | None:
    if draw.coin(0.3):
        return None
    is_causal = model.config.model_type.startswith("qwen")  # what is added before a text, or far from it, would see none of it
    attends = draw.coin(0.4) or (is_causal and (words.padding_side == "left" or model.config.use_sliding_window))
    expansion = {"strategy": draw.choice(["fixed", "min"]), "length": length, "attend": attends}
    if draw.coin(0.3):
        expansion["token"] = draw.choice([None, "hello", "cat"]) if "hello" in words.get_vocab() else None
    return expansion


def mask_of(draw: Draw, words):
    from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

    skipped = draw.choice([None, [".", ","], list(string.punctuation), ["the", "hello", "nothing known", words.unk_token or "cat"]])
    kept = draw.choice([None, None, None, draw.sample(range(len(words)), len(words) // 2)])
    return MultiVectorMask(skipped, skiplist_tasks=draw.choice([None, "query", ["query", "document"]]), keep_only_token_ids=kept)


def modules_after(draw: Draw, model, words) -> list:
    from sentence_transformers.base.modules import Normalize
    from sentence_transformers.base.modules.dense import Dense
    from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

    modules = []
    width = model.config.hidden_size
    for _ in range(draw.choice([0, 1, 1, 2])):
        out = draw.choice([4, 8, 12])
        function = draw.choice([torch.nn.Identity(), torch.nn.Identity(), torch.nn.Tanh(), torch.nn.GELU()])
        modules.append(Dense(width, out, bias=draw.coin(), activation_function=function, module_input_name="token_embeddings",
                             init_weight=draw.normal(out, width)))  # fmt: skip
        width = out
    last = [Normalize("token_embeddings")] if draw.coin(0.8) else []
    last.insert(draw.randint(0, len(last)), mask_of(draw, words)) if draw.coin(0.85) else None
    modules += last
    if draw.coin(0.3):
        modules.append(HierarchicalTokenPooling(draw.choice([1.0, 1.5, 2.0, 3.0]), num_protected_tokens=draw.randint(0, 2),
                                                normalize_embeddings=draw.coin(), tasks=draw.choice([None, ["query", "document"]])))  # fmt: skip
    return modules


def package_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, str]:
    """A folder that the package writes."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Transformer

    root, source = programs.folder / f"multivector-{number}", programs.folder / f"encoder-{number}"
    kind_name, model, words = encoder_of(draw, source)
    length = draw.choice([8, 12, 32])
    expansion = expansion_of(draw, model, words, length)
    own = {"query_expansion": expansion, "document_length": draw.choice([None, 6, 30])}
    own["query_length"] = draw.choice([None, length, length + 5]) if expansion else draw.choice([None, 7])
    first = Transformer(str(source), max_seq_length=draw.choice([None, *LIMITS]), **own)
    prompts = draw.choice([{}, {"query": "query: ", "document": "the "}, {"query": "hello", "passage": PROMPTS["passage"]}])
    encoder = MultiVectorEncoder(modules=[first, *modules_after(draw, model, words)], device="cpu", prompts=prompts,
                                 similarity_fn_name=draw.choice([None, "maxsim", "meanmaxsim"]))  # fmt: skip
    is_adapted = adapted(draw, encoder)
    encoder.save_pretrained(str(root), create_model_card=False)
    if draw.coin(0.3):  # as files that are older than the setting
        for file in root.glob("*_Dense/config.json"):
            config = json.loads(file.read_text())
            config.pop("module_input_name", None), config.pop("module_output_name", None)
            file.write_text(json.dumps(config))
    return root, f"{kind_name}, {own}, {[type(module).__name__ for module in encoder]}{' with an adapter' if is_adapted else ''}"


def pylate_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, str]:
    """A folder of PyLate, whose markers are added tokens, or none."""
    root = programs.folder / f"pylate-{number}"
    markers = draw.choice([["[Q] ", "[D] "], ["[Q] ", "[D] "], ["[unused0]", "[unused1]"], []])
    _, model, _ = encoder_of(draw, root, markers)
    config = {"model_type": "ColBERT", "similarity_fn_name": draw.choice(["MaxSim", "maxsim", "meanmaxsim", "cosine"])}
    if markers or draw.coin():
        ends = draw.choice(["", " "]) if markers and not markers[0].endswith(" ") else ""
        config |= dict(zip(("query_prefix", "document_prefix"), [f"{marker}{ends}" for marker in markers or ["[Q] ", "[D] "]]))
    for name, values in {"query_length": [None, 9, 16], "document_length": [None, 5, 20], "do_query_expansion": [True, False, None],
                         "attend_to_expansion_tokens": [True, False, None], "attend_to_mask_tokens": [True, False],
                         "skiplist_words": [None, [], [".", "the"]], "prompts": [{}, {"query": "on "}, {"query": "[Q] ", "document": None}]}.items():  # fmt: skip
        if draw.coin():
            config[name] = draw.choice(values)
    if "query_prefix" in config and draw.coin():
        config.pop("model_type")
    (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    listed = [{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
              {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}]  # fmt: skip
    (root / "modules.json").write_text(json.dumps(listed))
    (root / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": draw.choice([11, 40]), "do_lower_case": False}))
    width = model.config.hidden_size
    write(root / "1_Dense", {"in_features": width, "out_features": 6, "bias": False, "activation_function": "torch.nn.modules.linear.Identity",
                             **draw.choice([{}, {"use_residual": False}])}, {"linear.weight": draw.normal(6, width)})  # fmt: skip
    return root, f"PyLate {config}"


def stanford_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, str]:
    """Stanford's: all tensors in one file, and settings beside."""
    root = programs.folder / f"stanford-{number}"
    _, model, _ = encoder_of(draw, root, draw.choice([["[unused0]", "[unused1]"], []]))
    config = json.loads((root / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
    (root / "config.json").write_text(json.dumps(config))
    file = root / "model.safetensors"
    tensors = {f"bert.{name}": value for name, value in load_file(file).items()} | {"linear.weight": draw.normal(6, model.config.hidden_size)}
    file.unlink()
    save_file(tensors, file, {"format": "pt"}) if draw.coin() else torch.save(tensors, root / "pytorch_model.bin")
    metadata = {}
    for name, values in {"query_token_id": ["[unused0]", None], "doc_token_id": ["[unused1]", "cat"], "query_maxlen": [None, 9, 32],
                         "doc_maxlen": [None, 7, 50], "attend_to_mask_tokens": [True, False], "mask_punctuation": [True, False]}.items():  # fmt: skip
        if draw.coin():
            metadata[name] = draw.choice(values)
    if draw.coin(0.8):
        (root / "artifact.metadata").write_text(json.dumps(metadata))
    return root, f"Stanford {metadata}"


def bge_case(draw: Draw, programs: Programs) -> Case:
    """A dense folder with bge-m3's head for tokens: FlagEmbedding's formula of all tokens but the first."""
    root = programs.folder / "bge"
    words = tokenizer(draw, "XLMRobertaTokenizer")
    model = drawn_model(draw, "xlm-roberta", KINDS["xlm-roberta"].model, words)
    model.save_pretrained(root)
    words.save_pretrained(root)
    kinds = ["Transformer", "Pooling", "Normalize"]
    (root / "modules.json").write_text(json.dumps([{"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
                                                   for i, kind in enumerate(kinds)]))  # fmt: skip
    write(root / "1_Pooling", {"word_embedding_dimension": model.config.hidden_size, "pooling_mode_cls_token": True})
    head = torch.nn.Linear(model.config.hidden_size, draw.choice([model.config.hidden_size, 5]))
    torch.save(head.state_dict(), root / "colbert_linear.pt")
    own = call(draw) | {"prompt": None, "pooling": None, "normalize": False}
    rows = []
    for text in own["texts"]:
        hidden = model(**words([text], return_tensors="pt", truncation=True, max_length=98)).last_hidden_state[0]
        rows.append(torch.nn.functional.normalize(head(hidden[1:]), dim=-1))
    expected = {"0.embeddings": torch.cat(rows), "0.lengths": torch.tensor([len(row) for row in rows])}
    scores = {f"{side}.{name}": value for side in ("queries", "documents") for name, value in (("embeddings", torch.ones(1, 2)), ("lengths", torch.tensor([1])))}
    return Case({"op": "multi_vectors", "folder": str(frozen(draw, programs, root)), "calls": [own]}, scores, expected)


def call(draw: Draw) -> dict:
    pooling = {"factor": draw.choice([1.0, 2.0, 2.5]), "protected": draw.randint(0, 2), "normalize": draw.coin()}
    return {"task": draw.choice(TASKS), "prompt": draw.choice([None, None, None, "", "on the "]), "normalize": draw.coin(0.3),
            "pooling": draw.choice([None, None, pooling]), "batch_size": draw.randint(1, TEXTS), "texts": texts(draw, TEXTS)}  # fmt: skip


def by_package(model, arguments: dict) -> dict[str, torch.Tensor]:
    """Nothing where the package itself is far from its result in float64, by rounding or by other clusters."""
    own, exact = vectors_of(model, arguments), vectors_of(model.double(), arguments)
    model.float()
    if not own or not exact or not torch.equal(own["lengths"], exact["lengths"]):
        return {}
    apart = (own["embeddings"] - exact["embeddings"]).abs()
    return own if not apart.numel() or apart.max() <= TOLERANCE / 3 * max(1.0, own["embeddings"].abs().max()) else {}


def vectors_of(model, arguments: dict) -> dict[str, torch.Tensor]:
    from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

    pooling = arguments["pooling"]
    if pooling is not None:
        pooling = HierarchicalTokenPooling(pooling["factor"], num_protected_tokens=pooling["protected"], normalize_embeddings=pooling["normalize"])
    undecided.clear()
    encode = {None: model.encode, "query": model.encode_query, "document": model.encode_document}[arguments["task"]]
    vectors = [encode([text], prompt=arguments["prompt"], normalize_embeddings=arguments["normalize"], token_pooling=pooling)[0]
               for text in arguments["texts"]]  # fmt: skip
    vectors = {"embeddings": torch.cat(vectors).clone(), "lengths": torch.tensor([len(text) for text in vectors])}
    return {} if undecided else vectors


undecided = []  # texts whose clusters depend on rounding


@contextmanager
def watched_pooling():
    """Finds texts whose clusters are others if their vectors differ by as much as rounding does."""
    from sentence_transformers.multi_vector_encoder.modules import token_pooling

    pool = token_pooling._hierarchical_pool_one

    def watched(x: torch.Tensor, *settings):
        pooled = pool(x, *settings)
        others = [pool(x + torch.randn_like(x) * 3e-6, *settings) for _ in range(3)]
        if any(other.shape != pooled.shape or not torch.allclose(other, pooled, atol=1e-3) for other in others):
            undecided.append(x)
        return pooled

    token_pooling._hierarchical_pool_one = watched
    yield
    token_pooling._hierarchical_pool_one = pool


def folder_cases(draw: Draw, programs: Programs, number: int) -> list[tuple[Case, str]]:
    from sentence_transformers import MultiVectorEncoder

    root, what = draw.choice([package_folder, package_folder, pylate_folder, stanford_folder])(draw, programs, number)
    model = MultiVectorEncoder(str(root), device="cpu")
    calls = [call(draw) for _ in range(3)]
    expected = {f"{i}.{name}": value for i, own in enumerate(calls) for name, value in by_package(model, own).items()}
    both = [MultiVectorEncoder.encode_query(model, ["hello cat", "on"]), MultiVectorEncoder.encode_document(model, texts(draw, 1) + ["the dog"])]
    expected["scores"] = model.similarity(*both)
    tensors = {f"{side}.{name}": value for side, own in zip(("queries", "documents"), both)
               for name, value in (("embeddings", torch.cat(own)), ("lengths", torch.tensor([len(text) for text in own])))}  # fmt: skip
    options = {"folder": str(root), "calls": calls}
    saved = Case({"op": "save_multi_vectors", "out": f"{root}-saved", **options}, {}, {})
    base = str(programs.folder / f"encoder-{number}") if "with an adapter" in what else ""
    if base:
        without_base(root)
    taken = frozen(draw, programs, root, *(["--base", base] if base else []))
    own = Case({"op": "multi_vectors", "folder": str(taken), "base": base if taken == root else "", "calls": calls}, tensors, expected)
    return [(own, f"{taken.name}: {what}")] + ([] if base else [(saved, f"saved: {what}")])


def of_saved(options: dict) -> dict[str, torch.Tensor]:
    from sentence_transformers import MultiVectorEncoder

    return by_package(MultiVectorEncoder(options["out"], device="cpu"), options["calls"][0])


def refused_folder(draw: Draw, programs: Programs) -> Case:
    """A folder with one fault, and what the error says."""
    from sentence_transformers import MultiVectorEncoder
    from sentence_transformers.base.modules import Normalize, Transformer
    from sentence_transformers.multi_vector_encoder.modules import HierarchicalTokenPooling

    fault, rule, *change = draw.choice([
        ("sentence_bert_config.json", "strategy must be fixed or min", "query_expansion", {"strategy": "mean", "length": 8}),
        ("sentence_bert_config.json", "length", "query_expansion", {"strategy": "fixed"}),
        ("sentence_bert_config.json", "length must", "query_expansion", {"strategy": "min", "length": 0}),
        ("sentence_bert_config.json", "such as width", "query_expansion", {"strategy": "min", "length": 8, "width": 1}),
        ("sentence_bert_config.json", "must be in the vocabulary", "query_expansion", {"strategy": "min", "length": 8, "token": "no token"}),
        ("sentence_bert_config.json", "must not be below the length", "query_length", 7),
        ("config_sentence_transformers.json", "must be a MultiVectorEncoder", "model_type", "SentenceTransformer"),
        ("config_sentence_transformers.json", "model_type must be", "model_type", "Encoder"),
        ("1_MultiVectorMask/config.json", "must be query, document", "skiplist_tasks", ["query", "passage"]),
        ("1_MultiVectorMask/config.json", "must be a list of words", "skiplist_words", "the"),
        ("3_HierarchicalTokenPooling/config.json", "must be at least 1", "pool_factor", 0.5),
        ("modules.json", "LambdaTokenPooling", "HierarchicalTokenPooling", "LambdaTokenPooling"),
        ("model.safetensors", "linear.weight"),
        ("modernbert", "might see no token"),
    ])  # fmt: skip
    root, source = programs.folder / "refused", programs.folder / "refused-encoder"
    if fault == "model.safetensors":  # Stanford's without the projection
        encoder_of(draw, root, [])
        config = json.loads((root / "config.json").read_text()) | {"architectures": ["HF_ColBERT"]}
        (root / "config.json").write_text(json.dumps(config))
    else:
        kind = fault if fault == "modernbert" else "bert"
        words = tokenizer(draw, "BertTokenizer")
        drawn_model(draw, kind, KINDS[kind].model, words, **({"local_attention": 8} if kind == "modernbert" else {})).save_pretrained(source)
        words.save_pretrained(source)
        first = Transformer(str(source), query_expansion={"strategy": "fixed", "length": 8})
        MultiVectorEncoder(modules=[first, mask_of(draw, words), Normalize("token_embeddings"), HierarchicalTokenPooling(2.0)],
                           device="cpu").save_pretrained(str(root), create_model_card=False)  # fmt: skip
    if fault == "modules.json":
        (root / fault).write_text((root / fault).read_text().replace(*change))
    elif change:
        config = json.loads((root / fault).read_text())
        (root / fault).write_text(json.dumps(config | {change[0]: change[1]}))
    return Case({"op": "multi_vectors", "folder": str(root), "calls": []}, {}, {}, refused=rule)


def differ(got: dict, expected: dict) -> str:
    for name in sorted(expected, key=lambda name: "lengths" not in name):
        if name.endswith("lengths") and not torch.equal(got[name], expected[name]):
            return f"{name}: {got[name].tolist()} for {expected[name].tolist()}"
        if expected[name].numel() + got[name].numel() == 0 and got[name].shape == expected[name].shape:
            continue
        if why := compare(got[name].float(), expected[name].float()):
            return f"{name}: {why}"
    return ""


def by_command_line(draw: Draw, programs: Programs, folder: str) -> str:
    """What differs of the vectors that `posenc encode --text` writes."""
    from sentence_transformers import MultiVectorEncoder

    own = call(draw) | {"prompt": None, "pooling": draw.choice([None, {"factor": 2.0, "protected": 1, "normalize": True}])}
    file, out = programs.folder / "lines.txt", programs.folder / "out.safetensors"
    file.write_text("".join(f"{text}\n" for text in own["texts"]))
    more = [] if own["task"] is None else ["--task", own["task"]]
    more += ["--normalize"] if own["normalize"] else []
    more += ["--pool-factor", own["pooling"]["factor"]] if own["pooling"] else []
    done = programs.posenc("encode", folder, "--text", file, "--out", out, "--batch", own["batch_size"], *more)
    if done.returncode:
        return f"{folder}: {done.stderr.strip()}"
    why = differ(load_file(out), by_package(MultiVectorEncoder(folder, device="cpu"), own))
    return f"{folder}, {own}: {why}" if why else ""


def ragged(draw: Draw, width: int) -> tuple[list[torch.Tensor], torch.Tensor]:
    lengths = [draw.choice([0, 1, 2, 5, 40, 60]) for _ in range(draw.randint(1, 9))]
    return [draw.normal(length, width) for length in lengths], torch.tensor(lengths)


def maxsim_case(draw: Draw) -> Case:
    from sentence_transformers.util import maxsim, mean_maxsim

    width = draw.choice([1, 7, 32, 128])
    (queries, of_queries), (documents, of_documents) = ragged(draw, width), ragged(draw, width)
    mean = draw.coin()
    scores = (mean_maxsim if mean else maxsim)(queries, documents)
    scores[:, of_documents == 0] = -1e9 / (of_queries.clamp(min=1)[:, None] if mean else 1.0)  # which the package knows among others only
    tensors = {"queries": torch.cat(queries), "query_lengths": of_queries, "documents": torch.cat(documents), "document_lengths": of_documents}
    return Case({"op": "maxsim", "mean": mean}, tensors, {"scores": scores})


def token_pools(draw: Draw) -> Case:
    """Vectors whose distances differ, and some whose distances are equal: of few numbers, whose products are exact."""
    from sentence_transformers.multi_vector_encoder.modules.token_pooling import _hierarchical_pool_one

    pools, tensors, expected = {}, {}, {}
    for number in range(POOLS):
        length, width = draw.choice([0, 1, 2, 3, 5, 9, 17, 40]), draw.choice([2, 3, 8])
        x = torch.nn.functional.normalize(draw.normal(length, width), dim=-1)
        if draw.coin(0.4):
            x = (draw.integers(3, length, width) - 1) / draw.choice([1.0, 2.0])
        own = {"factor": draw.choice([1.0, 1.3, 2.0, 2.7, 4.0, 100.0]), "protected": draw.randint(0, 2)}
        name = str(number)
        pools[name], tensors[name] = own, x
        expected[name] = _hierarchical_pool_one(x, own["factor"], own["protected"], False)
    return Case({"op": "token_pools", "pools": pools}, tensors, expected)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    if importlib.util.find_spec("sentence_transformers") is None:
        print("multivector: sentence_transformers is not installed, nothing is compared")
        return 0, []
    with one_thread(logging.CRITICAL), torch.no_grad(), watched_pooling():
        logging.disable(logging.WARNING)
        cases = [(maxsim_case(draw), "maxsim") for _ in range(10)] + [(token_pools(draw), "token pooling"), (refused_folder(draw, programs), "refused"), (bge_case(draw, programs), "bge-m3")]
        cases += [case for number in range(MODELS) for case in folder_cases(draw, programs, number)]
        results = programs.compute([case for case, _ in cases])
        why = by_command_line(draw, programs, [case.options["folder"] for case, _ in cases if "out" in case.options][-1])
        for (case, _), got in zip(cases, results):
            if "out" in case.options and not isinstance(got, str):  # what the package makes of it
                case.expected = of_saved(case.options)
    failures = [Failure("posenc encode", why)] if why else []
    for (case, what), got in zip(cases, results):
        why = got if isinstance(got, str) else differ(got, case.expected)
        if case.refused:
            why = "" if isinstance(got, str) and case.refused in got else f"{got} for: {case.refused}"
        if why:
            failures.append(Failure(f"{what}, {case.options.get('folder')}, {case.options.get('calls')}", why))
    return len(cases) + 1, failures
