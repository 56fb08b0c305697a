"""Names that collide in std::hash: a hash table that uses it must walk over all of them to find one."""

import functools
import json

import numpy as np

MUL = 0xC6A4A7935BD1E995  # from MurmurHash64A, as in libstdc++
SEED = 0xC70F6907
LENGTH = 16


def shift_mix(words):
    return words ^ (words >> np.uint64(47))  # its own inverse


@functools.cache
def names(count=40_000):
    """ASCII, including control characters. The first eight bytes are free, the others compensate for them."""
    mul, inverse = np.uint64(MUL), np.uint64(pow(MUL, -1, 2**64))
    start = np.uint64(SEED ^ LENGTH * MUL % 2**64)
    random = np.random.default_rng(1)
    found = set()
    while len(found) < count:
        first = random.integers(0, 2**63, 1 << 20, dtype=np.uint64) & np.uint64(0x7F7F7F7F7F7F7F7F)
        hashed = (start ^ shift_mix(first * mul) * mul) * mul
        second = shift_mix((hashed ^ np.uint64(12345)) * inverse) * inverse
        kept = (second & np.uint64(0x8080808080808080)) == 0
        together = np.stack([first[kept], second[kept]], 1).tobytes()
        found.update(together[i:i + LENGTH] for i in range(0, len(together), LENGTH))
    return [name.decode("ascii") for name in sorted(found)[:count]]


def in_json(count=40_000):
    return map(json.dumps, names(count))
