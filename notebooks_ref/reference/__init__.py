"""The oracle: the five notebooks' modules in plain PyTorch, and what is exported from them.

One file a notebook. Class names, constructor arguments, state_dict keys, shapes and the order of
operations are a contract with the C++ modules: a reordered product is another last bit.
"""
