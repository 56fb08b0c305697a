"""Hostile files in PyTorch's formats: zip archives, pickles, TorchScript, .pt2, and torch.save before 1.6. Each name describes the attack."""

import json
import pickle
import random
import struct
import zipfile
import zlib

import colliding

# --- zip archives, assembled by hand so that every field can be wrong ----------------------------


class Zip:
    """Stored records, with checksums of 0, which PyTorch can write as well. `local` and `central` override fields."""

    def __init__(self):
        self.locals, self.entries, self.size = [], [], 0

    def add(self, name, data=b"", local=None, central=None, flags=0, method=0, at=None):
        offset = self.size if at is None else at
        one = dict(name=name.encode(), flags=flags, method=method, crc=0, packed=len(data), size=len(data), extra=b"")
        two = dict(one, offset=offset, comment=b"")
        one.update(local or {})
        two.update(central or {})
        header = struct.pack("<4s5H3I2H", b"PK\3\4", 20, one["flags"], one["method"], 0, 0, one["crc"], one["packed"],
                             one["size"], len(one["name"]), len(one["extra"]))
        header += one["name"] + one["extra"] + data
        if at is None:
            self.locals.append(header)
            self.size += len(header)
        self.entries.append(struct.pack(
            "<4s6H3I5H2I", b"PK\1\2", 20, 20, two["flags"], two["method"], 0, 0, two["crc"], two["packed"], two["size"],
            len(two["name"]), len(two["extra"]), len(two["comment"]), 0, 0, 0, two["offset"]) + two["name"] + two["extra"])
        return self

    def bytes(self, **end):
        directory = b"".join(self.entries)
        fields = dict(disk=0, here=len(self.entries), count=len(self.entries), size=len(directory), offset=self.size,
                      comment=0)
        fields.update(end)
        after_end = fields.pop("after_end", b"")
        between = fields.pop("between", b"")
        record = struct.pack("<4s4H2IH", b"PK\5\6", fields["disk"], 0, fields["here"], fields["count"], fields["size"],
                             fields["offset"], fields["comment"])
        return b"".join(self.locals) + directory + between + record + after_end


def archive(body, data=b"\0" * 64, **more):
    out = Zip().add("r/data.pkl", body).add("r/byteorder", more.pop("byteorder", b"little"))
    for name, record in more.items():
        out.add("r/" + name, record)
    return out.add("r/data/0", data).bytes()


def script(body, code=b"", **more):
    return Zip().add("r/data.pkl", body).add("r/code/__torch__.py", code).add("r/constants.pkl", b"\x80\2).").add(
        "r/data/0", b"\0" * 64).bytes(**more)


# --- pickles, by opcode ---------------------------------------------------------------------------


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return b"X" + struct.pack("<I", len(value)) + value


def integer(value):
    data = value.to_bytes(9, "little", signed=True)
    return b"\x8a" + bytes([len(data)]) + data if abs(value) >= 2**63 else b"\x8a\x08" + struct.pack("<q", value)


def tuple_of(*items):
    return b"(" + b"".join(items) + b"t"


def glob(module, name):
    return b"c" + module.encode() + b"\n" + name.encode() + b"\n"


def storage(key="0", elements=4, kind="FloatStorage", module="torch", view=b""):
    return tuple_of(text("storage"), glob(module, kind), text(key), text("cpu"), integer(elements), view) + b"Q"


def tensor(sizes=(4,), strides=(1,), offset=0, flags=b"", function="_rebuild_tensor_v2", store=None, extra=b""):
    return glob("torch._utils", function) + tuple_of(
        store or storage(), integer(offset), tuple_of(*map(integer, sizes)), tuple_of(*map(integer, strides)), b"\x89",
        b"N", flags, extra) + b"R"


def pickled(body):
    return b"\x80\2" + body + b"."


def dict_of(**items):
    return b"}(" + b"".join(text(name) + value for name, value in items.items()) + b"u"


def state(**items):
    return archive(pickled(dict_of(**items)))


def call(module, name, *arguments):
    return glob(module, name) + tuple_of(*arguments) + b"R"


# --- cases ----------------------------------------------------------------------------------------


def zip_cases():
    good = pickled(dict_of(w=tensor()))
    whole = state(w=tensor())
    yield "zip_cut_in_directory", whole[:-30], "Truncated"
    yield "zip_cut_in_half", whole[:len(whole) // 2], "Truncated"
    yield "zip_bytes_after_end", whole + b"junk", "Corrupt"
    yield "zip_second_end_record_in_comment", whole[:-2] + b"\x16\0" + whole[-22:], "Corrupt"
    base = lambda: Zip().add("r/data.pkl", good).add("r/data/0", b"\0" * 64)
    yield "zip_directory_size_all_ones", base().bytes(size=0xFFFFFFFF), "Corrupt"
    yield "zip_directory_offset_beyond_file", base().bytes(offset=0xFFFFFF), "Corrupt"
    yield "zip_count_too_large", base().bytes(here=0xFFFF, count=0xFFFF), "Corrupt"
    yield "zip_count_too_small", base().bytes(here=1, count=1), "Corrupt"
    yield "zip_split_over_disks", base().bytes(disk=1), "Corrupt"
    zip64 = struct.pack("<4sQ2H2I4Q", b"PK\6\6", 44, 20, 20, 0, 0, 2**60, 2**60, 2**63, 2**63)
    locator = struct.pack("<4sIQI", b"PK\6\7", 0, base().size + len(b"".join(base().entries)), 1)
    yield "zip64_counts_overflow", base().bytes(between=zip64 + locator, size=0xFFFFFFFF), "Corrupt"
    yield "zip64_locator_beyond_file", base().bytes(between=struct.pack("<4sIQI", b"PK\6\7", 0, 2**63, 1)), "Corrupt"
    yield "zip64_field_missing", Zip().add("r/data.pkl", good, central=dict(size=0xFFFFFFFF)).bytes(), "Corrupt"
    yield "zip64_field_short", Zip().add(
        "r/data.pkl", good, central=dict(size=0xFFFFFFFF, extra=b"\1\0\4\0abcd")).bytes(), "Corrupt"
    yield "zip64_offset_beyond_file", Zip().add("r/data.pkl", good, central=dict(
        offset=0xFFFFFFFF, extra=b"\1\0\x08\0" + b"\xff" * 8)).bytes(), "Corrupt"
    yield "zip_record_twice", base().add("r/data.pkl", good).bytes(), "DuplicateKey"
    yield "zip_two_entries_of_one_record", base().add("r/data.pk2", good, at=0).bytes(), "Corrupt"
    yield "zip_overlapping_records", Zip().add("r/data.pkl", good, local=dict(packed=0, size=0)).add(
        "r/x", b"", at=20).bytes(), "Corrupt"
    yield "zip_record_reaches_into_directory", Zip().add(
        "r/data.pkl", good, local=dict(packed=9999, size=9999), central=dict(packed=9999, size=9999)).bytes(), "Corrupt"
    yield "zip_stored_with_two_sizes", Zip().add("r/data.pkl", good, central=dict(size=9999)).bytes(), "Corrupt"
    yield "zip_local_name_differs", Zip().add("r/data.pkl", good, local=dict(name=b"r/data.pkx")).bytes(), "Corrupt"
    yield "zip_local_method_differs", Zip().add("r/data.pkl", good, local=dict(method=8)).bytes(), "Corrupt"
    yield "zip_local_size_differs", Zip().add("r/data.pkl", good, local=dict(size=3)).bytes(), "Corrupt"
    yield "zip_local_extra_reaches_over_data", Zip().add("r/data.pkl", good, local=dict(extra=b"\0" * 9)).add(
        "r/data/0").bytes().replace(b"\0" * 9, b"", 1), "Corrupt"
    yield "zip_encrypted", Zip().add("r/data.pkl", good, flags=1).bytes(), "Unsupported"
    yield "zip_checksum_wrong", Zip().add("r/data.pkl", good, central=dict(crc=1)).bytes(), "Corrupt"
    for label, name in (("absolute", "/etc/passwd"), ("parent", "r/../../x"), ("backslash", "r\\x"), ("nul", "r/\0x"),
                        ("empty", "")):
        yield f"zip_name_{label}", base().add(name).bytes(), "Corrupt"
    bomb = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = bomb.compress(bytes(1 << 26)) + bomb.flush()
    yield "zip_deflate_bomb", Zip().add("r/data.pkl", packed, method=8, local=dict(size=1 << 26), central=dict(
        size=1 << 26)).bytes(), "Unsupported"
    yield "zip_big_endian", archive(good, byteorder=b"big"), "Unsupported"
    yield "zip_byteorder_nonsense", archive(good, byteorder=b"middle"), "Corrupt"
    yield "zip_byteorder_long", archive(good, byteorder=b"l" * 5_000_000), "LimitExceeded"
    yield "zip_format_long", Zip().add("r/archive_format", b"p" * 5_000_000).bytes(), "LimitExceeded"
    yield "zip_empty", Zip().bytes(), "UnknownFormat"
    yield "zip_of_something_else", Zip().add("word/document.xml", b"<a/>").bytes(), "UnknownFormat"
    yield "zip_nested_archives_only", Zip().add("a/b/c.zip", whole).bytes(), "UnknownFormat"


def pickle_cases():
    cases = {
        "nested_lists_200000": (b"]" * 200000 + b"a" * 199999, "LimitExceeded"),
        "nested_tuples_200000": (b")" + b"\x85" * 200000, "LimitExceeded"),
        "nested_dicts_200000": (b"}" + (text("a") + b"}") * 200000 + b"s" * 200000, "LimitExceeded"),
        "memo_index_2e28": (b"]r\0\0\0\x10", "LimitExceeded"),
        "memo_index_2e31": (b"]r\0\0\0\x80", "LimitExceeded"),
        "memo_entry_missing": (b"h\5", "Corrupt"),
        "memo_of_nothing": (b"q\0", "Corrupt"),
        "text_of_4_GiB": (b"X\xff\xff\xff\xff", "Truncated"),
        "text_of_2e63_bytes": (b"\x8d" + struct.pack("<Q", 2**63), "Truncated"),
        "bytes_of_2e64_bytes": (b"\x8e" + b"\xff" * 8, "Truncated"),
        "long_of_4_GiB": (b"\x8b\xff\xff\xff\xff", "Truncated"),
        "frame_beyond_end": (b"\x95" + b"\xff" * 8, "Truncated"),
        "global_without_end": (b"ctorch\nTensor", "Truncated"),
        "pop_of_empty_stack": (b"0", "Corrupt"),
        "append_to_nothing": (b"Na", "Corrupt"),
        "append_to_text": (text("a") + b"Na", "Corrupt"),
        "append_below_mark": (b"](Na", "Corrupt"),
        "appends_without_mark": (b"]N" + b"e", "Corrupt"),
        "tuple_without_mark": (b"Nt", "Corrupt"),
        "setitems_odd": (b"}(N" + b"u", "Corrupt"),
        "dict_odd": (b"(Nd", "Corrupt"),
        "build_of_text": (text("a") + b"}b", "Corrupt"),
        "reduce_without_tuple": (glob("os", "system") + text("id") + b"R", "Corrupt"),
        "stack_global_of_numbers": (b"K\1K\2\x93", "Corrupt"),
        "two_objects_left": (b"NN", "Corrupt"),
        "mark_left": (b"N(", "Corrupt"),
        "text_opcode": (b"I12\n", "Corrupt"),
        "extension_opcode": (b"\x82\1", "Corrupt"),
        "out_of_band_buffer": (b"\x97", "Corrupt"),
        "persistent_text_opcode": (b"Pabc\n", "Corrupt"),
        "inst_opcode": (b"(ios\nsystem\n", "Corrupt"),
        "calls_os_system": (call("os", "system", text("touch owned")), "WholeModule"),
        "calls_eval": (call("builtins", "eval", text("1")), "WholeModule"),
        "builds_an_object": (glob("subprocess", "Popen") + b")\x81}b", "WholeModule"),
        "circle_of_lists": (b"]q\0h\0a", "LimitExceeded"),
        "circle_of_two_dicts": (b"}q\0" + text("a") + b"}q\1" + text("b") + b"h\0ss", "LimitExceeded"),
        "circle_twice_a_level": (b"]q\0(h\0h\0h\0e", "LimitExceeded"),
        "mark_flood": (b"(" * 5_000_000, "Corrupt"),
        "list_flood": (b"]" * 3_000_000, "LimitExceeded"),
    }
    laughs = b"]q\0"
    for level in range(1, 40):
        laughs += b"](" + (b"h" + bytes([level - 1])) * 10 + b"eq" + bytes([level])
    cases["billion_laughs"] = (b"(" + laughs + b"t", "LimitExceeded")
    # A tuple of a text and an opaque object has an entry for each, with the full name.
    pair = text("x" * 900) + b"q\0" + glob("a", "b") + b"\x86q\1"
    cases["long_texts_many_times"] = (pair + b"0](" + b"h\1" * 30_000 + b"e", "ok")
    depth = b"".join(text("n" * 1000) + b"}" for _ in range(150))
    many = b"(" + b"".join(text(f"{i:x}") + b"N" for i in range(2000)) + b"u"
    cases["long_names_many_times"] = (b"}" + depth + many + b"s" * 150, "ok")
    # One object, referenced repeatedly: the cost is not in building it, but in walking, copying or hashing it.
    again = lambda item, count: b"(" + item + b"q\0" + b"h\0" * count + b"l"
    numbers = b"".join(b"J" + struct.pack("<i", i) for i in range(20_000))
    keys = lambda item, count: b"}(" + b"".join((b"h\0" if i else item + b"q\0") + b"N" for i in range(count)) + b"u"
    long_global = glob("a" * 1_000_000, "b" * 1_000_000)
    cases["set_many_times"] = (again(b"\x8f(" + numbers + b"\x90", 200_000), "LimitExceeded")
    cases["tuple_many_times"] = (again(b"(" + numbers + b"t", 200_000), "LimitExceeded")
    cases["set_as_key_many_times"] = (keys(b"\x8f(" + numbers + b"\x90", 200_000), "LimitExceeded")
    cases["tuple_as_key_many_times"] = (keys(b"(" + b"K\1" * 100_000 + b"t", 200_000), "LimitExceeded")
    cases["long_global_many_times"] = (again(long_global, 1_000_000), "LimitExceeded")
    cases["long_global_called_many_times"] = (again(long_global + b")R", 1_000_000), "LimitExceeded")
    cases["long_global_as_key_many_times"] = (keys(long_global, 500_000), "LimitExceeded")
    cases["long_text_as_key_many_times"] = (keys(text("x" * 2_000_000), 500_000), "LimitExceeded")
    cases["long_dtype_as_key_many_times"] = (keys(glob("torch", "d" * 2_000_000), 500_000), "LimitExceeded")
    cases["names_that_collide"] = (b"}(" + b"".join(text(name) + b"N" for name in colliding.names()) + b"u", "ok")
    for name, (body, code) in cases.items():
        yield "pickle_" + name, archive(pickled(body)), code
    yield "pickle_empty", archive(b""), "Truncated"
    yield "pickle_without_end", archive(b"\x80\2N"), "Truncated"
    yield "pickle_protocol_0", archive(b"(dp0\n."), "Unsupported"
    yield "pickle_protocol_6", archive(b"\x80\6N."), "Unsupported"
    yield "pickle_protocol_1", archive(b"\x80\1N."), "Unsupported"


def honest_cases():
    """What training loops save in addition to weights: large, and valid."""
    values = random.Random(1)
    things = {
        "labels": [values.randrange(256) for _ in range(2_000_000)],
        "token_ids": [values.randrange(100_000) for _ in range(1_000_000)],
        "flags": [values.random() < 0.5 for _ in range(5_000_000)],
        "triples": [(values.random(), values.randrange(1000), values.random()) for _ in range(400_000)],
        "small_triples": [(values.randrange(256), values.randrange(256), 1) for _ in range(400_000)],
        "history": [dict(step=i, loss=values.random(), lr=1e-3, seconds=values.random(), best=0) for i in range(100_000)],
        "vocabulary": {f"token{i}": i for i in range(500_000)},
        "empty_lists": [[] for _ in range(1_000_000)],
    }
    for name, value in things.items():
        yield "honest_" + name, archive(pickle.dumps({"model": value, "epoch": 3}, 2)), "ok"


def tensor_cases():
    limit = 2**63 - 1
    yield "storage_larger_than_record", state(w=tensor((64,), store=storage(elements=64))), "OutOfBounds"
    yield "storage_of_2e26_elements", state(w=tensor((2**26,), store=storage(elements=2**26))), "OutOfBounds"
    yield "storage_size_overflows", state(w=tensor((1,), store=storage(elements=limit))), "OutOfBounds"
    yield "storage_size_negative", state(w=tensor(store=storage(elements=-1))), "OutOfBounds"
    yield "storage_size_beyond_64_bits", state(w=tensor(store=storage(elements=2**64))), "Corrupt"
    yield "storage_missing", state(w=tensor(store=storage("1"))), "Corrupt"
    yield "storage_path_traversal", state(w=tensor(store=storage("../../../etc/passwd"))), "Corrupt"
    yield "storage_of_two_sizes", state(
        a=tensor((2,)), b=tensor((2,), store=storage(elements=4, kind="DoubleStorage"))), "Corrupt"
    yield "storage_kind_unknown", state(w=tensor(store=storage(kind="EvilStorage"))), "ok"
    yield "storage_kind_below_a_byte", state(w=tensor(
        store=storage(kind="UntypedStorage", module="torch.storage"), function="_rebuild_tensor_v3",
        flags=glob("torch", "uint4"))), "ok"
    yield "storage_is_no_persistent_object", state(w=tensor(store=text("storage"))), "Corrupt"
    yield "storage_part_outside", state(w=tensor((1,), store=storage(
        view=tuple_of(text("v"), integer(3), integer(2))))), "OutOfBounds"
    yield "storage_part_negative", state(w=tensor((1,), store=storage(
        view=tuple_of(text("v"), integer(-1), integer(2))))), "OutOfBounds"
    yield "storage_part_negative_with_an_offset", state(w=tensor((1,), offset=1, store=storage(
        view=tuple_of(text("v"), integer(-1), integer(2))))), "OutOfBounds"
    yield "storage_of_two_dtypes", state(w=tensor(
        function="_rebuild_tensor_v3", flags=glob("torch", "float16"))), "Corrupt"
    yield "storage_by_another_word", state(w=tensor(store=tuple_of(
        text("module"), glob("torch", "FloatStorage"), text("0"), text("cpu"), integer(4)) + b"Q")), "Corrupt"
    yield "tensor_outside_part_of_storage", state(w=tensor((3,), store=storage(
        view=tuple_of(text("v"), integer(1), integer(2))))), "OutOfBounds"
    yield "tensor_shape_outside", state(w=tensor((5,))), "OutOfBounds"
    yield "tensor_stride_outside", state(w=tensor((2,), (4,))), "OutOfBounds"
    yield "tensor_offset_outside", state(w=tensor((1,), offset=4)), "OutOfBounds"
    yield "tensor_offset_negative", state(w=tensor((1,), offset=-1)), "OutOfBounds"
    yield "tensor_offset_overflows", state(w=tensor((1,), offset=limit)), "OutOfBounds"
    yield "tensor_size_negative", state(w=tensor((-4,))), "Corrupt"
    yield "tensor_stride_negative", state(w=tensor((2,), (-1,), offset=3)), "Corrupt"
    yield "tensor_sizes_overflow", state(w=tensor((2**32, 2**32), (0, 0))), "OutOfBounds"
    yield "tensor_sizes_overflow_to_zero", state(w=tensor((2**32, 2**32, 0), (0, 0, 0))), "OutOfBounds"
    yield "tensor_strides_overflow", state(w=tensor((3, 3), (limit, limit))), "OutOfBounds"
    yield "tensor_expanded_to_4_TiB", state(w=tensor((2**40,), (0,))), "LimitExceeded"
    yield "tensor_of_300_dimensions", state(w=tensor((1,) * 300, (1,) * 300)), "Corrupt"
    yield "tensor_with_too_few_strides", state(w=tensor((2, 2), (1,))), "Corrupt"
    yield "tensor_size_is_a_text", state(w=glob("torch._utils", "_rebuild_tensor_v2") + tuple_of(
        storage(), integer(0), tuple_of(text("4")), tuple_of(integer(1)), b"\x89", b"N") + b"R"), "Corrupt"
    yield "tensor_from_nothing", state(w=glob("torch._utils", "_rebuild_tensor_v2") + b")R"), "Corrupt"
    yield "tensor_with_unknown_flag", state(w=tensor(flags=dict_of(evil=b"\x88"))), "ok"
    yield "tensor_real_but_conjugate", state(w=tensor(flags=dict_of(conj=b"\x88"))), "Corrupt"
    yield "tensor_wrapped_100_times", state(w=(glob("torch._utils", "_rebuild_parameter") + b"(") * 100 + tensor()
        + b"\x88NtR" * 100), "Corrupt"
    yield "tensor_name_not_utf8", archive(pickled(b"}" + text(b"\xff\xfe") + tensor() + b"s")), "Corrupt"
    yield "tensor_name_twice", archive(pickled(b"}(" + (text("w") + tensor()) * 2 + b"u")), "ok"
    yield "tensor_name_twice_by_nesting", archive(pickled(
        b"}(" + text("a.b") + tensor() + text("a") + dict_of(b=tensor()) + b"u")), "ok"
    # The key of a storage without elements needs no record, so it can have any length.
    store = storage("k" * 1_000_000, 0)
    yield "storage_key_long_many_times", archive(pickled(
        b"](" + tensor((0,), store=store + b"q\0") + tensor((0,), store=b"h\0") * 80_000 + b"e")), "LimitExceeded"
    yield "storage_key_collides", archive(pickled(b"}(" + b"".join(
        text(f"{i:x}") + tensor((0,), store=storage(key, 0)) for i, key in enumerate(colliding.names(20_000))) + b"u")), "ok"
    yield "tensor_names_collide", archive(pickled(
        tensor() + b"q\0" + b"0}(" + b"".join(text(name) + b"h\0" for name in colliding.names()) + b"u")), "ok"
    # Tensors that are listed with a reason; each costs an exception.
    unknown = tensor(store=storage(kind="EvilStorage"))
    yield "tensor_unknown_many_times", archive(pickled(b"](" + unknown + b"q\0" + b"h\0" * 30_000 + b"e")), "ok"
    yield "tensor_unknown_flood", archive(pickled(b"](" + unknown + b"q\0" + b"h\0" * 2_000_000 + b"e")), "LimitExceeded"
    yield "tensor_names_clash", archive(pickled(
        tensor() + b"q\0" + b"0}(" + b"".join(text(f"{i // 2:x}") + b"h\0" for i in range(50_000)) + b"u")), "ok"
    yield "tensor_alias_flood", archive(pickled(
        tensor() + b"q\0" + b"0}(" + b"".join(text(f"{i:x}") + b"h\0" for i in range(300_000)) + b"u")), "LimitExceeded"


def script_cases():
    module = glob("__torch__", "Net") + b")\x81" + dict_of(training=b"\x88", weight=tensor()) + b"b"
    yield "script_without_module", script(pickled(dict_of(w=tensor()))), "Corrupt"
    yield "script_frozen", script(pickled(glob("__torch__", "Net") + b")\x81}b")), "Unsupported"
    yield "script_storage_outside", script(pickled(module.replace(integer(4), integer(400)))), "OutOfBounds"
    yield "script_module_in_itself", script(pickled(
        glob("__torch__", "Net") + b")\x81q\0" + dict_of(training=b"\x88", again=b"h\0") + b"b"),
        b"class Net(Module):\n  __parameters__ = []\n  __buffers__ = []\n"), "LimitExceeded"
    long_class = glob("__torch__." + "a" * 2_000_000, "Net")
    yield "script_class_long_many_times", script(pickled(
        long_class + b"q\0)\x81" + dict_of(training=b"\x88") + b"b0" + glob("__torch__", "Net") + b")\x81}(" + b"".join(
            text(f"{i:x}") + b"h\0)\x81}b" for i in range(100_000)) + text("training") + b"\x88ub")), "LimitExceeded"
    yield "flatbuffer_module", b"\x20\0\0\0PTMF" + bytes(64), "Unsupported"


def pt2(config, version=b"0", **more):
    out = Zip().add("r/archive_format", b"pt2").add("r/archive_version", version)
    if config is not None:
        config = config if isinstance(config, bytes) else json.dumps(config).encode()
        out.add("r/data/weights/model_weights_config.json", config)
    for name, data in more.items():
        out.add(name, data)
    return out.add("r/data/weights/weight_0", bytes(64)).bytes()


def weight(sizes=(4,), strides=(1,), offset=0, dtype=7, record="weight_0", **more):
    numbers = lambda values: [{"as_int": value} for value in values]
    return {"path_name": record, "is_param": True, "use_pickle": False, "tensor_meta": dict({
        "dtype": dtype, "sizes": numbers(sizes), "strides": numbers(strides), "storage_offset": {"as_int": offset},
        "layout": 7, "requires_grad": False}, **more)}


def pt2_cases():
    config = lambda **changes: {"config": {"w": weight(**changes)}}
    yield "pt2_without_weights", pt2(None), "Unsupported"
    for name, field in {"text": {"path_name": "x"}, "bool": {"is_param": True}, "number": {"tensor_meta": {"dtype": 3}},
                        "shape": {"tensor_meta": {"sizes": [{"as_int": 3}]}}}.items():
        yield "pt2_config_of_a_list_" + name, pt2({"config": [field]}), "Corrupt"
        yield "pt2_weight_of_a_list_" + name, pt2({"config": {"w": [field]}}), "Corrupt"
    yield "pt2_version_unknown", pt2(config(), b"7"), "Unsupported"
    yield "pt2_format_unknown", Zip().add("r/archive_format", b"pt9").bytes(), "Unsupported"
    yield "pt2_json_cut_off", pt2(json.dumps(config()).encode()[:-3]), "Corrupt"
    yield "pt2_json_not_utf8", pt2(b'{"config": {"\xff": {}}}'), "Corrupt"
    yield "pt2_json_with_nul", pt2(b'{"config": {}}\0{'), "Corrupt"
    yield "pt2_json_nested_100000", pt2(b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "LimitExceeded"
    yield "pt2_json_is_a_list", pt2(b"[]"), "Corrupt"
    yield "pt2_json_without_config", pt2(b"{}"), "Corrupt"
    yield "pt2_weight_twice", pt2(b'{"config": {"w": ' + json.dumps(weight()).encode() + b', "w": {}}}'), "Corrupt"
    yield "pt2_field_twice", pt2(json.dumps(config()).replace('"dtype": 7', '"dtype": 7, "dtype": 8').encode()), "Corrupt"
    yield "pt2_weight_is_a_number", pt2({"config": {"w": 1}}), "Corrupt"
    yield "pt2_weight_without_dtype", pt2({"config": {"w": {"path_name": "weight_0"}}}), "Corrupt"
    yield "pt2_weight_outside", pt2(config(sizes=(17,))), "OutOfBounds"
    yield "pt2_offset_outside", pt2(config(offset=13)), "OutOfBounds"
    yield "pt2_offset_negative", pt2(config(offset=-1)), "OutOfBounds"
    yield "pt2_sizes_overflow", pt2(config(sizes=(2**62, 2**62), strides=(0, 0))), "OutOfBounds"
    yield "pt2_size_is_real", pt2(config(sizes=(1.5,))), "Corrupt"
    yield "pt2_size_beyond_64_bits", pt2(config(sizes=(2**64,))), "Corrupt"
    yield "pt2_size_negative", pt2(config(sizes=(-1,))), "Corrupt"
    yield "pt2_dtype_unknown", pt2(config(dtype=99)), "ok"
    yield "pt2_of_300_dimensions", pt2(config(sizes=(1,) * 300, strides=(1,) * 300)), "Corrupt"
    yield "pt2_size_is_text", pt2(json.dumps(config()).replace('"as_int": 4', '"as_expr": "s0"').encode()), "Unsupported"
    yield "pt2_layout_is_sparse", pt2(config(sizes=(17,), layout=1)), "ok"
    yield "pt2_two_programs", pt2(config(), **{"r/data/weights/other_weights_config.json": b"{}"}), "Unsupported"
    yield "pt2_compressed_state_dict", Zip().add("r/archive_format", b"pt2").add("r/archive_version", b"0").add(
        "r/data/weights/model.pt", bytes(64), method=8).bytes(), "Unsupported"
    yield "pt2_record_missing", pt2(config(record="weight_9")), "Corrupt"
    yield "pt2_record_path_traversal", pt2(config(record="../../../../etc/passwd")), "Corrupt"
    yield "pt2_names_collide", pt2(b'{"x":{' + b",".join(
        name.encode() + b":1" for name in colliding.in_json()) + b'},"config":{}}'), "ok"
    yield "pt2_weight_flood", pt2(b'{"config": {' + b",".join(b'"%x":{}' % i for i in range(300_000)) + b"}}"), "LimitExceeded"


def legacy(body, keys=("0",), data=None, machine=b"\x88", protocol=1001, magic=None):
    head = b"\x80\2\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    out = head + pickled(b"M" + struct.pack("<H", protocol)) + pickled(dict_of(little_endian=machine)) + pickled(body)
    out += pickled(b"](" + b"".join(map(text, keys)) + b"e")
    return out + (struct.pack("<q", 4) + bytes(16) if data is None else data)


def legacy_cases():
    good = dict_of(w=tensor())
    whole = legacy(good)
    yield "legacy_cut_in_data", whole[:-1], "Truncated"
    yield "legacy_cut_in_pickle", whole[:60], "Truncated"
    yield "legacy_magic_only", whole[:15], "Truncated"
    yield "legacy_big_endian", legacy(good, machine=b"\x89"), "Unsupported"
    yield "legacy_protocol_unknown", legacy(good, protocol=1002), "Unsupported"
    yield "legacy_count_differs", legacy(good, data=struct.pack("<q", 5) + bytes(20)), "Corrupt"
    yield "legacy_count_negative", legacy(good, data=struct.pack("<q", -1) + bytes(16)), "Corrupt"
    yield "legacy_storage_huge", legacy(dict_of(w=tensor((2**40,), store=storage(elements=2**40)))), "Truncated"
    yield "legacy_key_unknown", legacy(good, keys=("0", "1")), "Corrupt"
    yield "legacy_key_missing", legacy(good, keys=()), "Corrupt"
    yield "legacy_key_twice", legacy(good, keys=("0", "0"), data=(struct.pack("<q", 4) + bytes(16)) * 2), "DuplicateKey"
    yield "legacy_storage_kind_unknown", legacy(dict_of(w=tensor(store=storage(kind="EvilStorage")))), "Unsupported"
    yield "legacy_calls_os_system", legacy(call("os", "system", text("touch owned"))), "WholeModule"
    yield "legacy_nested_lists", legacy(b"]" * 200000 + b"a" * 199999, (), b""), "LimitExceeded"


def cases():
    for group in (zip_cases, pickle_cases, honest_cases, tensor_cases, script_cases, pt2_cases, legacy_cases):
        yield from group()
