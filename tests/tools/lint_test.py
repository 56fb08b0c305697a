#!/usr/bin/env python3
"""Each rule of tools/lint.py on a small tree: a good one passes, and each bad one is reported under its rule."""

import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
MODULE = {
    "notebook_class": "Gate", "notebook": "notebooks_ref/00_gate.ipynb", "reference": "notebooks_ref/reference/gate.py",
    "class": "Gate", "stem": "gate", "header": "include/posenc/nn/gate.h", "source": "src/nn/gate.cpp",
    "keys": ["weight"], "test": "tests/parity/gate_test.cpp", "fixtures": "tests/fixtures/gate",
}
SYSTEM = {
    "system": "acme/door@1", "system_class": "Hinge", "presets": ["hinge"], "class": "Door", "stem": "door",
    "header": "include/posenc/nn/door.h", "source": "src/nn/door.cpp", "keys": [], "test": "tests/nn/door_test.cpp",
}
GOOD = {
    ".clang-format": (ROOT / ".clang-format").read_text(),
    "include/posenc/posenc.h": "#pragma once\n#include <posenc/core/check.h>\n#include <posenc/nn/gate.h>\n",
    "include/posenc/core/check.h": "#pragma once\n",
    "include/posenc/nn/gate.h": '#pragma once\n#include "posenc/core/check.h"\nclass Gate;\nTORCH_MODULE(Gate);\n',
    "src/nn/gate.cpp": '#include "posenc/nn/gate.h"\n',
    "src/CMakeLists.txt": "set(a core/check.h nn/gate.h posenc.h)\n",
    "src/nn/CMakeLists.txt": "target_sources(posenc PRIVATE gate.cpp)\n",
    "tests/parity/gate_test.cpp": "// Gate: weight\n",
    "tests/parity/CMakeLists.txt": "posenc_test(parity gate_test.cpp)\n",
    "tests/fixtures/gate/a.safetensors": "x",
    "notebooks_ref/00_gate.ipynb": "{}\n",
    "notebooks_ref/reference/gate.py": "class Gate: ...\n",
    "tools/modules.json": json.dumps([MODULE], indent=2) + "\n",
}


class Lint(unittest.TestCase):
    def lint(self, change):
        """Runs lint on GOOD with the files of `change` applied (None removes a file)."""
        with tempfile.TemporaryDirectory() as folder:
            for name, text in {**GOOD, **change}.items():
                if text is not None:
                    path = Path(folder, name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(text)
            run = subprocess.run([sys.executable, ROOT / "tools/lint.py", "--root", folder],
                                 capture_output=True, text=True, check=False)
        return run.returncode, run.stdout + run.stderr

    def rejects(self, change, expected):
        code, output = self.lint(change)
        self.assertEqual(code, 1, output)
        self.assertIn(expected, output)

    def module(self, **change):
        return {"tools/modules.json": json.dumps([{**MODULE, **change}], indent=2) + "\n"}

    def test_a_good_tree_passes(self):
        code, output = self.lint({})
        self.assertEqual(code, 0, output)

    def test_format(self):
        self.rejects({"src/nn/gate.cpp": GOOD["src/nn/gate.cpp"] + "int  a;\n"}, "src/nn/gate.cpp:2: format:")

    def test_an_arrow_that_runs_up(self):
        self.rejects({"include/posenc/core/check.h": '#pragma once\n#include "posenc/nn/gate.h"\n'},
                     "include/posenc/core/check.h:2: layer: `core` includes only core")

    def test_a_private_header_has_its_folders_layer(self):
        self.rejects({"src/cli/x.h": "\n", "src/nn/gate.cpp": '#include "cli/x.h"\n'}, "src/nn/gate.cpp:1: layer:")

    def test_a_public_header_sees_no_private_one(self):
        self.rejects({"src/nn/x.h": "\n", "include/posenc/nn/gate.h": '#include "nn/x.h"\nclass Gate;\n'}, "is private")

    def test_a_command_sees_no_private_header_but_the_listed_ones(self):
        def command(target):
            return {"src/cli/x.cpp": f'#include "{target}"\n', "src/cli/CMakeLists.txt": "set(sources x.cpp)\n",
                    "src/core/nearest.h": "\n", "src/nn/y.h": "\n"}

        for target in ("posenc/nn/gate.h", "core/nearest.h"):
            self.assertEqual(self.lint(command(target))[0], 0, target)
        self.rejects(command("nn/y.h"), "src/cli/x.cpp:1: layer: the command line includes public headers")

    def test_a_circle(self):
        self.rejects({"src/nn/x.h": '#include "nn/y.h"\n', "src/nn/y.h": '#include "nn/x.h"\n'}, "no circle of includes")

    def test_an_unknown_layer(self):
        self.rejects({"src/util/x.h": "\n"}, "`util` is none of them")

    def test_an_include_of_nothing(self):
        self.rejects({"src/nn/gate.cpp": '#include "nn/gone.h"\n'}, "there is no nn/gone.h")

    def test_the_umbrella_inside(self):
        self.rejects({"src/nn/gate.cpp": '#include "posenc/posenc.h"\n'}, "the umbrella posenc.h is for users")

    def test_a_library_of_its_own(self):
        identify = {"include/posenc/identify.h": "#pragma once\n", "src/identify/x.cpp": '#include "posenc/identify.h"\n',
                    "src/identify/CMakeLists.txt": "add_library(posenc_identify x.cpp)\nf(../../include/posenc/identify.h)\n"}
        self.assertEqual(self.lint(identify)[0], 0)
        self.rejects({**identify, "src/identify/CMakeLists.txt": "add_library(posenc_identify x.cpp)\n"},
                     "a public header is listed in src/identify/CMakeLists.txt")
        self.rejects({**identify, "src/nn/gate.cpp": '#include "posenc/identify.h"\n'}, "posenc/identify.h is `identify`")
        self.rejects({**identify, "include/posenc/posenc.h": GOOD["include/posenc/posenc.h"] + '#include "posenc/identify.h"\n'},
                     "posenc/identify.h is of a library of its own")

    def test_what_a_shared_library_would_hide(self):
        def header(namespaces):
            return {"include/posenc/core/check.h": f"#pragma once\n{namespaces}\nint f();\n\n}}  // namespace posenc\n"}

        private = "namespace posenc {\nclass A;  // private\n}\n\n"
        self.assertEqual(self.lint(header(private + "namespace posenc POSENC_EXPORT {\n"))[0], 0)
        self.rejects(header("namespace posenc {\n"), "include/posenc/core/check.h:2: visibility:")
        self.rejects(header("namespace posenc::a {\n"), "include/posenc/core/check.h:2: visibility:")

    def test_torch_in_a_public_header(self):
        self.rejects({"include/posenc/nn/gate.h": "#include <torch/torch.h>\nclass Gate;\n"}, "never <torch/torch.h>")

    def test_torch_in_a_kernel(self):
        self.rejects({"src/kernels/x.cpp": "#include <ATen/ATen.h>\n"}, "`kernels` includes no torch header")

    def test_torch_in_the_part_of_text_that_knows_no_tensor(self):
        cmake = {"src/text/CMakeLists.txt": "add_library(posenc_text x.cpp tokenizer.cpp)\n"}
        self.assertEqual(self.lint({**cmake, "src/text/x.cpp": '#include "base/check.h"\n', "src/base/check.h": "#pragma once\n",
                                    "src/text/tokenizer.cpp": "#include <string>\n"})[0], 0)  # fmt: skip
        self.rejects({**cmake, "src/text/x.cpp": "#include <c10/util/Exception.h>\n"}, "of `text` only TEXT_TENSORS know LibTorch")
        self.rejects({**cmake, "src/text/x.cpp": '#include "posenc/io/error.h"\n', "include/posenc/io/error.h": "#pragma once\n"},
                     "of `text` only TEXT_TENSORS know LibTorch")

    def test_what_is_compiled_once_per_instruction_set(self):
        for include in ("<vector>", "<immintrin.h>", '"kernels/dispatch.h"', '"platform/processor.h"'):
            self.rejects({"src/kernels/dispatch.h": "#pragma once\n", "src/platform/processor.h": "#pragma once\n",
                          "src/kernels/isa/x.cpp": f"#include {include}\n"}, "what is compiled once per instruction set")

    def test_internals_of_libtorch(self):
        for line in ("#include <ATen/ThreadLocalState.h>", "#include <ATen/ops/_conj.h>", "#include <torch/csrc/autograd/function.h>",
                     "auto& g = p.mutable_grad();", "auto u = at::_unique(x);"):  # fmt: skip
            self.rejects({"src/nn/gate.cpp": line + "\n"}, "src/nn/gate.cpp:1: internals: ")
            internals = {"src/torch_internals/x.cpp": line + "\n", "src/torch_internals/CMakeLists.txt": "x.cpp\n"}
            self.assertEqual(self.lint(internals)[0], 0, line)

    def test_factories_where_frozen_models_run(self):
        cmake = {"src/inference/CMakeLists.txt": "x.cpp\n"}
        for line in ("auto x = at::zeros({2, size(3)});", "auto x = at::full(\n    {2}, one);", "auto x = torch::tensor(rows);"):
            self.rejects({**cmake, "src/inference/x.cpp": line + "\n"}, "src/inference/x.cpp:1: factory: ")
        for line in ("auto x = at::zeros({2, size(3)}, at::kFloat);", "auto x = at::full({2}, one, like.options());", "auto x = at::empty_like(rows);",
                     "at::TensorOptions whole(at::kLong), real(at::kFloat);\nauto x = at::arange(0, 2, real);"):  # fmt: skip
            self.assertEqual(self.lint({**cmake, "src/inference/x.cpp": line + "\n"})[0], 0, line)
        self.assertEqual(self.lint({"src/nn/gate.cpp": "auto x = torch::empty({2});\n"})[0], 0)

    def test_what_not_every_system_has(self):
        lines = ["#include <unistd.h>", "#include <sys/stat.h>", "#include <windows.h>", "#include <immintrin.h>",
                 "#ifdef __APPLE__\n#endif", 'auto self = open("/proc/self/exe");']  # fmt: skip
        texts = {f"x{number}.cpp": text + "\n" for number, text in enumerate(lines)}
        code, output = self.lint({f"src/nn/{name}": text for name, text in texts.items()})
        for name in texts:
            self.assertIn(f"src/nn/{name}:1: system: ", output)
        allowed = {f"src/platform/{name}": text for name, text in texts.items()}
        allowed["src/platform/CMakeLists.txt"] = " ".join(texts) + "\n"
        allowed["src/kernels/isa/ops_x86.h"] = "#include <immintrin.h>\n"
        allowed["src/nn/gate.cpp"] = "#include <locale.h>\n\n#include <csignal>\n"
        code, output = self.lint(allowed)
        self.assertEqual(code, 0, output)

    def test_rooms_of_io(self):
        self.rejects({"src/io/torch/zip/end.h": "#pragma once\n",
                      "src/io/base/x.h": '#pragma once\n#include "io/torch/zip/end.h"\n'},
                     "`io/base` includes only io/base")

    def test_an_example_is_a_users_program(self):
        def example(include):
            return {"src/nn/x.h": "#pragma once\n", "examples/CMakeLists.txt": "add_subdirectory(door)\n",
                    "examples/door/CMakeLists.txt": "add_executable(door main.cpp)\n", "examples/door/hinge.h": "#pragma once\n",
                    "examples/other/handle.h": "#pragma once\n", "examples/door/main.cpp": f"#include {include}\n"}  # fmt: skip

        for include in ("<posenc/nn/gate.h>", "<torch/torch.h>", "<vector>", '"hinge.h"'):
            self.assertEqual(self.lint(example(include))[0], 0, include)
        for include in ('"posenc/nn/gate.h"', '"nn/x.h"', '"../../src/nn/x.h"', '"../other/handle.h"', '"gone.h"'):
            self.rejects(example(include), "examples/door/main.cpp:1: layer: an example includes")
        self.rejects(example("<nn/x.h>"), "nn/x.h is private")
        self.rejects(example("<posenc/nn/gone.h>"), "there is no posenc/nn/gone.h")
        self.rejects({**example("<vector>"), "examples/door/new.cpp": "\n"},
                     "a source is listed in examples/door/CMakeLists.txt")  # fmt: skip

    def test_unlisted_files(self):
        self.rejects({"src/nn/new.cpp": "\n"}, "src/nn/new.cpp:1: list: a source is listed")
        self.rejects({"include/posenc/core/new.h": "\n"}, "a public header is listed in src/CMakeLists.txt")
        self.rejects({"tests/nn/new_test.cpp": "\n"}, "a test is listed in tests/nn/CMakeLists.txt")
        self.rejects({"include/posenc/nn/new.h": "\n"}, "the umbrella includes posenc/nn/new.h")

    def test_stems(self):
        self.rejects({"tools/modules.json": None}, "the table of modules exists")
        self.rejects({"tools/modules.json": "[]\n"}, "a module has its row")
        self.rejects({"tests/parity/gate_test.cpp": None}, "`test` tests/parity/gate_test.cpp exists")
        self.rejects({"notebooks_ref/00_gate.ipynb": None}, "`notebook` notebooks_ref/00_gate.ipynb exists")
        self.rejects({"tests/fixtures/gate/a.safetensors": None}, "tests/fixtures/gate holds files")
        self.rejects({"notebooks_ref/reference/gate.py": "class Other: ...\n"}, "defines Gate")
        self.rejects(self.module(**{"class": "Door"}), "the C++ name is Gate or gate, not Door")
        self.rejects(self.module(header="include/posenc/nn/door.h"), "`header` has the form")

    def test_a_module_of_a_system(self):
        tree = {
            "include/posenc/posenc.h": GOOD["include/posenc/posenc.h"].replace("#include <posenc/nn", "#include <posenc/nn/door.h>\n#include <posenc/nn"),
            "include/posenc/nn/door.h": "#pragma once\nclass Door;  // Hinge\n",
            "src/nn/door.cpp": '#include "posenc/nn/door.h"\n',
            "src/sinusoid/presets/door_recipes.cpp": '// {"hinge", "acme/door@1, door.py"}\n',
            "src/CMakeLists.txt": GOOD["src/CMakeLists.txt"][:-2] + " nn/door.h)\n",
            "src/nn/CMakeLists.txt": "target_sources(posenc PRIVATE gate.cpp door.cpp)\n",
            "tests/nn/door_test.cpp": '// Door: "hinge"\n',
            "tests/nn/CMakeLists.txt": "posenc_test(nn door_test.cpp)\n",
            "tools/modules.json": json.dumps([MODULE, SYSTEM], indent=2) + "\n",
        }
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, "tests/nn/door_test.cpp": "// Door\n"}, "door: tests/nn/door_test.cpp compares with the preset")
        self.rejects({**tree, "include/posenc/nn/door.h": "#pragma once\nclass Door;\n"}, "names Hinge as its source")
        self.rejects({**tree, "src/sinusoid/presets/door_recipes.cpp": '// {"hinge", "other"}\n'}, "has the preset hinge")

    def test_a_module_of_torch(self):
        row = {key: value for key, value in MODULE.items() if key not in ("notebook", "notebook_class", "reference", "fixtures")}
        row["torch_class"] = "torch.nn.Gate"
        cases = "notebooks_ref/reference/cases/transformer.py"
        tree = {
            "tools/modules.json": json.dumps([row], indent=2) + "\n",
            "include/posenc/nn/gate.h": GOOD["include/posenc/nn/gate.h"] + "// torch.nn.Gate\n",
            cases: "nn.Gate()\n",
        }
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, cases: "nn.Door()\n"}, "runs nn.Gate beside it")
        self.rejects({**tree, "include/posenc/nn/gate.h": GOOD["include/posenc/nn/gate.h"]}, "names torch.nn.Gate as its source")

    def test_live_modules_have_no_files(self):
        row = {key: value for key, value in MODULE.items() if key != "fixtures"}
        row["live"] = True
        tree = {"tools/modules.json": json.dumps([row], indent=2) + "\n", "tests/fixtures/gate/a.safetensors": None}
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, "notebooks_ref/reference/gate.py": "class Other: ...\n"}, "defines Gate")

    def test_budgets(self):
        long = "#pragma once\nclass Gate;\n" + "// one line\n" * 150
        self.rejects({"include/posenc/nn/gate.h": long}, "include/posenc/nn/gate.h:151: budget: at most 150 lines")
        code, output = self.lint({"include/posenc/nn/gate.h": "// posenc-budget: a table\n" + long})
        self.assertEqual(code, 0, output)

    def test_fields(self):
        struct = "#pragma once\nstruct GateOptions : Base<GateOptions> {\n  TORCH_ARG(int64_t, width) = 1;\n  TORCH_ARG(InnerOptions, inner);\n};\n"
        inner = "template <typename D>\nclass Base {\n  POSENC_BASE_ARG(bool, bias);\n};\nstruct InnerOptions {\n  TORCH_ARG(double, eps);\n};\n"
        module = "class GateImpl : public Cloneable<GateImpl> {\n  GateOptions options;  ///< given\n};\n"
        lists = "#pragma once\nPOSENC_FIELDS(posenc::GateOptions, (width, inner),\n              (bias))\nPOSENC_FIELDS(posenc::InnerOptions, (eps), ())\n"
        good = {"include/posenc/nn/gate.h": GOOD["include/posenc/nn/gate.h"] + (struct + inner + module).replace("#pragma once\n", ""),
                "src/models/option_fields.h": lists, "src/models/option_holders.h": "#pragma once\nusing A = B<GateImpl>;\n",
                }

        def changed(name, old, new):
            return {**good, name: good[name].replace(old, new)}
        self.assertNotIn(" fields: ", self.lint(good)[1])
        fields = "src/models/option_fields.h"
        self.rejects(changed(fields, "(width, ", "("), "fields: the list of GateOptions has no width, the struct has")
        self.rejects(changed(fields, "(bias)", "()"), "fields: the list of GateOptions has no bias, the struct has")
        self.rejects(changed(fields, "(eps)", "(eps, bits)"), "fields: the list of InnerOptions has bits, the struct does not")
        self.rejects(changed(fields, "POSENC_FIELDS(posenc::InnerOptions, (eps), ())\n", ""), "fields: GateOptions has inner, so that InnerOptions needs a list")
        self.rejects(changed("src/models/option_holders.h", "GateImpl", "DoorImpl"), "fields: lists GateImpl, or NEVER_FROZEN")

    def test_text(self):
        self.rejects({"README.md": "word \n"}, "README.md:1: whitespace:")
        self.rejects({"README.md": "word"}, "the last line ends")
        self.rejects({"README.md": "see " + "/" + "home/me/x\n"}, "README.md:1: path:")

    def test_english(self):
        for text in ("the rows behind it", "its twin", "he is told so", "row 3 stands first", "so many rows", "nobody's", "Got none",
                     "Got what is no JSON"):  # fmt: skip
            self.rejects({"README.md": text + "\n"}, "README.md:1: english: not `")
        self.rejects({"src/nn/gate.cpp": GOOD["src/nn/gate.cpp"] + "int behind;\n"}, "src/nn/gate.cpp:2: english: not `behind`")
        self.rejects({"src/nn/gate.cpp": GOOD["src/nn/gate.cpp"] + "// Initialized by the caller.\n"},
                     "src/nn/gate.cpp:2: english: British spelling in prose: `Initialized`")
        self.rejects({"README.md": "the optimized color\n"}, "`color` with colour")
        for text in ("as in notebook 03", "it has the bits of PyTorch", "CMake refuses it", "the goal is 5x", "5x **missed**", "| live |",
                     "a job of the forge", "PyTorch's engine"):
            self.rejects({"docs/a.md": text + "\n"}, "docs/a.md:1: english: not `")
        code, output = self.lint({
            "README.md": "left behind; cannot be told apart; stands for; `normalize`; torch.nn.functional.normalize; std::initializer_list\n"
                         "```python\n# color\n```\n",
            "docs/a.md": "`refuse`, [x](live.md)\n```\nlive\n```\n",
            "CHANGELOG.md": "The engine refuses what it has missed.\n",
            "src/nn/gate.cpp": GOOD["src/nn/gate.cpp"] + "int initialize();  // calls initialize() and normalize_color\n",
        })  # fmt: skip
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
