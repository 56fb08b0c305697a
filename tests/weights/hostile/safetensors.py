"""safetensors files that each break one rule, and some that are valid.

cases() yields (name, bytes, code): the name of the expected WeightsErrorCode, or "ok". Files with UnknownFormat do not
even look like safetensors.
"""

import json
import struct

import colliding

EIGHT = b"\1" * 8


def crafted(header, data=b""):
    """A file with this header (text or bytes), valid or not, and these data."""
    header = header.encode() if isinstance(header, str) else header
    return struct.pack("<Q", len(header)) + header + data


def tensor(dtype, shape, offsets, more=""):
    """A header with one tensor `a`, given by the text of its three fields."""
    return f'{{"a":{{"dtype":{dtype},"shape":{shape},"data_offsets":{offsets}{more}}}}}'


def two(first, second):
    """A header with two tensors of four bytes at these offsets."""
    return (f'{{"a":{{"dtype":"U8","shape":[4],"data_offsets":{first}}},'
            f'"b":{{"dtype":"U8","shape":[4],"data_offsets":{second}}}}}')


FINE = tensor('"F32"', "[2]", "[0,8]")


def accepted():
    yield "empty_object", crafted("{}")
    yield "spaces_around", crafted("  {\n}\t ")
    yield "many_spaces_in_front", crafted(" " * 1000 + "{}")
    yield "metadata_null", crafted('{"__metadata__":null,"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}', EIGHT)
    yield "any_order", crafted(two("[4,8]", "[0,4]"), EIGHT)
    yield "unknown_fields", crafted(
        tensor('"F32"', "[2]", "[0,8]", ',"x":{"shape":[[{"dtype":1}],null,-1.5]},"y":true'), EIGHT)
    yield "unaligned", crafted('{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},'
                               '"b":{"dtype":"F64","shape":[1],"data_offsets":[1,9]}}', EIGHT + b"x")
    yield "scalar", crafted(tensor('"F64"', "[]", "[0,8]"), EIGHT)
    yield "no_elements", crafted(tensor('"F64"', "[3,0,9]", "[0,0]"))
    yield "metadata", crafted('{"__metadata__":{"format":"pt","\\u00e9":""}}')
    yield "empty_name", crafted('{"":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}}', EIGHT)
    sizes = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1,
             "U16": 2, "U32": 4, "U64": 8, "BOOL": 1, "C64": 8, "F8_E4M3": 1, "F8_E5M2": 1,
             "F8_E8M0": 1, "F8_E4M3FNUZ": 1, "F8_E5M2FNUZ": 1}
    for dtype, size in sizes.items():
        yield "dtype_" + dtype.lower(), crafted(tensor(f'"{dtype}"', f"[{8 // size}]", "[0,8]"), EIGHT)


def of_length():
    yield "nine_bytes", b"\2\0\0\0\0\0\0\0{", "UnknownFormat"
    yield "zero_header", b"\0" * 16, "UnknownFormat"
    yield "huge_header", b"\xff" * 8 + b"{}", "UnknownFormat"
    yield "header_beyond_limit", struct.pack("<Q", 100_000_001) + b"{}", "UnknownFormat"
    yield "header_beyond_file", struct.pack("<Q", 3) + b"{}", "Truncated"
    yield "header_far_beyond_file", struct.pack("<Q", 100_000_000) + b"{}", "Truncated"


def of_json():
    texts = {
        "cut": FINE[:30], "junk": FINE + "x", "two_objects": "{}{}", "bare_key": "{a:1}",
        "trailing_comma": '{"a":{},}', "comment": "{/**/}", "single_quotes": "{'a':1}",
        "nan": tensor('"F32"', "[NaN]", "[0,8]"), "leading_zero": tensor('"F32"', "[02]", "[0,8]"),
        "plus": tensor('"F32"', "[+2]", "[0,8]"), "control_character": '{"a\nb":{}}',
        "lone_surrogate": r'{"\ud800":{}}', "bad_escape": r'{"\x41":{}}', "unclosed": "{" * 20,
        "nul_and_junk": "{}\0]]", "nul_padding": "{}\0\0", "nul_in_name": '{"a\0b":{}}',
    }
    for name, text in texts.items():
        yield "json_" + name, crafted(text, EIGHT), "Corrupt"
    yield "json_byte_order_mark", crafted(b"\xef\xbb\xbf{}"), "UnknownFormat"
    yield "json_utf16", crafted("{}".encode("utf-16-le")), "Corrupt"
    yield "json_bad_utf8", crafted(b'{"\xff":{}}'), "Corrupt"
    yield "json_overlong_utf8", crafted(b'{"\xc0\xaf":{}}'), "Corrupt"
    yield "json_surrogate_utf8", crafted(b'{"\xed\xa0\x80":{}}'), "Corrupt"
    yield "json_array", crafted("[1,2]"), "UnknownFormat"
    yield "json_number", crafted("12"), "UnknownFormat"
    nested = "[" * 200_000
    yield "deep_unknown_field", crafted(
        tensor('"U8"', "[8]", "[0,8]", ',"x":' + nested + "]" * 200_000), EIGHT), "LimitExceeded"
    yield "deep_objects", crafted(tensor('"U8"', "[8]", "[0,8]", ',"x":' + '{"x":' * 200_000)), "LimitExceeded"
    yield "deep_shape", crafted(tensor('"U8"', nested, "[0,8]"), EIGHT), "Corrupt"
    yield "deep_value", crafted('{"a":' * 100_000), "LimitExceeded"


def of_names():
    entry = '"a":{"dtype":"U8","shape":[8],"data_offsets":[0,8]}'
    yield "name_twice", crafted("{" + entry + "," + entry + "}", EIGHT), "DuplicateKey"
    yield "name_twice_escaped", crafted(
        "{" + entry + r',"\u0061":{"dtype":"U8","shape":[0],"data_offsets":[8,8]}}', EIGHT), "DuplicateKey"
    yield "field_twice", crafted(tensor('"F32"', "[2]", "[0,8]", ',"shape":[2]'), EIGHT), "DuplicateKey"
    yield "metadata_twice_null", crafted('{"__metadata__":null,"__metadata__":{}}'), "DuplicateKey"
    yield "metadata_null_twice", crafted('{"__metadata__":null,"__metadata__":null}'), "DuplicateKey"
    yield "metadata_twice_null_last", crafted('{"__metadata__":{},"__metadata__":null}'), "DuplicateKey"
    yield "metadata_twice", crafted('{"__metadata__":{},"__metadata__":{}}'), "DuplicateKey"
    yield "metadata_key_twice", crafted('{"__metadata__":{"k":"1","k":"2"}}'), "DuplicateKey"
    for name, value in {"number": '{"k":1}', "object": '{"k":{}}', "list": '{"k":[]}', "array": '["k"]',
                        "text": '"k"'}.items():
        yield "metadata_" + name, crafted('{"__metadata__":' + value + "}"), "Corrupt"
    for name, value in {"number": "3", "array": "[]", "text": '"x"', "null": "null", "empty": "{}"}.items():
        yield "tensor_" + name, crafted('{"a":' + value + "}"), "Corrupt"
    fields = {"dtype": '"U8"', "shape": "[8]", "data_offsets": "[0,8]"}
    for left_out in fields:
        rest = ",".join(f'"{key}":{value}' for key, value in fields.items() if key != left_out)
        yield "without_" + left_out, crafted('{"a":{' + rest + "}}", EIGHT), "Corrupt"


def of_dtypes():
    for name, value in {"number": "3", "null": "null", "array": '["F32"]', "object": "{}"}.items():
        yield "dtype_" + name, crafted(tensor(value, "[2]", "[0,8]"), EIGHT), "Corrupt"
    for name in ["F128", "f32", "", "F32 ", "torch.float32", "C128", "I4"]:
        shown = name.strip().lower().replace(".", "_") + ("_blank" if " " in name else "")
        yield "dtype_is_" + (shown or "empty") + ("_lower" if name == "f32" else ""), crafted(
            tensor(json.dumps(name), "[2]", "[0,8]"), EIGHT), "ok"
    for name, shape in [("F4", 16), ("F6_E2M3", None), ("F6_E3M2", None)]:
        for size in (2, 3, 16, 32, 2**62):
            yield f"dtype_{name.lower()}_{size}", crafted(
                tensor(json.dumps(name), f"[{size}]", "[0,8]"), EIGHT), "ok" if size == shape else "Corrupt"
    yield "dtype_unknown_with_a_hole", crafted(tensor('"F4"', "[8]", "[4,8]"), EIGHT), "Corrupt"
    yield "dtype_unknown_flood", crafted("{" + ",".join(
        f'"{i:x}":{{"dtype":"F4","shape":[0],"data_offsets":[0,0]}}' for i in range(150_000)) + "}"), "ok"


def of_shapes():
    for name, shape in {"number": "2", "negative": "[-2]", "minus_zero": "[-0]", "float": "[2.0]",
                        "exponent": "[2e0]", "text": '["2"]', "true": "[true]", "null": "[null]",
                        "object": "[{}]", "nested": "[[2]]", "beyond_int64": "[9223372036854775808]",
                        "beyond_64_bits": "[99999999999999999999]", "huge_digits": "[1" + "0" * 5000 + "]",
                        "too_small": "[3]", "too_large": "[1]"}.items():
        yield "shape_" + name, crafted(tensor('"F32"', shape, "[0,8]"), EIGHT), "Corrupt"
    yield "shape_too_many", crafted(tensor('"U8"', "[" + "1," * 64 + "1]", "[0,1]"), b"1"), "LimitExceeded"
    # 2^32 * 2^32 and 2^62 * 4 bytes wrap to 0, 3 * 0x5555555555555556 to 2.
    for name, dtype, shape, end in [("product", "U8", "[4294967296,4294967296]", 0),
                                    ("bytes", "F32", "[4611686018427387904]", 0),
                                    ("wrap", "U8", "[6148914691236517206,3]", 2),
                                    ("after_zero", "U8", "[0,4294967296,4294967296]", 0),
                                    ("largest", "F64", "[9223372036854775807]", 8)]:
        yield "overflow_" + name, crafted(tensor(f'"{dtype}"', shape, f"[0,{end}]"), EIGHT[:end]), "Corrupt"


def of_offsets():
    for name, offsets in {"one": "[0]", "three": "[0,8,8]", "none": "[]", "negative": "[-8,0]",
                          "float": "[0.0,8]", "reversed": "[8,0]", "text": '["0","8"]', "number": "8",
                          "wrap": "[18446744073709551608,0]", "beyond_64_bits": "[0,18446744073709551616]",
                          "far_away": "[18446744073709551600,18446744073709551608]"}.items():
        yield "offsets_" + name, crafted(tensor('"F32"', "[2]", offsets), EIGHT), "Corrupt"
    yield "data_truncated", crafted(FINE, EIGHT[1:]), "Truncated"
    yield "data_missing", crafted(FINE), "Truncated"
    yield "trailing", crafted(FINE, EIGHT + b"x"), "Corrupt"
    yield "trailing_alone", crafted("{}", b"x"), "Corrupt"
    yield "overlap", crafted(two("[0,4]", "[3,7]"), EIGHT[1:]), "Corrupt"
    yield "same_range", crafted(two("[0,4]", "[0,4]"), EIGHT[4:]), "Corrupt"
    yield "hole", crafted(two("[0,4]", "[5,9]"), EIGHT + b"x"), "Corrupt"
    yield "hole_in_front", crafted(tensor('"U8"', "[7]", "[1,8]"), EIGHT), "Corrupt"
    yield "empty_elsewhere", crafted(tensor('"U8"', "[0]", "[5,5]")), "Corrupt"


def of_size():
    """Valid in form, but costly in memory or time."""
    many = ",".join(f'"{i:x}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(300_000))
    yield "many_tensors", crafted("{" + many + "}"), "ok"
    zeros = "[" + "0," * 63 + "0]"
    deep = ",".join(f'"{i:x}":{{"dtype":"U8","shape":{zeros},"data_offsets":[0,0]}}' for i in range(50_000))
    yield "many_dimensions", crafted("{" + deep + "}"), "ok"
    names = ",".join(f'{name}:{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for name in colliding.in_json(80_000))
    yield "names_that_collide", crafted("{" + names + "}"), "ok"
    keys = ",".join(f'"{i:x}":""' for i in range(1_000_000))
    yield "many_metadata", crafted('{"__metadata__":{' + keys + "}}"), "ok"
    yield "many_values", crafted(tensor('"U8"', "[8]", "[0,8]", ',"x":[' + "1," * 11_000_000 + "1]"), EIGHT), "ok"
    yield "longest", crafted("{" + " " * 99_999_998 + "}"), "ok"
    yield "long_name", crafted('{"' + "n" * 20_000_000 + '":{"dtype":"U8"}}'), "Corrupt"
    yield "blanks", crafted("{" + " " * 20_000_000 + "}"), "ok"
    yield "escapes", crafted('{"' + r"\u00e9" * 3_000_000 + '":3}'), "Corrupt"
    yield "numbers_of_digits", crafted(tensor('"U8"', "[8]", "[0,8]", ',"x":' + "1" * 10_000_000), EIGHT), "Corrupt"


def cases():
    for name, data in accepted():
        yield name, data, "ok"
    for part in (of_length, of_json, of_names, of_dtypes, of_shapes, of_offsets, of_size):
        yield from part()
