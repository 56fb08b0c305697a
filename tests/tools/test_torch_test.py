"""tools/test_torch.sh with a fake Python and a fake cmake: what it installs, configures and refuses."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Stands in for the python of the environment: records each call of pip, and has the torch that was installed.
PYTHON = r"""#!/usr/bin/env bash
here=$(dirname "$0")
case "$*" in
  *"pip install"*torch==*)
    echo "$*" >>"$FAKE_LOG"
    for word in "$@"; do case $word in torch==*) word=${word#torch==} && echo "${word%+*} $FAKE_BUILD" >"$here/torch" ;; esac; done ;;
  *"pip install"* | *"import pip"*) ;;
  *"torch.version.cuda"*) cat "$here/torch" ;;
  *"cmake_prefix_path"*) echo /cmake ;;
  *) exit 1 ;;
esac
"""
TOOL = '#!/bin/sh\necho "$(basename "$0") $*" >>"$FAKE_LOG"\n'


class TestTorch(unittest.TestCase):
    def run_it(self, version, build="", got="cuda", **environment):
        """The exit code, and the calls or the message."""
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("tools/setup.sh", "tools/test_torch.sh"):
                (root / "tools").mkdir(exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            name = f".venv-torch-{version}{'-' + build if build else ''}/bin/python"
            for name, text in ((name, PYTHON), ("path/cmake", TOOL), ("path/ctest", TOOL)):
                path = root / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                path.chmod(0o755)
            log = root / "log"
            log.touch()
            run = subprocess.run([root / "tools/test_torch.sh", version, build], capture_output=True, text=True, check=False, timeout=3000,
                                 env={**os.environ, "PATH": f"{root}/path:{os.environ['PATH']}", "FAKE_LOG": str(log),
                                      "FAKE_BUILD": got, "POSENC_TORCH_CPU_INDEX": "file:///cpu", **environment})  # fmt: skip
            return run.returncode, log.read_text() + run.stderr

    def test_a_version_is_installed_built_and_tested(self):
        code, calls = self.run_it("2.12.0", TEST_GROUPS="core positions_nn")
        self.assertEqual(code, 0, calls)
        self.assertIn("install --quiet torch==2.12.0\n", calls)
        self.assertIn("-B build/torch-2.12.0 ", calls)
        self.assertIn("-DTorch_DIR:PATH=/cmake/Torch", calls)
        self.assertIn("--target posenc-cli core_test positions_nn_test", calls)
        self.assertIn("ctest --test-dir build/torch-2.12.0 ", calls)
        self.assertIn("-L ^(core|positions_nn)$", calls)

    def test_a_cpu_build_comes_from_its_index(self):
        code, calls = self.run_it("2.12.0", "cpu", got="cpu")
        self.assertEqual(code, 0, calls)
        self.assertIn("--extra-index-url file:///cpu torch==2.12.0+cpu", calls)
        self.assertIn("-B build/torch-2.12.0-cpu ", calls)

    def test_another_build_than_the_wanted_is_refused(self):
        code, said = self.run_it("2.12.0", "cpu", got="cuda")
        self.assertEqual(code, 1)
        self.assertIn("the torch that pip has installed must be 2.12.0 cpu. Got 2.12.0 cuda", said)

    def test_wrong_arguments_are_refused(self):
        for version, build, text in (("", "", "VERSION must be a version of torch, such as 2.12.0. Got ''"),
                                     ("2.12", "", "Got '2.12'"), ("2.12.0", "rocm", "BUILD must be cpu or cuda. Got 'rocm'")):  # fmt: skip
            with self.subTest(version=version, build=build):
                code, said = self.run_it(version, build)
                self.assertEqual(code, 1)
                self.assertIn(text, said)


if __name__ == "__main__":
    unittest.main()
