#!/usr/bin/env python3
"""Checks the house rules; prints `file:line: rule: requirement` for each violation, and exits with 1 if there is one.

    tools/lint.py            check everything
    tools/lint.py --fix      reformat the C++ files with clang-format
    tools/lint.py --root D   check another tree (as tests/tools/lint_test.py does)
"""

import argparse
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import components
from lint_english import check_english

CLANG_FORMAT_VERSION = "18.1.8"  # the same as in tools/setup.sh

# What includes nothing of LibTorch, beside the components of POSENC_PLAIN; and the one header of these that does.
WITHOUT_TORCH = ("kernels",)
TORCH_TOKENIZERS = "include/posenc/tokenizers/tensors.h"

# Public headers that few programs need: their users include them by name, and the umbrella header of the component leaves them out.
ASIDE = {"include/posenc/models/inspect_folder.h", "include/posenc/positions/nn/embedding_options.h", "include/posenc/positions/nn/table_module.h",
         "include/posenc/tokenizers/c_api.h", TORCH_TOKENIZERS, "include/posenc/train/checkpointable.h", "include/posenc/train/gloo.h"}

# A header's former name, which goes on working for users.
FORWARDS = re.compile(r'#pragma once\n// The header\'s name until 0\.3\.\n#include "(posenc/[\w/]+\.h)"\n\Z')

# The headers that src/kernels/isa/ may include: the linker could keep the AVX-512 copy of an inline function from a C++
# header for the whole program.
ISA_MAY = re.compile(r"src/kernels/(isa/\w+|codes|embed|inference|bfloat16|int8|rotary|sets|sincos|sincos_types|weights)\.h$|(string|math|stdint|stddef)\.h$")
# The only files that use intrinsics, and where these come from.
ISA_OPS = {"src/kernels/isa/ops_x86.h": "immintrin.h", "src/kernels/isa/ops_neon.h": "arm_neon.h"}

# The private headers of components that src/cli/ may include, and why: apart from these it uses public headers, like
# any other program.
CLI_MAY = {
    "src/base/nearest.h": "suggestions, as in the library's own messages",
    "src/base/platform/number.h": "numbers in arguments, as the library reads them in files",
    "src/base/platform/signals.h": "translate writes what is finished before a signal ends it",
    "src/base/platform/streams.h": "standard streams, which may be closed or pipes",
    "src/weights/common/file.h": "reads a model's small files with the checks and errors that weights have",
    "src/weights/common/file_view.h": "digests of tensors, read piece by piece",
    "src/weights/common/json.h": "the only layer over the JSON library",
    "src/base/paths.h": "whether a file of a model's folder is there",
    "src/weights/common/tensor.h": "names of dtypes",
    "src/base/text.h": "checks, shortens and quotes text from files",
    "src/weights/convert.h": "posenc convert, which never holds all tensors",
    "src/weights/load/load_all.h": "loads from files that are already open",
    "src/weights/manifest/open_weights.h": "lists and reads a file that is opened once",
    "src/models/seq2seq/generation_config.h": "settings of generate(), replaced one at a time",
    "src/models/config/model_folder.h": "the names of weights in a model's folder",
    "src/models/encoder/parts.h": "rows whose frequencies are the same, and may be computed together",
    "src/models/heads/rows.h": "the second head of DPR's reader, on what the first one was given",
    "src/models/frozen/frozen_folder.h": "an encoder-decoder, frozen, whose settings of generate() the arguments replace",
    "src/models/seq2seq/load.h": "a model whose settings of generate() the arguments replace",
    "src/text/text_generator.h": "options of a TextGenerator whose settings of generate() the arguments replace",
    "src/models/config/settings.h": "settings of a tokenizer, read and refused like a model's",
}

# Parts of LibTorch that are not guaranteed to stay: code that needs them is in src/core/torch_internals/, or in a file
# listed here with the reason. Python's optimisers and interpolate() call the _fused_ and _upsample_ operations, so
# these stay.
INTERNALS = re.compile(r"\bmutable_grad\b|\bat::_(?!fused_|upsample_)\w+\(|<ATen/(?:ThreadLocalState|CPUGeneratorImpl|ops/_(?!fused_|upsample_)\w+)\.h>|<torch/csrc/autograd/")
INTERNALS_MAY = {
    "src/positions/relative/weights.cpp": "_safe_softmax: that of scaled_dot_product_attention, zeros for a row of -inf; _softmax_backward_data: from a result",
    "src/transformer/functional/multihead_attention.cpp": "_safe_softmax: the same, of capped scores",
    "src/positions/functional/embed/row_gradient.cpp": "_sparse_coo_tensor_unsafe: the ids are in range, which a check would read back",
    "src/train/parallel/clip_norm.cpp": "mutable_grad: replaces a sparse gradient by its coalesced one",
    "src/train/parallel/gradient_exchange.cpp": "mutable_grad: gradients become aliases of their places in the buckets",
    "src/train/parallel/sparse_sum.cpp": "_sparse_coo_tensor_unsafe: the ids come from gradients that were checked, which a check would read back",
}

# Headers, macros and files of operating systems are for src/base/platform/. Intrinsics are also for the kernels.
SYSTEM_HEADER = re.compile(
    r"(?:(?:sys|arpa|net|netinet|linux|mach|mach-o)/.*|(?:aio|cpuid|crt_externs|dirent|dlfcn|elf|execinfo|fcntl|fts|ftw|glob|grp|ifaddrs|io|langinfo|link|"
    r"malloc|netdb|poll|pthread|pwd|sched|semaphore|signal|spawn|strings|syslog|termios|ucontext|unistd|utime|windows|winsock2|xlocale)\.h)$")
SYSTEM_TEXT = re.compile(r'\b(?:_WIN32|__APPLE__|__linux__)\b|"/(?:proc|sys|dev)/')
INTRINSICS = re.compile(r"\w*intrin\.h$|arm_(?:neon|sve)\.h$")
# An example uses installed headers only, so it makes its own calls to the system.
SYSTEM_MAY = {
    "examples/pronounce/files.cpp": "syncs the files that it writes",
    "examples/pronounce/ranks.cpp": "starts processes, on Linux only",
    "examples/pronounce/training_display.cpp": "asks whether standard error is a terminal",
}

# Modules with options that no frozen model holds, so that no StaleCheck has to compare them.
NEVER_FROZEN = {
    "DualEncoderImpl": "its two encoders are frozen, each by itself",
    "FourierFeaturesImpl": "a front", "GatedFeedForwardImpl": "a part of other models", "GridPositionalEncodingImpl": "a front",
    "InputEmbeddingImpl": "a front", "LogMelSpectrogramImpl": "a front", "PolarEmbeddingImpl": "a part of other models", "PositionEmbeddingImpl": "a front", "RMSNormImpl": "a part of other models",
    "RelativeAttentionImpl": "a part of other models", "RotaryPositionEmbedding2dImpl": "a part of other models",
    "SentenceStagesImpl": "runs as it is after a frozen encoder", "SinePositionEmbedding2dImpl": "a front",
    "SinusoidalTimestepsImpl": "a front", "TimestepEmbeddingImpl": "a front", "TokenEmbeddingImpl": "a front",
}

# The classes with options in frozen models: those of stacks, and those of encoders and heads.
OPTION_HOLDERS = ("src/inference/freeze/option_holders.h", "src/inference/layers/module_parts.inc", "src/models/options/holders.h")

# A private header of fewer lines needs two readers: files of other stems that include it.
SMALL_HEADER = 25
SMALL_MAY = {
    "src/speech/sound_frames.h": "what a recogniser reads of sounds, apart from the class itself",
    "src/text/text_generator.h": "the command line replaces settings of a folder, as TextGenerator reads them",
    "src/pch.h": "the build includes it",
    "src/positions/nn/rms_norm.h": "RMSNorm and TransformerNorm have a source each, as modules have, and what one computes is the other's",
    "src/tokenizers/unicode/expand.h": "read by a table that tools/unicode_tables.py writes",
}

# The first match counts.
BUDGETS = [
    (r"include/.*\.h$", 150),
    (r"examples/.*\.(cpp|h)$", 300),
    (r"src/kernels/", 250),
    (r"src/.*\.(cpp|h)$", 300),
    (r"tests/.*\.(cpp|h)$", 400),
    (r"(.*/)?CMakeLists\.txt$|cmake/.*\.cmake$", 120),
]
BUDGET_REASON = re.compile(r"(//|#) posenc-budget: \S")

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
MACHINE_PATH = re.compile(r"(?<![\w.$})~:-])/(?:home|Users|root|work|tmp)/\w|\.\./shared\b")
TEXT = {".h", ".cpp", ".in", ".cmake", ".txt", ".py", ".sh", ".md", ".json", ".yml", ".ipynb", ""}


class Tree:
    """The files of a working tree: those that git tracks or would track, or all files without git."""

    def __init__(self, root):
        self.root = Path(root).resolve()
        self.findings = []
        self.files = sorted(self._list())
        self._text = {}

    def _list(self):
        if (self.root / ".git").exists():
            listed = subprocess.run(
                ["git", "ls-files", "-co", "--exclude-standard", "-z"],
                cwd=self.root, check=True, capture_output=True, text=True).stdout.split("\0")
            return {name for name in listed if name and (self.root / name).is_file()}
        return {str(path.relative_to(self.root)) for path in self.root.rglob("*") if path.is_file()}

    def text(self, name):
        if name not in self._text:
            self._text[name] = (self.root / name).read_bytes().decode("utf-8", "replace")
        return self._text[name]

    def lines(self, name):
        return self.text(name).splitlines()

    def matching(self, pattern):
        return [name for name in self.files if re.match(pattern, name)]

    def say(self, name, line, rule, required):
        self.findings.append((name, line, rule, required))


# --- format ------------------------------------------------------------------------------------


def clang_format():
    beside = Path(sys.executable).parent / "clang-format"
    return str(beside) if beside.exists() else shutil.which("clang-format")


def check_format(tree, fix=False):
    names = tree.matching(r"(include|src|tests|examples)/.*\.(h|cpp)$")
    if not names:
        return
    tool = clang_format()
    version = tool and subprocess.run([tool, "--version"], capture_output=True, text=True).stdout
    if not tool or CLANG_FORMAT_VERSION not in version:
        tree.say(".clang-format", 1, "format", f"clang-format {CLANG_FORMAT_VERSION} (`make setup` installs it)")
        return

    def formatted(name):
        return subprocess.run([tool, "--style=file", name], cwd=tree.root, check=True,
                              capture_output=True).stdout.decode()

    def to_format(batch):
        """The files of a batch that clang-format would change. One process for many files saves most of the time."""
        found = subprocess.run([tool, "--style=file", "--dry-run", *batch], cwd=tree.root, check=True,
                               capture_output=True).stderr.decode()  # fmt: skip
        changed = set(re.findall(r"^(.+?):\d+:\d+: warning: .*-Wclang-format-violations", found, re.MULTILINE))
        return [name for name in batch if name in changed]

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        batches = [names[begin:begin + 100] for begin in range(0, len(names), 100)]
        names = [name for batch in pool.map(to_format, batches) for name in batch]
        for name, after in zip(names, pool.map(formatted, names)):
            before = tree.text(name)
            if before == after:
                continue
            if fix:
                (tree.root / name).write_text(after)
                print(f"formatted {name}")
                continue
            diff = list(difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0))[2:]
            line = int(re.search(r"-(\d+)", diff[0]).group(1))
            shown = "\n".join("    " + entry for entry in diff[:12])
            tree.say(name, line, "format", f"`make format` changes this file\n{shown}")


# --- components --------------------------------------------------------------------------------


def component_of(name):
    """The component of a path in include/posenc or src, or None for what belongs to all (posenc.h, pch.h)."""
    match = re.match(r"(?:include/posenc|src)/(\w+)(?:/|\.h$)", name)
    if not match or match.group(1) in ("posenc", "pch"):
        return None
    return "base" if name in ("include/posenc/export.h", "include/posenc/version.h") else match.group(1)


def is_umbrella(name):
    """posenc.h, and the header of a component, which are for users."""
    return re.fullmatch(r"include/posenc/\w+\.h", name) and component_of(name) != "base"


def level_of(name, readme):
    """The room of a file and its level, or None if it has none. Public headers directly in a component's folder have none: every
    room may include them. A private file there is above all rooms, unless the README names it as a room that is no folder."""
    parts = name.removeprefix("include/posenc/").removeprefix("src/").split("/")[1:]
    if len(parts) < 2 and name.startswith("include/"):
        return None
    room = parts[0].split(".")[0]
    if room in readme.rooms and (len(parts) > 1 or room not in readme.folders):
        return room, readme.rooms[room]
    return ("", len(readme.rooms)) if len(parts) == 1 else None  # a folder that is not listed: check_components says so


def resolve(tree, including, kind, target):
    """The file of this tree that an #include refers to, or None."""
    beside = os.path.normpath(os.path.join(os.path.dirname(including), target))
    candidates = [f"include/{target}", f"src/{target}"] + ([beside] if kind == '"' else [])
    return next((name for name in candidates if name in tree.files), None)


def read_components(tree):
    """The table, and the READMEs that there are."""
    table = components.Components(tree.text(components.TABLE) if components.TABLE in tree.files else "")
    readmes = {name: components.Readme(tree.text(f"src/{name}/README.md")) for name in table.folders() if f"src/{name}/README.md" in tree.files}
    for name, readme in readmes.items():
        files = tree.matching(rf"(src|include/posenc)/{name}/\w+/.*\.(h|cpp|inc)$")
        readme.folders = {one.removeprefix("include/posenc/").removeprefix("src/").split("/")[1] for one in files}
    return table, readmes


def check_room(tree, name, number, found, readme):
    """The rooms of a component follow the order of its README."""
    own, other = level_of(name, readme), level_of(found, readme)
    if own and other and own[0] != other[0] and own[1] <= other[1]:
        where = f"`{other[0]}`" if other[0] else "what is directly in the folder"
        tree.say(name, number, "room", f"{component_of(name)}: the room `{own[0]}` is not above {where}, by the line `Rooms:` of its README")


def check_includes(tree):
    table, readmes = read_components(tree)
    plain = {*table.plain, *WITHOUT_TORCH}
    graph, used = {}, set()
    for name in tree.matching(r"(include/posenc|src)/.*\.(h|cpp)$"):
        component, public = component_of(name), name.startswith("include/")
        if FORWARDS.match(tree.text(name)):
            target = "include/" + FORWARDS.match(tree.text(name)).group(1)
            if target not in tree.files or FORWARDS.match(tree.text(target)):
                tree.say(name, 3, "include", f"a name until 0.3 includes the header's own; {target} is none")
            continue
        if component and component not in table.folders():
            tree.say(name, 1, "component", f"a folder among {', '.join(table.folders())}; `{component}` is none of them")
            continue
        reached = table.reached(component) if component else set()
        for number, text in enumerate(tree.lines(name), 1):
            match = INCLUDE.match(text)
            if not match:
                continue
            kind, target = match.groups()
            found = resolve(tree, name, kind, target)
            if found:
                graph.setdefault(name, []).append((found, number))
            elif kind == '"' or target.startswith("posenc/"):
                tree.say(name, number, "include", f"a file of include/ or src/; there is no {target}")
            if public and found and not found.startswith("include/"):
                tree.say(name, number, "include", f"a public header includes public headers only; {target} is private")
            if public and target in ("torch/torch.h", "torch/all.h"):
                tree.say(name, number, "include", f"a public header includes the parts it needs, never <{target}>")
            if name.startswith("src/kernels/isa/") and target != ISA_OPS.get(name) and not ISA_MAY.match(found or target):
                tree.say(name, number, "include", "what is compiled once per instruction set includes C headers, its own "
                         f"folder and the requests of kernels/*.h; {target} is compiled once or is C++'s")
            if component in plain and name != TORCH_TOKENIZERS and (found == TORCH_TOKENIZERS or re.match(r"(torch|ATen|c10)/", target)):
                tree.say(name, number, "component", f"`{component}` includes nothing of LibTorch; {target} is")
            if not component or not found:
                continue
            other = component_of(found)
            if is_umbrella(found) or other is None:
                tree.say(name, number, "include", f"{target} is for users; include what is used")
            elif FORWARDS.match(tree.text(found)):
                tree.say(name, number, "include", f"{FORWARDS.match(tree.text(found)).group(1)}; {target} is its name until 0.3")
            elif other not in reached:
                tree.say(name, number, "component", f"`{component}` reaches only {', '.join(one for one in table.names if one in reached)}; "
                         f"{target} is `{other}`")
            elif other == component and component in readmes and not is_umbrella(name):
                check_room(tree, name, number, found, readmes[component])
            if not is_umbrella(name):
                used.add((component, other))
            if component == "cli" and found.startswith("src/") and other != "cli" and found not in CLI_MAY:
                tree.say(name, number, "include", f"the command line includes public headers and those of CLI_MAY; {target} is private")
    check_circles(tree, graph)
    for component, needs in table.needs.items():
        for need in needs:
            if (component, need) not in used:
                tree.say(components.TABLE, 1, "component", f"`{component}` needs `{need}`, of which it includes nothing")


README_LINES = 20


def check_components(tree):
    """Each component has its folder, and there a README that states what the table and the folder say."""
    table, readmes = read_components(tree)
    if not table.names:
        tree.say(components.TABLE, 1, "component", "the table of components exists")
    for component in table.folders():
        name = f"src/{component}/README.md"
        if component not in readmes:
            if component in table.names or tree.matching(rf"src/{component}/"):
                tree.say(name, 1, "readme", "each component has one")
            continue
        readme, lines = readmes[component], tree.lines(name)
        if len(lines) > README_LINES:
            tree.say(name, README_LINES + 1, "readme", f"at most {README_LINES} lines; this has {len(lines)}")
        if component in table.names:
            title = f"# {component}" if component in components.INNER else f"# posenc::{component}"
            if readme.title != title:
                tree.say(name, 1, "readme", f"the title `{title}`, not `{readme.title}`")
            if readme.needs != set(table.needs[component]):
                needs = ", ".join(table.needs[component]) or "nothing"
                tree.say(name, 1, "readme", f"a line `Needs: {needs}.`, as in {components.TABLE}")
        sources = tree.matching(rf"(src|include/posenc)/{component}/.*\.(h|cpp|inc)$")
        folders = readme.folders
        stems = {Path(one).stem for one in sources if one.startswith("src/")}
        if readme.rooms or len(folders) > 1:
            for folder in sorted(folders - set(readme.rooms)):
                tree.say(name, 1, "readme", f"the line `Rooms:` has {folder}")
            for room in sorted(set(readme.rooms) - folders - stems):
                tree.say(name, 1, "readme", f"the line `Rooms:` has folders and files of {component}; {room} is none")
        count = sum(len(tree.lines(one)) for one in sources if one.startswith("src/"))
        if readme.budget is None:
            tree.say(name, 1, "readme", "a line `Budget: 1,500 lines.`, of the sources and headers in this folder")
        elif count > readme.budget:
            tree.say(name, 1, "budget", f"at most {readme.budget} lines in src/{component}; it has {count}")


def check_internals(tree):
    for name in tree.matching(r"(?!src/core/torch_internals/)(include/posenc|src|examples)/.*\.(h|cpp)$"):
        if name in INTERNALS_MAY:
            continue
        for number, text in enumerate(tree.lines(name), 1):
            match = INTERNALS.search(text.split("//")[0])
            if match:
                tree.say(name, number, "internals", f"{match.group(0)} is an internal of LibTorch: src/core/torch_internals/, or "
                         "INTERNALS_MAY with the reason")


# Functions of LibTorch that make a tensor of the default dtype unless they are given options: another default, which is the
# process's own, would change what frozen models compute. These files are where they run.
FACTORY = re.compile(r"\b(?:at|torch)::(?:arange|empty|empty_strided|eye|from_blob|full|linspace|logspace|normal|ones|rand|randint|randn|"
                     r"randperm|range|scalar_tensor|tensor|tril_indices|triu_indices|zeros)\(")  # fmt: skip
FACTORY_FILES = (r"src/(?:positions/(?:functional|relative|rotary|sinusoid)|transformer/functional|inference|models/(?:frozen|functional|encoder/parts\.cpp)|"
                 rf"text|speech|catalogue/relative)/|{TORCH_TOKENIZERS}")
OPTIONS = re.compile(r"\b(?:at|torch|c10)::k[A-Z]|\boptions\(|\bTensorOptions\b|\bdtype\(")
OPTIONS_NAMES = re.compile(r"(\w+)\s*=[^;]*?(?:\boptions\(\)|\bTensorOptions\b|\bdtype\()|TensorOptions&?\s+((?:\w+(?:\([^()]*\))?,?\s*)+)")


def arguments_at(text, begin):
    """The text between the parenthesis before `begin` and the one that closes it."""
    depth, end = 1, begin
    while depth and end < len(text):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        end += 1
    return text[begin:end - 1]


def check_factories(tree):
    for name in tree.matching(FACTORY_FILES):
        if not name.endswith((".h", ".cpp")):
            continue
        text = re.sub(r"//[^\n]*", "", tree.text(name))
        named = {word for found in OPTIONS_NAMES.findall(text) for part in found for word in re.findall(r"\w+", part)}
        for match in FACTORY.finditer(text):
            given = arguments_at(text, match.end())
            if not OPTIONS.search(given) and not named & set(re.findall(r"\w+", given)):
                tree.say(name, text[:match.start()].count("\n") + 1, "factory",
                         f"{match.group(0)}...) with options: without them the process's default dtype is used")


def check_portability(tree):
    """Supporting another operating system or processor must only require changes in src/base/platform/, the kernels and the build files."""
    for name in tree.matching(r"(?!src/base/platform/)(include/posenc|src|examples)/.*\.(h|cpp)$"):
        if name in SYSTEM_MAY:
            continue
        for number, text in enumerate(tree.lines(name), 1):
            match = INCLUDE.match(text)
            target = match.group(2) if match and match.group(1) == "<" else ""
            found = SYSTEM_TEXT.search(text.split("//")[0])
            if SYSTEM_HEADER.match(target) or (INTRINSICS.match(target) and not name.startswith("src/kernels/")):
                tree.say(name, number, "system", f"<{target}> is not on every system: src/base/platform/, or SYSTEM_MAY with the reason")
            elif found:
                tree.say(name, number, "system", f"{found.group(0)} is of one system: src/base/platform/, or SYSTEM_MAY with the reason")


def check_visibility(tree):
    """A shared posenc exports what the public headers declare, apart from forward declarations of private classes."""
    hidden = re.compile(r"^namespace posenc(?:::\w+)* \{\n(?!namespace \w+ POSENC_EXPORT \{|(?:(?:class|struct) \w+;.*\n)+\})", re.M)
    for name in tree.matching(r"include/posenc/.*\.h$"):
        for match in hidden.finditer(tree.text(name)):
            tree.say(name, tree.text(name)[:match.start()].count("\n") + 1, "visibility",
                     "`namespace posenc POSENC_EXPORT {`, or a shared posenc hides what it declares")


def check_examples(tree):
    """An example is a user's program: it includes only its own folder and installed headers."""
    for name in tree.matching(r"examples/\w+/.*\.(h|cpp)$"):
        for number, text in enumerate(tree.lines(name), 1):
            match = INCLUDE.match(text)
            if not match:
                continue
            kind, target = match.groups()
            own = os.path.normpath(os.path.join(os.path.dirname(name), target))
            folder = "/".join(name.split("/")[:2]) + "/"
            if kind == '"' and not (own in tree.files and own.startswith(folder)):
                tree.say(name, number, "include", f"an example includes \"files of its own folder\"; {target} is none")
            elif kind == "<" and target.startswith("posenc/") and f"include/{target}" not in tree.files:
                tree.say(name, number, "include", f"an example includes public headers; there is no {target}")
            elif kind == "<" and f"include/{target}" not in tree.files and f"src/{target}" in tree.files:
                tree.say(name, number, "include", f"an example includes public headers only; {target} is private")


def check_circles(tree, graph):
    state = {}

    def visit(name, path):
        state[name] = "open"
        for target, number in graph.get(name, []):
            if state.get(target) == "open":
                circle = path[path.index(target):] + [target]
                tree.say(name, number, "include", "no circle of includes: " + " -> ".join(circle))
            elif target not in state:
                visit(target, path + [target])
        state[name] = "done"

    for name in sorted(graph):
        if name not in state:
            visit(name, [name])


def check_small_headers(tree):
    """A header earns its file: one of a few lines that one source needs is merged with that source's header, or with others like it."""
    readers = {}
    for name in tree.matching(r"(include|src|tests|tools)/.*\.(h|cpp|inc)$"):
        for match in filter(None, map(INCLUDE.match, tree.lines(name))):
            in_tests = f"tests/{match.group(2)}"
            found = in_tests if name.startswith("tests/") and in_tests in tree.files else resolve(tree, name, *match.groups())
            if found and os.path.splitext(name)[0] != os.path.splitext(found)[0]:
                readers.setdefault(found, set()).add(name)
    for name in tree.matching(r"(src|tests)/.*\.h$"):
        declares = any(text and not re.match(r"\s*(#|//|$)", text) for text in tree.lines(name))
        count = len(readers.get(name, ()))
        if declares and len(tree.lines(name)) < SMALL_HEADER and count < 2 and name not in SMALL_MAY:
            tree.say(name, 1, "small", f"a header of fewer than {SMALL_HEADER} lines that two files of other names include, or SMALL_MAY "
                     f"with the reason; this has {count}")


# --- lists: all files are built, tested and in the umbrella header ---------------------------------


def check_lists(tree):
    def entries_of(cmakes):
        found = {entry for cmake in cmakes for entry in re.findall(r"[\w./-]+\.(?:h|cpp)\b", tree.text(cmake))}
        return {entry.removeprefix("/include/posenc/") for entry in found}

    def listed(cmake, base, names, what):
        entries = entries_of([cmake] if cmake in tree.files else [])
        for name in names:
            if os.path.relpath(name, base) not in entries:
                tree.say(name, 1, "list", f"{what} is listed in {cmake}")

    lists = entries_of(tree.matching(r"src/\w+/CMakeLists\.txt$"))
    for name in tree.matching(r"include/posenc/.*\.h$"):
        component = component_of(name) or "base"
        if not FORWARDS.match(tree.text(name)):
            listed(f"src/{component}/CMakeLists.txt", "include/posenc", [name], "a public header")
        elif os.path.relpath(name, "include/posenc") not in lists:
            tree.say(name, 1, "list", "a header's name until 0.3 is listed in the CMakeLists.txt of a component")
    for folder in sorted({name.split("/")[1] for name in tree.matching(r"src/\w+/.*\.cpp$")}):
        listed(f"src/{folder}/CMakeLists.txt", f"src/{folder}", tree.matching(rf"src/{folder}/.*\.cpp$"), "a source")
    for example in sorted({name.split("/")[1] for name in tree.matching(r"examples/\w+/.*\.cpp$")}):
        folder = f"examples/{example}"
        listed(f"{folder}/CMakeLists.txt", folder, tree.matching(rf"{folder}/.*\.cpp$"), "a source")
    tests = set()
    for cmake in tree.matching(r"tests/.*CMakeLists\.txt$"):
        tests |= {os.path.normpath(os.path.join(os.path.dirname(cmake), entry))
                  for entry in re.findall(r"[\w./-]+\.cpp\b", tree.text(cmake))}
    for name in tree.matching(r"tests/.*_test\.cpp$"):
        if name not in tests:
            tree.say(name, 1, "list", f"a test is listed in {'/'.join(name.split('/')[:2])}/CMakeLists.txt")

    table, _ = read_components(tree)
    every = "include/posenc/posenc.h"
    for component in table.names:
        umbrella, own = f"include/posenc/{component}.h", tree.matching(rf"include/posenc/{component}/.*\.h$")
        if component in components.INNER:
            continue
        if umbrella not in tree.files:
            tree.say(umbrella, 1, "list", f"the component {component} has an umbrella header")
            continue
        if every in tree.files and os.path.relpath(umbrella, "include") not in tree.text(every):
            tree.say(every, 1, "list", f"the umbrella includes {os.path.relpath(umbrella, 'include')}")
        for name in own:
            is_included = re.search(rf'#include [<"]{re.escape(os.path.relpath(name, "include"))}[>"]', tree.text(umbrella))
            if name in ASIDE and is_included:
                tree.say(umbrella, 1, "list", f"the umbrella leaves {os.path.relpath(name, 'include')} to those who need it (ASIDE)")
            elif not is_included and name not in ASIDE and not FORWARDS.match(tree.text(name)):
                tree.say(umbrella, 1, "list", f"the umbrella includes {os.path.relpath(name, 'include')}")


# --- stems: one table lists the origin of each module ---------------------------------------------


MODULE_HEADERS = r"include/posenc/(positions|transformer)/\w+/.*\.h$"


def camel(stem):
    return "".join(part.capitalize() for part in stem.split("_"))


def check_system(tree, entry, require, mentions):
    """The links of a module that mirrors a real system: its presets, which the test compares it with, or the script
    that runs the system itself for the test."""
    presets = "src/positions/sinusoid/presets"
    table = "".join(tree.text(name) for name in tree.files if re.fullmatch(rf"{presets}/\w+_recipes\.cpp", name))
    python = entry["system_class"]
    require(mentions("header", python), f"{entry['header']} names {python} as its source")
    if "live" in entry:
        require(entry["live"] in tree.files, f"`live` {entry['live']} exists")
        return
    require(entry["presets"], "`presets` names at least one")
    for number, preset in enumerate(entry["presets"]):
        source = entry["system"] if number == 0 else ""
        found = re.search(rf'\{{"{preset}",\s*"{re.escape(source)}', table)
        require(found, f"{presets} has the preset {preset}, from {source or 'any system'}")
        require(mentions("test", f'"{preset}"'), f"{entry['test']} compares with the preset {preset}")


def check_stems(tree):
    table = "tools/modules.json"
    if table not in tree.files:
        if tree.matching(MODULE_HEADERS):
            tree.say(table, 1, "stem", "the table of modules exists")
        return
    modules = json.loads(tree.text(table))
    rows = [number for number, text in enumerate(tree.lines(table), 1) if '"stem":' in text]
    for entry, line in zip(modules, rows):
        stem = entry["stem"]

        def require(condition, required):
            if not condition:
                tree.say(table, line, "stem", f"{stem}: {required}")

        require(entry["class"].lower() == stem.replace("_", "") or entry["class"] == stem,
                f"the C++ name is {camel(stem)} or {stem}, not {entry['class']}")
        system = "system" in entry  # a real system instead of a notebook: its presets are the reference
        torch = "torch_class" in entry  # PyTorch's own module is the reference, live
        links = [
            ("header", rf"include/posenc/\w+/(\w+/)?{stem}\.h"),
            ("source", rf"src/\w+/(\w+/)?{stem}\.cpp"),
            ("test", r"tests/parity/\w+_test\.cpp" if torch else
             r"tests/\w+/(\w+/)?\w+_test\.cpp" if system and "live" in entry else
             (r"tests/(positions|transformer)/\w+/" if system else "tests/parity/") + rf"{stem}_test\.cpp"),
        ]
        if not (system or torch):
            slug = r"\w+" if "live" in entry else Path(entry["reference"]).stem  # the notebook's
            links += [("notebook", rf"notebooks_ref/\d\d_{slug}\.ipynb"), ("reference", r"notebooks_ref/reference/\w+\.py")]
        for key, pattern in links:
            require(re.fullmatch(pattern, entry[key]), f"`{key}` has the form {pattern}, not {entry[key]}")
            require(entry[key] in tree.files, f"`{key}` {entry[key]} exists")

        def mentions(key, word):
            return entry[key] not in tree.files or re.search(rf"(?<!\w){word}(?!\w)", tree.text(entry[key]))

        name = entry["class"]
        require(mentions("header", name), f"{entry['header']} declares {name}")
        require(mentions("test", name), f"{entry['test']} tests {name}")
        if system:
            check_system(tree, entry, require, mentions)
        elif torch:
            python = entry["torch_class"]
            require(mentions("header", re.escape(python)), f"{entry['header']} names {python} as its source")
            cases = "notebooks_ref/reference/cases/transformer.py"
            kind = python.removeprefix("torch.")
            require(cases not in tree.files or kind in tree.text(cases), f"{cases} runs {kind} beside it")
        else:
            if "live" not in entry:  # else Python writes all cases when the tests run
                require(entry["fixtures"] == f"tests/fixtures/{stem}", f"`fixtures` is tests/fixtures/{stem}")
                require(tree.matching(re.escape(entry["fixtures"]) + "/"), f"`fixtures` {entry['fixtures']} holds files")
            python = entry["notebook_class"]
            require(mentions("reference", python), f"{entry['reference']} defines {python}")
    known = {entry["header"] for entry in modules}
    for name in tree.matching(MODULE_HEADERS):
        if name not in known and re.search(r"TORCH_MODULE\(|ModuleHolder<", tree.text(name)):
            tree.say(name, 1, "stem", f"a module has its row in {table}")


# --- budgets, whitespace, machine paths ----------------------------------------------------------


def check_budgets(tree):
    for name in tree.files:
        budget = next((lines for pattern, lines in BUDGETS if re.match(pattern, name)), None)
        if budget is None:
            continue
        lines = tree.lines(name)
        if len(lines) > budget and not any(BUDGET_REASON.search(text) for text in lines[:20]):
            tree.say(name, budget + 1, "budget",
                     f"at most {budget} lines, or `// posenc-budget: reason` in the first 20; this has {len(lines)}")


def structs_with_fields(tree):
    """The structs of the public headers by their names: where, the TORCH_ARGs or members with those of bases, and what POSENC_FIELDS lists."""
    found = {}
    for name in tree.matching(r"include/posenc/.*\.h$"):
        text = tree.text(name)
        for match in re.finditer(r"^(?:struct|class) (\w+)\s*(?::\s*([^{;]*?))?\s*\{(?!\};)(.*?)\n\};", text, re.M | re.S):
            struct, base, body = match.groups()
            args = {f"{arg}_": kind for kind, arg in re.findall(r"^ *(?:TORCH_ARG|POSENC_BASE_ARG)\((.+),\s*(\w+)\)", body, re.M)}
            members = {member: kind for kind, member in re.findall(r"^  ([\w:<>, ]+) (\w+)(?: = [^;]*)?;", body, re.M) if not kind.startswith(("static", "using", "return"))}
            lists = re.findall(r"POSENC(?:_TRAINING)?_FIELDS\(([^()]*)\);", body)
            listed = {field for one in lists for field in re.findall(r"\w+", one)} - {struct}
            where = name, text[:match.start()].count("\n") + 1
            key = struct if struct not in found or "Options" in struct else f"{name}:{struct}"
            found[key] = where, args or members, lists and listed, [one for one in re.findall(rf"(\w+)<(?:Derived|{struct})>", base or "") if one != struct]
    return found


def check_fields(tree):
    """Each options struct of a module lists all its fields, and each struct in one; what a frozen model compares of its source is whole."""
    structs = structs_with_fields(tree)

    def whole(struct):
        _, own, _, bases = structs[struct]
        return {arg: kind for base in bases if base in structs for arg, kind in whole(base).items()} | own
    for struct, (where, _, listed, _) in structs.items():
        if not listed:
            continue
        for field in sorted(set(whole(struct)) ^ listed):
            tree.say(*where, "fields", f"the list of {struct} has {field if field in listed else 'no ' + field}, the struct "
                     f"{'does not' if field in listed else 'has'}")
        for field, kind in sorted(whole(struct).items()):
            for inner in re.findall(r"\w+Options\b", kind):
                if inner in structs and not structs[inner][2]:
                    tree.say(*where, "fields", f"{struct} has {field}, so that {inner} needs POSENC_FIELDS")
    copies = [name for name in OPTION_HOLDERS if name in tree.files]
    for name in tree.matching(r"include/posenc/.*\.h$"):
        for module, body in re.findall(r"^class (\w+Impl)\b[^;{]*\{(.*?)^\};", tree.text(name), re.M | re.S):
            for options in re.findall(r"^  (\w+Options) options;", body, re.M):
                if options in structs and not structs[options][2]:
                    tree.say(*structs[options][0], "fields", f"{options} needs POSENC_FIELDS: {module} has it")
                if copies and module not in NEVER_FROZEN and not any(re.search(rf"\b{module}\b", tree.text(one)) for one in copies):
                    tree.say(copies[0], 1, "fields", f"lists {module}, or NEVER_FROZEN in tools/lint.py with the reason")


def check_text(tree):
    for name in tree.files:
        if Path(name).suffix not in TEXT or "\0" in tree.text(name):
            continue
        for number, text in enumerate(tree.lines(name), 1):
            if text != text.rstrip():
                tree.say(name, number, "whitespace", "no blanks at the end of a line")
            path = MACHINE_PATH.search(text)
            if path:
                tree.say(name, number, "path", f"no path of one machine: {path.group(0)}...")
        if tree.text(name) and not tree.text(name).endswith("\n"):
            tree.say(name, len(tree.lines(name)), "whitespace", "the last line ends")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--fix", action="store_true")
    parser.add_argument("--root", default=Path(__file__).resolve().parent.parent)
    arguments = parser.parse_args()
    tree = Tree(arguments.root)
    if arguments.fix:
        check_format(tree, fix=True)
    else:
        for check in (check_format, check_includes, check_components, check_small_headers, check_internals, check_factories, check_portability, check_visibility, check_examples, check_lists, check_stems, check_budgets, check_fields, check_text, check_english):
            check(tree)
    for name, line, rule, required in sorted(tree.findings):
        print(f"{name}:{line}: {rule}: {required}")
    if not arguments.fix:
        print(f"lint: {len(tree.files)} files, {len(tree.findings)} findings")
    return 1 if tree.findings else 0


if __name__ == "__main__":
    sys.exit(main())
