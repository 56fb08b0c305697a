"""Indices of sharded checkpoints that do not match their shards, and some that do.

beside() names the shards that are in the folder of every case.
"""

import json

import colliding
from safetensors import crafted, tensor


def shard(*names):
    entries = ",".join(f'"{name}":{{"dtype":"U8","shape":[4],"data_offsets":[{4 * i},{4 * i + 4}]}}'
                       for i, name in enumerate(names))
    return crafted("{" + entries + "}", b"\1\2\3\4" * len(names))


def beside():
    return {
        "one.safetensors": shard("a", "b"),
        "two.safetensors": shard("c"),
        "again.safetensors": shard("a"),
        "cut.safetensors": crafted(tensor('"F32"', "[2]", "[0,8]"), b"1234"),
        "empty": b"",
        "other.index.json": json.dumps({"weight_map": {"a": "one.safetensors"}}).encode(),
        "foreign": b"once upon a time",
    }


def index(weight_map, **more):
    return json.dumps({**more, "weight_map": weight_map}).encode()


FINE = {"a": "one.safetensors", "b": "one.safetensors", "c": "two.safetensors"}


def cases():
    yield "fine", index(FINE, metadata={"total_size": 12}), "ok"
    yield "no_shards", index({}), "ok"
    yield "map_first", b" \n" + index(FINE)[:-1] + b',"metadata":{"x":[1,{"weight_map":2}]}}', "ok"

    for name, file in {"parent": "../one.safetensors", "absolute": "/etc/passwd", "slash": "x/one.safetensors",
                       "backslash": "..\\one.safetensors", "dots": "..", "dot": ".", "empty_name": "",
                       "nul": "one.safetensors\0", "drive": "c:\\one", "long": "n" * 300,
                       "missing": "three.safetensors", "index": "other.index.json"}.items():
        yield "file_" + name, index({"a": file}), "Shard"
    yield "file_itself", index({"a": "file_itself"}), "Shard"
    yield "file_empty", index({"a": "empty"}), "Truncated"
    yield "file_cut", index({"a": "cut.safetensors"}), "Truncated"
    yield "file_foreign", index({"a": "foreign"}), "UnknownFormat"

    yield "tensor_missing", index({**FINE, "d": "two.safetensors"}), "Shard"
    yield "tensor_in_other_shard", index({**FINE, "c": "one.safetensors"}), "Shard"
    yield "tensor_unmapped", index({"a": "one.safetensors"}), "ok"
    yield "tensor_in_two_shards", index({**FINE, "x": "again.safetensors"}), "Shard"

    yield "tensor_twice", b'{"weight_map":{"a":"again.safetensors","a":"again.safetensors"}}', "DuplicateKey"
    yield "map_twice", b'{"weight_map":{},"weight_map":{}}', "DuplicateKey"
    for name, value in {"array": "[]", "null": "null", "text": '"one.safetensors"', "number": "1"}.items():
        yield "map_" + name, f'{{"weight_map":{value}}}'.encode(), "Corrupt"
        yield "value_" + name, f'{{"weight_map":{{"a":{value if name != "text" else "true"}}}}}'.encode(), "Corrupt"
    yield "value_object", b'{"weight_map":{"a":{}}}', "Corrupt"
    yield "no_map", b'{"metadata":{}}', "UnknownFormat"
    yield "config", b'{"architectures":["BertModel"]}', "UnknownFormat"
    yield "cut", index(FINE)[:-5], "Corrupt"
    yield "junk", index(FINE) + b"x", "Corrupt"
    yield "bad_utf8", b'{"weight_map":{"\xff":"one.safetensors"}}', "Corrupt"
    yield "deep", b'{"x":' + b"[" * 200_000, "LimitExceeded"
    yield "deep_map", b'{"weight_map":{"a":' + b'{"a":' * 200_000, "Corrupt"

    yield "names_that_collide", index({name: "one.safetensors" for name in colliding.names()}), "Shard"
    yield "too_many_shards", index({str(i): str(i) for i in range(10_001)}), "LimitExceeded"
    yield "many_tensors", index({f"{i:x}": "one.safetensors" for i in range(300_000)}), "Shard"
