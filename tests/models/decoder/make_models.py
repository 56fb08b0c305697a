"""Small random decoder-only language models, as transformers saves them, with its results for them.

`make_models.py --out FOLDER` writes for each model NAME:
  NAME/               a folder as save_pretrained leaves it: configuration, settings of generate() and weights
  NAME.safetensors    `prompt.I`: prompts of unequal lengths; `logits.I` and `hidden.I`: of each alone; `score.I`: the log
                      probabilities of its tokens but the first; `SEARCH.I`: the new tokens of a search, `SEARCH.scores.I`
                      those of its beams
and for the models in TRAINED also `losses`, of ten steps of Adam on `batch` by the next tokens' cross entropy, padding left out,
and NAME_trained.safetensors, the weights after them; for those in PACKED `packed.input_ids`, `.position_ids` and `.labels` of several
sequences in one row, their `packed.logits`, and `packed.losses` of ten steps of AdamW in eval mode.
"""

import argparse
import copy
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, CONFIG_MAPPING, DataCollatorWithFlattening, GenerationConfig

SIZES = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 4, "num_attention_heads": 4,
         "num_key_value_heads": 2, "max_position_embeddings": 96, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}  # fmt: skip
FACTORS = [1.0 + 0.3 * i for i in range(4)]
MODELS = {
    "llama": ("llama", {"rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 4.0, "low_freq_factor": 1.0,
                                            "high_freq_factor": 4.0, "original_max_position_embeddings": 16}, "mlp_bias": True}),
    "dynamic": ("llama", {"rope_parameters": {"rope_type": "dynamic", "rope_theta": 10000.0, "factor": 2.0}, "max_position_embeddings": 10}),
    "longrope": ("llama", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "factor": 4.0, "short_factor": FACTORS,
                                               "long_factor": FACTORS[::-1], "original_max_position_embeddings": 10}}),
    "mistral": ("mistral", {"sliding_window": 4}),
    "qwen2": ("qwen2", {"tie_word_embeddings": True, "use_sliding_window": True, "sliding_window": 5, "max_window_layers": 2}),
    "qwen3": ("qwen3", {"head_dim": 16}),
    "gemma3_text": ("gemma3_text", {"head_dim": 16, "sliding_window": 4, "final_logit_softcapping": 3.0, "query_pre_attn_scalar": 20}),
    "bloom": ("bloom", {"n_layer": 3, "n_head": 4}),
    "mpt": ("mpt", {"d_model": 32, "n_heads": 4, "n_layers": 2, "max_seq_len": 96}),
    "gpt2": ("gpt2", {"n_embd": 32, "n_layer": 3, "n_head": 4, "n_positions": 40}),
    "phi3": ("phi3", {"rope_parameters": {"rope_type": "longrope", "rope_theta": 10000.0, "short_factor": FACTORS, "long_factor": FACTORS[::-1],
                                          "original_max_position_embeddings": 10}, "original_max_position_embeddings": 10,
                      "max_position_embeddings": 40}),
}  # fmt: skip
TRAINED = ("llama", "qwen2", "bloom")
PACKED = ("llama", "mistral", "qwen2", "gpt2")
PROMPTS = (3, 9, 1, 6, 12)
SEARCHES = {
    "greedy": {"max_new_tokens": 14},
    "beams": {"max_new_tokens": 9, "num_beams": 3, "num_return_sequences": 2, "length_penalty": 0.7, "early_stopping": "never"},
    "lengths": {"max_length": 16, "min_length": 11, "repetition_penalty": 1.7},
    "settings": {"max_new_tokens": 10, "num_beams": 4, "early_stopping": True, "no_repeat_ngram_size": 2, "bad_words_ids": [[5], [7, 8]],
                 "forced_eos_token_id": 2, "eos_token_id": [2, 11], "begin_suppress_tokens": [4], "forced_bos_token_id": 9,
                 "renormalize_logits": True},
}  # fmt: skip


def made(kind: str, settings: dict, seed: int):
    torch.manual_seed(seed)
    own = {name: value for name, value in SIZES.items() if kind not in ("bloom", "gpt2", "mpt") or not name.startswith(("num_", "inter", "max_", "hidden"))}
    if kind == "bloom":
        own["hidden_size"] = SIZES["hidden_size"]
    config = CONFIG_MAPPING[kind](**(own | settings))
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for name, value in model.named_parameters():  # with weights of the usual size, greedy search repeats one token
        torch.nn.init.normal_(value, 1.0 if value.dim() == 1 and "bias" not in name and kind != "gemma3_text" else 0.0, 0.25)
    return model


def searched(model, prompt, settings):
    model = copy.deepcopy(model)  # frequencies that grow with the length remember the longest row
    config = GenerationConfig(**({"pad_token_id": 0, "eos_token_id": 2, "do_sample": False} | settings))
    out = model.generate(prompt, attention_mask=torch.ones_like(prompt), generation_config=config, return_dict_in_generate=True,
                         output_scores=True)  # fmt: skip
    return out.sequences[:, prompt.shape[1]:].contiguous(), getattr(out, "sequences_scores", None)


def results(model) -> dict:
    found = {}
    for i, length in enumerate(PROMPTS):
        prompt = torch.randint(3, SIZES["vocab_size"], (1, length))
        with torch.no_grad():
            out = copy.deepcopy(model)(prompt, output_hidden_states=True)
            logs = out.logits[0].log_softmax(-1)
            found |= {f"prompt.{i}": prompt, f"logits.{i}": out.logits, f"hidden.{i}": out.hidden_states[-1].contiguous(),
                      f"score.{i}": logs[:-1].gather(1, prompt[0, 1:, None])[:, 0].contiguous()}
            for name, settings in SEARCHES.items():
                if "max_length" in settings and length >= settings["max_length"]:
                    continue
                found[f"{name}.{i}"], scores = searched(model, prompt, settings)
                if scores is not None:
                    found[f"{name}.scores.{i}"] = scores
    return found


def trained(model, path: Path) -> dict:
    batch = torch.randint(3, SIZES["vocab_size"], (3, 12))
    mask = torch.ones_like(batch)
    mask[1, 7:] = mask[2, 4:] = 0
    labels = batch.masked_fill(mask == 0, -100)
    model.train()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
    losses = []
    for _ in range(10):
        optimizer.zero_grad()
        loss = model(batch, attention_mask=mask, labels=labels).loss
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    save_file({name: value.contiguous() for name, value in model.state_dict().items() if name != "lm_head.weight" or not model.config.tie_word_embeddings}, path)
    return {"batch": batch, "mask": mask, "losses": torch.stack(losses)}


def packed(model) -> dict:
    model = copy.deepcopy(model)  # in eval mode, since GPT-2 drops out
    lengths = [5, 1, 12, 3, 12]
    rows = [{"input_ids": torch.randint(3, SIZES["vocab_size"], (length,)).tolist()} for length in lengths]
    batch = DataCollatorWithFlattening()(rows, return_tensors="pt")
    found = {f"packed.{name}": batch[name] for name in ("input_ids", "position_ids", "labels")}
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    losses = []
    for step in range(10):
        optimizer.zero_grad()
        out = model(**batch, use_cache=False)  # with a cache it takes the sequences for one
        if step == 0:
            found["packed.logits"] = out.logits.detach().clone()
        out.loss.backward()
        optimizer.step()
        losses.append(out.loss.detach())
    return found | {"packed.losses": torch.stack(losses)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    parser.add_argument("names", nargs="*", default=list(MODELS), help="of the models; all unless given")
    options = parser.parse_args()
    out = options.out
    out.mkdir(parents=True, exist_ok=True)
    (out / "made").unlink(missing_ok=True)
    torch.set_num_threads(1)
    for seed, name in enumerate(options.names):
        model = made(*MODELS[name], seed + 1)
        model.save_pretrained(out / name)
        found = results(model)
        if name in PACKED:
            found |= packed(model)
        if name in TRAINED:
            found |= trained(model, out / f"{name}_trained.safetensors")
        save_file({key: value.contiguous() for key, value in found.items()}, out / f"{name}.safetensors")
    (out / "made").touch()  # for `make check`
    return 0


if __name__ == "__main__":
    sys.exit(main())
