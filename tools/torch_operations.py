#!/usr/bin/env python3
"""Whether another torch computes the same bits: LibTorch's operations that posenc's modules are made of, on one thread.

    tools/torch_operations.py [OTHER_PYTHON]    names those that differ between this torch and that of another Python; without one,
                                                prints a digest of each
"""

import argparse
import hashlib
import json
import subprocess
import sys

import torch
import torch.nn.functional as F


def operations() -> dict:
    """Each operation's name and the tensor that it gives."""
    torch.set_num_threads(1)
    draws = torch.Generator().manual_seed(1)

    def drawn(*sizes):
        return torch.randn(*sizes, generator=draws)

    x, weight, bias, heads, image = drawn(4, 64, 96), drawn(96, 96), drawn(96), drawn(2, 4, 64, 32), drawn(2, 3, 32, 32)
    results = {
        "randn": drawn(1000), "bernoulli_": torch.empty(1000).bernoulli_(0.3, generator=draws),
        "xavier_uniform_": torch.nn.init.xavier_uniform_(torch.empty(64, 64), generator=draws),
        "multinomial": torch.multinomial(x.flatten(0, 1).softmax(-1), 1, generator=draws),
        "linear": F.linear(x, weight, bias), "linear, one row": F.linear(x[:1, :1], weight, bias),
        "linear, bfloat16": F.linear(x.bfloat16(), weight.bfloat16()), "matmul": heads @ heads.transpose(-1, -2),
        "conv1d": F.conv1d(x.transpose(1, 2), drawn(96, 96, 3), bias, padding=1), "conv2d": F.conv2d(image, drawn(8, 3, 4, 4)),
        "layer_norm": F.layer_norm(x, (96,), bias, bias), "rms_norm": F.rms_norm(x, (96,), bias),
        "batch_norm": F.batch_norm(x.flatten(0, 1), bias, bias.abs(), bias, bias),
        "softmax": x.softmax(-1), "log_softmax": x.log_softmax(-1), "logsumexp": x.logsumexp(-1),
        "attention": F.scaled_dot_product_attention(heads, heads, heads),
        "attention, mask": F.scaled_dot_product_attention(heads, heads, heads, attn_mask=torch.zeros(64, 64)),
        "attention, causal": F.scaled_dot_product_attention(heads, heads, heads, is_causal=True),
        "cross_entropy": F.cross_entropy(x.flatten(0, 1), torch.arange(256) % 96), "fft": torch.view_as_real(torch.fft.fft(x)),
        "interpolate": F.interpolate(image, size=(20, 24), mode="bicubic"), "normalize": F.normalize(x, dim=-1),
        "sum": x.sum(-1), "mean": x.mean(1), "norm": x.norm(dim=-1), "cumsum": x.cumsum(1), "topk": x.topk(5).values,
        "pow": torch.pow(10000.0, x / 10), "sin": (x * 100).sin(), "cos": (x * 100).cos(), "log": x.abs().log(),
        "erfinv": (x / 10).erfinv(), "gelu, tanh": F.gelu(x, approximate="tanh"), "gelu, bfloat16": F.gelu(x.bfloat16()),
        **{name: getattr(torch, name)(x) for name in ("exp", "tanh", "sigmoid", "erf")},
        **{name: getattr(F, name)(x) for name in ("gelu", "silu", "mish", "softplus", "elu", "hardswish", "logsigmoid")},
    }  # fmt: skip
    for name in ("SGD", "Adam", "AdamW", "NAdam", "RAdam", "RMSprop", "Adagrad"):
        parameter = torch.nn.Parameter(weight.clone())
        optimizer = getattr(torch.optim, name)([parameter], lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            F.linear(x, parameter).tanh().square().mean().backward()
            optimizer.step()
        results[name] = parameter.detach()
    return results


def digests() -> dict:
    return {name: hashlib.sha256(tensor.reshape(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
            for name, tensor in operations().items()}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other_python", nargs="?", help="a Python with the other torch")
    other_python = parser.parse_args().other_python
    own = digests()
    if other_python is None:
        print(json.dumps({"torch": torch.__version__, "digests": own}))
        return 0
    other = json.loads(subprocess.run([other_python, __file__], capture_output=True, text=True, check=True).stdout)
    differing = [name for name, digest in own.items() if other["digests"].get(name) != digest]
    print(f"of {len(own)} operations of torch {torch.__version__} and {other['torch']}, these differ: {', '.join(differing) or 'none'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
