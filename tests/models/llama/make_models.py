"""Small random models of the Llama family, made by transformers, with its results for them.

`make_models.py --out FOLDER` writes for each model NAME:
  NAME/               a folder as save_pretrained leaves it: configuration and weights
  NAME.safetensors    `input_ids`; `logits`: of the model, in float32; `prompt`, `greedy`: what generate() added to it
`story/`, a Llama with a tokenizer, and story.json, what transformers continues `prompts` with: `greedy`, `beams` and `stopped`, by the
string `stop`, of each a list of {ids, text}, of beams with `score`;
and parts.safetensors: the norms and feed-forward networks of some systems by themselves, `NORM.x`, `NORM.weight`,
`NORM.out`, and `MLP.x`, `MLP.gate_proj.weight`, ..., `MLP.out`.
"""

import argparse
import json
import re
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoModelForCausalLM, GemmaConfig, LlamaConfig, PreTrainedTokenizerFast, Qwen2Config
from transformers.models.gemma.modeling_gemma import GemmaMLP, GemmaRMSNorm
from transformers.models.llama.modeling_llama import LlamaMLP, LlamaRMSNorm
from transformers.models.olmo2.modeling_olmo2 import Olmo2RMSNorm

SIZES = {
    "vocab_size": 101, "hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 3, "num_attention_heads": 6,
    "num_key_value_heads": 2, "max_position_embeddings": 64, "tie_word_embeddings": False,
    "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
}
MODELS = {
    "llama": LlamaConfig(**SIZES, rope_parameters={
        "rope_type": "llama3", "rope_theta": 500000.0, "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
        "original_max_position_embeddings": 16}),
    "qwen2": Qwen2Config(**SIZES, rope_parameters={"rope_type": "default", "rope_theta": 1000000.0}),
}
NORMS = {"llama": LlamaRMSNorm, "gemma": GemmaRMSNorm, "olmo2": Olmo2RMSNorm}
MLPS = {
    "llama": (LlamaMLP, LlamaConfig(hidden_size=24, intermediate_size=40, num_attention_heads=2)),
    "gemma": (GemmaMLP, GemmaConfig(hidden_size=24, intermediate_size=40, num_attention_heads=2)),
}


def write_model(name: str, config, out: Path) -> None:
    torch.manual_seed(11)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for key, parameter in model.named_parameters():  # with weights of the usual size, greedy search repeats one token
        torch.nn.init.normal_(parameter, 1.0 if "norm" in key else 0.0, 0.1)
    model.save_pretrained(out / name)
    ids = torch.randint(0, config.vocab_size, (3, 21))
    prompt = ids[:, :5].contiguous()
    with torch.no_grad():
        logits = model(ids).logits
        greedy = model.generate(prompt, attention_mask=torch.ones_like(prompt), max_new_tokens=30, do_sample=False)
    save_file({"input_ids": ids, "logits": logits, "prompt": prompt, "greedy": greedy[:, 5:].contiguous()},
              out / f"{name}.safetensors")


def story_tokenizer() -> PreTrainedTokenizerFast:
    """Bytes in pairs, as GPT-2's, with a token that begins each text."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.train_from_iterator(
        ["The cat sat on the mat. The cat ate a fish, and the fish was good."] * 4,
        trainers.BpeTrainer(vocab_size=300, special_tokens=["<s>", "</s>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))  # fmt: skip
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A", pair="<s> $A $B", special_tokens=[("<s>", 0)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token="<s>", eos_token="</s>", pad_token="</s>")


def write_story(out: Path) -> None:
    torch.manual_seed(13)
    tokenizer = story_tokenizer()
    config = LlamaConfig(**SIZES | {"vocab_size": len(tokenizer), "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1})
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    for key, parameter in model.named_parameters():
        torch.nn.init.normal_(parameter, 1.0 if "norm" in key else 0.0, 0.2)
    model.generation_config.max_new_tokens = 12
    model.save_pretrained(out / "story")
    tokenizer.save_pretrained(out / "story")
    prompts = ["The cat sat on", "the fish", "A ☃ ate", "and the mat was good. The"]

    def found(prompt: str, **settings) -> list[dict]:
        given = tokenizer(prompt, return_tensors="pt")
        with torch.no_grad():
            result = model.generate(**given, **settings, do_sample=False, return_dict_in_generate=True, output_scores=True)
        rows = [row[given.input_ids.shape[1] :].tolist() for row in result.sequences]
        scores = getattr(result, "sequences_scores", torch.zeros(len(rows))).tolist()
        return [{"ids": ids, "text": tokenizer.decode(ids, skip_special_tokens=True), "score": score} for ids, score in zip(rows, scores)]

    greedy = [found(prompt) for prompt in prompts]
    stop = re.search(r"(?<=...)[ -~]{2}", " ".join(rows[0]["text"] for rows in greedy))[0]
    said = {"prompts": prompts, "greedy": greedy, "beams": [found(prompt, num_beams=3, num_return_sequences=2) for prompt in prompts],
            "stop": stop, "stopped": [found(prompt, stop_strings=[stop], tokenizer=tokenizer) for prompt in prompts]}  # fmt: skip
    (out / "story.json").write_text(json.dumps(said))


def write_parts(path: Path) -> None:
    torch.manual_seed(12)
    tensors = {}
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        kind = str(dtype).removeprefix("torch.")
        for name, cls in NORMS.items():
            norm = cls(24, eps=1e-5)
            torch.nn.init.normal_(norm.weight)
            norm = norm.to(dtype)
            x = (torch.randn(3, 7, 24) * 3).to(dtype)
            tensors |= {f"norm.{name}.{kind}.x": x, f"norm.{name}.{kind}.weight": norm.weight.detach(),
                        f"norm.{name}.{kind}.out": norm(x).detach()}
    for name, (cls, config) in MLPS.items():
        mlp, x = cls(config), torch.randn(3, 7, 24)
        tensors |= {f"mlp.{name}.{key}": value for key, value in mlp.state_dict().items()}
        tensors |= {f"mlp.{name}.x": x, f"mlp.{name}.out": mlp(x).detach()}
    save_file({key: value.contiguous() for key, value in tensors.items()}, path)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    (out / "made").unlink(missing_ok=True)
    torch.set_num_threads(1)
    for name, config in MODELS.items():
        write_model(name, config, out)
    write_story(out)
    write_parts(out / "parts.safetensors")
    (out / "made").touch()  # for `make check`
    return 0


if __name__ == "__main__":
    sys.exit(main())
