"""Sparse vectors of texts: random folders that the package's SparseEncoder writes, or that are written in the layouts of its older
releases, beside `posenc encode`, one text at a time in the package and several in the library.

The values may differ by 1e-5 of the largest of a vector. An entry may be in one vector and not in the other where it is that small,
and one of the kept may be another where the margin to the last that is kept is.
"""

import importlib.util
import json
import logging
import shutil
from pathlib import Path

import torch
from encoders import KINDS, one_thread
from harness import Draw, Failure, Programs
from heads import drawn_config, heads
from safetensors.torch import load_file
from sentence_texts import PROMPTS, frozen
from tokenizer_folders import texts, tokenizer

FOLDERS, TEXTS, LIMITS, TOLERANCE = 4, 5, [6, 12, 40], 1e-5
SIMPLE = ["BertTokenizer", "RobertaTokenizer", "XLMRobertaTokenizer", "MPNetTokenizer", "DistilBertTokenizer"]
OWN = {"mpnet": "MPNetTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer", "camembert": "XLMRobertaTokenizer"}
WITHOUT = ("xlm", "flaubert", "luke", "layoutlm", "fnet", "esm", "jina_embeddings_v3", "xlnet")  # no text alone, or other tokenizers


def masked_kinds() -> list[tuple[str, str]]:
    return [(kind, head) for kind, head in heads() if head.endswith("ForMaskedLM") and kind not in WITHOUT]


def masked_model(draw: Draw, folder: Path, beyond: int) -> str:
    """A random model with a head for masked words, which has ids beyond the tokenizer's; returns the model type."""
    import transformers

    kind_name, head = draw.choice(masked_kinds())
    words = tokenizer(draw, OWN.get(kind_name, draw.choice(["BertTokenizer", "DistilBertTokenizer"])),
                      **draw.choice([{}, {"model_max_length": draw.choice(LIMITS)}]))  # fmt: skip
    config = drawn_config(draw, kind_name, head)
    own = {"vocab_size": len(words) + beyond, "pad_token_id": words.pad_token_id, "max_position_embeddings": 100}
    for name, value in own.items():
        if hasattr(config, name):
            setattr(config, name, value)
    if hasattr(config, "type_vocab_size") and kind_name not in ("roberta", "xlm-roberta", "camembert"):
        config.type_vocab_size = max(config.type_vocab_size, 1)
    model = getattr(transformers, head)(config).eval()
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            parameter.copy_(draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    return kind_name


def splade(draw: Draw):
    from sentence_transformers.sparse_encoder.modules import SpladePooling

    return SpladePooling(draw.choice(["max", "max", "sum"]), draw.choice(["relu", "log1p_relu"]))


def auto_encoder(draw: Draw, width: int):
    from sentence_transformers.sparse_encoder.modules import SparseAutoEncoder

    module = SparseAutoEncoder(width, draw.choice([17, 40]), k=draw.randint(1, 9), k_aux=4, normalize=draw.coin())
    for parameter in module.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.5)
    return module


def static(draw: Draw, words):
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    weight = draw.normal(len(words)) * draw.bits(0.8, len(words))
    return SparseStaticEmbedding(words, weight=weight, frozen=draw.coin())


def modules(draw: Draw, programs: Programs, number: int):
    """The modules of a model, and what it is."""
    from sentence_transformers.base.modules import Router, Transformer
    from sentence_transformers.sentence_transformer.modules import Normalize, Pooling
    from sentence_transformers.sparse_encoder.modules import SparseStaticEmbedding

    source = programs.folder / f"source-{number}"
    what = draw.choice(["splade", "splade", "router", "csr", "static"])
    beyond = draw.choice([0, 3]) if what == "splade" else 0
    kind_name = masked_model(draw, source, beyond)
    if what == "csr":
        first = Transformer(str(source), transformer_task="feature-extraction")
        width = first.get_embedding_dimension()
        return [first, Pooling(width, pooling_mode=draw.choice(["mean", "cls"])), auto_encoder(draw, width)], f"{what} of {kind_name}"
    first = Transformer(str(source), transformer_task="fill-mask")
    for name in ("query_length", "document_length"):
        if draw.coin(0.3):
            setattr(first, name, draw.choice(LIMITS))
    tail = draw.choice([[], [], [Normalize()], [] if beyond else [static(draw, first.tokenizer)]])
    if what == "splade":
        return [first, splade(draw), *tail], f"{what} of {kind_name}, then {[type(one).__name__ for one in tail]}"
    words = tokenizer(draw, draw.choice(SIMPLE), **draw.choice([{}, {"model_max_length": draw.choice(LIMITS)}]))
    if what == "static":
        return [static(draw, words)], "a static embedding"
    query = static(draw, words if len(words) == len(first.tokenizer) else first.tokenizer)
    routes = {"query": [query], "document": [first, splade(draw)]}
    if draw.coin(0.2):
        routes = {"query": [first, splade(draw)], "document": [first, splade(draw)]}
    router = Router(routes, default_route=draw.choice(["document", "query", None]))
    return [router, *tail[:1]] if not (tail and isinstance(tail[0], SparseStaticEmbedding)) else [router], f"a router over {kind_name}"


def older(draw: Draw, folder: Path) -> None:
    """The names and settings of older releases, and nulls."""
    listed = json.loads((folder / "modules.json").read_text())
    for stage in listed:
        kind, own = stage["type"].rsplit(".", 1)[-1], folder / stage["path"]
        if kind == "Transformer" and draw.coin():
            settings = json.loads((own / "sentence_bert_config.json").read_text())
            if settings["transformer_task"] == "fill-mask":
                stage["type"] = draw.choice(["sentence_transformers.sparse_encoder.models.MLMTransformer",
                                             "sentence_transformers.sparse_encoder.models.MLMTransformer.MLMTransformer"])  # fmt: skip
                left = {name: settings[name] for name in ("query_length", "document_length") if name in settings}
                (own / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": draw.choice([None, 12]), "do_lower_case": draw.coin(), **left}))
        if kind == "SpladePooling" and draw.coin():
            stage["type"] = "sentence_transformers.sparse_encoder.models.SpladePooling"
            settings = json.loads((own / "config.json").read_text())
            size = settings.pop("embedding_dimension", None)
            settings["word_embedding_dimension"] = draw.choice([None, size])
            (own / "config.json").write_text(json.dumps(settings))
        if kind == "Router" and draw.coin():
            stage["type"] = "sentence_transformers.models.Router"
            if not (own / "config.json").exists():
                (own / "router_config.json").rename(own / "config.json")
    (folder / "modules.json").write_text(json.dumps(listed))


def adapted(draw: Draw, model) -> bool:
    """Gives the first module of a model an adapter at times, which is then saved alone, with the name of its model."""
    if importlib.util.find_spec("peft") is None or not hasattr(model[0], "auto_model") or draw.coin(0.75):
        return False
    import peft

    model.add_adapter(peft.LoraConfig(r=2, target_modules="all-linear", init_lora_weights=False))
    return True


def without_base(folder: Path) -> None:
    """The adapter in a folder no longer says where its model is."""
    file = folder / "adapter_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"base_model_name_or_path": "no/model"}))


def sparse_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, str, list[str]]:
    """The folder, what it has, and options that the command needs for it."""
    from sentence_transformers import SparseEncoder

    folder = programs.folder / f"sparse-{number}"
    if draw.coin(0.2):
        return folder, f"{masked_model(draw, folder, draw.choice([0, 3]))} alone", ["--sparse"]
    made, what = modules(draw, programs, number)
    prompts = {name: PROMPTS[name] for name in draw.sample(sorted(PROMPTS), draw.randint(0, len(PROMPTS)))}
    model = SparseEncoder(modules=made, device="cpu", max_active_dims=draw.choice([None, None, 7]),
                          prompts={name: text or "" for name, text in prompts.items()},
                          default_prompt_name=draw.choice([None, *prompts]))  # fmt: skip
    is_adapted = adapted(draw, model)
    model.save_pretrained(str(folder), create_model_card=False)
    if draw.coin():
        older(draw, folder)
    return folder, f"{what}{' with an adapter' if is_adapted else ''}", ["--base", str(programs.folder / f"source-{number}")] if is_adapted else []


def dense(file: Path) -> torch.Tensor:
    """What the command wrote, which has to be in order."""
    given = load_file(file)
    rows, width = given["size"].tolist()
    begins, columns, values = given["crow_indices"], given["col_indices"], given["values"]
    if begins.numel() != rows + 1 or begins[0] != 0 or begins[-1] != values.numel() or columns.numel() != values.numel():
        raise ValueError(f"indices {begins} of {values.numel()} values")
    out = torch.zeros(rows, width)
    for i in range(rows):
        own = columns[begins[i] : begins[i + 1]]
        if (own.diff() <= 0).any() or (values == 0).any():
            raise ValueError(f"columns {own}")
        out[i, own] = values[begins[i] : begins[i + 1]]
    return out


def compare(got: torch.Tensor, expected: torch.Tensor, kept: int | None) -> str:
    """Where entries are chosen, only those may differ that are as small as the last that is kept."""
    if got.shape != expected.shape:
        return f"{tuple(got.shape)} for {tuple(expected.shape)}"
    for i, (a, b) in enumerate(zip(got, expected)):
        bound = TOLERANCE * max(float(b.abs().max()), 1e-30)
        wrong = (a - b).abs() > bound
        if kept is not None and (b != 0).sum() >= kept:
            last = b.abs()[b != 0].min()
            wrong &= ~(((a == 0) | (b == 0)) & ((a.abs() - last).abs().minimum((b.abs() - last).abs()) <= bound))
        if wrong.any():
            where = int(wrong.nonzero()[0])
            return f"text {i}: {int(wrong.sum())} entries, {a[where]:.7g} for {b[where]:.7g} at {where}, {int((b != 0).sum())} are not 0"
    return ""


def encoded(draw: Draw, programs: Programs, folder: Path, more: list[str], model) -> str:
    """What differs of one call."""
    named = {"--task query": "encode_query", "--task document": "encode_document", "": "encode"}
    task = draw.choice(list(named))
    call = draw.choice([{}, {}, {"prompt": "on the "}, {"prompt_name": draw.choice(sorted(model.prompts))}])
    most = draw.choice([None, None, 1, 5, 1000])
    lines = texts(draw, TEXTS)
    file, out = programs.folder / "lines.txt", programs.folder / "out.safetensors"
    file.write_text("\n".join(lines) + "\n")
    options = {"prompt": "--prompt-text", "prompt_name": "--prompt"}
    arguments = [*more, *task.split(), *(part for name, value in call.items() for part in (options[name], value)), "--batch", draw.randint(1, TEXTS)]
    if most:
        arguments += ["--max-active-dims", most]
    what = f"{folder}, {task} {call}, at most {most}"
    encode = getattr(model, named[task])
    try:
        expected = torch.stack([encode([line], max_active_dims=most, convert_to_sparse_tensor=False, **call)[0] for line in lines])
    except (ValueError, RuntimeError) as error:
        if "No route found" in str(error):
            return ""
        if "selected index k out of range" in str(error):  # of a SparseAutoEncoder, which has fewer entries
            done = programs.posenc("encode", folder, "--text", file, "--out", out, *arguments)
            return "" if done.returncode and "must be at most hidden_dim" in done.stderr else f"{what}: {done.stderr} for too many entries"
        raise
    done = programs.posenc("encode", folder, "--text", file, "--out", out, *arguments)
    if done.returncode:
        return f"{what}: {done.stderr.strip()}"
    kept = most or model.max_active_dims
    if why := compare(dense(out), expected, kept):
        return f"{what}: {why}"
    return decoded(draw, programs, folder, arguments, model, dense(out), file, what)


def decoded(draw: Draw, programs: Programs, folder: Path, arguments: list, model, vectors: torch.Tensor, file: Path, what: str) -> str:
    """The tokens of what the command wrote, as the package decodes it."""
    top = draw.choice([None, 3])
    done = programs.posenc("encode", folder, "--text", file, "--decode", "--precision", "int8", *arguments)
    if not done.returncode or "--precision is for" not in done.stderr:
        return f"{what}: --precision is not refused: {done.stderr}"
    done = programs.posenc("encode", folder, "--text", file, "--decode", *(["--top", top] if top else []), *arguments)
    if done.returncode:
        return f"{what}: {done.stderr.strip()}"
    got = [json.loads(line)["tokens"] for line in done.stdout.splitlines()]
    for line, (own, vector) in enumerate(zip(got, vectors)):
        expected = [[token, weight] for token, weight in model.decode(vector, top_k=top)]
        weights = [weight for _, weight in own]
        same = len(own) == len(expected) and all(abs(a[1] - b[1]) <= 1e-6 * max(1.0, abs(b[1])) for a, b in zip(own, expected))
        alone = {weight for weight in weights if weights.count(weight) == 1}
        if not same or any(a[0] != b[0] for a, b in zip(own, expected) if a[1] in alone and (not top or a is not own[-1])):
            return f"{what}: line {line} decodes to {own[:4]} for {expected[:4]}"
    return ""


def lexical(draw: Draw, programs: Programs) -> str:
    """BGE-M3's weights of tokens, by FlagEmbedding's formula."""
    import transformers

    folder = programs.folder / "bge"
    words = tokenizer(draw, "XLMRobertaTokenizer")
    config = drawn_config(draw, "xlm-roberta", "XLMRobertaForMaskedLM")
    config.vocab_size, config.pad_token_id, config.max_position_embeddings = len(words), words.pad_token_id, 100
    model = transformers.XLMRobertaModel(config).eval()
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    linear = torch.nn.Linear(config.hidden_size, 1)
    torch.save(linear.state_dict(), folder / "sparse_linear.pt")
    lines = texts(draw, TEXTS)
    expected = torch.zeros(len(lines), config.vocab_size)
    unused = {words.cls_token_id, words.eos_token_id, words.pad_token_id, words.unk_token_id}
    for row, line in zip(expected, lines):
        given = words([line], return_tensors="pt", truncation=True, max_length=98)
        weights = torch.relu(linear(model(**given).last_hidden_state[0])).squeeze(-1)
        for token, weight in zip(given["input_ids"][0].tolist(), weights.tolist()):
            if token not in unused:
                row[token] = max(float(row[token]), weight)
    file, out = programs.folder / "bge.txt", programs.folder / "bge.safetensors"
    file.write_text("\n".join(lines) + "\n")
    done = programs.posenc("encode", frozen(draw, programs, folder), "--text", file, "--out", out, "--sparse")
    return done.stderr.strip() if done.returncode else compare(dense(out), expected, None)


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    if importlib.util.find_spec("sentence_transformers") is None:
        print("sparse: sentence_transformers is not installed, nothing is compared")
        return 0, []
    from sentence_transformers import SparseEncoder

    failures, count = [], 0
    with one_thread(logging.CRITICAL), torch.no_grad():
        logging.disable(logging.WARNING)
        for number in range(FOLDERS):
            folder, what, more = sparse_folder(draw, programs, number)
            model = SparseEncoder(str(folder), device="cpu")
            if "--base" in more:
                without_base(folder)
            taken = folder
            if what != "a static embedding" and (taken := frozen(draw, programs, folder, *(more if "--base" in more else []))) != folder:
                more = [option for option in more if option == "--sparse"]
            for _ in range(3):
                count += 1
                if why := encoded(draw, programs, taken, more, model):
                    failures.append(Failure(what, why))
            shutil.rmtree(programs.folder / f"source-{number}", ignore_errors=True)
        count += 1
        if why := lexical(draw, programs):
            failures.append(Failure("BGE-M3", why))
    return count, failures
