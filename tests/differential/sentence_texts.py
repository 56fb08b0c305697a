"""Texts to vectors and to scores of pairs: random folders of sentence-transformers beside the package itself, which has to be
installed; otherwise nothing is compared.

Each text is encoded alone by the package and among others by the library. The vectors may differ by 1e-5, relative to their
largest number where that is more than 1.
"""

import importlib.util
import json
import logging
from pathlib import Path

import torch
from encoders import KINDS, one_thread, settings
from harness import Case, Draw, Failure, Programs
from sentences import chain, compare, dense, static_table, typed, write
from tokenizer_folders import texts, tokenizer

MODELS, TEXTS, LIMITS = 8, 5, [8, 16, 40]
TOKENIZERS = {"bert": "BertTokenizer", "distilbert": "DistilBertTokenizer", "electra": "BertTokenizer", "gte": "BertTokenizer",
              "nomic_bert": "BertTokenizer", "mpnet": "MPNetTokenizer", "roberta": "RobertaTokenizer", "xlm-roberta": "XLMRobertaTokenizer",
              "qwen2": "Qwen2Tokenizer", "qwen3": "Qwen2Tokenizer"}  # fmt: skip
HEADS = {"bert": "BertForSequenceClassification", "distilbert": "DistilBertForSequenceClassification",
         "electra": "ElectraForSequenceClassification", "roberta": "RobertaForSequenceClassification",
         "mpnet": "MPNetForSequenceClassification", "xlm-roberta": "XLMRobertaForSequenceClassification"}  # fmt: skip
PROMPTS = {"query": "query: ", "passage": "represent this sentence", "document": "the ", "none": None, "cut": "hello world , . " * 5}
ACTIVATIONS = ["activation.Tanh", "activation.Sigmoid", "linear.Identity", "activation.ReLU"]


def drawn_model(draw: Draw, kind_name: str, head: str, words, **more):
    import transformers

    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect)
    chosen |= {"vocab_size": len(words), "pad_token_id": words.pad_token_id, "max_position_embeddings": 100, **more}
    if kind_name == "mpnet":
        chosen["relative_attention_num_buckets"] = 32
    if "num_labels" in more and "roberta" not in kind_name and "type_vocab_size" in chosen:
        chosen["type_vocab_size"] = 2  # a pair has two
    model = getattr(transformers, head)(getattr(transformers, kind.config)(**chosen)).eval()
    for parameter in model.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    return model


def limited(draw: Draw, kind_name: str) -> tuple[str, dict]:
    """The class of a tokenizer with its own limit, if it has one."""
    return TOKENIZERS[kind_name], draw.choice([{}, {"model_max_length": draw.choice(LIMITS)}])


def stage_settings(draw: Draw) -> dict:
    """A sentence_bert_config.json of any release. Without a length the package fails where RoBERTa has no more positions."""
    config = {"max_seq_length": draw.choice(LIMITS), "do_lower_case": draw.coin()}
    if draw.coin(0.2):
        config["tokenizer_args"] = {"model_max_length": draw.choice(LIMITS)}
    if draw.coin(0.2):
        config["processing_kwargs"] = {"text": {"max_length": draw.choice(LIMITS)}}
    return config


def whole_settings(draw: Draw) -> dict:
    config = {"prompts": {name: PROMPTS[name] for name in draw.sample(sorted(PROMPTS), draw.randint(0, len(PROMPTS)))}}
    if draw.coin():
        config["default_prompt_name"] = draw.choice([*config["prompts"], "query", None])
    if draw.coin(0.3):
        config["truncate_dim"] = draw.randint(1, 9)
    return config if draw.coin(0.9) else {}


def static_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, dict, str]:
    """A table of tokens in place of the encoder, whose tokenizer may cut texts off."""
    root, width = programs.folder / f"texts-{number}", draw.choice([8, 12])
    root.mkdir()
    words = tokenizer(draw, draw.choice(sorted(TOKENIZERS.values()))).backend_tokenizer
    if draw.coin():
        words.enable_truncation(draw.choice(LIMITS))
    if draw.coin():
        words.enable_padding()
    words.save(str(root / "tokenizer.json"))
    static_table(draw, root, words.get_vocab_size(), width)
    listed = [{"idx": 0, "name": "0", "path": "", "type": typed(draw, "StaticEmbedding")},
              {"idx": 1, "name": "1", "path": "1_Normalize", "type": typed(draw, "Normalize")}]  # fmt: skip
    (root / "1_Normalize").mkdir()
    (root / "modules.json").write_text(json.dumps(listed[: draw.randint(1, 2)]))
    config = whole_settings(draw)
    (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    return root, config, "a static embedding"


def sentence_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, dict, str]:
    """Returns the folder, its config_sentence_transformers.json, and what it has."""
    kind_name = draw.choice(sorted(TOKENIZERS))
    name, limits = limited(draw, kind_name)
    words = tokenizer(draw, name, **limits)
    model = drawn_model(draw, kind_name, KINDS[kind_name].model, words)
    root = programs.folder / f"texts-{number}"
    bare = draw.coin(0.2)  # the package reads no settings
    inner = "" if bare else draw.choice(["", "0_Transformer"])
    if not bare:
        model.config.output_hidden_states = draw.coin()
    if bare and "roberta" in kind_name:
        words.model_max_length = draw.choice(LIMITS)
    model.save_pretrained(root / inner)
    words.save_pretrained(root / inner)
    if bare and draw.coin():
        return root, {}, f"{kind_name} alone"
    listed = [{"idx": 0, "name": "0", "path": inner, "type": typed(draw, "Transformer")}]
    chain(draw, root, model, listed)
    config = {"model_type": "CrossEncoder"} if bare else whole_settings(draw)
    (root / "modules.json").write_text(json.dumps(listed))
    (root / inner / draw.choice(["sentence_bert_config.json", "sentence_roberta_config.json"])).write_text(json.dumps(stage_settings(draw)))
    if config:
        (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    return root, config, f"{kind_name}, {[stage['type'].rsplit('.', 1)[-1] for stage in listed]}"


def first_stage(draw: Draw, folder: Path, static: bool) -> int:
    """A table of tokens, or an encoder with lengths of its own, and a pooling beside it; returns the width."""
    folder.mkdir(parents=True)
    if static:
        words = tokenizer(draw, draw.choice(sorted(TOKENIZERS.values()))).backend_tokenizer
        words.save(str(folder / "tokenizer.json"))
        return static_table(draw, folder, words.get_vocab_size(), 12).shape[1]
    kind_name = draw.choice(sorted(TOKENIZERS))
    name, limits = limited(draw, kind_name)
    words = tokenizer(draw, name, **limits)
    model = drawn_model(draw, kind_name, KINDS[kind_name].model, words)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    own = stage_settings(draw) | {task: draw.choice(LIMITS) for task in ["query_length", "document_length"] if draw.coin()}
    (folder / "sentence_bert_config.json").write_text(json.dumps(own))
    write(Path(f"{folder}_Pooling"), {"embedding_dimension": model.config.hidden_size, "pooling_mode": draw.choice(["mean", "cls"])})
    return model.config.hidden_size


def routed_folder(draw: Draw, programs: Programs, number: int) -> tuple[Path, dict, str]:
    """A Router in front, with first stages of its own, or after a pooling, as Asym was. A stage may be in several routes."""
    root, in_front, is_shared = programs.folder / f"texts-{number}", draw.coin(), draw.coin()
    routes = draw.sample(["query", "document", "text", "other"], draw.randint(1, 3))
    folder = root if in_front else root / "2_Asym"
    types, structure, widths = {}, {}, {}
    listed = [{"idx": 0, "name": "0", "path": "", "type": f"sentence_transformers.{draw.choice(['models', 'base.modules.router'])}.Router"}]
    if not in_front:
        widths["first"] = first_stage(draw, root / "first", static=False)
        listed = [{"idx": 0, "name": "0", "path": "first", "type": typed(draw, "Transformer")},
                  {"idx": 1, "name": "1", "path": "first_Pooling", "type": typed(draw, "Pooling")},
                  {"idx": 2, "name": "2", "path": "2_Asym", "type": "sentence_transformers.models.Asym"}]  # fmt: skip
    for route in routes:
        first = "shared" if is_shared else f"{route}_0"
        ids = [first] if in_front else []
        if in_front and first not in types:
            is_static = draw.coin()
            types[first] = typed(draw, "StaticEmbedding" if is_static else "Transformer")
            widths[first] = first_stage(draw, folder / first, is_static)
        if in_front and types[first].endswith("Transformer"):
            types[f"{first}_Pooling"] = typed(draw, "Pooling")
            ids.append(f"{first}_Pooling")
        width = widths[first if in_front else "first"]
        ids.append(f"{draw.choice([route, 'dense'])}_{width}")
        if ids[-1] not in types:
            types[ids[-1]] = typed(draw, "Dense")
            dense(draw, folder / ids[-1], width, of_tokens=False, out=8)
        structure[route] = ids
    parameters = {"allow_empty_key": True, "default_route": draw.choice([None, *routes])}
    if draw.coin(0.3):
        keys = draw.sample([(task, modality) for task in ["query", "document", None] for modality in ["text", "image", None]], 2)
        parameters["route_mappings"] = {str(key): draw.choice(routes) for key in keys}
    (folder / draw.choice(["router_config.json", "config.json"])).write_text(
        json.dumps({"types": types, "structure": structure, "parameters": parameters}))  # fmt: skip
    if draw.coin():
        listed.append({"idx": 9, "name": "9", "path": "9_Normalize", "type": typed(draw, "Normalize")})
        (root / "9_Normalize").mkdir()
    (root / "modules.json").write_text(json.dumps(listed))
    config = whole_settings(draw)
    (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    return root, config, f"a Router {'in front' if in_front else 'after a pooling'}, {structure}, {parameters}"


def call(draw: Draw, config: dict) -> dict:
    named = [None, None, "query", "document", *config.get("prompts", {})]
    method = draw.choice(["encode", "encode", "encode_query", "encode_document"])
    prompt = draw.choice([None, None, None, "", "on the "])
    return {"method": method, "prompt": prompt, "prompt_name": draw.choice(named) if prompt is None else None,
            "normalize": draw.coin(), "truncate_dim": draw.choice([None, None, 3]), "batch_size": draw.randint(1, TEXTS),
            "texts": texts(draw, TEXTS, least=3)}  # fmt: skip


def by_package(model, arguments: dict) -> torch.Tensor:
    encode = getattr(model, arguments["method"])
    vectors = [encode([text], prompt=arguments["prompt"], prompt_name=arguments["prompt_name"], normalize_embeddings=arguments["normalize"],
                      truncate_dim=arguments["truncate_dim"], convert_to_tensor=True) for text in arguments["texts"]]  # fmt: skip
    return torch.cat(vectors)


def frozen(draw: Draw, programs: Programs, folder: Path, *more: object) -> Path:
    """What `posenc freeze` makes of a folder, or the folder."""
    if draw.coin():
        return folder
    out = Path(f"{folder}-frozen")
    done = programs.posenc("freeze", folder, out, *more)
    if done.returncode:
        raise ValueError(done.stderr)
    return out


def sentence_cases(draw: Draw, programs: Programs, number: int) -> list[tuple[Case, str]]:
    """The folder, and at times what the package makes of it: the layout of its own release."""
    from sentence_transformers import SentenceTransformer

    made = {0: static_folder, 1: routed_folder, 2: routed_folder}.get(number, sentence_folder)
    root, config, what = made(draw, programs, number)
    folders = [root]
    if draw.coin():
        folders.append(Path(f"{root}-again"))
        SentenceTransformer(str(root), device="cpu").save_pretrained(str(folders[1]), create_model_card=False)
    calls = [call(draw, config) for _ in range(3)]
    cases = []
    for folder in folders:
        model = SentenceTransformer(str(folder), device="cpu")
        own = [arguments for arguments in calls if has_route(model, arguments["method"])]
        expected = {str(i): by_package(model, arguments) for i, arguments in enumerate(own)}
        has_layers = any("model_type" in json.loads(file.read_text()) for file in folder.rglob("config.json"))
        taken = frozen(draw, programs, folder) if has_layers else folder
        cases.append((Case({"op": "sentence_texts", "folder": str(taken), "calls": own}, {}, expected), f"{what}, {folder.name}"))
    return cases


def has_route(model, method: str) -> bool:
    try:
        getattr(model, method)(["the"])
    except ValueError as error:
        if "No route found" not in str(error):
            raise
        return False
    return True


def cross_encoder(draw: Draw, programs: Programs, number: int) -> tuple[Path, dict, str | None]:
    """Returns the folder, its prompts and its activation, as a release stored it."""
    kind_name = draw.choice(sorted(HEADS))
    labels, place = draw.choice([1, 1, 3]), draw.choice(["none", "own", "config", "old"])
    words = tokenizer(draw, TOKENIZERS[kind_name], model_max_length=draw.choice(LIMITS))
    model = drawn_model(draw, kind_name, HEADS[kind_name], words, num_labels=labels)
    path = f"torch.nn.modules.{draw.choice(ACTIVATIONS)}"
    if place == "config":
        model.config.sentence_transformers = {"activation_fn": path, "version": "5.0.0"}
    elif place == "old":
        model.config.sbert_ce_default_activation_function = path
    root = programs.folder / f"pairs-{number}"
    model.save_pretrained(root)
    words.save_pretrained(root)
    if place != "own":
        return root, {}, None if place == "none" else path
    prompts = {name: PROMPTS[name] for name in draw.sample(["query", "passage", "none"], draw.randint(0, 3))}
    config = {"model_type": "CrossEncoder", "activation_fn": path, "prompts": prompts, "default_prompt_name": draw.choice([None, *prompts])}
    (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    (root / "modules.json").write_text(json.dumps([{"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.base.modules.transformer.Transformer"}]))
    (root / "sentence_bert_config.json").write_text(json.dumps({"transformer_task": "sequence-classification", "module_output_name": "scores",
        "modality_config": {"text": {"method": "forward", "method_output_name": "logits"}}, **({"max_seq_length": 12} if draw.coin() else {})}))  # fmt: skip
    return root, prompts, path


def scores_of_package(root: Path, pairs: list, prompt: dict, stored: str | None) -> torch.Tensor:
    """Without a stored activation several labels have probabilities, as in the pipeline."""
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(root), device="cpu")
    softmax = stored is None and model.num_labels > 1
    scores = [model.predict([pair], convert_to_tensor=True, apply_softmax=softmax, **prompt) for pair in pairs]
    return torch.cat(scores).reshape(len(pairs), -1)


def pairs_of_command_line(programs: Programs, draw: Draw, number: int) -> str:
    """What differs of the scores that `posenc classify --pair` writes."""
    root, prompts, stored = cross_encoder(draw, programs, number)
    prompt = draw.choice([{}, {"prompt": "on the "}, {"prompt": ""}, *({"prompt_name": name} for name in prompts)])
    pairs = list(zip(texts(draw, 4), texts(draw, 4)))
    file = programs.folder / "pairs.txt"
    file.write_text("".join(f"{a}\t{b}\n" for a, b in pairs))
    options = {"prompt": "--prompt-text", "prompt_name": "--prompt"}
    more = [part for name, value in prompt.items() for part in (options[name], value)]
    done = programs.posenc("classify", root, "--pair", "--text", file, "--batch", draw.randint(1, 4), *more)
    if done.returncode:
        return f"{root}: {done.stderr.strip()}"
    got = torch.tensor([list(json.loads(line)["scores"].values()) for line in done.stdout.splitlines()])
    why = compare(got, scores_of_package(root, pairs, prompt, stored))
    return f"{root}, {prompt}: {why}" if why else ""


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    if importlib.util.find_spec("sentence_transformers") is None:
        print("sentence_texts: sentence_transformers is not installed, nothing is compared")
        return 0, []
    with one_thread(logging.CRITICAL), torch.no_grad():
        logging.disable(logging.WARNING)
        cases = [case for number in range(MODELS) for case in sentence_cases(draw, programs, number)]
        results = programs.compute([case for case, _ in cases])
        whys = [pairs_of_command_line(programs, draw, number) for number in range(2)]
    failures = [Failure("posenc classify --pair", why) for why in whys if why]
    for (case, what), got in zip(cases, results):
        found = [got] if isinstance(got, str) else [f"{case.options['calls'][int(key)]}: {why}" for key, value in case.expected.items()
                                                   if (why := compare(got[key], value))]  # fmt: skip
        if found:
            failures.append(Failure(f"{what}, {case.options['folder']}", "; ".join(found)))
    return len(cases) + len(whys), failures
