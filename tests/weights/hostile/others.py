"""Files in other formats, or in none."""

import gzip
import io
import pickle
import random
import struct
import tarfile


def tar():
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("storages"), io.BytesIO())
    return out.getvalue()


def onnx():
    name = b"pytorch"
    return b"\x08\x08\x12" + bytes([len(name)]) + name + b"\x1a\x052.0.1\x3a\x02\x0a\x00"


def foreign():
    yield "flatbuffer", struct.pack("<I", 24) + b"PTMF" + b"\0" * 40
    yield "executorch", struct.pack("<I", 24) + b"ET12" + b"\0" * 40
    yield "tflite", struct.pack("<I", 24) + b"TFL3" + b"\0" * 40
    yield "gguf", b"GGUF" + struct.pack("<IQQ", 3, 0, 0)
    yield "hdf5", b"\x89HDF\r\n\x1a\n" + b"\0" * 40
    yield "numpy", b"\x93NUMPY\1\0" + b"\0" * 40
    yield "tar", tar()
    yield "gzip", gzip.compress(b"x" * 100)
    yield "gzip_magic_alone", b"\x1f\x8b"
    yield "bzip2", b"BZh91AY&SY"
    yield "xz", b"\xfd7zXZ\0\0\4"
    yield "zstd", b"\x28\xb5\x2f\xfd\0\0\0\0"
    yield "onnx", onnx()
    yield "git_lfs_pointer", b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n"
    yield "web_page", b"<!DOCTYPE html><html><title>404</title></html>"
    for protocol in range(2, 6):
        yield f"bare_pickle_{protocol}", pickle.dumps({"a": [1, 2, 3]}, protocol)


class System:
    """Runs a command if a reader executes it."""

    def __reduce__(self):
        return exec, ("open('posenc-was-here', 'w').close()",)


def cases():
    for name, data in foreign():
        yield name, data, "Unsupported"
    yield "pickle_that_runs", pickle.dumps(System(), 2), "Unsupported"
    yield "empty", b"", "Truncated"
    yield "one_byte", b"{", "Corrupt"
    yield "one_zero", b"\0", "UnknownFormat"
    yield "text", b"once upon a time there was a file", "UnknownFormat"
    yield "text_pickle", pickle.dumps({"a": 1}, 0), "UnknownFormat"
    yield "zeros", b"\0" * 100_000, "UnknownFormat"
    yield "blanks", b" " * 100_000, "UnknownFormat"
    yield "noise", random.Random(1).randbytes(100_000), "UnknownFormat"
    yield "png", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "UnknownFormat"
    yield "protobuf_of_something", b"\x08\x96\x01\x12\x07testing", "UnknownFormat"
