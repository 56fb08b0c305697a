"""tools/setup.sh with a fake Python: which torch it requests, from where, and when it requests none."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Stands in for .venv's python and python3: records each call of pip, and has torch once it was installed.
PYTHON = r"""#!/usr/bin/env bash
here=$(dirname "$0")/..
case "$*" in
  *"pip config list"*) echo ":env:.find-links='$FAKE_FIND_LINKS'" ;;
  *"pip index versions"*) echo "$*" >>"$FAKE_LOG"; [ -n "$FAKE_INDEX" ] && echo "Available versions: 2.13.0+cpu, 2.12.1+cpu" ;;
  *"pip install"*"${FAKE_BROKEN:-no package}"*) echo "$*" >>"$FAKE_LOG"; exit 1 ;;
  *"pip install"*" /dev/stdin") echo "$* $(tr '\n' ' ')" >>"$FAKE_LOG" ;;
  *"pip install"*) echo "$*" >>"$FAKE_LOG"; case "$*" in *torch==*) touch "$here/torch" ;; esac ;;
  "- 2.12 "*) [ -e "$here/torch" ] && { [ -z "$3" ] || grep -q "torch==$3" "$FAKE_LOG"; } && echo "$here" ;;
  "-m compileall "*) echo "$*" >>"$FAKE_LOG" ;;
  *"import ensurepip, venv"* | *"import pip"*) ;;
  *"torch.version.cuda"*) echo 13.0 ;;
  *"cmake_prefix_path"*) echo "$FAKE_TORCH" ;;
  *"torch.__version__"*) echo 2.13.0+cu130 ;;
  *) exit 1 ;;
esac
"""
INDEX = "pip index versions torch --index-url"
FROM_INDEX = "pip install --quiet --disable-pip-version-check --no-compile --no-deps --index-url"


class SetupTest(unittest.TestCase):
    def setup_sh(self, sets=("build",), index=False, find_links="", programs=None, **environment):
        """The calls of pip that tools/setup.sh makes in an empty tree."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("tools/setup.sh", "notebooks_ref/requirements.txt"):
                (root / name).parent.mkdir(exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            for name in ("venv/bin/python", "path/python3"):
                path = root / name.replace("venv", ".venv")
                path.parent.mkdir(parents=True)
                path.write_text(PYTHON)
                path.chmod(0o755)
            for name, text in (programs or {}).items():
                path = root / "path" / name
                path.write_text(f"#!/bin/sh\n{text}\n")
                path.chmod(0o755)
            (root / "torch-cmake/Torch").mkdir(parents=True)
            (root / "torch-cmake/Torch/TorchConfig.cmake").touch()
            log = root / "log"
            log.touch()
            kept = {name: value for name, value in os.environ.items()
                    if name not in ("Torch_DIR", "CMAKE_PREFIX_PATH", "POSENC_TORCH_CPU_INDEX")}
            fake = {"PATH": f"{root}/path:{os.environ['PATH']}", "FAKE_LOG": str(log), "FAKE_FIND_LINKS": find_links,
                    "FAKE_INDEX": "1" if index else "", "FAKE_TORCH": str(root / "torch-cmake")}
            for name, value in environment.items():
                fake[name] = value.replace("ROOT", folder)
            run = subprocess.run([root / "tools/setup.sh", *sets], capture_output=True, text=True, check=False,
                                 env={**kept, **fake}, timeout=3000)
            if "--check" in sets and run.returncode != 0:
                self.assertFalse((root / "build/setup.env").exists())
                return log.read_text() + run.stderr
            self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
            self.assertIn(f"TORCH_DIR={root}/torch-cmake/Torch", (root / "build/setup.env").read_text())
            return log.read_text()

    def test_check_installs_nothing_and_says_what_is_missing(self):
        said = self.setup_sh(("--check", "build"), index=True)
        self.assertIn("setup: missing: a LibTorch", said)
        self.assertIn("'make setup' installs it", said)
        self.assertNotIn("pip install", said)
        self.assertEqual(self.setup_sh(("--check", "build"), Torch_DIR="ROOT/torch-cmake/Torch"), "")

    def test_the_cpu_build_where_its_index_answers(self):
        calls = self.setup_sh(index=True)
        self.assertIn(f"{INDEX} https://", calls)
        self.assertIn("--timeout 3 --retries 0", calls)
        self.assertIn(f"{FROM_INDEX} https://", calls)
        self.assertIn("torch==2.13.0 numpy", calls, "what torch needs comes from where pip has everything")

    def test_the_cuda_build_where_it_does_not(self):
        calls = self.setup_sh()
        self.assertIn(INDEX, calls)
        self.assertNotIn(FROM_INDEX, calls)
        self.assertIn("torch==2.13.0 numpy", calls)

    def test_a_version_that_is_named(self):
        own = {"TORCH": "2.15.0"}
        self.assertIn("torch==2.15.0 numpy", self.setup_sh(find_links="/wheels", **own))
        self.assertIn("no torch 2.15.0 in .venv", self.setup_sh(("--check", "build"), **own))
        for wrong in ("2.15", "newest"):
            self.assertIn(f"TORCH must be a version of torch, such as 2.15.0. Got '{wrong}'", self.setup_sh(("--check", "build"), TORCH=wrong))

    def test_a_configured_pip_is_left_alone(self):
        calls = self.setup_sh(index=True, find_links="/wheels")
        self.assertNotIn(INDEX, calls)
        self.assertIn("torch==2.13.0 numpy", calls)

    def test_the_index_can_be_named_or_left_out(self):
        self.assertNotIn(INDEX, self.setup_sh(index=True, POSENC_TORCH_CPU_INDEX=""))
        calls = self.setup_sh(index=True, find_links="/wheels", POSENC_TORCH_CPU_INDEX="https://mirror.example/cpu")
        self.assertIn(f"{FROM_INDEX} https://mirror.example/cpu", calls)

    def test_no_torch_beside_a_libtorch_of_ones_own(self):
        self.assertEqual(self.setup_sh(index=True, Torch_DIR="ROOT/torch-cmake/Torch"), "")
        self.assertEqual(self.setup_sh(index=True, CMAKE_PREFIX_PATH="ROOT/none;ROOT/torch-cmake"), "")

    def test_homebrew_on_macos(self):
        def mac(*missing):
            """The programs of a Mac that lacks these packages of Homebrew's."""
            brew = f'case " {" ".join(missing)} " in *" $3 "*) exit 1 ;; esac; [ "$1" = list ] || echo "brew $*" >>"$FAKE_LOG"'
            return {"uname": "echo Darwin", "brew": brew, "apt-get": "exit 1", "dpkg-query": "exit 1"}

        own = {"Torch_DIR": "ROOT/torch-cmake/Torch"}
        self.assertEqual(self.setup_sh(programs=mac(), **own), "", "all is there")
        self.assertEqual(self.setup_sh(programs=mac("fmt"), **own), "brew install fmt\n")
        said = self.setup_sh(("--check", "build"), programs=mac("ninja", "fmt"), **own)
        self.assertIn("setup: missing: Homebrew's ninja fmt. 'make setup' installs them", said)

    def test_only_what_runs_pythons_torch_installs_it(self):
        own = {"Torch_DIR": "ROOT/torch-cmake/Torch"}
        self.assertNotIn("torch==", self.setup_sh(sets=("build", "pronounce"), **own))
        self.assertIn("torch==", self.setup_sh(sets=("build", "demo"), **own))

    def test_the_demo_draws_with_matplotlib(self):
        self.assertRegex(self.setup_sh(sets=("build", "demo")), r"matplotlib==\S+ numpy==\S+ safetensors==")
        self.assertNotIn("matplotlib", self.setup_sh(sets=("build", "bench")))

    def test_only_where_python_starts_often_all_is_compiled(self):
        self.assertNotIn("compileall", self.setup_sh(sets=("build", "demo")))
        self.assertIn("-m compileall -q -j 0 ", self.setup_sh(sets=("build", "bench")))

    def test_the_demo_goes_on_without_transformers(self):
        self.assertIn("transformers==", self.setup_sh(sets=("build", "demo")))
        self.assertIn("transformers==", self.setup_sh(sets=("build", "demo"), FAKE_BROKEN="transformers"))
        self.assertNotIn("transformers==", self.setup_sh(sets=("build", "pronounce")))


if __name__ == "__main__":
    unittest.main()
