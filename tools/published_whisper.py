#!/usr/bin/env python3
"""A folder of transformers from a Whisper that CTranslate2 has converted, as faster-whisper's packages carry it.

    tools/published_whisper.py CT2_FOLDER OUT

CT2_FOLDER has model.bin, a list of named arrays in which the projections of queries, keys and values are one, config.json and tokenizer.json.
OUT gets config.json, generation_config.json, model.safetensors, preprocessor_config.json, tokenizer.json and tokenizer_config.json. What
CTranslate2's files lack (the timestamps among the tokens, the prompt of a model of one language) is as in the files of openai's models.
"""

import json
import re
import struct
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

DTYPES = {0: torch.float32, 1: torch.int8, 2: torch.int16, 3: torch.int32, 4: torch.float16, 5: torch.bfloat16}  # ctranslate2::DataType
STEP, WINDOW = 0.02, 30  # seconds of a timestamp and of a window
PARTS = {  # of a layer, of the blocks of CTranslate2: the rows of each array are split among these
    "self_attention/layer_norm": ["self_attn_layer_norm"], "self_attention/linear_0": [f"self_attn.{part}_proj" for part in "qkv"],
    "self_attention/linear_1": ["self_attn.out_proj"], "attention/layer_norm": ["encoder_attn_layer_norm"],
    "attention/linear_0": ["encoder_attn.q_proj"], "attention/linear_1": [f"encoder_attn.{part}_proj" for part in "kv"],
    "attention/linear_2": ["encoder_attn.out_proj"], "ffn/layer_norm": ["final_layer_norm"], "ffn/linear_0": ["fc1"], "ffn/linear_1": ["fc2"],
}  # fmt: skip
LEAVES = {"weight": "weight", "bias": "bias", "gamma": "weight", "beta": "bias"}
WHOLE = {"embeddings/weight": "embed_tokens.weight", "position_encodings/encodings": "embed_positions.weight"}


def arrays_in(file: Path) -> dict[str, Tensor]:
    """The arrays of a model.bin, without its aliases."""
    data, place = file.read_bytes(), 0

    def number(form: str) -> int:
        nonlocal place
        place += struct.calcsize(form)
        return struct.unpack_from(f"<{form}", data, place - struct.calcsize(form))[0]

    def text() -> str:
        nonlocal place
        size = number("H")
        place += size
        return data[place - size : place - 1].decode()

    version, spec = number("I"), text()
    if version < 4 or spec != "WhisperSpec":
        raise ValueError(f"{file}: must be a Whisper of CTranslate2 in version 4 of its files or later. Got {spec!r} in version {version}")
    number("I")  # the revision of the specification
    found = {}
    for _ in range(number("I")):
        name, sizes = text(), [number("I") for _ in range(number("B"))]
        dtype, size = DTYPES[number("B")], number("I")
        found[name] = torch.frombuffer(bytearray(data[place : place + size]), dtype=dtype).view(sizes)
        place += size
    return found


def tensors_of(arrays: dict[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of transformers."""
    tensors = {}
    for name, array in arrays.items():
        stack, _, rest = name.partition("/")
        if rest in WHOLE:
            tensors[f"model.{stack}.{WHOLE[rest]}"] = array
            continue
        module, _, leaf = rest.rpartition("/")
        if leaf not in LEAVES:
            continue  # sizes and switches
        layer = re.fullmatch(r"layer_(\d+)/(.+)", module)
        parts = [module] if layer is None else [f"layers.{layer[1]}.{part}" for part in PARTS[layer[2]]]
        for part, rows in zip(parts, array.chunk(len(parts))):
            if part.endswith("k_proj") and leaf == "bias":
                if rows.any():
                    raise ValueError(f"{name}: keys have no bias. Got one")
                continue
            tensors[f"model.{stack}.{part}.{LEAVES[leaf]}"] = rows.clone()
    return tensors


def config_of(arrays: dict[str, Tensor], tensors: dict[str, Tensor], ids: dict[str, int]) -> dict:
    vocabulary, width = tensors["model.decoder.embed_tokens.weight"].shape
    end = ids["<|endoftext|>"]
    config = {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "is_encoder_decoder": True, "activation_function": "gelu",
        "vocab_size": vocabulary, "d_model": width, "num_mel_bins": tensors["model.encoder.conv1.weight"].shape[1], "scale_embedding": False,
        "max_source_positions": len(tensors["model.encoder.embed_positions.weight"]), "tie_word_embeddings": True, "dtype": "float16",
        "max_target_positions": len(tensors["model.decoder.embed_positions.weight"]), "pad_token_id": end, "bos_token_id": end, "eos_token_id": end,
        "decoder_start_token_id": ids["<|startoftranscript|>"], "begin_suppress_tokens": None,
    }  # fmt: skip
    for stack in ("encoder", "decoder"):
        numbers = [int(found[1]) for name in arrays if (found := re.match(rf"{stack}/layer_(\d+)/", name))]
        config |= {f"{stack}_layers": max(numbers) + 1, f"{stack}_attention_heads": int(arrays[f"{stack}/num_heads"]),
                   f"{stack}_ffn_dim": len(tensors[f"model.{stack}.layers.0.fc1.weight"])}  # fmt: skip
    return config


def generation_of(given: dict, config: dict, ids: dict[str, int]) -> dict:
    """`given`: CTranslate2's config.json."""
    none = ids["<|notimestamps|>"]
    languages = {name: number for name, number in ids.items() if re.fullmatch(r"<\|[a-z]{2,3}\|>", name)}
    settings = {
        "alignment_heads": given["alignment_heads"], "begin_suppress_tokens": given["suppress_ids_begin"], "suppress_tokens": given["suppress_ids"],
        "bos_token_id": config["bos_token_id"], "eos_token_id": config["eos_token_id"], "pad_token_id": config["pad_token_id"],
        "decoder_start_token_id": config["decoder_start_token_id"], "max_initial_timestamp_index": 50, "max_length": config["max_target_positions"],
        "no_timestamps_token_id": none, "prev_sot_token_id": ids["<|startofprev|>"], "return_timestamps": False,
    }  # fmt: skip
    if config["vocab_size"] < 51865:  # a model of English alone
        return settings | {"is_multilingual": False, "forced_decoder_ids": [[1, none]]}
    tasks = {name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")}
    return settings | {"is_multilingual": True, "lang_to_id": languages, "task_to_id": tasks, "forced_decoder_ids": [[1, None], [2, tasks["transcribe"]]]}


def with_timestamps(tokenizer: dict) -> dict:
    """The tokenizer.json with the tokens of times, which are added and not special."""
    added = tokenizer["added_tokens"]
    known, first = {token["content"] for token in added}, max(token["id"] for token in added) + 1
    names = [f"<|{STEP * step:.2f}|>" for step in range(round(WINDOW / STEP) + 1)]
    if known.isdisjoint(names):
        like = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": False}
        tokenizer["added_tokens"] = added + [{"id": first + step, "content": name, **like} for step, name in enumerate(names)]
    return tokenizer


def write_folder(source: Path, out: Path) -> None:
    arrays, given = arrays_in(source / "model.bin"), json.loads((source / "config.json").read_text())
    tokenizer = with_timestamps(json.loads((source / "tokenizer.json").read_text()))
    ids = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    tensors = tensors_of(arrays)
    config = config_of(arrays, tensors, ids)
    bins = config["num_mel_bins"]
    features = {"feature_extractor_type": "WhisperFeatureExtractor", "processor_class": "WhisperProcessor", "feature_size": bins, "chunk_length": WINDOW,
                "hop_length": 160, "n_fft": 400, "sampling_rate": 16000, "padding_side": "right", "padding_value": 0.0, "return_attention_mask": False}  # fmt: skip
    end = "<|endoftext|>"
    words = {"tokenizer_class": "WhisperTokenizer", "unk_token": end, "bos_token": end, "eos_token": end, "pad_token": end, "model_max_length": 1024}
    out.mkdir(parents=True, exist_ok=True)
    for name, content in {"config.json": config, "generation_config.json": generation_of(given, config, ids), "preprocessor_config.json": features,
                          "tokenizer.json": tokenizer, "tokenizer_config.json": words}.items():  # fmt: skip
        (out / name).write_text(json.dumps(content, ensure_ascii=False, indent=1) + "\n")
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, out / "model.safetensors", {"format": "pt"})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    write_folder(Path(sys.argv[1]), Path(sys.argv[2]))
