"""Texts to labels: random models of every type that has a head for texts, with tokenizers of several classes, beside the pipelines
of transformers, each text alone there and among others in the library. For answers, which transformers 5.23 has no pipeline for, the
pipeline of 4.57 is written out below, on the search for spans that 5.23 still has.

Scores may differ by 1e-5, relative to the largest where that is more than 1.
"""

import json
import logging
from pathlib import Path

import numpy as np
import torch

import decoder_configs as decoders
from encoders import COUNTS_COLUMNS, ILL_CONDITIONED, KINDS, SPREADS, TOLERANCE, one_thread
from harness import Draw, Failure, Programs
from heads import IMAGES, drawn_config, heads, is_on_decoder
from tokenizer_folders import CLASSES, WORDS, texts, tokenizer

MODELS, TEXTS, POSITIONS, LIMITS = 8, 5, 200, [12, 16, 40, 10**30]
AGGREGATIONS = ["none", "simple", "first", "average", "max"]
FUNCTIONS = [None, "none", "sigmoid", "softmax"]
TAGS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "MISC", "I-MISC", "B-", "X-Y-Z", "I-O", "LOC"]
TASKS = {"ForSequenceClassification": "text", "ForTokenClassification": "token", "ForQuestionAnswering": "question", "ForQuestionAnsweringSimple": "question",
         "ForMaskedLM": "masked", "WithLMHeadModel": "masked", "ForMultipleChoice": "choice"}  # fmt: skip


def task_of(head: str) -> str | None:
    return next((task for ending, task in TASKS.items() if head.endswith(ending)), None)


def python_tokenizer(draw: Draw, folder: Path, **settings):
    """A class without offsets."""
    import transformers

    folder.mkdir(parents=True)
    name = draw.choice(["EsmTokenizer", "ByT5Tokenizer", "PhobertTokenizer"])
    if name == "ByT5Tokenizer":
        return transformers.ByT5Tokenizer(extra_ids=0, mask_token="<mask>", cls_token="<pad>", **settings)
    if name == "EsmTokenizer":
        (folder / "vocab.txt").write_text("\n".join(["<cls>", "<pad>", "<eos>", "<unk>", "<mask>", *dict.fromkeys(WORDS)]))
        return transformers.EsmTokenizer(str(folder / "vocab.txt"), **settings)
    parts = [*dict.fromkeys(f"{letter}{end}" for word in WORDS for letter in word for end in ("@@", ""))]
    (folder / "vocab.txt").write_text("".join(f"{part} 1\n" for part in [*parts, "the", "th@@"]))
    (folder / "bpe.codes").write_text("t h 9\nth e</w> 8\n")
    return transformers.PhobertTokenizer(str(folder / "vocab.txt"), str(folder / "bpe.codes"), **settings)


def drawn_tokenizer(draw: Draw, folder: Path, kind_name: str, head: str, takes_types: bool):
    """A tokenizer, as its class or as a general one is saved, with and without the names of the model's inputs in its file."""
    import transformers

    settings, task = {"model_max_length": draw.choice(LIMITS)}, task_of(head)
    if not takes_types:
        settings["model_input_names"] = ["input_ids", "attention_mask"]
    elif draw.coin(0.3):
        settings["model_input_names"] = draw.choice([["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]])
    needs_end = is_on_decoder(KINDS[kind_name].dialect, head)
    if task != "question" and draw.coin(0.25) and not needs_end:
        return python_tokenizer(draw, folder / "words", **settings)
    name = draw.choice(["Qwen2Tokenizer"] if kind_name in decoders.KINDS and draw.coin() else sorted(CLASSES))
    if (task == "masked" and name == "Qwen2Tokenizer") or needs_end:
        name = "BertTokenizer"
    words = tokenizer(draw, name, **settings)
    if name == "BertTokenizer" and draw.coin(0.4):
        words = transformers.PreTrainedTokenizerFast(tokenizer_object=words.backend_tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                                                     sep_token="[SEP]", mask_token="[MASK]", **settings)  # fmt: skip
    return words


def takes_types(cls) -> bool:
    import inspect

    return "token_type_ids" in inspect.signature(cls.forward).parameters


def drawn_model(draw: Draw, kind_name: str, head: str, words):
    import transformers

    cls = getattr(transformers, head)
    config = drawn_config(draw, kind_name, head)
    config.vocab_size = len(words)
    own = words.pad_token_id if words.pad_token_id is not None else 0
    if getattr(config, "max_position_embeddings", -1) > 0:
        config.max_position_embeddings = max(config.max_position_embeddings, POSITIONS + own + 1)
    if KINDS[kind_name].dialect == "alibi" and hasattr(config, "max_seq_len"):
        config.max_seq_len = POSITIONS
    if getattr(config, "type_vocab_size", 0) in (1, 2) and takes_types(cls):
        config.type_vocab_size = 3
    config.pad_token_id = own
    if kind_name in decoders.KINDS:
        config.pad_token_id = draw.choice([own, None, draw.randint(0, len(words) - 1)])
    if kind_name == "ultrabert":  # in windows of one token, equal tokens have equal scores
        config.sliding_window += 2
    if is_on_decoder(KINDS[kind_name].dialect, head):
        config.eos_token_id = config.decoder_start_token_id = words.sep_token_id
    if kind_name == "xlnet":
        config.bi_data = False  # which takes pairs of sequences
    if kind_name == "fnet":
        config.use_tpu_fourier_optimizations = False  # which take sequences of one length
    if kind_name == "esm":
        config.mask_token_id = words.mask_token_id if words.mask_token_id is not None else 4
    if task_of(head) == "token":
        tags = draw.sample(TAGS, draw.randint(2, len(TAGS)))
        config.id2label = dict(enumerate(tags))
        config.label2id = {tag: i for i, tag in enumerate(tags)}
    model = cls(config).eval()
    spread = draw.choice(SPREADS.get(kind_name, [0.05, 0.1] if kind_name in decoders.KINDS else [0.05, 0.3]))
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name or kind_name != "roformer":
            parameter.copy_(draw.normal(*parameter.shape) * spread + (1.0 if parameter.dim() == 1 and draw.coin() else 0.0))
    return model


def limit_of(words, model) -> int:
    positions = getattr(model.config, "max_position_embeddings", -1)
    if positions is None or positions <= 0:
        positions = 10**9
    if model.config.model_type in ("roberta", "xlm-roberta", "camembert", "data2vec-text", "xlm-roberta-xl", "roberta-prelayernorm", "mpnet", "esm", "luke", "layoutlmv3", "jina_embeddings_v3", "xmod"):
        positions -= (model.config.pad_token_id or 0) + 1
    return min(words.model_max_length, positions)


def strange(draw: Draw, words) -> list[str]:
    """Texts of unequal length, with characters of several bytes and some special ones; not those without tokens, at which transformers fails."""
    return [text for text in drawn_texts(draw) if words(text, add_special_tokens=False).input_ids] or ["the cat"]


def drawn_texts(draw: Draw) -> list[str]:
    return [*texts(draw, TEXTS - 1), draw.choice(["Größe über 日本 😀 the cat", "a", "Naïve Naïve Naïve", "hello  world ,cat.dog", "İß the"])]


def text_calls(draw: Draw, folder: Path, model, words, limit: int) -> list[tuple[dict, object]]:
    from transformers import pipeline

    pipe = pipeline("text-classification", model=model, tokenizer=words, device="cpu")
    cut = {"truncation": True, "max_length": limit} if limit < 10**8 else {}
    calls = []
    for is_pair in (False, True):
        given = strange(draw, words)
        pairs = list(zip(given, draw.sample(given, len(given))))
        function, top = draw.randint(0, 3), draw.choice([None, 1, 2])
        inputs = [{"text": a, "text_pair": b} for a, b in pairs] if is_pair else given
        expected = [pipe([one], top_k=top, function_to_apply=FUNCTIONS[function], **cut)[0] for one in inputs]
        calls.append(({"method": "classify_pairs", "pairs": pairs} if is_pair else {"method": "classify", "texts": given})
                     | {"function": function, "top_k": top})  # fmt: skip
        calls[-1] = (calls[-1], [[[one["label"], one["score"]] for one in labels] for labels in expected])
    return calls


def spans(text: str, start: int | None, end: int | None) -> list | None:
    return None if start is None else [start, end, len(text[:start].encode()), len(text[:end].encode())]


def token_calls(draw: Draw, folder: Path, model, words, limit: int) -> list[tuple[dict, object]]:
    from transformers import pipeline

    pipe = pipeline("token-classification", model=model, tokenizer=words, device="cpu")
    words.model_max_length = limit
    calls = []
    for _ in range(3):
        chosen = draw.choice(AGGREGATIONS if words.is_fast else AGGREGATIONS[:2])
        ignored = draw.choice([["O"], [], ["O", "PER"]])
        stride = draw.choice([0, 1, 3]) if words.is_fast and chosen != "none" and limit < 10**8 and draw.coin() else None
        # The pipeline fills windows with padding, which some models see.
        sees_padding = model.config.model_type in ("convbert", "fnet", "mobilebert") or (model.config.model_type in COUNTS_COLUMNS and words.padding_side == "left")
        stride = None if sees_padding else stride
        given = strange(draw, words)
        more = {} if stride is None else {"stride": stride}
        expected = []
        for text in given:
            found = pipe(text, aggregation_strategy=chosen, ignore_labels=ignored, **more)
            expected.append([[one["entity"] if chosen == "none" else one["entity_group"], float(one["score"]), one["word"],
                              one.get("index", "?"), spans(text, one["start"], one["end"])] for one in found])  # fmt: skip
        calls.append(({"method": "label_tokens", "texts": given, "aggregation": AGGREGATIONS.index(chosen), "ignore_labels": ignored, "stride": stride}, expected))
    return calls


def masked_calls(draw: Draw, folder: Path, model, words, limit: int) -> list[tuple[dict, object]]:
    from transformers import pipeline

    if words.mask_token is None:
        return []
    pipe = pipeline("fill-mask", model=model, tokenizer=words, device="cpu")
    cut = {"tokenizer_kwargs": {"truncation": True, "max_length": limit}} if limit < 10**8 else {}
    calls = []
    for targets in ([], ["the", "dog", "über"]):
        given = []
        for text in texts(draw, TEXTS):
            parts = text.split()[:8]
            for _ in range(draw.choice([1, 1, 2])):
                parts.insert(draw.randint(0, len(parts)), words.mask_token)
            given.append(" ".join(parts[-8:] if words.truncation_side == "left" else parts))
        if not all(words.mask_token_id in words(text, truncation=True, max_length=min(limit, 10**6)).input_ids for text in given):
            continue
        top = draw.choice([1, 3, 5])
        expected = []
        for text in given:
            found = pipe(text, top_k=top, **({"targets": targets} if targets else {}), **cut)
            found = [found] if isinstance(found[0], dict) else found
            expected.append([[[one["token"], one["score"], one["token_str"], one["sequence"]] for one in mask] for mask in found])
        calls.append(({"method": "fill", "texts": given, "targets": targets, "top_k": top}, expected))
    return calls


class Tie(Exception):
    """Two spans have one score."""


def answers_of(model, words, call: dict, limit: int) -> list:
    """`QuestionAnsweringPipeline` of transformers 4.57. On the left it pads tokens of the question and special ones may be answers there,
    with the places of others in the context: these are left out here."""
    from transformers.pipelines.document_question_answering import select_starts_ends

    length = min(limit, call["max_seq_len"])
    stride = call["doc_stride"] if call["doc_stride"] is not None else min(length // 2, 128)
    question_first = words.padding_side == "right"
    texts_of = (call["question"], call["context"]) if question_first else (call["context"], call["question"])
    encoded = words(*texts_of, truncation="only_second" if question_first else "only_first", max_length=length, stride=stride,
                    return_overflowing_tokens=True, return_offsets_mapping=True)  # fmt: skip
    own = 1 if question_first else 0
    if not encoded["input_ids"][0]:
        raise Tie
    answers, none = [], 1000000
    for i, ids in enumerate(encoded["input_ids"]):
        mask = [sequence != own and token != words.cls_token_id for sequence, token in zip(encoded.sequence_ids(i), ids)]
        given = {name: torch.tensor([encoded[name][i]]) for name in words.model_input_names if name in encoded}
        out = model(**given)
        top = call["top_k"] * 2 + 10 if call["align_to_words"] else call["top_k"]
        starts, ends, scores, none = select_starts_ends(out.start_logits, out.end_logits, [mask], np.ones((1, len(ids)), dtype=int), none, top + 1,
                                                        call["handle_impossible_answer"], call["max_answer_len"])  # fmt: skip
        if len(scores) > top and scores[top] > scores[top - 1] * 0.9999:
            raise Tie  # which of them is taken is chance
        starts, ends, scores = starts[:top], ends[:top], scores[:top]
        encoding = encoded[i]
        for s, e, score in zip(starts, ends, scores):
            if score == 0:
                continue  # no span at all
            begin, end = encoding.offsets[s][0], encoding.offsets[e][1]
            if call["align_to_words"]:
                try:
                    begin, end = encoding.word_to_chars(encoding.token_to_word(s), own)[0], encoding.word_to_chars(encoding.token_to_word(e), own)[1]
                except Exception:  # as the pipeline has it: of special tokens
                    pass
            text = call["context"][begin:end]
            same = next((one for one in answers if one[0].lower() == text.lower()), None)
            if same:
                same[1] += score.item()
            else:
                answers.append([text, score.item(), spans(call["context"], begin, end)])
    if call["handle_impossible_answer"]:
        answers.append(["", none, [0, 0, 0, 0]])
    return sorted(answers, key=lambda one: one[1], reverse=True)[: call["top_k"]]


def question_calls(draw: Draw, folder: Path, model, words, limit: int) -> list[tuple[dict, object]]:
    calls = []
    for _ in range(4):
        context = " ".join(draw.choice([*WORDS, "Größe", "😀"]) for _ in range(draw.choice([1, 6, 40])))
        call = {"method": "answer", "question": draw.choice(["the cat ?", "dog", "a über"]), "context": context, "top_k": draw.choice([1, 1, 3, 7]),
                "max_answer_len": draw.choice([1, 3, 15]), "max_seq_len": draw.choice([384, 24, 32]), "doc_stride": draw.choice([None, 0, 2]),
                "handle_impossible_answer": draw.coin(), "align_to_words": draw.coin(0.7)}  # fmt: skip
        try:
            calls.append((call, answers_of(model, words, call, limit)))
        except BaseException as error:  # the question leaves no room in a window; tokenizers panics for some
            if not isinstance(error, Tie) and "Truncation error" not in str(error) and "stride" not in str(error):
                raise
    return calls


def choice_calls(draw: Draw, folder: Path, model, words, limit: int) -> list[tuple[dict, object]]:
    calls = []
    for _ in range(2):
        text, *choices = texts(draw, draw.randint(2, 5))
        logits = []
        choices = [choice for choice in choices if words(choice).input_ids]
        for choice in choices:
            given = words([text], [choice], truncation=limit < 10**8, max_length=limit if limit < 10**8 else None, return_tensors="pt")
            logits.append(model(**{name: given[name].unsqueeze(0) for name in words.model_input_names}).logits.view(()))
        calls.append(({"method": "choose", "text": text, "choices": choices}, torch.stack(logits).softmax(0).tolist() if logits else []))
    return calls


CALLS = {"text": text_calls, "token": token_calls, "masked": masked_calls, "question": question_calls, "choice": choice_calls}


def one(draw: Draw, programs: Programs, kind_name: str, head: str, number: int) -> tuple[dict, list, str]:
    import transformers

    folder, task = programs.folder / f"labels-{number}", task_of(head)
    cls = getattr(transformers, head)
    words = drawn_tokenizer(draw, folder, kind_name, head, takes_types(cls))
    model = drawn_model(draw, kind_name, head, words)
    model.save_pretrained(folder)
    words.save_pretrained(folder)
    try:
        words = transformers.AutoTokenizer.from_pretrained(folder)
    except ValueError:  # transformers itself reads no class in Python for this type of model
        return {"folder": str(folder), "calls": []}, [], ""
    limit = limit_of(words, model)
    calls = CALLS[task](draw, folder, model, words, limit)
    case = {"folder": str(folder), "calls": [call | {"batch_size": draw.randint(1, TEXTS)} for call, _ in calls]}
    what = f"{head}, {type(words).__name__}, {words.model_input_names}, pad {words.pad_token_id} and {model.config.pad_token_id}, limit {limit}"
    return case, [expected for _, expected in calls], what


def differs(got, expected, where: str = "") -> str:
    """Where two results differ: numbers within the tolerance; "?" in what is expected stands for anything."""
    if isinstance(expected, float):
        return "" if isinstance(got, (int, float)) and abs(got - expected) <= TOLERANCE * max(1.0, abs(expected)) else f"{where}: {got} for {expected}"
    if isinstance(expected, (list, tuple)) and isinstance(got, list):
        if len(got) != len(expected):
            return f"{where}: {got} for {expected}"
        return next((why for i, pair in enumerate(zip(got, expected)) if (why := differs(*pair, f"{where}/{i}"))), "")
    return "" if got == expected or expected == "?" else f"{where}: {got!r} for {expected!r}"


def chosen_heads(draw: Draw) -> list[tuple[str, str]]:
    """Of each task some, and one of the models that see padding or look for it."""
    all_heads = [(kind, head) for kind, head in heads() if task_of(head) and KINDS[kind].dialect not in IMAGES and kind not in ILL_CONDITIONED]
    special = [one for one in all_heads if one[0] in ("fnet", "convbert", "mobilebert", "xlnet", "qwen3", "llama", "mistral", "bloom", "xlm")]
    return [*draw.sample(all_heads, MODELS - 2), *draw.sample(special, 2)]


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    with one_thread(logging.CRITICAL), torch.no_grad():
        logging.disable(logging.WARNING)
        made = [one(draw, programs, kind, head, number) for number, (kind, head) in enumerate(chosen_heads(draw))]
        results = programs.labels([case for case, _, _ in made])
    failures, count = [], 0
    for (case, expected, what), result in zip(made, results):
        if not expected:
            continue
        count += len(expected)
        if isinstance(result, str):
            failures.append(Failure(f"{what}, {case['folder']}", result))
            continue
        for call, got, theirs in zip(case["calls"], result, expected):
            got = got["all"] if isinstance(got, dict) else got
            if why := differs(got, theirs):
                failures.append(Failure(f"{what}, {case['folder']}, {call}", why))
    return count, failures
