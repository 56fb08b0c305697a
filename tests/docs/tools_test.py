#!/usr/bin/env python3
"""The tools that make and check the documents: what they find and what they reject."""

import json
import re
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import docs_components as components  # noqa: E402
import docs_performance as performance  # noqa: E402
import docs_programs as programs  # noqa: E402
import measure_programs as measured  # noqa: E402
import reference_check  # noqa: E402
import reference_components  # noqa: E402
import reference_filter  # noqa: E402
import reference_pages  # noqa: E402
import snippets  # noqa: E402
import spelling  # noqa: E402


class Snippets(unittest.TestCase):
    def examples(self, name: str, *lines: str) -> "list[snippets.Example]":
        return snippets.examples_of(name, "\n".join(lines) + "\n")

    def test_an_example_sees_its_own_includes_only(self):
        shown = self.examples("a.md", "```cpp", "#include <map>", "int a;", "```", "```cpp", "int b;", "```")
        sources = snippets.sources(shown)
        self.assertEqual(len(sources), 2)
        self.assertNotIn("<map>", next(text for text in sources if "int b;" in text))

    def test_inputs_and_stated_shapes_are_handed_over(self):
        [shown] = self.examples("a.md", "```cpp", "torch::Tensor ids = f(1, {2});  // (B, L), 0 pads", "```")
        text, has_inputs = snippets.prepared(shown)
        self.assertTrue(has_inputs)
        self.assertIn('ids = given.tensor("ids", f(1, {2})); given.shape("ids", ids, "(B, L)");', text)
        [other] = self.examples("a.md", "```cpp", "int64_t ids = 3;  // (one)", "```")
        self.assertEqual(snippets.prepared(other), ("int64_t ids = 3;  // (one)", False))

    def test_a_header_s_example_needs_no_include(self):
        [shown] = self.examples("a.h", "  /// ```cpp", "  /// f();", "  /// ```")
        self.assertEqual((shown.includes, shown.body, shown.line), ((snippets.UMBRELLA,), ["f();"], 2))

    def test_code_of_a_header_outside_an_example_is_refused(self):
        for line in ("///     f(x);", "///     f(x);  // why", "///     A::b() & c"):
            with self.assertRaisesRegex(ValueError, "a.h:1: code in a comment"):
                self.examples("a.h", line)
        self.assertEqual(self.examples("a.h", "///     y = a x + b;  v = y^2", "///     Scale::None   no product"), [])

    def test_a_program_for_gtest_is_left_out(self):
        self.assertEqual(self.examples("a.md", "```cpp", "#include <gtest/gtest.h>", "TEST(A, B) {", "}", "```"), [])

    def test_every_document_and_header_is_read(self):
        sources = {entry.source for entry in snippets.all_examples()}
        self.assertLess({"README.md", "docs/seq2seq.md", "include/posenc/models/seq2seq.h"}, sources)


class Performance(unittest.TestCase):
    RUN = {
        "processor": "Acme 9000", "cores": 4, "load": 0.1, "torch": "2.13", "date": "2026-01-01", "rounds": 3,
        "cases": {"embed/module/1/512/1": {"median": 1e-6}, "embed/composed/1/512/1": {"median": 2e-5}},
        "ratios": [{"section": "embed", "ours": "embed/module/1/512/1", "theirs": "embed/composed/1/512/1",
                    "ratio": 20.0, "ratio_of_minima": 21.0}],
    }  # fmt: skip

    def test_a_run_on_another_processor_adds_its_column(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(performance, "RESULTS", Path(name)):
            for path in (ROOT / "docs" / "performance").glob("*.json"):
                (Path(name) / path.name).write_text(path.read_text())
            before = len(performance.runs())
            performance.keep(self.RUN)
            known = performance.runs()
            self.assertEqual(len(known), before + 1)
            self.assertIn("| Acme 9000 | 4 | 0.1 before the run | 2026-01-01 |", performance.machines(known))
            self.assertRegex(performance.sections(known), r"\| 1 token \(decode\) \| LibTorch composition \| 1 us \| 20 us \| 20x, 21x \|")
            self.assertRegex(performance.summary(known), r"\| embedding of 1 to 32,768 tokens \|.*\| 20x \|")

    def test_a_later_run_of_a_processor_replaces_its_sections(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(performance, "RESULTS", Path(name)):
            other = {"section": "adam", "ours": "a", "theirs": "b", "ratio": 1.0}
            performance.keep(json.loads(json.dumps(self.RUN)) | {"ratios": [*self.RUN["ratios"], other], "load": 0.7})
            performance.keep(self.RUN | {"ratios": [self.RUN["ratios"][0] | {"ratio": 30.0}]})
            [known] = performance.runs()
            self.assertEqual(sorted(row["ratio"] for row in known["ratios"]), [1.0, 30.0])
            self.assertEqual({section: about["load"] for section, about in known["runs"].items()}, {"adam": 0.7, "embed": 0.1})
            rows = performance.machines([known])
            self.assertIn("| 0.1 before the run |", rows)
            self.assertRegex(rows, r"\| 0\.7 before the run \|.*Optimisers \|")

    def test_a_run_on_a_busy_machine_is_rejected_and_no_goal_is_kept(self):
        with tempfile.TemporaryDirectory() as name, mock.patch.object(performance, "RESULTS", Path(name)):
            with self.assertRaisesRegex(SystemExit, "the machine must be idle before a run: a load of at most 1.0. Got 2.0"):
                performance.keep(self.RUN | {"load": 2.0})
            self.assertEqual(performance.runs(), [])
            performance.keep(self.RUN | {"ratios": [self.RUN["ratios"][0] | {"goal": 15}]})
            self.assertNotIn("goal", performance.runs()[0]["ratios"][0])

    def test_what_is_slower_is_listed(self):
        run = self.RUN | {"ratios": [self.RUN["ratios"][0] | {"ratio": 0.5}]}
        self.assertIn("1 token (decode) | LibTorch composition | Acme 9000 | 0.50x |", performance.slower([run]))
        self.assertNotIn("Acme", performance.slower([self.RUN]))

    def test_a_profile_says_what_its_parts_leave_and_nothing_of_the_comparisons(self):
        seconds = {"forward": 0.02, "touched": 0.008, "out": 0.011, "composed": 0.1}
        cases = {f"profile/32768/{name}": {"median": value} for name, value in seconds.items()}
        with tempfile.TemporaryDirectory() as name, mock.patch.object(performance, "RESULTS", Path(name)):
            performance.keep(self.RUN)
            self.assertNotIn("Where the time", performance.sections(performance.runs()))
            performance.keep(self.RUN | {"cases": cases, "ratios": [], "load": 0.2, "date": "2026-02-02"})
            page = performance.sections(performance.runs())
            self.assertIn("| Acme 9000 | 4 | 0.1 before the run | 2026-01-01 |", performance.machines(performance.runs()))
            self.assertIn("| reading the rows and writing the result | 12 ms, 60% |", page)
            self.assertIn("| *LibTorch composition* | 100 ms (5.0x) |", page)


class Version(unittest.TestCase):
    def test_all_that_names_the_version_names_that_of_the_header(self):
        parts = re.findall(r"^#define POSENC_VERSION_(?:MAJOR|MINOR|PATCH) (\d+)$", (ROOT / "include/posenc/version.h").read_text(), re.M)
        whole, minor = ".".join(parts), ".".join(parts[:2])
        self.assertEqual(re.findall(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()), [whole])
        self.assertEqual(json.loads((ROOT / "packaging/vcpkg/posenc/vcpkg.json").read_text())["version"], whole)
        self.assertEqual(re.search(r"^## (\d\S*)", (ROOT / "CHANGELOG.md").read_text(), re.M)[1], whole)
        named = {r"find_package\(posenc (\d[\d.]*)": minor, r"libposenc\w*\.so\.(\d+\.\d+)": minor, r"posenc-(\d+\.\d+\.\d+)": whole}
        texts = [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md", *ROOT.glob("examples/*/CMakeLists.txt"), *ROOT.glob("tests/package/*/CMakeLists.txt")]
        for path in texts:
            for pattern, expected in named.items():
                for found in re.findall(pattern, path.read_text()):
                    self.assertEqual(found, expected, f"{path.relative_to(ROOT)}: {pattern}")


class Programs(unittest.TestCase):
    @staticmethod
    def run_of(**programs: "tuple[float, float, int]") -> dict:
        figures = {name: {"milliseconds": {"short": ms, "long": 10 * ms}, "sentences_a_second": each_second, "megabytes": megabytes, "agreement": 0.99}
                   for name, (ms, each_second, megabytes) in programs.items()}  # fmt: skip
        figures["openvino"]["weights"] = "bfloat16"
        model = {"title": "a model, as published", "published": True, "sentences": 9, "tokens": 20.5, "rounds": 3, "date": "2026-01-01", "programs": figures}
        versions = dict.fromkeys(("posenc", "torch", "transformers", "onnxruntime", "ctranslate2", "openvino", "nncf"), "1.2")
        return {"processor": "Acme 9000", "cores": 4, "versions": versions, "models": {"minilm": model}}

    def test_what_is_ahead_with_the_same_kind_of_weights_is_bold_and_listed(self):
        same = (2.0, 100.0, 500)
        run = self.run_of(posenc_float32=same, transformers=same, posenc_bfloat16=same, openvino=(1.0, 101.0, 600), posenc_int8=(0.5, 50.0, 100),
                          openvino_int8=(1.0, 60.0, 90), onnxruntime_int8=(1.5, 40.0, 300))  # fmt: skip
        page = programs.programs(run)
        self.assertIn("|  | OpenVINO, its default | bfloat16 | **1** | **10** | **101** | 600 | 0.99000 |", page)
        self.assertIn("|  | OpenVINO, by NNCF | 8 bits | 1 | 10 | **60** | **90** | 0.99000 |", page)
        self.assertIn("| a model, as published | **posenc** | float32 | 2 | 20 | 100 | 500 | 0.99000 |", page)
        self.assertIn("|  | transformers | float32 | 2 | 20 | 100 | 500 |", page)
        self.assertIn("One thread on an idle machine (Acme 9000, 4 cores), posenc 1.2, LibTorch and torch 1.2,", page)
        self.assertEqual(programs.ahead(run).splitlines()[2:],
                         ["| a model | OpenVINO, its default | bfloat16 | 16 tokens 2.00x, 128 tokens 2.00x, sentences a second 1.01x |",
                          "| a model | OpenVINO, by NNCF | 8 bits | sentences a second 1.20x, peak memory 1.11x |"])  # fmt: skip

    def test_a_program_that_is_nowhere_ahead_is_not_listed(self):
        run = self.run_of(posenc_float32=(1.0, 2.0, 3), transformers=(2.0, 1.0, 4), posenc_bfloat16=(1.0, 2.0, 3), openvino=(1.0, 2.0, 3))
        self.assertEqual(programs.ahead(run), "No program is ahead in a figure of the table.\n")

    def test_the_numbers_of_the_readme_follow_the_results(self):
        run = self.run_of(posenc_int8=(1.09, 9.0, 223), openvino_int8=(2.0, 1.0, 1), onnxruntime_int8=(3.0, 1.0, 1), transformers=(4.0, 1.0, 1), openvino=(1.0, 1.0, 1))
        said = " ".join(programs.headline(run, sinusoids=1, rotary=2, relative=4, encoders=3).split())
        self.assertIn("on one core (Acme 9000), all-MiniLM-L6-v2 in 8 bits takes 1.1 ms for 16 tokens and 11 ms for 128, in a process of 223 MB;", said)
        self.assertIn("OpenVINO in 8 bits takes 2 and 20 ms, ONNX Runtime 3 and 30, transformers in float32 4 and 40", said)
        self.assertIn("3 model types of encoders, 1 sinusoids, 2 rotary embeddings and 4 relative positions of published systems.", said)

    def test_a_model_that_is_measured_again_replaces_its_rows_only(self):
        # The programs are in the environment of the benchmarks only.
        with tempfile.TemporaryDirectory() as name, mock.patch.object(measured, "versions", lambda: {"posenc": "1.2"}):
            results, keys = Path(name) / "programs.json", list(measured.MODELS)
            for model, value in (("marian", 1), ("minilm", 2), ("marian", 3)):
                measured.keep(results, model, {"is": value}, keys)
            kept = json.loads(results.read_text())
            self.assertEqual(kept["models"], {"minilm": {"is": 2}, "marian": {"is": 3}})
            self.assertEqual(list(kept["models"]), ["minilm", "marian"])
            with mock.patch.object(measured, "processor", lambda: "Acme 9000"):
                measured.keep(results, "bert", {"is": 4}, keys)
            self.assertEqual(json.loads(results.read_text())["models"], {"bert": {"is": 4}})

    def test_accuracy_has_a_row_for_each_program(self):
        figures = {"mean": 0.00123, "worst": 0.01, "kept": 0.961, "nearest": 0.95}
        run = {"models": {"minilm": {"nearest": 10, "programs": {"ctranslate2_int8": figures, "posenc_int8": figures | {"kept": 0.97}}}}}
        self.assertEqual(programs.accuracy(run).splitlines()[2:],
                         ["| **posenc**, `--int8` | 8 bits, scores too | 0.0012 | 0.01 | 97.0% | 95.0% |", "| CTranslate2 | 8 bits | 0.0012 | 0.01 | 96.1% | 95.0% |"])  # fmt: skip

    def test_neighbours_that_are_kept(self):
        import numpy

        with tempfile.TemporaryDirectory() as name, mock.patch.object(measured, "NEAREST", 2):
            ours, theirs = Path(name) / "ours", Path(name) / "theirs"
            rows = numpy.array([[1, 0], [1, 0.1], [1, 0.3], [0, 1]])
            for path, table in ((theirs, rows), (ours, numpy.array([rows[0] * 3, rows[1], rows[3], rows[2]]))):
                path.write_text("".join(" ".join(map(str, row)) + "\n" for row in table))
            same, other = measured.accuracy(theirs, theirs), measured.accuracy(ours, theirs)
        self.assertEqual((same["kept"], same["nearest"]), (1.0, 1.0))
        self.assertAlmostEqual(other["worst"], 1 - 0.3 / 1.09**0.5)
        self.assertEqual((other["kept"], other["nearest"]), (0.5, 0.5))

    def test_shapes_are_batches_of_the_sequences_below_the_sentences(self):
        model = measured.Model("a model", "encoder", 100)
        shapes, rows, at = model.shapes(), [*measured.LENGTHS.values()], 102
        for (first, count, batch, *_), lengths in zip((map(int, line.split()) for line in shapes.values()), rows, strict=True):
            self.assertEqual((first, count, batch), (at, len(lengths), len(lengths)))
            at += len(lengths)

    def test_ratios_of_shapes(self):
        times = {"posenc_float32": {"1 x 16": 1.0, "8 x 128": 10.0}, "openvino_float32": {"1 x 16": 0.5, "8 x 128": 20.0}, "limit_float32": {"1 x 16": 0.55, "8 x 128": 8.0}}
        run = {"models": {"minilm/2": {"title": "a model, as published", "threads": 2, "milliseconds": times}}}
        self.assertEqual(programs.shares(run).splitlines(),
                         ["| model | posenc in | against | 1 x 16 | 8 x 128 |", "|---|---|---|---|---|",
                          "| a model, 2 threads | float32 | OpenVINO, float32 | **0.50x** | 2.0x |", "|  | float32 | the processor's limit | 55% | 80% |"])  # fmt: skip
        with mock.patch("builtins.print") as said:
            measured.show_shapes("minilm", run["models"]["minilm/2"])
        self.assertEqual([call.args[0] for call in said.call_args_list][3:],
                         ["minilm 1 x 16: openvino_float32 takes 0.50 times as long as posenc_float32, and should take 1",
                          "minilm 1 x 16: limit_float32 takes 0.55 times as long as posenc_float32, and should take 0.6"])  # fmt: skip

    def test_speech_has_steps_and_what_is_ahead(self):
        seconds = {"encoder": 0.4, "4 1": 0.3, "100 1": 2.22, "4 5": 0.5, "36 5": 1.46, "text": 2.5}
        ours = measured.speech_milliseconds(seconds)
        self.assertEqual({case: round(value, 6) for case, value in ours.items()}, {"encoder": 400, "text": 2500, "token": 20, "beams": 30})
        theirs = ours | {"token": 15.0, "text": 3250.0}
        run = {"posenc_float32": ours, "posenc_bfloat16": ours, "posenc_int8": ours, "whisper_cpp": {"encoder": 410.0}, "faster_whisper": theirs, "posenc_int8_eight": {"alone": 9000.0, "many": 7500.0},
               "posenc_float32_two_threads": {"encoder": 250.0}}  # fmt: skip
        model = {"title": "a model", "sounds": 8, "words": 100, "rounds": 3, "date": "2026-01-01",
                 "programs": {name: {"milliseconds": times, "megabytes": 500} for name, times in run.items()}}  # fmt: skip
        versions = dict.fromkeys(("posenc", "transformers", "openai-whisper", "faster-whisper", "ctranslate2", "pywhispercpp"), "1.2")
        page = programs.speech({"processor": "Acme 9000", "cores": 4, "versions": versions, "models": {"whisper": model}})
        self.assertEqual(page.splitlines()[2:7], ["| **posenc** | float32 | 400 | 20 | 30 | 2,500 | 500 |", "| faster-whisper | float32 | 400 | **15** | 30 | 3,250 | 500 |",
                                                  "| **posenc** | bfloat16 | 400 | 20 | 30 | 2,500 | 500 |", "| whisper.cpp | float16 | 410 |  |  |  | 500 |",
                                                  "| **posenc** | 8 bits | 400 | 20 | 30 | 2,500 | 500 |"])  # fmt: skip
        self.assertIn("beside one after another: 1.20x in 8 bits. The encoder on two threads, beside one: 1.60x in float32.", page)
        with mock.patch("builtins.print") as said:
            measured.show_speech("whisper", model)
        self.assertEqual([call.args[0] for call in said.call_args_list][len(run) :],
                         ["whisper encoder: faster_whisper takes 1.00 times as long as posenc_float32, and should take 1.2",
                          "whisper token: faster_whisper takes 0.75 times as long as posenc_float32, and should take 1.2",
                          "whisper beams: faster_whisper takes 1.00 times as long as posenc_float32, and should take 1.3",
                          "whisper many: posenc_int8_eight takes 1.20 times as long as posenc_int8_eight, and should take 1.3",
                          "whisper encoder: posenc_float32 takes 1.60 times as long as posenc_float32_two_threads, and should take 1.7"])  # fmt: skip


class Components(unittest.TestCase):
    def test_a_selection_is_built_with_what_it_needs(self):
        self.assertEqual(components.closure("weights", "positions"), ["base", "kernels", "core", "positions", "weights"])
        self.assertEqual(components.closure("tokenizers"), ["base", "tokenizers"])
        self.assertEqual(components.closure("all"), components.known().names)

    def test_every_component_says_what_it_is_for(self):
        rows = components.components().splitlines()[2:]
        self.assertEqual([row.split("`")[1] for row in rows], components.known().names)
        for row in rows:
            self.assertRegex(row.split(" | ")[1], r"^\w.*\w.*[.]$")

    def test_lines_are_rounded_to_two_digits(self):
        self.assertEqual([components.rounded(number) for number in (7, 99, 149, 4119, 12_601, 110_400)], ["7", "99", "150", "4,100", "13,000", "110,000"])

    def test_what_is_not_measured_has_no_column(self):
        def page(name: str) -> str:
            with mock.patch.object(components, "MEASURED", Path(name) / "components.json"):
                return components.selections()

        with tempfile.TemporaryDirectory() as name:
            self.assertEqual(page(name).splitlines()[0], "| `POSENC_COMPONENTS` | built | lines |")
            one = {"seconds": {"configure": 1.5, "build": 90.2, "install": 0.4}, "program": 1_240_000}
            run = {"processor": "Acme 9000", "cores": 2, "load": 0.1, "compiler": "c++ 12.2.0", "torch": "2.13.0", "date": "2026-01-01",
                   "shared_tokenizers": 2_560_000, "selections": dict.fromkeys(components.SELECTIONS, one)}  # fmt: skip
            (Path(name) / "components.json").write_text(json.dumps(run))
            self.assertRegex(page(name), r"\| `tokenizers` \| base, tokenizers \| [\d,]+ \| 92 s \| 1\.2 MB \|")
            self.assertIn("`libposenc_tokenizers.so` has 2.6 MB", page(name))


class Reference(unittest.TestCase):
    def header(self, text):
        return reference_filter.header(ROOT / "include/posenc/positions/scale.h", text)

    def test_an_option_is_one_member_with_its_default(self):
        shown = self.header("struct AOptions {\n  /// Why.\n  TORCH_ARG(std::map<int, int>, x) = {1, 2};\n};\n")
        self.assertIn("  /// Why.\n  std::map<int, int> x = {1, 2};\n", shown)
        self.assertIn("is set by `.x(value)`", shown.splitlines()[0])
        self.assertNotIn("is set by", self.header("struct A {\n  int x = 0;\n};\n"))

    def test_a_header_keeps_its_lines(self):
        for path in sorted((ROOT / "include").rglob("*.h")):
            text = path.read_text()
            self.assertEqual(len(reference_filter.header(path, text).splitlines()), len(text.splitlines()), path)

    def test_overrides_and_sections(self):
        shown = self.header("/// Errors: none.\n  void reset() override;\n  void reset_parameters();\n")
        self.assertEqual(shown.splitlines()[:3], ["/// @section_of{Errors} none.", "", "  void reset_parameters();"])

    def test_a_module_is_one_class(self):
        shown = self.header("/// A.\nclass AImpl : public Cloneable<AImpl> {\n  AImpl(B b);\n};\nTORCH_MODULE(A);\nvoid f(AImpl& a);\n")
        self.assertEqual(shown, "/// A.\n/** @handle_of{A} */ class A : public Cloneable<A> {\n  A(B b);\n};\n\nvoid f(AImpl& a);\n")
        holder = "class A : public torch::nn::ModuleHolder<AImpl> {\n public:\n  using torch::nn::ModuleHolder<AImpl>::ModuleHolder;\n"
        shown = self.header("class AImpl {\n  int a;\n};\n\n/// Held.\n" + holder + "  static A of(int a);\n};\n")
        self.assertEqual("".join(shown.split()), "/**@handle_of{A}*/classA{inta;public:staticAof(inta);};")

    def test_what_is_inside_of_a_namespace_has_the_header_s_subject(self):
        shown = self.header("namespace posenc {\n\n/// B.\nnamespace b {\nint x;\n}  // namespace b\n}  // namespace posenc\n")
        group = "/** @addtogroup embeddings */ /** @{ */"
        self.assertEqual(shown, f"namespace posenc {{ {group}\n/** @}} */\n/// B.\nnamespace b {{ {group}\nint x;\n"
                                f"/** @}} */ }} {group}\n/** @}} */ }}  // namespace posenc\n")  # fmt: skip

    def test_code_is_shown_as_it_is_written(self):
        shown = self.header("/// ```cpp\n/// f(/*a=*/1);\n/// ```\n/// `don't`, `do`\n")
        page = reference_pages.finished(shown)
        self.assertNotIn("/*", shown)
        self.assertIn('f(<span class="comment">/*a=*/</span>1);', page)
        self.assertIn("``don't``, `do`", page)

    def test_documents_refer_to_each_other(self):
        page = ROOT / "docs/cli.md"
        for text, expected in [
            ("[a](weights.md)", "[a](@ref weights)"),
            ("[a](../README.md#how-fast)", "[a](@ref index-how-fast)"),
            ("[a](https://x.y/z.md)", "[a](https://x.y/z.md)"),
            ("[`a`](../tools/lint.py)", "`a`"),
            ("[`Scale`](../include/posenc/positions/scale.h)", '<code>@ref posenc::Scale "Scale"</code>'),
            ("[`a`](weights.md)", '<code>@ref weights "a"</code>'),
            ("[a\nb](weights.md)", "[a b](@ref weights)"),
            ("`a'b`", "``a'b``"),
            ("mae@0a1b `b@c` `[&](x)`", "mae\\@0a1b `b@c` `[&](x)`"),
            ("```\n# a [b](c)\n```", "```\n# a [b](c)\n```"),
            ("# A\n## B, `c`\n## B, c", "# A {#cli}\n## B, `c` {#cli-b-c}\n## B, c {#cli-b-c-1}"),
        ]:
            self.assertEqual(reference_filter.document(page, text), expected)

    def test_the_page_of_a_component_says_how_it_is_linked_and_what_it_has(self):
        page = reference_filter.filtered(ROOT / "src/weights/README.md")
        self.assertTrue(page.startswith("# posenc::weights {#component-weights}\n"))
        for text in ("COMPONENTS weights)\ntarget_link_libraries(app PRIVATE posenc::weights)", "With it come [base](@ref component-base), [core](@ref component-core), and LibTorch.",
                     "Built on it: [models](@ref component-models), [train](@ref component-train).", "- [Loading and saving weights](@ref weights): formats",
                     '| @ref posenc/weights/save.h "save.h" | @ref posenc::SaveOptions "SaveOptions" |'):  # fmt: skip
            self.assertIn(text, page)
        self.assertNotIn("LibTorch.", reference_components.neighbours("tokenizers", reference_components.known()))
        self.assertIn("no program links it by its name", reference_components.linking("core"))
        self.assertNotIn("## Linking", reference_filter.filtered(ROOT / "src/cli/README.md"))

    def test_classes_are_found_in_their_namespaces(self):
        with tempfile.TemporaryDirectory() as name:
            header = Path(name) / "a.h"
            header.write_text("namespace torch {\nclass T;\n}\nnamespace posenc {\nclass F;\nnamespace rotary {\nstruct R {\n};\n}  // namespace rotary\n"
                              "class MImpl : public B {\n};\nTORCH_MODULE(M);\nnamespace detail {\nstruct D {\n};\n}  // namespace detail\nstruct O final {\n};\n")  # fmt: skip
            self.assertEqual(reference_components.declared(header), ["rotary::R", "M", "O"])

    def test_every_component_has_its_page_in_the_navigation(self):
        found = reference_check.without_page(reference_components.known().names)
        self.assertEqual(found, [])
        self.assertEqual(len(reference_check.without_page(["positions", "teapots"])), 1)

    def test_the_address_of_a_page_has_the_version(self):
        with tempfile.TemporaryDirectory() as name:
            for version in ("0.9.0", "0.10.0", "xml"):
                (Path(name) / version).mkdir()
                (Path(name) / version / "index.html").touch()
            self.assertEqual(reference_pages.versions(Path(name)), ["0.10.0", "0.9.0"])
        page = reference_pages.front_page(["0.10.0", "0.9.0"])
        self.assertIn("url=0.10.0/index.html", page)
        self.assertIn('<a href="0.9.0/index.html">0.9.0</a>', page)

    def test_prose_is_spelt_and_code_is_not(self):
        with tempfile.TemporaryDirectory(dir=ROOT / "docs") as name:
            page, header = Path(name) / "a.md", Path(name) / "a.h"
            page.write_text("A wrod of `cofe` in [a lnik](tagret.md).\n\n```cpp\nintt x;\n```\n| the tabel's row | Nmae | a_xz xz_a.zx |\n")
            header.write_text("int wolrd;  // a commnet of the code\n/// A coment.\n  int x;  ///< what it dose\n")
            found = spelling.words_of([page, header])
            self.assertEqual([word for word in found if word not in ("of", "in", "the", "row", "what", "it")], ["wrod", "lnik", "tabel", "coment", "dose"])
            self.assertEqual(found["tabel"], f"{page.relative_to(ROOT)}:6")

    def test_a_link_that_leads_nowhere_is_found(self):
        with tempfile.TemporaryDirectory() as name:
            for target, broken in [("index.html#a", 0), ("https://x.y", 0), ("#b", 1), ("other.html", 1), ("a.png", 1)]:
                page = f'<p id="a"><a class="el" href="{target}">x</a>'
                (Path(name) / "index.html").write_text(page)
                self.assertEqual(len(reference_check.broken_links({"index.html": page}, Path(name))), broken, target)

    def test_the_code_of_a_page_is_read_as_it_is_shown(self):
        shown = reference_check.Code('<div class="fragment"><div class="line">a &lt; <span class="comment">/*b*/</span></div>'
                                     '<div class="line">c</div></div><pre class="fragment">d</pre><code><a>e</a>\'f</code>')  # fmt: skip
        self.assertEqual((shown.blocks, shown.spans), (["a < /*b*/\nc\n", "d"], {"e'f"}))


if __name__ == "__main__":
    unittest.main()
