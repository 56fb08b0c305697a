"""Folders of sentence-transformers with random stages, in the layouts of all its releases: vectors of ids.

The stages are computed for each sequence alone, by sentence_transformers where Python has it, and otherwise by their formulas.
The vectors may differ by 1e-5, relative to their largest number where that is more than 1.
"""

import functools
import importlib
import json
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch.nn import functional

from encoders import KINDS, TOLERANCE, settings
from harness import Case, Draw, Failure, Programs

MODELS = 8
ENCODERS = ["albert", "bert", "distilbert", "electra", "gte", "modernbert", "mpnet", "nomic_bert", "roberta", "t5"]
MODES = {"cls": "cls_token", "max": "max_tokens", "mean": "mean_tokens", "mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
         "weightedmean": "weightedmean_tokens", "lasttoken": "lasttoken"}  # fmt: skip
ACTIVATIONS = ["activation.Tanh", "activation.ReLU", "activation.GELU", "activation.Sigmoid", "activation.SiLU", "activation.ELU",
               "activation.Mish", "activation.Softplus", "activation.LeakyReLU", "linear.Identity"]  # fmt: skip


def typed(draw: Draw, kind: str) -> str:
    new = "base.modules" if kind in ("Transformer", "Dense", "Normalize") else "sentence_transformer.modules"
    stem = {"LayerNorm": "layer_norm", "WordWeights": "word_weights", "WeightedLayerPooling": "weighted_layer_pooling",
            "StaticEmbedding": "static_embedding"}.get(kind, kind.lower())
    return draw.choice([f"sentence_transformers.models.{kind}", f"sentence_transformers.models.{kind}.{kind}",
                        f"sentence_transformers.{new}.{stem}.{kind}"])  # fmt: skip


def write(folder: Path, config: dict, weights: dict | None = None, as_bin: bool = False, name: str = "config.json") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(config))
    if weights and as_bin:
        torch.save(weights, folder / "pytorch_model.bin")
    elif weights:
        save_file(weights, folder / "model.safetensors")


def pooling(draw: Draw, folder: Path, width: int):
    modes = draw.sample(sorted(MODES), draw.choice([1, 1, 2, 3]))
    config = {draw.choice(["word_embedding_dimension", "embedding_dimension"]): width}
    if draw.coin():
        config["pooling_mode"] = modes[0] if len(modes) == 1 and draw.coin() else modes
    else:
        flags = list(MODES.items())
        draw.shuffle(flags)
        config |= {f"pooling_mode_{flag}": mode in modes for mode, flag in flags if mode in modes or draw.coin()}
        modes = [mode for mode in MODES if mode in modes]
    include = draw.coin(0.6)
    if not include:
        config["include_prompt"] = False
    write(folder, config)
    return lambda features: features | {"x": torch.cat([pooled(mode, features, include) for mode in modes], -1)}, width * len(modes)


def pooled(mode: str, features: dict, include: bool) -> torch.Tensor:
    hidden = features["t"]
    is_pooled = torch.arange(hidden.shape[1]) >= (0 if include else features["prompt"])
    rows = hidden * is_pooled[:, None]
    count = features.get("weights_sum", is_pooled.sum().float())
    if mode == "cls":
        return hidden[:, int(is_pooled.int().argmax())]
    if mode == "max":
        return hidden.masked_fill(~is_pooled[:, None], -torch.inf).amax(1)
    if mode in ("mean", "mean_sqrt_len_tokens"):
        count = count.clamp(min=1e-9)
        return rows.sum(1) / (count if mode == "mean" else count.sqrt())
    if mode == "weightedmean":
        places = torch.arange(1.0, hidden.shape[1] + 1)
        total = features.get("weights_sum", (places * is_pooled).sum())
        return (rows * places[:, None]).sum(1) / total.clamp(min=1e-9)
    return hidden[:, -1] * is_pooled.any()


def dense(draw: Draw, folder: Path, width: int, of_tokens: bool, out: int | None = None):
    out = out or draw.choice([width, 3, 8])
    config, activation = {"in_features": width, "out_features": out}, torch.nn.Tanh()
    if draw.coin(0.8):
        name = draw.choice(ACTIVATIONS)
        config["activation_function"] = f"torch.nn.modules.{name}"
        activation = getattr(torch.nn, name.split(".")[1])()
    weights = {"linear.weight": draw.normal(out, width) * 0.3}
    if has_bias := draw.coin(0.7):
        weights["linear.bias"] = draw.normal(out)
    if not has_bias or draw.coin():
        config["bias"] = has_bias
    if residual := draw.coin(0.3):
        config["use_residual"] = True
        if out != width:
            weights["residual.weight"] = draw.normal(out, width) * 0.3
    if of_tokens:
        config["module_input_name"] = "token_embeddings"
    write(folder, config, weights, draw.coin(0.3))
    key = "t" if of_tokens else "x"

    def run(features: dict) -> dict:
        x = features[key]
        y = activation(functional.linear(x, weights["linear.weight"], weights.get("linear.bias")))
        if residual:
            y = y + (functional.linear(x, weights["residual.weight"]) if "residual.weight" in weights else x)
        return features | {key: y}

    return run, out


def normalize(draw: Draw, folder: Path, width: int):
    if draw.coin():  # git keeps no empty folder
        write(folder, {"module_input_name": "sentence_embedding"})
    return lambda features: features | {"x": functional.normalize(features["x"], dim=-1)}, width


def layer_norm(draw: Draw, folder: Path, width: int):
    weights = {"norm.weight": draw.normal(width), "norm.bias": draw.normal(width)}
    write(folder, {"dimension": width}, weights)
    return lambda features: features | {"x": functional.layer_norm(features["x"], (width,), *weights.values())}, width


def dropout(draw: Draw, folder: Path, width: int):
    write(folder, {"dropout": 0.3})
    return lambda features: features, width


def weighted_layers(draw: Draw, folder: Path, width: int, encoder):
    """Has an effect only if the encoder gives its layers."""
    layers = encoder.config.num_hidden_layers * getattr(encoder.config, "inner_group_num", 1)  # ALBERT's
    start = draw.randint(0, layers)
    weights = draw.normal(layers + 1 - start).abs() + 0.1
    write(folder, {draw.choice(["embedding_dimension", "word_embedding_dimension"]): width, "layer_start": start, "num_hidden_layers": layers},
          {"layer_weights": weights}, draw.coin(0.3))  # fmt: skip
    if not encoder.config.output_hidden_states:
        return lambda features: features, None

    def run(features: dict) -> dict:
        return features | {"t": torch.stack([w * h for w, h in zip(weights, features["layers"][start:])]).sum(0) / weights.sum()}

    return run, encoder.config.hidden_size


def word_weights(draw: Draw, folder: Path, width: int, encoder):
    vocab = [draw.choice(["w{}", "W{}", "wÄ{}"]).format(i) for i in range(encoder.config.vocab_size)]
    known = {draw.choice([word, word.lower()]) if word.isascii() else word: round(draw.uniform(0, 3), 3) for word in vocab
             if draw.coin(0.7) or not word.isascii()}  # fmt: skip
    config = {"vocab": vocab, "word_weights": known}
    unknown = 1.0
    if draw.coin():
        config["unknown_word_weight"] = unknown = draw.choice([0, 2.5])
    write(folder, config, {"emb_layer.weight": draw.normal(len(vocab), 1)})  # which the package does not read
    weights = torch.tensor([float(known.get(word, known.get(word.lower(), unknown))) for word in vocab])

    def run(features: dict) -> dict:
        own = weights[features["ids"]]
        return features | {"t": features["t"] * own[..., None], "weights_sum": own.sum()}

    return run, width


def cnn(draw: Draw, folder: Path, width: int, encoder):
    kernels = draw.choice([[1, 3, 5], [3], [2], [5, 1], [4, 2]])
    stride = draw.choice([1, 1, 2])
    out = draw.choice([3, 8])
    config = {draw.choice(["in_embedding_dimension", "in_word_embedding_dimension"]): width, "out_channels": out, "kernel_sizes": kernels}
    if stride > 1 or draw.coin():
        config["stride_sizes"] = [stride] * len(kernels)
    weights = {f"convs.{i}.{name}": draw.normal(out, width, kernel) * 0.3 if name == "weight" else draw.normal(out)
               for i, kernel in enumerate(kernels) for name in ("weight", "bias")}  # fmt: skip
    write(folder, config, weights, draw.coin(0.3), "cnn_config.json")

    def run(features: dict) -> dict:
        x = features["t"].transpose(1, 2)
        y = [functional.conv1d(x, weights[f"convs.{i}.weight"], weights[f"convs.{i}.bias"], stride, (kernel - 1) // 2) for i, kernel in enumerate(kernels)]
        return features | {"t": torch.cat(y, 1).transpose(1, 2)}

    return run, out * len(kernels)


OF_TOKENS = {"WeightedLayerPooling": weighted_layers, "WordWeights": word_weights, "CNN": cnn}


def before_pooling(draw: Draw) -> list[str]:
    """Words have weights before a convolution, after which the package has no ids of their number."""
    return [kind for kind in ["Dense", "WeightedLayerPooling", "WordWeights", "CNN"] if draw.coin(0.2)]


def chain(draw: Draw, root: Path, encoder, listed: list[dict]) -> list:
    """Writes the stages after the first, and returns what each computes."""
    width = encoder.config.hidden_size
    kinds = before_pooling(draw) + ["Pooling"]
    kinds += draw.choices(["Dense", "Normalize", "LayerNorm", "Dropout"], k=draw.randint(0, 3))
    makers = {"Normalize": normalize, "LayerNorm": layer_norm, "Dropout": dropout, "Pooling": pooling}
    runs = []
    for number, kind in enumerate(kinds, 1):
        path = draw.choice([f"{number}_{kind}", f"{20 - number}_{kind}", f"stage {number}"])
        if kind == "LayerNorm" and width < 8:
            kind, path = "Normalize", f"{number}_Normalize"  # the norm of few channels is nearly a step
        if kind == "Dense":
            run, width = dense(draw, root / path, width, of_tokens="Pooling" in kinds[number:])
        elif kind in OF_TOKENS:
            run, wide = OF_TOKENS[kind](draw, root / path, width, encoder)
            width = wide or width
        else:
            run, width = makers[kind](draw, root / path, width)
        listed.append({"idx": draw.randint(0, 9), "name": str(number), "path": path, "type": typed(draw, kind)})
        runs.append(run)
    return runs


def by_package(root: Path, listed: list[dict], sequences: list[dict]) -> torch.Tensor | None:
    """What sentence_transformers computes; None if it is not installed."""
    try:
        modules = importlib.import_module("sentence_transformers.sentence_transformer.modules")
    except ImportError:
        return None
    stages = []
    for stage in listed[1:]:
        kind = stage["type"].rsplit(".", 1)[-1]
        module = getattr(modules, kind) if hasattr(modules, kind) else getattr(importlib.import_module("sentence_transformers.models"), kind)
        stages.append(module.load(str(root / stage["path"]) if (root / stage["path"]).exists() or kind != "Normalize" else "").eval())
    vectors = []
    for own in sequences:
        features = {"token_embeddings": own["t"], "attention_mask": torch.ones_like(own["ids"]), "prompt_length": own["prompt"],
                    "input_ids": own["ids"], "all_layer_embeddings": own["layers"] if own["has_layers"] else None}  # fmt: skip
        for stage in stages:
            features = stage(features)
        vectors.append(features["sentence_embedding"])
    return torch.cat(vectors)


def one(draw: Draw, programs: Programs, number: int) -> tuple[list[Case], str]:
    import transformers

    kind_name = draw.choice(ENCODERS)
    kind = KINDS[kind_name]
    model = getattr(transformers, kind.model)(getattr(transformers, kind.config)(**settings(draw, kind_name, kind.dialect))).eval()
    for parameter in model.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    root = programs.folder / f"sentences-{number}"
    inner = draw.choice(["", "0_Transformer", "0_BERT"])
    model.config.output_hidden_states = draw.coin()
    model.save_pretrained(root / inner)
    listed = [{"idx": 0, "name": "0", "path": inner, "type": typed(draw, "Transformer")}]
    runs = chain(draw, root, model, listed)
    (root / "modules.json").write_text(json.dumps(listed))
    least = 7 if any(stage["type"].endswith("CNN") for stage in listed) else 3  # which leaves rows after a prompt
    batch, length, prompt = draw.randint(1, 4), draw.randint(least, 12), draw.choice([0, 0, 1, 2])
    mask = torch.zeros(batch, length, dtype=torch.long)
    for row in mask:
        row[: draw.randint(least, length)] = 1
    given = {"input_ids": draw.integers(model.config.vocab_size, batch, length), "attention_mask": mask}
    out = model(**given, output_hidden_states=True)
    sequences = [{"t": out.last_hidden_state[i : i + 1, :n], "layers": [layer[i : i + 1, :n] for layer in out.hidden_states],
                  "ids": given["input_ids"][i : i + 1, :n], "prompt": prompt, "has_layers": model.config.output_hidden_states}
                 for i, n in enumerate(mask.sum(1).tolist())]  # fmt: skip
    expected = torch.cat([functools.reduce(lambda features, run: run(features), runs, own)["x"] for own in sequences])
    package = by_package(root, listed, sequences)
    if package is not None and not torch.allclose(package, expected, rtol=1e-5, atol=1e-5):
        raise ValueError(f"the formulas are not the package's: {root}")
    cases = [Case({"op": "sentences", "folder": str(root), "frozen": frozen, "prompt_length": prompt}, given, {"vectors": expected})
             for frozen in (False, True)]  # fmt: skip
    return cases, f"{kind_name}, {[stage['type'] for stage in listed]}"


def static_table(draw: Draw, root: Path, rows: int, width: int) -> torch.Tensor:
    """A table of tokens as sentence-transformers or model2vec writes it, which may have more rows then; returns the rows of tokens."""
    tensors = {"embedding.weight": draw.normal(rows, width)}
    table = tensors["embedding.weight"]
    if draw.coin(0.7):
        tensors = {"embeddings": table}
        if draw.coin():
            tensors["mapping"] = draw.integers(rows, rows + 10)
            table = table[tensors["mapping"]]
        if draw.coin():
            tensors["weights"] = draw.normal(len(table)).double() if draw.coin() else draw.normal(len(table))
            table = (table * tensors["weights"][:, None]).float()
    save_file(tensors, root / "model.safetensors")
    return table


def static(draw: Draw, programs: Programs) -> tuple[list[Case], str]:
    """A table of tokens in place of the encoder."""
    root, width = programs.folder / "static", draw.choice([8, 12])
    root.mkdir()
    table = static_table(draw, root, draw.randint(5, 30), width)
    listed = [{"idx": 0, "name": "0", "path": "", "type": typed(draw, "StaticEmbedding")}]
    run, _ = normalize(draw, root / "1_Normalize", width)
    listed.append({"idx": 1, "name": "1", "path": "1_Normalize", "type": typed(draw, "Normalize")})
    (root / "modules.json").write_text(json.dumps(listed))
    ids = draw.integers(len(table), 1, draw.randint(1, 9))
    expected = run({"x": table[ids[0]].mean(0, keepdim=True)})["x"]
    case = Case({"op": "sentences", "folder": str(root), "frozen": False, "prompt_length": 0}, {"input_ids": ids}, {"vectors": expected})
    return [case], "static"


def compare(got: torch.Tensor, expected: torch.Tensor) -> str:
    if got.shape != expected.shape:
        return f"{tuple(got.shape)} for {tuple(expected.shape)}"
    if not torch.equal(got.isfinite(), expected.isfinite()):
        return "other elements are finite"
    got, expected = got.nan_to_num(), expected.nan_to_num()
    worst = (got - expected).abs().max().item()
    return "" if worst <= TOLERANCE * max(1.0, expected.abs().max().item()) else f"off by {worst:.3g}"


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    import transformers

    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    with torch.no_grad():
        made = [one(draw, programs, number) for number in range(MODELS)] + [static(draw, programs)]
    results = iter(programs.compute([case for cases, _ in made for case in cases]))
    failures, count = [], 0
    for cases, what in made:
        for case in cases:
            count += 1
            result = next(results)
            why = result if isinstance(result, str) else compare(result["vectors"], case.expected["vectors"])
            if why:
                failures.append(Failure(f"{what}, {case.options}", why))
    return count, failures
