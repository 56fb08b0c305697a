#!/usr/bin/env python3
"""The tools that make and check the documents: what they find and what they reject."""

import json
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import docs_components as components  # noqa: E402
import docs_performance as performance  # noqa: E402
import reference_check  # noqa: E402
import reference_filter  # noqa: E402
import reference_pages  # noqa: E402
import snippets  # noqa: E402


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

    def test_the_numbers_of_the_readme_follow_the_results(self):
        known = performance.runs()
        for run in known:
            for row in run.get("ratios", []):
                row["ratio"] *= 2 if row["theirs"].startswith("bert/") and "/transformers/" in row["theirs"] else 1
        server = {"processor": "Acme 9000", "busy_loops": [4, 0], "threads": [2, 1],
                  "milliseconds": {"MiniLM, 16 tokens": [[9, 9], [9, 1.09]], "MiniLM, 128 tokens": [[9, 9], [9, 9.82]]}}  # fmt: skip
        said = [performance.headline(runs, server, sinusoids=1, rotary=2, relative=4, encoders=3) for runs in (known, performance.runs())]
        self.assertNotEqual(*said)
        self.assertIn("on one core of an Acme 9000, MiniLM in 8 bits takes 1.1 ms for 16 tokens and 9.8 ms for 128;", said[0])
        self.assertIn("3 model types of encoders, 1 sinusoids, 2 rotary embeddings and 4 relative positions of published systems.\n", said[0])

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
