"""The programs of speech that program_peers.py starts, a Whisper of base's shape with random weights, and the files of each.

FOLDER has `model`, a folder of transformers, `sounds`, arrays of 30 s at 16 kHz, `ctranslate2`, `openai.pt` and `ggml.bin`. A call takes numbers of sounds, a number of
tokens and of beams: without tokens it encodes the first sound's window, without beams it makes text of the sounds, and otherwise it searches in the first
sound's window, which is encoded when the program starts. All searches end after that number of tokens: no program writes an end.
"""

import json
from pathlib import Path

import numpy

SOUNDS, RATE, SECONDS = 8, 16000, 30
LANGUAGES = 99
TEXT_TOKENS = 50257  # which are the first ids
NAMES = ["<|endoftext|>", "<|startoftranscript|>"], ["<|translate|>", "<|transcribe|>", "<|startoflm|>", "<|startofprev|>", "<|nospeech|>", "<|notimestamps|>"]


def sound(folder: Path, number: int) -> numpy.ndarray:
    return numpy.load(folder / f"sounds/{number}.npy")


# --- files ---


def added_tokens() -> list[str]:
    """Those after the text's, in the order of multilingual models."""
    from transformers.models.whisper.tokenization_whisper import LANGUAGES as CODES

    return [*NAMES[0], *(f"<|{code}|>" for code in list(CODES)[:LANGUAGES]), *NAMES[1], *(f"<|{step * 0.02:.2f}|>" for step in range(50 * SECONDS + 1))]


def write_tokenizer(folder: Path) -> dict[str, int]:
    """Of words without meaning; returns the ids of the added tokens."""
    names = added_tokens()
    ids = {name: TEXT_TOKENS + number for number, name in enumerate(names)}
    added = [{"id": number, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": number <= ids["<|notimestamps|>"]}
             for name, number in ids.items()]  # fmt: skip
    words = {f"w{number}": number for number in range(TEXT_TOKENS - 1)} | {"": TEXT_TOKENS - 1}  # by which CTranslate2 tells models of many languages
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": "", "fuse_unk": False, "byte_fallback": False,
             "vocab": words, "merges": []}  # fmt: skip
    whole = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added, "normalizer": None, "pre_tokenizer": byte_level, "post_processor": None,
             "decoder": byte_level, "model": model}  # fmt: skip
    (folder / "tokenizer.json").write_text(json.dumps(whole))
    end = NAMES[0][0]
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "WhisperTokenizer", "bos_token": end, "eos_token": end, "unk_token": end, "pad_token": end}))
    return ids


def write_model(folder: Path) -> None:
    """The folder of transformers, and the sounds."""
    import sounds
    import torch
    from transformers import GenerationConfig, WhisperConfig, WhisperFeatureExtractor, WhisperForConditionalGeneration

    torch.manual_seed(1)
    for name in ("model", "sounds"):
        (folder / name).mkdir()
    ids = write_tokenizer(folder / "model")
    end, start = (ids[name] for name in NAMES[0])
    stacks = {f"{side}_{name}": size for side in ("encoder", "decoder") for name, size in (("layers", 6), ("attention_heads", 8), ("ffn_dim", 2048))}
    model = WhisperForConditionalGeneration(WhisperConfig(
        vocab_size=TEXT_TOKENS + len(ids), d_model=512, pad_token_id=end, bos_token_id=end, eos_token_id=end, decoder_start_token_id=start,
        begin_suppress_tokens=None, **stacks)).eval()  # fmt: skip
    # So that sounds have texts of their own, of words alone, in which words follow others (decode_peers.py).
    model.model.encoder.layer_norm.weight.mul_(3.0)
    model.model.decoder.embed_tokens.weight[:TEXT_TOKENS].mul_(5.0)
    model.model.decoder.embed_positions.weight.mul_(10.0)
    for layer in model.model.decoder.layers:
        for part in (layer.self_attn, layer.encoder_attn):
            part.q_proj.weight.mul_(3.0)
            part.k_proj.weight.mul_(3.0)
    model.model.decoder.layer_norm.weight.mul_(torch.where(torch.rand(512) < 0.5, -1.0, 1.0))
    model.generation_config = GenerationConfig(
        decoder_start_token_id=start, eos_token_id=end, pad_token_id=end, bos_token_id=end, no_timestamps_token_id=ids["<|notimestamps|>"], return_timestamps=False,
        max_length=448, is_multilingual=True, lang_to_id={name: number for name, number in ids.items() if start < number < ids["<|translate|>"]},
        task_to_id={name: ids[f"<|{name}|>"] for name in ("transcribe", "translate")}, alignment_heads=[[5, 0]])  # fmt: skip
    model.save_pretrained(folder / "model")
    WhisperFeatureExtractor().save_pretrained(folder / "model")
    for number in range(SOUNDS):
        samples = sounds.sound(numpy.random.default_rng(number), 1, SECONDS * RATE, RATE)[0]
        numpy.save(folder / f"sounds/{number}.npy", samples.astype(numpy.float32))


def write_files(folder: Path) -> None:
    """Those of the other programs."""
    import shutil

    from decode_peers import save_ctranslate2
    from ctranslate2.converters.transformers import WhisperLoader
    from transformers import AutoTokenizer, WhisperForConditionalGeneration

    model, tokenizer = WhisperForConditionalGeneration.from_pretrained(folder / "model").eval(), AutoTokenizer.from_pretrained(folder / "model")
    loader = WhisperLoader()
    spec = loader.get_model_spec(model)
    loader.set_config(spec.config, model, tokenizer)
    words = tokenizer.get_vocab()
    spec.register_vocabulary(sorted(words, key=words.get))
    save_ctranslate2(spec, folder / "ctranslate2")
    for name in ("tokenizer.json", "preprocessor_config.json"):
        shutil.copy(folder / "model" / name, folder / "ctranslate2")
    write_ggml(write_openai(model, folder / "openai.pt"), words, folder / "ggml.bin")


def write_openai(model, file: Path) -> dict:
    """As openai-whisper saves a model; returns what the file has."""
    import torch

    config, renamed = model.config, {}
    parts = {"model.": "", "layers": "blocks", "fc1": "mlp.0", "fc2": "mlp.2", "final_layer_norm": "mlp_ln", "encoder_attn_layer_norm": "cross_attn_ln",
             "self_attn_layer_norm": "attn_ln", "encoder_attn": "cross_attn", "self_attn": "attn", "q_proj": "query", "k_proj": "key", "v_proj": "value",
             "out_proj": "out", "encoder.layer_norm": "encoder.ln_post", "decoder.layer_norm": "decoder.ln", "embed_tokens": "token_embedding",
             "embed_positions.weight": "positional_embedding"}  # fmt: skip
    for name, value in model.model.state_dict().items():
        for theirs, ours in parts.items():
            name = name.replace(theirs, ours)
        renamed[name] = value
    dims = {"n_mels": config.num_mel_bins, "n_audio_ctx": config.max_source_positions, "n_audio_state": config.d_model, "n_audio_head": config.encoder_attention_heads,
            "n_audio_layer": config.encoder_layers, "n_vocab": config.vocab_size, "n_text_ctx": config.max_target_positions, "n_text_state": config.d_model,
            "n_text_head": config.decoder_attention_heads, "n_text_layer": config.decoder_layers}  # fmt: skip
    whole = {"dims": dims, "model_state_dict": renamed}
    torch.save(whole, file)
    return whole


def write_ggml(saved: dict, words: dict[str, int], file: Path) -> None:
    """As whisper.cpp's converter: matrices in float16."""
    import struct

    from transformers.audio_utils import mel_filter_bank

    filters = mel_filter_bank(201, saved["dims"]["n_mels"], 0.0, 8000.0, RATE, norm="slaney", mel_scale="slaney").T.astype("<f4")
    sizes = ("n_vocab", "n_audio_ctx", "n_audio_state", "n_audio_head", "n_audio_layer", "n_text_ctx", "n_text_state", "n_text_head", "n_text_layer", "n_mels")
    with file.open("wb") as out:
        out.write(struct.pack("<12i", 0x67676D6C, *(saved["dims"][name] for name in sizes), 1))
        out.write(struct.pack("<2i", *filters.shape) + filters.tobytes() + struct.pack("<i", TEXT_TOKENS))
        for word in sorted(words, key=words.get)[:TEXT_TOKENS]:
            out.write(struct.pack("<i", len(word)) + word.encode())
        for name, tensor in saved["model_state_dict"].items():
            is_half = tensor.dim() > 1 and "positional" not in name
            array = (tensor[:, None] if "conv" in name and name.endswith("bias") else tensor).numpy().astype("<f2" if is_half else "<f4")
            out.write(struct.pack(f"<{3 + array.ndim}i", array.ndim, len(name), int(is_half), *array.shape[::-1]) + name.encode() + array.tobytes())


# --- programs ---


def transformers_speech(folder: Path, torch, dtype: str):
    from transformers import AutoFeatureExtractor, GenerationMixin, WhisperForConditionalGeneration
    from transformers.modeling_outputs import BaseModelOutput

    model = WhisperForConditionalGeneration.from_pretrained(folder / "model", dtype=getattr(torch, dtype)).eval()
    extractor, config = AutoFeatureExtractor.from_pretrained(folder / "model"), model.generation_config
    prefix = torch.tensor([[config.decoder_start_token_id, config.lang_to_id["<|en|>"], config.task_to_id["transcribe"], config.no_timestamps_token_id]])

    def features(numbers):
        return extractor([sound(folder, number) for number in numbers], sampling_rate=RATE, return_tensors="pt").input_features.to(model.dtype)

    first = features([0])
    encoded = model.model.encoder(first).last_hidden_state

    def call(numbers, tokens, beams):
        if not tokens:
            return model.model.encoder(first).last_hidden_state is None or []
        if not beams:
            return model.generate(features(numbers), language="en", task="transcribe", return_timestamps=False, max_new_tokens=tokens, num_beams=1).tolist()
        found = GenerationMixin.generate(model, encoder_outputs=BaseModelOutput(encoded), decoder_input_ids=prefix, max_new_tokens=tokens, num_beams=beams, do_sample=False)
        return found[:, prefix.shape[1] :].tolist()

    return call


def faster_whisper(folder: Path, threads: int, dtype: str):
    """CTranslate2's model, by faster-whisper; a search ends at half of max_length."""
    from faster_whisper import WhisperModel
    from faster_whisper.tokenizer import Tokenizer

    model = WhisperModel(str(folder / "ctranslate2"), device="cpu", compute_type=dtype, cpu_threads=threads, num_workers=1, local_files_only=True)
    prefix = model.get_prompt(Tokenizer(model.hf_tokenizer, True, task="transcribe", language="en"), [], without_timestamps=True)
    first = model.feature_extractor(sound(folder, 0))[:, : 100 * SECONDS]
    encoded = model.encode(first)
    plain = {"suppress_blank": False, "suppress_tokens": []}

    def text(number, tokens):
        segments, _ = model.transcribe(sound(folder, number), language="en", beam_size=1, temperature=0.0, condition_on_previous_text=False, without_timestamps=True,
                                       compression_ratio_threshold=None, log_prob_threshold=None, no_speech_threshold=None, vad_filter=False,
                                       max_new_tokens=2 * tokens - len(prefix), **plain)  # fmt: skip
        return [token for one in segments for token in one.tokens]

    def call(numbers, tokens, beams):
        if not tokens:
            return model.encode(first) is None or []
        if not beams:
            return [text(number, tokens) for number in numbers]
        return [one.sequences_ids[0] for one in model.model.generate(encoded, [prefix], beam_size=beams, max_length=2 * tokens, **plain)]

    return call


def openai_whisper(folder: Path, torch):
    import whisper

    model = whisper.load_model(str(folder / "openai.pt"), device="cpu")
    mel = whisper.log_mel_spectrogram(sound(folder, 0))[None]
    encoded = model.encoder(mel)
    plain = {"language": "en", "without_timestamps": True, "suppress_tokens": "", "suppress_blank": False, "fp16": False}

    def text(number, tokens):
        found = model.transcribe(sound(folder, number), temperature=0.0, condition_on_previous_text=False, compression_ratio_threshold=None, logprob_threshold=None,
                                 no_speech_threshold=None, sample_len=tokens, **plain)  # fmt: skip
        return [token for one in found["segments"] for token in one["tokens"]]

    def call(numbers, tokens, beams):
        if not tokens:
            return model.encoder(mel) is None or []
        if not beams:
            return [text(number, tokens) for number in numbers]
        return [whisper.decode(model, encoded, whisper.DecodingOptions(sample_len=tokens, beam_size=beams if beams > 1 else None, **plain))[0].tokens]

    return call


def whisper_cpp(folder: Path, threads: int):
    """By pywhispercpp; what it calls an encoder has also the keys and values of the decoder's layers."""
    import _pywhispercpp as cpp

    settings = cpp.whisper_context_default_params()
    settings.use_gpu = False
    context = cpp.whisper_init_from_file_with_params(str(folder / "ggml.bin"), settings)
    first = sound(folder, 0)
    cpp.whisper_pcm_to_mel(context, first, len(first), threads)
    options = cpp.whisper_full_default_params(cpp.whisper_sampling_strategy.WHISPER_SAMPLING_GREEDY)
    plain = {"n_threads": threads, "language": "en", "no_timestamps": True, "single_segment": True, "no_context": True, "suppress_blank": False, "temperature_inc": 0.0,
             "entropy_thold": 0.0, "logprob_thold": -1e9, "no_speech_thold": 1e9, "print_progress": False, "greedy": {"best_of": 1}}  # fmt: skip
    for name, value in plain.items():
        setattr(options, name, value)

    def text(number, tokens):
        options.max_tokens, samples = tokens - 1, sound(folder, number)
        cpp.whisper_full(context, options, samples, len(samples))
        return [cpp.whisper_full_get_token_id(context, 0, i) for i in range(cpp.whisper_full_n_tokens(context, 0))]

    return lambda numbers, tokens, beams: [text(number, tokens) for number in numbers] if tokens else cpp.whisper_encode(context, 0, threads) or []
