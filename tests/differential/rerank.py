"""Search beside sentence-transformers, which has to be installed; otherwise nothing is compared: `posenc rank` with random
cross-encoders, causal language models and models of vectors beside CrossEncoder.predict() and similarity(), similarities of random
vectors in files, and vectors in 8 bits and 1 bit.

Each pair is scored alone by the package and among others by posenc. Scores may differ by 1e-5, relative to the largest where that
is more than 1; the order must be theirs, and equal scores keep that of the documents. Integers are equal.
"""

import importlib.util
import json
import logging
from pathlib import Path

import torch
from encoders import KINDS, one_thread, settings
from harness import Case, Draw, Failure, Programs, judge
from safetensors.torch import load_file, save_file
from sentence_texts import ACTIVATIONS, HEADS, LIMITS, PROMPTS, TOKENIZERS, call, drawn_model, sentence_folder
from tokenizer_folders import CLASSES, texts, tokenizer

CAUSAL = {"qwen2": "Qwen2ForCausalLM", "qwen3": "Qwen3ForCausalLM", "llama": "LlamaForCausalLM", "mistral": "MistralForCausalLM",
          "gemma3_text": "Gemma3ForCausalLM", "bloom": "BloomForCausalLM"}  # fmt: skip
QWEN3 = """{%- set instruct = messages | selectattr("role", "eq", "system") | map(attribute="content") | first | default("the cat") -%}
{%- set query_text = messages | selectattr("role", "eq", "query") | map(attribute="content") | first -%}
{%- set document = messages | selectattr("role", "eq", "document") | map(attribute="content") | first -%}
the {{ instruct }}
 on {{ query_text }}
  dog , {{ document }} hello world !
"""
LOOP = """{# a loop #}
{% for message in messages %}
  {% if message['role'] == 'system' and message.content != "" %}
 river {{ message.content | trim }}
  {% elif message.role in "query, document" %}
 {{ message.role }}: {{- message["content"] -}}
  {% else %}nothing{% endif %}
{% endfor %}
  world{% if not add_generation_prompt or tools %} . {%- endif +%}
"""
STRUCTURED = """{%+ set pair = messages | rejectattr("role", "eq", "system") | list -%}
{{ (pair | first).content[0].text }} mat {{ (messages | selectattr("role", "eq", "document") | list | last)["content"][-1]['text'] }}
{%- set prompt = messages | selectattr("role", "in", "system") | list %}{% if (prompt | length) != 0 %}
   on {{ prompt[0].content[0].text | default("none", true) }}\t
{%- endif %} {{ messages | map(attribute="role") | join(', ') }} end"""
TEMPLATES = [QWEN3, LOOP, STRUCTURED]
SPARSE = ("crow_indices", "col_indices", "values")


def compare_rankings(lines: list[str], expected: torch.Tensor, top: int | None) -> str:
    """What differs of the lines of `posenc rank`, where expected are the scores (queries, documents)."""
    if len(lines) != len(expected):
        return f"{len(lines)} lines for {len(expected)} queries"
    for number, (line, scores) in enumerate(zip(map(json.loads, lines), expected.tolist())):
        if any(score != score for score in scores):  # a query of which no token is pooled
            if all(one["score"] is None for one in line["results"]) and all(score != score for score in scores):
                continue
            return f"query {number}: {line} for {scores}"
        got, allowed = line["results"], 1e-5 * max(1.0, max(map(abs, scores), default=0.0))
        order = [(-one["score"], one["corpus_id"]) for one in got]
        if line["query"] != number or order != sorted(order) or len(got) != min(top or len(scores), len(scores)):
            return f"query {number}: {line}"
        if len({one["corpus_id"] for one in got}) != len(got):
            return f"query {number}: a document twice in {line}"
        worst = max((abs(one["score"] - scores[one["corpus_id"]]) for one in got), default=0.0)
        if not worst <= allowed:
            return f"query {number}: off by {worst:.3g}, allowed {allowed:.3g}: {got} for {scores}"
        missing = set(range(len(scores))) - {one["corpus_id"] for one in got}
        if missing and max(scores[i] for i in missing) > got[-1]["score"] + allowed:
            return f"query {number}: one of {missing} is better than {got[-1]}"
    return ""


def rank(programs: Programs, draw: Draw, root: Path, score, prompts: dict, more: list | None = None, has_prompts: bool = True) -> str:
    """Compares a folder's rankings with score(query, documents, prompt arguments)."""
    prompt = draw.choice([{}, *([{"prompt": "on the "}, {"prompt": ""}] if has_prompts else []), *({"prompt_name": name} for name in prompts)])
    options = {"prompt": "--prompt-text", "prompt_name": "--prompt"}
    queries, documents = texts(draw, draw.randint(1, 3), least=3), texts(draw, draw.randint(1, 6), least=3)
    documents += draw.sample(documents, 1)  # an equal score
    files = [programs.folder / name for name in ("queries.txt", "documents.txt")]
    for file, lines in zip(files, (queries, documents)):
        file.write_text("".join(line + "\n" for line in lines))
    asked = ["--queries", files[0]]
    if draw.coin(0.3):
        queries, asked = queries[:1], ["--query", queries[0]]
    top = draw.choice([None, 1, 3, 50])
    arguments = [*asked, "--text", files[1], "--batch", draw.randint(1, 4), *(["--top", top] if top else []), *(more or []),
                 *(part for name, value in prompt.items() for part in (options[name], value))]  # fmt: skip
    done = programs.posenc("rank", root, *arguments)
    if done.returncode:
        return f"{root}: {done.stderr.strip()}"
    expected = torch.stack([score(query, documents, prompt).float().reshape(-1) for query in queries])
    why = compare_rankings(done.stdout.splitlines(), expected, top)
    return f"{root}, {[str(part) for part in arguments]}: {why}" if why else ""


def by_cross_encoder(root: Path):
    from sentence_transformers import CrossEncoder

    model = CrossEncoder(str(root), device="cpu")
    return lambda query, documents, prompt: torch.stack(
        [model.predict([[query, document]], convert_to_tensor=True, **prompt)[0] for document in documents])  # fmt: skip


def again(draw: Draw, root: Path) -> Path:
    """The folder, or what the package writes of it."""
    from sentence_transformers import CrossEncoder

    if draw.coin():
        return root
    other = Path(f"{root}-again")
    CrossEncoder(str(root), device="cpu").save_pretrained(str(other))
    return other


def write_settings(draw: Draw, root: Path, modules: list[tuple[str, str]], task: str, output: str, message: dict | None) -> dict:
    """The files of a CrossEncoder; returns its prompts."""
    prompts = {name: PROMPTS[name] for name in draw.sample(["query", "passage", "none"], draw.randint(0, 3))}
    config = {"model_type": "CrossEncoder", "prompts": prompts, "default_prompt_name": draw.choice([None, *prompts])}
    if draw.coin():
        config["activation_fn"] = f"torch.nn.modules.{draw.choice(ACTIVATIONS)}"
    (root / "config_sentence_transformers.json").write_text(json.dumps(config))
    listed = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.{kind}"} for i, (path, kind) in enumerate(modules)]
    (root / "modules.json").write_text(json.dumps(listed))
    method = {"method": "forward", "method_output_name": "last_hidden_state" if task == "feature-extraction" else "logits"}
    modality = {"text": method} | ({"message": {**method, **message}} if message else {})
    length = {"max_seq_length": draw.choice(LIMITS)} if draw.coin() else {}
    (root / "sentence_bert_config.json").write_text(json.dumps(
        {"transformer_task": task, "module_output_name": output, "modality_config": modality, **length}))  # fmt: skip
    return prompts


def classifier(draw: Draw, programs: Programs) -> str:
    """A model with a head for one label, of any release."""
    kind_name, place = draw.choice(sorted(HEADS)), draw.choice(["none", "own", "config", "old"])
    words = tokenizer(draw, TOKENIZERS[kind_name], model_max_length=draw.choice(LIMITS))
    model = drawn_model(draw, kind_name, HEADS[kind_name], words, num_labels=1)
    path = f"torch.nn.modules.{draw.choice(ACTIVATIONS)}"
    if place == "config":
        model.config.sentence_transformers = {"activation_fn": path, "version": "5.0.0"}
    elif place == "old":
        model.config.sbert_ce_default_activation_function = path
    root = programs.folder / "classifier"
    model.save_pretrained(root)
    words.save_pretrained(root)
    module = [("", "base.modules.transformer.Transformer")]
    prompts = write_settings(draw, root, module, "sequence-classification", "scores", None) if place == "own" else {}
    root = again(draw, root)
    return rank(programs, draw, root, by_cross_encoder(root), prompts)


def adapted(draw: Draw, programs: Programs) -> str:
    """An adapter that makes a reranker of a model with a head, without one, or of a causal model."""
    if importlib.util.find_spec("peft") is None:
        return ""
    import peft

    kind_name = draw.choice(["bert", "roberta", "qwen3"])
    head = "Qwen3ForSequenceClassification" if kind_name == "qwen3" else HEADS[kind_name]
    words = tokenizer(draw, TOKENIZERS[kind_name], model_max_length=draw.choice(LIMITS))
    model = drawn_model(draw, kind_name, head, words, num_labels=1)
    base, root = programs.folder / "base", programs.folder / "adapter"
    words.save_pretrained(base)
    model.save_pretrained(base)
    made = peft.get_peft_model(model, peft.LoraConfig(task_type="SEQ_CLS", r=2, target_modules=["q_proj"] if kind_name == "qwen3" else ["query"]))
    for parameter in made.parameters():
        if parameter.requires_grad:
            parameter.copy_(draw.normal(*parameter.shape) * 0.3)
    made.eval().save_pretrained(root)
    if draw.coin(0.7):  # the head is the adapter's
        file = base / "config.json"
        names = {"qwen3": draw.choice(["Qwen3ForCausalLM", "Qwen3Model"]), "bert": "BertModel", "roberta": "RobertaModel"}
        file.write_text(json.dumps(json.loads(file.read_text()) | {"architectures": [names[kind_name]]}))

    def score(query: str, documents: list[str], _: dict) -> torch.Tensor:
        pairs = [words(query, document, truncation=words.model_max_length < 10**9, return_tensors="pt") for document in documents]
        return torch.stack([made(**pair).logits.sigmoid()[0] for pair in pairs])

    return rank(programs, draw, root, score, {}, ["--base", base], has_prompts=False)


def with_dense(draw: Draw, programs: Programs) -> str:
    """An encoder whose pooled rows a Dense makes scores of."""
    kind_name = draw.choice([name for name in sorted(TOKENIZERS) if "qwen" not in name])
    words = tokenizer(draw, TOKENIZERS[kind_name])
    words.model_max_length = draw.choice(LIMITS)
    more = {"num_labels": 1} if "distil" not in kind_name else {}
    model = drawn_model(draw, kind_name, KINDS[kind_name].model, words, **more)
    root, width = programs.folder / "with-dense", model.config.hidden_size
    for saved in (model, words):
        saved.save_pretrained(root)
    modules = [("", "base.modules.transformer.Transformer"), ("1_Pooling", "sentence_transformer.modules.pooling.Pooling")]
    (root / "1_Pooling").mkdir()
    (root / "1_Pooling" / "config.json").write_text(json.dumps({"embedding_dimension": width, "pooling_mode": draw.choice(["cls", "mean", "lasttoken"])}))
    widths = [width, draw.choice([4, width]), 1] if draw.coin() else [width, 1]
    for i, (wide, narrow) in enumerate(zip(widths, widths[1:])):
        modules.append((f"{i + 2}_Dense", "base.modules.dense.Dense"))
        folder = root / f"{i + 2}_Dense"
        folder.mkdir()
        config = {"in_features": wide, "out_features": narrow, "bias": draw.coin(),
                  "activation_function": f"torch.nn.modules.{draw.choice(ACTIVATIONS)}", "module_input_name": "sentence_embedding",
                  "module_output_name": "scores" if i + 2 == len(widths) else "sentence_embedding"}  # fmt: skip
        (folder / "config.json").write_text(json.dumps(config))
        weights = {"linear.weight": draw.normal(narrow, wide) * 0.3} | ({"linear.bias": draw.normal(narrow)} if config["bias"] else {})
        save_file(weights, folder / "model.safetensors")
    prompts = write_settings(draw, root, modules, "feature-extraction", "token_embeddings", None)
    root = again(draw, root)
    return rank(programs, draw, root, by_cross_encoder(root), prompts)


def causal(draw: Draw, programs: Programs) -> str:
    """A causal language model that says yes or no, at times in a chat template."""
    import transformers

    kind_name, is_bare, is_chat = draw.choice(sorted(CAUSAL)), draw.coin(0.3), draw.coin(0.4)
    words = tokenizer(draw, draw.choice(sorted(CLASSES)), model_max_length=draw.choice(LIMITS))
    if words.pad_token is None:
        words.add_special_tokens({"pad_token": "<pad>"})
    words.add_tokens(["yes", "no"])
    if is_chat:
        words.chat_template = draw.choice(TEMPLATES)
    kind = KINDS[kind_name]
    chosen = settings(draw, kind_name, kind.dialect) | {"vocab_size": len(words), "pad_token_id": words.pad_token_id}
    chosen = {name: value for name, value in chosen.items() if name not in ("is_causal", "use_bidirectional_attention")}
    if kind_name != "bloom":
        chosen |= {"max_position_embeddings": 100, "tie_word_embeddings": draw.coin()}
    if kind_name == "gemma3_text" and draw.coin():
        chosen["final_logit_softcapping"] = draw.choice([1.0, 30.0])
    model = getattr(transformers, CAUSAL[kind_name])(getattr(transformers, kind.config)(**chosen)).eval()
    for parameter in model.parameters():
        parameter.copy_(draw.normal(*parameter.shape) * 0.2 + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    root = programs.folder / "causal"
    for saved in (model, words):
        saved.save_pretrained(root)
    prompts = {}
    if not is_bare:
        modules = [("", "base.modules.transformer.Transformer"), ("1_LogitScore", "cross_encoder.modules.logit_score.LogitScore")]
        form = draw.choice(["auto", "structured" if words.chat_template == STRUCTURED else "flat"]) if is_chat else None
        message = {"format": form} if is_chat and draw.coin(0.8) else None
        prompts = write_settings(draw, root, modules, "text-generation", "causal_logits", message)
        (root / "1_LogitScore").mkdir()
        scored = {"true_token_id": draw.randint(0, len(words) - 1), "false_token_id": draw.choice([None, draw.randint(0, len(words) - 1)])}
        (root / "1_LogitScore" / "config.json").write_text(json.dumps(scored | draw.choice([{}, {"module_input_name": "causal_logits"}])))
    root = again(draw, root)
    return rank(programs, draw, root, by_cross_encoder(root), prompts)


def vectors(draw: Draw, programs: Programs) -> str:
    """A SentenceTransformer, whose queries and documents have prompts of their own."""
    from sentence_transformers import SentenceTransformer

    while True:
        root, config, _ = sentence_folder(draw, programs, draw.randint(1000, 10**9))
        if config.get("model_type") != "CrossEncoder":
            break
    file = root / "config_sentence_transformers.json"
    names = ["cosine", "dot", "euclidean", "manhattan"]
    if file.exists():
        file.write_text(json.dumps(json.loads(file.read_text()) | {"similarity_fn_name": draw.choice([None, *names])}))
    model = SentenceTransformer(str(root), device="cpu")
    given = draw.choice([None, *names])
    if given:
        model.similarity_fn_name = given

    def score(query: str, documents: list[str], prompt: dict) -> torch.Tensor:
        rows = [model.encode_document([document], convert_to_tensor=True)[0] for document in documents]
        return model.similarity(model.encode_query([query], convert_to_tensor=True, **prompt), torch.stack(rows))

    return rank(programs, draw, root, score, config.get("prompts", {}), ["--similarity", given] if given else [])


def similarities(draw: Draw, programs: Programs) -> str:
    """Files of vectors, dense and sparse."""
    from sentence_transformers.util import cos_sim, dot_score, euclidean_sim, manhattan_sim

    functions = {"cosine": cos_sim, "dot": dot_score, "euclidean": euclidean_sim, "manhattan": manhattan_sim}
    name, width, is_sparse = draw.choice(sorted(functions)), draw.choice([1, 3, 17, 64, 301]), draw.coin()
    rows = [draw.normal(draw.choice([0, 1, 3, 40]), width) for _ in range(2)]
    files = [programs.folder / f"{letter}.safetensors" for letter in "ab"]
    for i, file in enumerate(files):
        if is_sparse:
            rows[i] = rows[i] * (torch.rand(rows[i].shape) < 0.3)
            csr = rows[i].to_sparse_csr()
            parts = dict(zip(SPARSE, (csr.crow_indices(), csr.col_indices(), csr.values())))
            save_file(parts | {"size": torch.tensor(rows[i].shape)}, file)
        else:
            save_file({"embeddings": rows[i]}, file)
    out = programs.folder / "scores.safetensors"
    done = programs.posenc("similarity", *files, "--similarity", name, "--out", out)
    if done.returncode:
        return done.stderr
    got, expected = load_file(out)["scores"].double(), functions[name](rows[0].double(), rows[1].double())
    if got.shape != expected.shape:
        return f"{name}: {got.shape} for {expected.shape}"
    worst = (got - expected).abs().max() if got.numel() else 0.0
    allowed = 1e-5 * max(1.0, float(expected.abs().max())) if got.numel() else 0.0
    return f"{name}, sparse {is_sparse}: off by {worst:.3g}, allowed {allowed:.3g}" if worst > allowed else ""


def quantized(draw: Draw) -> Case:
    """Vectors in 8 bits and 1 bit, with ranges of their own or of others."""
    from sentence_transformers.quantization import quantize_embeddings

    precision, width = draw.choice(["int8", "uint8", "binary", "ubinary"]), draw.choice([1, 7, 8, 33, 128])
    x = draw.normal(draw.randint(2, 30), width) * draw.choice([1.0, 1e-3, 100.0])
    if draw.coin():
        x[:, draw.randint(0, width - 1)] = draw.choice([0.0, 2.5])
    tensors = {"x": x}
    if precision.endswith("int8") and draw.coin():
        others = draw.normal(draw.randint(2, 9), width)
        tensors["ranges"] = torch.stack([others.amin(0), others.amax(0)])
    ranges = tensors.get("ranges")
    expected = torch.from_numpy(quantize_embeddings(x.numpy(), precision, None if ranges is None else ranges.numpy()))
    return Case({"op": "quantize_embeddings", "precision": precision}, tensors, {"embeddings": expected}, "bits")


def encoded(draw: Draw, programs: Programs) -> str:
    """`posenc encode --precision` of the texts of a folder, beside the same without it."""
    root, config, _ = sentence_folder(draw, programs, draw.randint(1000, 10**9))
    precision = draw.choice(["int8", "uint8", "binary", "ubinary"])
    file, plain, out = (programs.folder / name for name in ("lines.txt", "plain.safetensors", "out.safetensors"))
    file.write_text("".join(line + "\n" for line in call(draw, config)["texts"]))
    for arguments in (["--out", plain], ["--out", out, "--precision", precision]):
        done = programs.posenc("encode", root, "--text", file, *arguments)
        if done.returncode and plain.exists() and not load_file(plain)["embeddings"].isfinite().all() and "must be finite" in done.stderr:
            return ""  # a text of which no token is pooled
        if done.returncode:
            return f"{root}: {done.stderr.strip()}"
    from sentence_transformers.quantization import quantize_embeddings

    got, vectors = load_file(out), load_file(plain)["embeddings"]
    if precision.endswith("int8") and not torch.equal(got["ranges"], torch.stack([vectors.amin(0), vectors.amax(0)])):
        return f"{root}: other ranges"
    same = torch.equal(got["embeddings"], torch.from_numpy(quantize_embeddings(vectors.numpy(), precision)))
    return "" if same else f"{root}: other bits of {precision}"


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    if importlib.util.find_spec("sentence_transformers") is None:
        print("rerank: sentence_transformers is not installed, nothing is compared")
        return 0, []
    failures, count = [], 0
    with one_thread(logging.CRITICAL), torch.no_grad():
        logging.disable(logging.WARNING)
        cases = [quantized(draw) for _ in range(20)]
        count += len(cases)
        failures += judge(cases, programs.compute(cases))
        for number, compared in enumerate([similarities] * 4 + [adapted, classifier, classifier, with_dense, causal, causal, causal, vectors, encoded]):
            count += 1
            why = compared(draw, programs.within(f"{number}-{compared.__name__}"))
            if why:
                failures.append(Failure(compared.__name__, why))
    return count, failures
