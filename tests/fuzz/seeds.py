"""The seeds of each fuzz target: parts of real and hostile files, in the form that it takes."""

import io
import zipfile

READS_JSON = {"safetensors", "index", "pt2"}


def header(data):
    """The JSON of a safetensors file."""
    length = int.from_bytes(data[:8], "little")
    return [data[8:8 + length]] if 2 <= length <= len(data) - 8 else []


def records(data, wanted):
    """The records of a zip archive whose names end with `wanted`; none for a broken archive."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return [archive.read(name) for name in archive.namelist() if name.endswith(wanted)]
    except Exception:  # zipfile raises many kinds
        return []


def seeds(target, name, data):
    """The seeds of `target` in this file."""
    is_zip, is_legacy = data.startswith(b"PK"), data.startswith(b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9")
    if target == "safetensors":
        return header(data)
    if target == "index":
        return [data] if data.lstrip().startswith(b"{") else []
    if target == "pickle":
        return records(data, ".pkl") if is_zip else [data] if is_legacy else []
    if target == "torch_legacy":
        return [data] if is_legacy else []
    if target == "pt2":
        return records(data, "model_weights_config.json")
    if target == "torchscript":  # the pickle and the code, as the target splits them
        code = b"".join(records(data, ".py"))
        return [pickle + b"#code" + code for pickle in records(data, "/data.pkl")]
    if target in ("zip_index", "torch_archive"):
        return [data] if is_zip else []
    return [data]
