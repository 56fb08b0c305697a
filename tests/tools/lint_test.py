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
    "class": "Gate", "stem": "gate", "header": "include/posenc/positions/nn/gate.h", "source": "src/positions/nn/gate.cpp",
    "keys": ["weight"], "test": "tests/parity/gate_test.cpp", "fixtures": "tests/fixtures/gate",
}
SYSTEM = {
    "system": "acme/door@1", "system_class": "Hinge", "presets": ["hinge"], "class": "Door", "stem": "door",
    "header": "include/posenc/positions/nn/door.h", "source": "src/positions/nn/door.cpp", "keys": [], "test": "tests/positions/nn/door_test.cpp",
}
TABLE = """set(POSENC_ALL base kernels core positions inference tokenizers)
set(posenc_needs_base "")
set(posenc_needs_kernels base)
set(posenc_needs_core base)
set(posenc_needs_positions core)
set(posenc_needs_inference positions)
set(posenc_needs_tokenizers base)
set(POSENC_PLAIN base tokenizers) # without LibTorch
"""


def readme(title, needs, more=""):
    return f"# {title}\n\nWhat it has.\n\nNeeds: {needs}.\n{more}\nBudget: 1,000 lines.\n"


GOOD = {
    ".clang-format": (ROOT / ".clang-format").read_text(),
    "cmake/posenc_components.cmake": TABLE,
    "include/posenc/posenc.h": '#pragma once\n#include "posenc/inference.h"\n#include "posenc/positions.h"\n#include "posenc/tokenizers.h"\n',
    "include/posenc/inference.h": "#pragma once\n",
    "include/posenc/positions.h": '#pragma once\n#include "posenc/core/check.h"\n#include "posenc/positions/nn/gate.h"\n',
    "include/posenc/tokenizers.h": '#pragma once\n#include "posenc/tokenizers/tokenizer.h"\n',
    "include/posenc/base/error.h": "#pragma once\n",
    "include/posenc/core/check.h": '#pragma once\n#include "posenc/base/error.h"\n',
    "include/posenc/positions/nn/gate.h": '#pragma once\n#include "posenc/core/check.h"\nclass Gate;\nTORCH_MODULE(Gate);\n',
    "include/posenc/tokenizers/tokenizer.h": '#pragma once\n#include "posenc/base/error.h"\n',
    "src/kernels/dispatch.h": '#pragma once\n#include "posenc/base/error.h"\n',
    "src/inference/model.h": '#pragma once\n#include "posenc/positions/nn/gate.h"\n',
    "src/positions/nn/gate.cpp": '#include "posenc/positions/nn/gate.h"\n',
    "src/base/CMakeLists.txt": "posenc_component(base HEADERS base/error.h posenc.h)\n",
    "src/core/CMakeLists.txt": "posenc_component(core HEADERS core/check.h)\n",
    "src/inference/CMakeLists.txt": "posenc_component(inference HEADERS inference.h)\n",
    "src/positions/CMakeLists.txt": "posenc_component(positions HEADERS positions.h positions/nn/gate.h SOURCES nn/gate.cpp)\n",
    "src/tokenizers/CMakeLists.txt": "posenc_component(tokenizers HEADERS tokenizers.h tokenizers/tokenizer.h)\n",
    "src/base/README.md": readme("base", "nothing"),
    "src/core/README.md": readme("core", "base"),
    "src/inference/README.md": readme("posenc::inference", "positions"),
    "src/kernels/README.md": readme("kernels", "base"),
    "src/positions/README.md": readme("posenc::positions", "core", "Rooms: sinusoid < relative, rotary < nn.\n"),
    "src/tokenizers/README.md": readme("posenc::tokenizers", "base"),
    **{f"src/positions/{room}/options.h": "#pragma once\n" for room in ("sinusoid", "relative", "rotary")},
    "tests/parity/gate_test.cpp": "// Gate: weight\n",
    "tests/parity/CMakeLists.txt": "posenc_test(parity gate_test.cpp)\n",
    "tests/fixtures/gate/a.safetensors": "x",
    "notebooks_ref/00_gate.ipynb": "{}\n",
    "notebooks_ref/reference/gate.py": "class Gate: ...\n",
    "tools/modules.json": json.dumps([MODULE], indent=2) + "\n",
}


def listing(component, more):
    """The list of a component with further files."""
    name = f"src/{component}/CMakeLists.txt"
    return {name: GOOD[name].replace(")", f" {more})")}


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
        self.rejects({"src/positions/nn/gate.cpp": GOOD["src/positions/nn/gate.cpp"] + "int  a;\n"}, "src/positions/nn/gate.cpp:2: format:")

    def test_a_component_includes_what_the_table_reaches(self):
        self.rejects({"include/posenc/core/check.h": '#pragma once\n#include "posenc/positions/nn/gate.h"\n'},
                     "include/posenc/core/check.h:2: component: `core` reaches only base, core; posenc/positions/nn/gate.h is `positions`")
        private = {"src/tokenizers/x.h": "\n", "src/positions/nn/gate.cpp": '#include "tokenizers/x.h"\n'}
        self.rejects(private, "src/positions/nn/gate.cpp:1: component: `positions` reaches only base, core, positions; tokenizers/x.h is `tokenizers`")
        through = {"src/inference/model.h": '#pragma once\n#include "posenc/base/error.h"\n#include "posenc/positions/nn/gate.h"\n'}
        self.assertEqual(self.lint(through)[0], 0)

    def test_a_folder_that_is_no_component(self):
        self.rejects({"src/util/x.h": "\n"}, "`util` is none of them")
        self.rejects({"cmake/posenc_components.cmake": None}, "cmake/posenc_components.cmake:1: component: the table of components exists")

    def test_an_entry_of_the_table_that_no_include_needs(self):
        self.rejects({"src/kernels/dispatch.h": "#pragma once\n"},
                     "cmake/posenc_components.cmake:1: component: `kernels` needs `base`, of which it includes nothing")
        umbrella = {"include/posenc/positions.h": '#pragma once\n#include "posenc/core/check.h"\n#include "posenc/positions/nn/gate.h"\n',
                    "include/posenc/positions/nn/gate.h": GOOD["include/posenc/positions/nn/gate.h"].replace('#include "posenc/core/check.h"\n', "")}
        self.rejects(umbrella, "`positions` needs `core`, of which it includes nothing")

    def test_rooms_of_a_component(self):
        def with_include(name, target):
            return {name: f'#pragma once\n#include "{target}"\n'}

        below, beside, above = "positions/sinusoid/options.h", "positions/rotary/options.h", "posenc/positions/nn/gate.h"
        room = "src/positions/relative/options.h"
        self.assertEqual(self.lint(with_include(room, below))[0], 0)
        self.rejects(with_include(room, beside), f"{room}:2: room: positions: the room `relative` is not above `rotary`")
        self.rejects(with_include(room, above), f"{room}:2: room: positions: the room `relative` is not above `nn`")
        top = {**with_include("src/positions/top.h", above), "src/positions/other.h": "#pragma once\n"}
        self.assertEqual(self.lint(top)[0], 0)  # what is directly in the folder is above all rooms,
        self.rejects({**top, **with_include(room, "positions/other.h")}, "`relative` is not above what is directly in the folder")
        named = {"src/positions/README.md": GOOD["src/positions/README.md"].replace("sinusoid <", "other, sinusoid <")}
        self.assertEqual(self.lint({**top, **named, **with_include(room, "positions/other.h")})[0], 0)  # unless it is named as a room,
        self.rejects({**named, **with_include("src/positions/other.h", "positions/rotary/options.h")}, "the room `other` is not above `rotary`")
        sinusoid = {**with_include("src/positions/sinusoid.h", beside)}
        self.assertEqual(self.lint(sinusoid)[0], 0)  # and a folder's name is the folder's
        public = {"include/posenc/positions/scale.h": "#pragma once\n", **listing("positions", "positions/scale.h"),
                  "include/posenc/positions.h": GOOD["include/posenc/positions.h"] + '#include "posenc/positions/scale.h"\n'}
        self.assertEqual(self.lint({**public, **with_include(room, "posenc/positions/scale.h")})[0], 0)

    def test_what_includes_nothing_of_libtorch(self):
        headers = {"src/base/x.h": "torch/types.h", "include/posenc/base/error.h": "c10/util/Exception.h", "src/kernels/x.h": "ATen/ATen.h",
                   "src/tokenizers/x.h": "c10/util/Exception.h", "include/posenc/tokenizers/tokenizer.h": "torch/arg.h"}
        _, output = self.lint({name: f"#pragma once\n#include <{header}>\n" for name, header in headers.items()})
        for name, header in headers.items():
            self.assertIn(f"{name}:2: component: `{name.split('/')[-2]}` includes nothing of LibTorch; {header} is", output)
        self.assertEqual(self.lint({"src/positions/nn/x.h": "#pragma once\n#include <torch/types.h>\n"})[0], 0)
        tensors = "include/posenc/tokenizers/tensors.h"
        tree = {tensors: "#pragma once\n#include <torch/types.h>\n", **listing("tokenizers", "tokenizers/tensors.h")}
        self.assertEqual(self.lint(tree)[0], 0)
        self.rejects({**tree, "src/tokenizers/x.h": '#pragma once\n#include "posenc/tokenizers/tensors.h"\n'},
                     "src/tokenizers/x.h:2: component: `tokenizers` includes nothing of LibTorch; posenc/tokenizers/tensors.h is")
        self.rejects({**tree, "include/posenc/tokenizers.h": '#pragma once\n#include "posenc/tokenizers/tensors.h"\n#include "posenc/tokenizers/tokenizer.h"\n'},
                     "the umbrella leaves posenc/tokenizers/tensors.h to those who need it")

    def test_readmes_of_components(self):
        name = "src/positions/README.md"

        def changed(old, new):
            return {name: GOOD[name].replace(old, new)}

        self.rejects({name: None}, f"{name}:1: readme: each component has one")
        self.rejects({"src/cli/x.h": "\n"}, "src/cli/README.md:1: readme: each component has one")
        self.rejects({name: GOOD[name] + "line\n" * 13}, f"{name}:21: readme: at most 20 lines; this has 21")
        self.rejects(changed("# posenc::positions", "# positions"), "the title `# posenc::positions`, not `# positions`")
        self.rejects(changed("Needs: core.", "Needs: base, core."), "a line `Needs: core.`, as in cmake/posenc_components.cmake")
        self.rejects(changed("Needs: core.", ""), "a line `Needs: core.`")
        self.rejects(changed(" < nn", ""), "the line `Rooms:` has nn")
        self.rejects(changed("nn.", "nn < models."), "models is none")
        self.rejects(changed("Budget", "Size"), "a line `Budget: 1,500 lines.`")
        self.rejects({"src/kernels/README.md": readme("posenc::kernels", "base")}, "the title `# kernels`")

    def test_the_lines_of_a_component(self):
        lines = {f"src/positions/nn/{name}": "#pragma once\n" + "// line\n" * 249 for name in ("a.h", "b.h", "c.h")}
        self.assertEqual(self.lint({**lines, "src/positions/nn/table.inc": "1,\n" * 246})[0], 0)
        self.rejects({**lines, "src/positions/nn/table.inc": "1,\n" * 247},
                     "src/positions/README.md:1: budget: at most 1000 lines in src/positions; it has 1001")

    def test_a_public_header_sees_no_private_one(self):
        self.rejects({"src/positions/nn/x.h": "\n", "include/posenc/positions/nn/gate.h": '#include "positions/nn/x.h"\nclass Gate;\n'}, "is private")

    def test_a_command_sees_no_private_header_but_the_listed_ones(self):
        def command(target):
            return {"src/cli/x.cpp": f'#include "{target}"\n', "src/cli/CMakeLists.txt": "set(sources x.cpp)\n", "src/cli/README.md": readme("cli", "all"),
                    "src/base/nearest.h": "\n", "src/positions/nn/y.h": "\n"}

        for target in ("posenc/positions/nn/gate.h", "base/nearest.h"):
            self.assertEqual(self.lint(command(target))[0], 0, target)
        self.rejects(command("positions/nn/y.h"), "src/cli/x.cpp:1: include: the command line includes public headers")

    def test_a_circle(self):
        self.rejects({"src/positions/nn/x.h": '#include "positions/nn/y.h"\n', "src/positions/nn/y.h": '#include "positions/nn/x.h"\n'}, "no circle of includes")

    def test_an_include_of_nothing(self):
        self.rejects({"src/positions/nn/gate.cpp": '#include "positions/nn/gone.h"\n'}, "there is no positions/nn/gone.h")

    def test_umbrellas_are_for_users(self):
        for umbrella in ("posenc/posenc.h", "posenc/positions.h"):
            self.rejects({"src/inference/x.h": f'#pragma once\n#include "{umbrella}"\n'}, f"src/inference/x.h:2: include: {umbrella} is for users")

    def test_umbrellas_are_whole(self):
        self.rejects({"include/posenc/positions.h": None}, "the component positions has an umbrella header")
        self.rejects({"include/posenc/posenc.h": GOOD["include/posenc/posenc.h"].replace('#include "posenc/positions.h"\n', "")},
                     "include/posenc/posenc.h:1: list: the umbrella includes posenc/positions.h")
        self.rejects({"include/posenc/positions/nn/new.h": "\n"}, "include/posenc/positions.h:1: list: the umbrella includes posenc/positions/nn/new.h")

    def test_names_until_0_2(self):
        text = "#pragma once\n// The header's name until 0.3.\n#include \"posenc/positions/nn/gate.h\"\n"
        good = {"include/posenc/nn/gate.h": text, **listing("positions", "nn/gate.h")}
        code, output = self.lint(good)
        self.assertEqual(code, 0, output)
        self.rejects({"include/posenc/io/gate.h": text}, "include/posenc/io/gate.h:1: list: a header's name until 0.3 is listed")
        self.rejects({**good, "include/posenc/nn/gate.h": text + "int x;\n"}, "`nn` is none of them")
        self.rejects({**good, "include/posenc/nn/gate.h": text.replace("gate", "gone")}, "a name until 0.3 includes the header's own; include/posenc/positions/nn/gone.h is none")
        self.rejects({**good, "src/inference/x.h": '#pragma once\n#include "posenc/nn/gate.h"\n'},
                     "include: posenc/positions/nn/gate.h; posenc/nn/gate.h is its name until 0.3")

    def test_small_headers(self):
        small = {"src/inference/small.h": "#pragma once\n\nint f();\n", "src/inference/small.cpp": '#include "inference/small.h"\n', "src/inference/a.cpp": '#include "inference/small.h"\n',
                 **listing("inference", "small.cpp a.cpp b.cpp")}
        self.rejects(small, "src/inference/small.h:1: small: a header of fewer than 25 lines that two files of other names include, or SMALL_MAY with the reason; this has 1")
        self.assertEqual(self.lint({**small, "src/inference/b.cpp": '#include "inference/small.h"\n'})[0], 0)
        self.assertEqual(self.lint({**small, "src/inference/small.h": small["src/inference/small.h"] + "int g();\n" * 22})[0], 0)
        test = {"tests/parity/small.h": "#pragma once\n\nint f();\n", "tests/parity/gate_test.cpp": '// Gate: weight\n#include "small.h"\n'}
        self.rejects(test, "tests/parity/small.h:1: small: ")
        self.assertEqual(self.lint({**test, "tests/parity/b.cpp": '#include "parity/small.h"\n'})[0], 0)

    def test_what_a_shared_library_would_hide(self):
        def header(namespaces):
            return {"include/posenc/base/error.h": f"#pragma once\n{namespaces}\nint f();\n\n}}  // namespace posenc\n"}

        private = "namespace posenc {\nclass A;  // private\n}\n\n"
        self.assertEqual(self.lint(header(private + "namespace posenc POSENC_EXPORT {\n"))[0], 0)
        self.rejects(header("namespace posenc {\n"), "include/posenc/base/error.h:2: visibility:")
        self.rejects(header("namespace posenc::a {\n"), "include/posenc/base/error.h:2: visibility:")

    def test_torch_in_a_public_header(self):
        self.rejects({"include/posenc/positions/nn/gate.h": "#include <torch/torch.h>\nclass Gate;\n"}, "never <torch/torch.h>")

    def test_what_is_compiled_once_per_instruction_set(self):
        for include in ("<vector>", "<immintrin.h>", '"kernels/dispatch.h"', '"base/platform/processor.h"'):
            self.rejects({"src/base/platform/processor.h": "#pragma once\n",
                          "src/kernels/isa/x.cpp": f"#include {include}\n"}, "what is compiled once per instruction set")

    def test_internals_of_libtorch(self):
        for line in ("#include <ATen/ThreadLocalState.h>", "#include <ATen/ops/_conj.h>", "#include <torch/csrc/autograd/function.h>",
                     "auto& g = p.mutable_grad();", "auto u = at::_unique(x);"):  # fmt: skip
            self.rejects({"src/positions/nn/gate.cpp": line + "\n"}, "src/positions/nn/gate.cpp:1: internals: ")
            internals = {"src/core/torch_internals/x.cpp": line + "\n", **listing("core", "torch_internals/x.cpp")}
            self.assertEqual(self.lint(internals)[0], 0, line)

    def test_factories_where_frozen_models_run(self):
        cmake = listing("inference", "x.cpp")
        for line in ("auto x = at::zeros({2, size(3)});", "auto x = at::full(\n    {2}, one);", "auto x = torch::tensor(rows);"):
            self.rejects({**cmake, "src/inference/x.cpp": line + "\n"}, "src/inference/x.cpp:1: factory: ")
        for line in ("auto x = at::zeros({2, size(3)}, at::kFloat);", "auto x = at::full({2}, one, like.options());", "auto x = at::empty_like(rows);",
                     "at::TensorOptions whole(at::kLong), real(at::kFloat);\nauto x = at::arange(0, 2, real);"):  # fmt: skip
            self.assertEqual(self.lint({**cmake, "src/inference/x.cpp": line + "\n"})[0], 0, line)
        self.assertEqual(self.lint({"src/positions/nn/gate.cpp": "auto x = torch::empty({2});\n"})[0], 0)

    def test_what_not_every_system_has(self):
        lines = ["#include <unistd.h>", "#include <sys/stat.h>", "#include <windows.h>", "#include <immintrin.h>",
                 "#ifdef __APPLE__\n#endif", 'auto self = open("/proc/self/exe");']  # fmt: skip
        texts = {f"x{number}.cpp": text + "\n" for number, text in enumerate(lines)}
        code, output = self.lint({f"src/positions/nn/{name}": text for name, text in texts.items()})
        for name in texts:
            self.assertIn(f"src/positions/nn/{name}:1: system: ", output)
        allowed = {f"src/base/platform/{name}": text for name, text in texts.items()}
        allowed.update(listing("base", " ".join(f"platform/{name}" for name in texts)))
        allowed["src/kernels/isa/ops_x86.h"] = "#include <immintrin.h>\n"
        allowed["src/positions/nn/gate.cpp"] = "#include <locale.h>\n\n#include <csignal>\n"
        code, output = self.lint(allowed)
        self.assertEqual(code, 0, output)

    def test_an_example_is_a_users_program(self):
        def example(include):
            return {"src/positions/nn/x.h": "#pragma once\n", "examples/CMakeLists.txt": "add_subdirectory(door)\n",
                    "examples/door/CMakeLists.txt": "add_executable(door main.cpp)\n", "examples/door/hinge.h": "#pragma once\n",
                    "examples/other/handle.h": "#pragma once\n", "examples/door/main.cpp": f"#include {include}\n"}  # fmt: skip

        for include in ("<posenc/positions/nn/gate.h>", "<torch/torch.h>", "<vector>", '"hinge.h"'):
            self.assertEqual(self.lint(example(include))[0], 0, include)
        for include in ('"posenc/positions/nn/gate.h"', '"positions/nn/x.h"', '"../../src/positions/nn/x.h"', '"../other/handle.h"', '"gone.h"'):
            self.rejects(example(include), "examples/door/main.cpp:1: include: an example includes")
        self.rejects(example("<positions/nn/x.h>"), "positions/nn/x.h is private")
        self.rejects(example("<posenc/positions/nn/gone.h>"), "there is no posenc/positions/nn/gone.h")
        self.rejects({**example("<vector>"), "examples/door/new.cpp": "\n"},
                     "a source is listed in examples/door/CMakeLists.txt")  # fmt: skip

    def test_unlisted_files(self):
        self.rejects({"src/positions/nn/new.cpp": "\n"}, "src/positions/nn/new.cpp:1: list: a source is listed")
        self.rejects({"include/posenc/core/new.h": "\n"}, "a public header is listed in src/core/CMakeLists.txt")
        self.rejects({"tests/positions/nn/new_test.cpp": "\n"}, "a test is listed in tests/positions/CMakeLists.txt")

    def test_stems(self):
        self.rejects({"tools/modules.json": None}, "the table of modules exists")
        self.rejects({"tools/modules.json": "[]\n"}, "a module has its row")
        self.rejects({"tests/parity/gate_test.cpp": None}, "`test` tests/parity/gate_test.cpp exists")
        self.rejects({"notebooks_ref/00_gate.ipynb": None}, "`notebook` notebooks_ref/00_gate.ipynb exists")
        self.rejects({"tests/fixtures/gate/a.safetensors": None}, "tests/fixtures/gate holds files")
        self.rejects({"notebooks_ref/reference/gate.py": "class Other: ...\n"}, "defines Gate")
        self.rejects(self.module(**{"class": "Door"}), "the C++ name is Gate or gate, not Door")
        self.rejects(self.module(header="include/posenc/positions/nn/door.h"), "`header` has the form")

    def test_a_module_of_a_system(self):
        tree = {
            "include/posenc/positions.h": GOOD["include/posenc/positions.h"].replace('#include "posenc/positions/nn', '#include "posenc/positions/nn/door.h"\n#include "posenc/positions/nn'),
            "include/posenc/positions/nn/door.h": "#pragma once\nclass Door;  // Hinge\n",
            "src/positions/nn/door.cpp": '#include "posenc/positions/nn/door.h"\n',
            "src/positions/sinusoid/presets/door_recipes.cpp": '// {"hinge", "acme/door@1, door.py"}\n',
            **listing("positions", "positions/nn/door.h nn/door.cpp sinusoid/presets/door_recipes.cpp"),
            "tests/positions/nn/door_test.cpp": '// Door: "hinge"\n',
            "tests/positions/CMakeLists.txt": "posenc_test(positions_nn nn/door_test.cpp)\n",
            "tools/modules.json": json.dumps([MODULE, SYSTEM], indent=2) + "\n",
        }
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, "tests/positions/nn/door_test.cpp": "// Door\n"}, "door: tests/positions/nn/door_test.cpp compares with the preset")
        self.rejects({**tree, "include/posenc/positions/nn/door.h": "#pragma once\nclass Door;\n"}, "names Hinge as its source")
        self.rejects({**tree, "src/positions/sinusoid/presets/door_recipes.cpp": '// {"hinge", "other"}\n'}, "has the preset hinge")

    def test_a_module_of_torch(self):
        row = {key: value for key, value in MODULE.items() if key not in ("notebook", "notebook_class", "reference", "fixtures")}
        row["torch_class"] = "torch.nn.Gate"
        cases = "notebooks_ref/reference/cases/transformer.py"
        tree = {
            "tools/modules.json": json.dumps([row], indent=2) + "\n",
            "include/posenc/positions/nn/gate.h": GOOD["include/posenc/positions/nn/gate.h"] + "// torch.nn.Gate\n",
            cases: "nn.Gate()\n",
        }
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, cases: "nn.Door()\n"}, "runs nn.Gate beside it")
        self.rejects({**tree, "include/posenc/positions/nn/gate.h": GOOD["include/posenc/positions/nn/gate.h"]}, "names torch.nn.Gate as its source")

    def test_live_modules_have_no_files(self):
        row = {key: value for key, value in MODULE.items() if key != "fixtures"}
        row["live"] = True
        tree = {"tools/modules.json": json.dumps([row], indent=2) + "\n", "tests/fixtures/gate/a.safetensors": None}
        code, output = self.lint(tree)
        self.assertEqual(code, 0, output)
        self.rejects({**tree, "notebooks_ref/reference/gate.py": "class Other: ...\n"}, "defines Gate")

    def test_budgets(self):
        long = GOOD["include/posenc/positions/nn/gate.h"] + "// one line\n" * 150
        self.rejects({"include/posenc/positions/nn/gate.h": long}, "include/posenc/positions/nn/gate.h:151: budget: at most 150 lines")
        code, output = self.lint({"include/posenc/positions/nn/gate.h": "// posenc-budget: a table\n" + long})
        self.assertEqual(code, 0, output)

    def test_fields(self):
        struct = ("struct GateOptions : Base<GateOptions> {\n  TORCH_ARG(int64_t, width) = 1;\n  TORCH_ARG(InnerOptions, inner);\n\n"
                  "  POSENC_FIELDS(GateOptions, width_,\n                inner_);\n  POSENC_TRAINING_FIELDS(bias_);\n};\n")  # fmt: skip
        inner = ("template <typename Derived>\nclass Base {\n  POSENC_BASE_ARG(bool, bias);\n};\nstruct InnerOptions {\n  TORCH_ARG(double, eps);\n\n"
                 "  POSENC_FIELDS(InnerOptions, eps_);\n};\nstruct Grid {\n  int64_t height = 0;  ///< rows\n\n  POSENC_FIELDS(Grid, height);\n};\n")  # fmt: skip
        module = "class GateImpl : public Cloneable<GateImpl> {\n  GateOptions options;  ///< given\n};\n"
        header = "include/posenc/positions/nn/gate.h"
        good = {header: GOOD[header] + inner + struct + module, "src/inference/freeze/option_holders.h": "#pragma once\nusing A = B<GateImpl>;\n"}

        def changed(name, old, new):
            return {**good, name: good[name].replace(old, new)}
        self.assertNotIn(" fields: ", self.lint(good)[1])
        self.rejects(changed(header, "GateOptions, width_,", "GateOptions,"), "fields: the list of GateOptions has no width_, the struct has")
        self.rejects(changed(header, "  POSENC_TRAINING_FIELDS(bias_);\n", ""), "fields: the list of GateOptions has no bias_, the struct has")
        self.rejects(changed(header, "eps_);", "eps_, bits_);"), "fields: the list of InnerOptions has bits_, the struct does not")
        self.rejects(changed(header, "(Grid, height)", "(Grid, width)"), "fields: the list of Grid has no height, the struct has")
        self.rejects(changed(header, "  POSENC_FIELDS(InnerOptions, eps_);\n", ""), "fields: GateOptions has inner_, so that InnerOptions needs POSENC_FIELDS")
        without = good[header][:good[header].rindex("  POSENC_FIELDS(GateOptions")] + "};\n" + module
        self.rejects({**good, header: without}, "fields: GateOptions needs POSENC_FIELDS: GateImpl has it")
        self.rejects(changed("src/inference/freeze/option_holders.h", "GateImpl", "DoorImpl"), "fields: lists GateImpl, or NEVER_FROZEN")

    def test_text(self):
        self.rejects({"README.md": "word \n"}, "README.md:1: whitespace:")
        self.rejects({"README.md": "word"}, "the last line ends")
        self.rejects({"README.md": "see " + "/" + "home/me/x\n"}, "README.md:1: path:")

    def test_english(self):
        for text in ("the rows behind it", "its twin", "he is told so", "row 3 stands first", "so many rows", "nobody's", "Got none",
                     "Got what is no JSON"):  # fmt: skip
            self.rejects({"README.md": text + "\n"}, "README.md:1: english: not `")
        self.rejects({"src/positions/nn/gate.cpp": GOOD["src/positions/nn/gate.cpp"] + "int behind;\n"}, "src/positions/nn/gate.cpp:2: english: not `behind`")
        self.rejects({"src/positions/nn/gate.cpp": GOOD["src/positions/nn/gate.cpp"] + "// Initialized by the caller.\n"},
                     "src/positions/nn/gate.cpp:2: english: British spelling in prose: `Initialized`")
        self.rejects({"README.md": "the optimized color\n"}, "`color` with colour")
        for text in ("as in notebook 03", "it has the bits of PyTorch", "CMake refuses it", "the goal is 5x", "5x **missed**", "| live |",
                     "a job of the forge", "PyTorch's engine"):
            self.rejects({"docs/a.md": text + "\n"}, "docs/a.md:1: english: not `")
        code, output = self.lint({
            "README.md": "left behind; cannot be told apart; stands for; `normalize`; torch.nn.functional.normalize; std::initializer_list\n"
                         "```python\n# color\n```\n",
            "docs/a.md": "`refuse`, [x](live.md)\n```\nlive\n```\n",
            "CHANGELOG.md": "The engine refuses what it has missed.\n",
            "src/positions/nn/gate.cpp": GOOD["src/positions/nn/gate.cpp"] + "int initialize();  // calls initialize() and normalize_color\n",
        })  # fmt: skip
        self.assertEqual(code, 0, output)


if __name__ == "__main__":
    unittest.main()
