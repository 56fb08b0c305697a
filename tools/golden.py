"""save_golden(), the Python half of posenc::Golden. docs/parity.md shows it, for pasting."""

import copy
import inspect

import torch
from safetensors.torch import save_file


def save_golden(path, module, *args, **kwargs):
    """Saves what module(*args, **kwargs) computes in eval mode: weights, inputs, outputs, gradients."""
    module = copy.deepcopy(module).eval()
    module.zero_grad()
    call = inspect.signature(module.forward).bind(*args, **kwargs)
    call.arguments = each(lambda x: x.detach().clone().requires_grad_(x.is_floating_point()), call.arguments)
    inputs = named(call.arguments)
    tensors = flat({"param": module.state_dict(), "in": inputs})
    call.arguments = each(torch.clone, call.arguments)  # the module may write to them
    output = module(*call.args, **call.kwargs)
    outputs = named({"output": output} if isinstance(output, torch.Tensor) else output)
    source = torch.Generator().manual_seed(0)
    cotangents = {name: torch.randn(x.shape, generator=source).to(x) for name, x in outputs.items() if x.requires_grad}
    torch.autograd.backward([outputs[name] for name in cotangents], list(cotangents.values()))
    gradients = {"grad.param": dict(module.named_parameters()), "grad.in": inputs}
    gradients = {group: {name: x.grad for name, x in of.items() if x.grad is not None} for group, of in gradients.items()}
    tensors |= flat({"out": outputs, "cotangent": cotangents, **gradients})
    metadata = {"golden": "1", "module": type(module).__name__, "torch": torch.__version__}
    save_file(tensors, path, {**metadata, "inputs": "\n".join(inputs), "outputs": "\n".join(outputs)})


def each(function, value):
    """The value with function(x) in place of each tensor x in its dicts, lists and tuples."""
    if isinstance(value, dict):
        return {name: each(function, item) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(each(function, item) for item in value)
    return function(value) if isinstance(value, torch.Tensor) else value


def named(value, name=""):
    """The tensors in dicts, lists and tuples by name: "hidden", "0", "states.0"."""
    if isinstance(value, torch.Tensor):
        return {name: value}
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, (list, tuple)) else ()
    return {found: x for key, item in items for found, x in named(item, f"{name}.{key}".lstrip(".")).items()}


def flat(groups):
    """Contiguous copies, named as in the file: param.linear.weight."""
    copied = lambda x: x.detach().to_dense().clone(memory_format=torch.contiguous_format)
    return {f"{group}.{name}": copied(x) for group, of in groups.items() for name, x in of.items() if isinstance(x, torch.Tensor)}
