"""transformers' classes as the peers of relative_benchmark.cpp: what each computes up to its softmax, on the same sizes.

peers.py lists and serves these cases. Of an attention its projections are left out, as in our own: they return given tensors.
"""

import importlib
import types
from collections.abc import Callable

import torch
from torch import Tensor, nn

HEADS = 12


def modeling(name: str):
    return importlib.import_module(f"transformers.models.{name}.modeling_{name}")


def settings(**values) -> types.SimpleNamespace:
    return types.SimpleNamespace(**values, _attn_implementation="eager")


def t5_attention(decoder: bool):
    config = settings(is_decoder=decoder, num_heads=HEADS, d_kv=64, d_model=64 * HEADS, hidden_size=64 * HEADS, dropout_rate=0.0,
                      relative_attention_num_buckets=32, relative_attention_max_distance=128)  # fmt: skip
    return modeling("t5").T5Attention(config, has_relative_attention_bias=True, layer_idx=0)


def t5_bias(length: int) -> Callable:
    module = t5_attention(False)
    return lambda: module.compute_bias(length, length)


def t5_bias_contiguous(length: int) -> Callable:
    module = t5_attention(False)
    return lambda: module.compute_bias(length, length).contiguous()


def t5_bias_train(length: int) -> Callable:
    module, cotangent = t5_attention(False), torch.randn(1, HEADS, length, length)
    weight = module.relative_attention_bias.weight

    def step() -> Tensor:
        with torch.enable_grad():
            return torch.autograd.grad(module.compute_bias(length, length), weight, cotangent)[0]

    return step


def t5_step(keys: int) -> Callable:
    module = t5_attention(True)
    return lambda: module.compute_bias(1, keys, past_seen_tokens=keys - 1)


def alibi_scores(length: int) -> Callable:
    """BLOOM's: the slopes, the product in one operation, and the mask."""
    build = modeling("bloom").build_alibi_tensor
    q, k = torch.randn(HEADS, length, 64), torch.randn(HEADS, length, 64)
    mask, additive = torch.ones(1, length, dtype=torch.int64), torch.zeros(1, 1, length, length)

    def scores() -> Tensor:
        found = build(mask, HEADS, torch.float32).baddbmm(batch1=q, batch2=k.transpose(-1, -2), beta=1.0, alpha=0.125)
        return found.view(1, HEADS, length, length) + additive

    return scores


def alibi(length: int) -> Callable:
    """BLOOM's scores and, in float32, their softmax."""
    scores = alibi_scores(length)
    return lambda: nn.functional.softmax(scores(), dim=-1, dtype=torch.float32)


def given(x: Tensor) -> nn.Module:
    """A projection that returns x, (B, H, L, D), as (B, L, H * D)."""
    module = nn.Module()
    flat = x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)
    module.forward = lambda *_: flat
    return module


class Softmaxed(Exception):
    pass


def until_softmax(call: Callable, with_it: bool = False) -> Callable:
    """Ends the call where it gives its scores to a softmax, or has its result."""
    places = [(nn.functional, nn.functional.softmax), (torch, torch.softmax)]

    def run() -> None:
        for owner, original in places:

            def stop(*args, original=original, **kwargs):
                if with_it:
                    original(*args, **kwargs)
                raise Softmaxed

            owner.softmax = stop
        try:
            call()
        except Softmaxed:
            return
        finally:
            for owner, original in places:
                owner.softmax = original
        raise RuntimeError("the class has no softmax")

    return run


def swin(window: int) -> Callable:
    windows, heads, width, tokens = 64, 3, 32, window * window
    config = settings(attention_probs_dropout_prob=0.0, qkv_bias=True)
    module = modeling("swin").SwinAttention(config, heads * width, heads, window).eval()
    q, k = torch.randn(windows, heads, tokens, width), torch.randn(windows, heads, tokens, width)
    module.q_proj, module.k_proj, module.v_proj = given(q), given(k), given(k)
    hidden, mask = torch.randn(windows, tokens, heads * width), torch.zeros(windows, tokens, tokens)
    return until_softmax(lambda: module(hidden, mask), with_it=True)


def deberta(length: int) -> Callable:
    library = modeling("deberta_v2")
    config = library.DebertaV2Config(
        hidden_size=64 * HEADS, num_attention_heads=HEADS, relative_attention=True, pos_att_type=["c2p", "p2c"],
        max_relative_positions=512, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0,
    )  # fmt: skip
    config.position_buckets, config.share_att_key = 256, True
    module = library.DisentangledSelfAttention(config).eval()
    q, k = torch.randn(1, HEADS, length, 64), torch.randn(1, HEADS, length, 64)
    hidden, table = torch.randn(1, length, 64 * HEADS), torch.randn(512, 64 * HEADS)
    mask = torch.ones(1, 1, length, length, dtype=torch.bool)

    def either(projection: nn.Module, x: Tensor) -> nn.Module:
        chosen, own = nn.Module(), given(x)
        chosen.forward = lambda y: own(y) if y is hidden else projection(y)
        return chosen

    module.query_proj, module.key_proj, module.value_proj = either(module.query_proj, q), either(module.key_proj, k), given(k)

    relative = library.build_relative_position(q, k, 256, 512)  # once for all layers
    return until_softmax(lambda: module(hidden, mask, relative_pos=relative, rel_embeddings=table))


def xl(length: int, with_softmax: bool = False) -> Callable:
    heads, width = 8, 64
    config = settings(hidden_size=heads * width, num_attention_heads=heads, attention_dropout=0.0, position_embeddings_type="relative")
    module = modeling("wav2vec2_conformer").Wav2Vec2ConformerSelfAttention(config).eval()
    q, k = torch.randn(1, heads, length, width), torch.randn(1, heads, length, width)
    module.linear_q, module.linear_k, module.linear_v = given(q), given(k), given(k)
    hidden, pe = torch.randn(1, length, heads * width), torch.randn(1, 2 * length - 1, heads * width)
    return until_softmax(lambda: module(hidden, None, pe), with_softmax)


def xl_weights(length: int) -> Callable:
    return xl(length, with_softmax=True)


CASES = {t5_bias: (128, 512, 1024), t5_bias_contiguous: (512,), t5_bias_train: (512,), t5_step: (64, 512, 2048), alibi: (512,), alibi_scores: (512,),
         swin: (7, 12), deberta: (128,), xl: (512,), xl_weights: (512,)}  # fmt: skip


def cases(timed: Callable) -> dict:
    """The names of the cases and how they are timed."""

    def seconds(make: Callable, size: int):
        with torch.no_grad():
            call = make(size)
            call()
            return timed(call), "-"

    return {f"relative/{make.__name__}/transformers/{size}": (1, lambda m=make, s=size: seconds(m, s))
            for make, sizes in CASES.items() for size in sizes}  # fmt: skip
