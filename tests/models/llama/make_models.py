"""Small random models of the Llama family, made by transformers, with its results for them.

`make_models.py --out FOLDER` writes for each model NAME:
  NAME/               a folder as save_pretrained leaves it: configuration and weights
  NAME.safetensors    `input_ids`; `logits`: of the model, in float32; `prompt`, `greedy`: what generate() added to it
and parts.safetensors: the norms and feed-forward networks of some systems by themselves, `NORM.x`, `NORM.weight`,
`NORM.out`, and `MLP.x`, `MLP.gate_proj.weight`, ..., `MLP.out`.
"""

import argparse
import sys
from pathlib import Path

import torch
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, GemmaConfig, LlamaConfig, Qwen2Config
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
    write_parts(out / "parts.safetensors")
    (out / "made").touch()  # for `make check`
    return 0


if __name__ == "__main__":
    sys.exit(main())
