"""The files of exact tables that `posenc table` writes have the same bytes on every CPU.

    digests.py COMMAND...          COMMAND starts posenc, for example `qemu-aarch64-static posenc`
    digests.py --print COMMAND...  prints the digests of this CPU

They were computed on x86-64, with SSE2, AVX2 and AVX-512 alike; `make arm64` runs this with a posenc for ARM64.
"""

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path

DIGESTS = {
    "--preset annotated_transformer --dim 38 --length 3001":
        "5c61a937b99559ce1f808c1cd41e9ceb4e547122a97776aa26aefc01c9669bf1",
    "--preset annotated_transformer --dim 512 --length 700":
        "794ef66d8529af4a14506ae6f6dfdf9b9e5a5e985e7e3b5b2d60e1324705e3cc",
    "--preset fairseq --dim 512 --length 700":
        "206ea099ca3207a7b6b38e42a63089ebd55a0eda2196892ec366fc2faf0af3f9",
    "--preset espnet_rel --dim 96 --length 400":
        "00fe93dcbe5a5fc4bf69869c872ab70e9fee17680d1817758238a0c35b64ca44",
    "--preset diffusers_timesteps --dim 320 --length 300":
        "cbf1dba909a8af593dd87f8dbb6d643b9bf882a87af3299d4ebb784b4740f099",
    "--preset whisper --dim 384 --length 500":
        "45eee53d8d87889aacdab35715ca3eef025a34cc44e17d95571f430dd6bd1a1f",
}


def digest(command, arguments, folder):
    path = Path(folder) / "table.safetensors"
    subprocess.run([*command, "table", "--precision", "exact", *arguments.split(), "--out", path], check=True, timeout=3000)
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    command = sys.argv[1:]
    show = command[0] == "--print"
    command = command[show:]
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        for arguments, expected in DIGESTS.items():
            got = digest(command, arguments, folder)
            if show:
                print(f'    "{arguments}":\n        "{got}",')
            elif got != expected:
                wrong += 1
                print(f"posenc table --precision exact {arguments}: the file's SHA-256 must be {expected}. Got {got}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
