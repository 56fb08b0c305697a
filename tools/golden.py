"""save_golden(), the Python half of posenc::Golden. docs/parity.md shows it, for pasting."""

import copy
import inspect

import torch
from safetensors.torch import save_file


def save_golden(path, module, *args, **kwargs):
    """Saves what module(*args, **kwargs) computes in eval mode: weights, inputs, outputs, gradients."""
    module = copy.deepcopy(module).eval()
    module.zero_grad()
    weights, inputs, outputs = copy.deepcopy(module.state_dict()), {}, {}
    leaf = lambda name, x: inputs.setdefault(name, x.detach().clone().requires_grad_(x.is_floating_point()))
    call = inspect.signature(module.forward).bind(*args, **kwargs)
    call.arguments = each(lambda name, x: leaf(name, x).clone(), call.arguments)  # the module may write to them
    each(outputs.setdefault, module(*call.args, **call.kwargs))
    if not outputs:
        raise TypeError(f"[save_golden] {type(module).__name__} must return tensors, alone or in tuples, lists or dicts")
    source = torch.Generator().manual_seed(0)
    random = lambda x: torch.randn(x.shape, dtype=x.dtype, device="cpu", generator=source).to(x)
    cotangents = {name: random(x) for name, x in outputs.items() if x.requires_grad}
    torch.autograd.backward([outputs[name] for name in cotangents], list(cotangents.values()))
    gradients = lambda of: {name: x.grad for name, x in of if x.grad is not None}
    groups = {"param": weights, "in": inputs, "out": outputs, "cotangent": cotangents}
    groups |= {"grad.param": gradients(module.named_parameters(remove_duplicate=False)), "grad.in": gradients(inputs.items())}
    dense = lambda x: x.detach().to_dense().clone(memory_format=torch.contiguous_format)
    tensors = {f"{group}.{name}": dense(x) for group, of in groups.items() for name, x in of.items() if isinstance(x, torch.Tensor)}
    metadata = {"golden": "1", "module": type(module).__name__, "torch": torch.__version__}
    save_file(tensors, path, {**metadata, "inputs": "\n".join(inputs), "outputs": "\n".join(outputs)})


def each(function, value, name=""):
    """The value with function(name, x) in place of each tensor x in dicts, lists and tuples. Names are "hidden", "0", "states.0"."""
    if isinstance(value, torch.Tensor):
        return function(name or "output", value)
    if isinstance(value, dict):
        return {key: each(function, item, f"{name}.{key}".lstrip(".")) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        items = list(each(function, dict(enumerate(value)), name).values())
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)  # named tuples take them one by one
    return value
