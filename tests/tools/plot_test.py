"""tools/plot.py draws what the program computes: the numbers in each picture are compared with the formula in float64.

    tests/tools/plot_test.py --posenc build/release/posenc
"""

import argparse
import io
import json
import sys
import tempfile
import unittest
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import plot  # noqa: E402

options: argparse.Namespace


def sinusoid(position: np.ndarray, dim: int) -> np.ndarray:
    """Sine and cosine in turn, as in the notebooks."""
    angle = position[:, None] * 10000.0 ** (-np.arange(0, dim, 2) / dim)
    return np.stack([np.sin(angle), np.cos(angle)], 2).reshape(len(position), dim)


def titles(figure) -> "list[str]":
    return [axes.get_title() for axes in figure.axes if axes.get_title()]


def images(figure) -> "list[np.ndarray]":
    return [np.asarray(one.get_array()) for axes in figure.axes for one in axes.get_images()]


def line(axes, which: int) -> "tuple[np.ndarray, np.ndarray]":
    return tuple(np.asarray(values, float) for values in axes.get_lines()[which].get_data())


class PlotTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name)

    def figures(self, *words: object) -> dict:
        """The pictures of a command, by name, before they are written."""
        read = plot.arguments().parse_args(["--posenc", options.posenc, *map(str, words)])
        with tempfile.TemporaryDirectory() as folder:
            return {path.stem: figure for path, figure in read.draw(plot.Program(read.posenc, folder), read).items()}

    def run_script(self, *words: object) -> "tuple[int, str, str]":
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            status = plot.main(["--posenc", options.posenc, *map(str, words)])
        return status, out.getvalue(), err.getvalue()

    def refused(self, why: str, *words: object):
        status, out, err = self.run_script(*words)
        self.assertEqual((status, out), (1, ""), err)
        self.assertRegex(err, "^plot: ")
        self.assertIn(why, err)


class Table(PlotTest):
    def figures_of(self, *words: object) -> dict:
        return self.figures("table", "--out", self.folder, *words)

    def test_the_three_pictures_show_the_table_of_the_notebooks(self):
        drawn = self.figures_of("--dim", 16, "--length", 24)
        expected = sinusoid(np.arange(24), 16)
        np.testing.assert_allclose(images(drawn["heat_map"])[0], expected, atol=1e-5)
        np.testing.assert_allclose(images(drawn["similarity"])[0], expected @ expected.T, atol=1e-4)
        self.assertEqual(titles(drawn["waveforms"]), [f"Dimension {k} ({kind})" for k, kind in
                         [(0, "sin"), (1, "cos"), (4, "sin"), (5, "cos"), (6, "sin"), (7, "cos")]])  # fmt: skip
        for axes, k in zip(drawn["waveforms"].axes, (0, 1, 4, 5, 6, 7)):
            x, y = line(axes, 0)  # a smooth curve through the table's points
            self.assertEqual(len(x), 231)
            np.testing.assert_allclose(y, sinusoid(x, 16)[:, k], atol=1e-5)
            np.testing.assert_allclose(line(axes, 1)[1], expected[:, k], atol=1e-5)
        self.assertEqual(drawn["heat_map"].axes[0].get_ylabel(), "Position")

    def test_each_kind_of_table_has_its_names(self):
        for preset, dim, row, first in [("musicgen", 8, "Position", ["0 (cos)", "4 (sin)"]), ("espnet_rel", 8, "Row", ["0 (sin)", "1 (cos)"]),
                                        ("tape", 8, "Row", ["0 (sin)", "1 (cos)"]), ("canary", 8, "Position", ["0 (sin)", "4 (cos)"])]:  # fmt: skip
            drawn = self.figures_of("--preset", preset, "--dim", dim, "--length", 12)
            self.assertEqual(titles(drawn["waveforms"])[:2], [f"Dimension {name}" for name in first], preset)
            self.assertEqual(drawn["heat_map"].axes[0].get_ylabel(), row, preset)
        drawn = self.figures_of("--preset", "nerf", "--dim", 15, "--length", 12, "--param", "multires=2")
        self.assertTrue(all(title.split()[-1].isdigit() for title in titles(drawn["waveforms"])), "coordinates are no sines")

    def test_channels_that_would_be_blocks_of_colour_are_left_out(self):
        drawn = self.figures_of("--preset", "whisper", "--dim", 384, "--length", 1500)
        self.assertEqual([int(title.split()[1]) for title in titles(drawn["waveforms"])], [37, 229, 66, 258, 95, 287])

    def test_a_grid_has_a_map_for_a_channel(self):
        words = ["--param", "height=5", "--param", "cls_token=1"]
        maps = self.figures_of("--preset", "mae_2d", "--dim", 64, *words)["waveforms"]
        self.assertEqual(maps.get_suptitle(), "Over the grid of 5 x 5 cells: mae_2d, D = 64")
        self.assertEqual([title.split(", ")[1] for title in titles(maps)], ["along axis 0"] * 3 + ["along axis 1"] * 3)
        with tempfile.TemporaryDirectory() as folder:
            table = plot.Program(options.posenc, folder).table("mae_2d", 64, *words)
        for title, cells in zip(titles(maps), images(maps)):
            np.testing.assert_array_equal(cells, table[-25:, int(title.split(",")[0].split()[1])].reshape(5, 5))  # after the class token
            constant = 1 if title.endswith("0") else 0
            np.testing.assert_allclose(np.ptp(cells, constant), 0, atol=1e-6)
        cube = self.figures_of("--preset", "diffusers_3d_sincos", "--dim", 48,
                               *"--param height=6 --param width=9 --param depth=4".split())["waveforms"]  # fmt: skip
        self.assertIn("4 x 6 x 9 cells, slice below slice", cube.get_suptitle())
        self.assertEqual([cells.shape for cells in images(cube)], [(24, 9)] * 9)
        self.assertEqual(len(cube.axes), 10, "the maps share one bar of colours")

    def test_the_smallest_and_the_widest_table(self):
        for dim in (2, 32766):
            status, out, err = self.run_script("table", "--out", self.folder, "--dim", dim, "--length", 2)
            self.assertEqual((status, err), (0, ""))
        for axes in self.figures_of("--dim", 2, "--length", 2)["heat_map"].axes[:1]:
            self.assertTrue(all(float(tick).is_integer() for tick in axes.get_xticks()), "no half a dimension")

    def test_a_bad_request_is_refused_and_nothing_is_written(self):
        out = self.folder / "new"
        self.refused("did you mean notebook_000?", "table", "--out", out, "--preset", "notebok_000")
        self.refused("Got 5", "table", "--out", out, "--dim", 5)
        self.refused("`height`", "table", "--out", out, "--preset", "mae_2d")
        self.refused("--length must be from 2 to 2048 for a picture of 128 channels. Got 1\n", "table", "--out", out, "--length", 1)
        self.refused("Got 4000000", "table", "--out", out, "--length", 4000000)
        self.refused("`make build` builds it", "--posenc", self.folder / "none", "table", "--out", out)
        self.assertFalse(out.exists())
        (self.folder / "taken").touch()
        self.refused("taken", "table", "--out", self.folder / "taken", "--dim", 4)


class Files(PlotTest):
    def test_the_ending_is_the_format(self):
        for ending, begin in [("png", b"\x89PNG\r\n\x1a\n"), ("svg", b"<?xml"), ("pdf", b"%PDF")]:
            status, out, err = self.run_script("table", "--out", self.folder, "--dim", 4, "--length", 5, "--format", ending)
            self.assertEqual((status, err), (0, ""))
            names = out.split()
            self.assertEqual([Path(name).name for name in names], [f"{name}.{ending}" for name in ("heat_map", "waveforms", "similarity")])
            for name in names:
                self.assertTrue(Path(name).read_bytes().startswith(begin))
        self.refused("--out must end with .png, .svg or .pdf. Got a.jpeg", "pronounce", ROOT / "docs/pronounce.json", "--out", "a.jpeg")


class Rotary(PlotTest):
    def test_scores_are_those_of_the_frequencies(self):
        figure = self.figures("rotary", "--out", "r.png", "--dim", 16, "--length", 1024, "--base", 500, "--factor", 4)["r"]
        self.assertEqual(titles(figure), ["default", "linear", "dynamic", "yarn", "llama3", "longrope"])
        self.assertIn("16 channels, base 500, original context 256, factor 4", figure.get_suptitle())
        frequency = 500.0 ** (-np.arange(8) / 8)
        growing = np.geomspace(1, 4, 8)
        raised = (500 * (4 * 1025 / 256 - 3) ** (16 / 14)) ** (-np.arange(8) / 8)  # the base of a context of 1025
        for name, factor, scale in [("default", frequency, 1), ("linear", frequency / 4, 1), ("dynamic", raised, 1),
                                    ("longrope", frequency / growing, 1 + np.log(4) / np.log(256))]:  # fmt: skip
            axes = figure.axes[titles(figure).index(name)]
            distance, curve = line(axes, 0 if name == "default" else 1)
            self.assertEqual((distance[0], distance[-1]), (1, 1024))
            np.testing.assert_allclose(curve, np.cos(distance[:, None] * factor).mean(1) * scale, atol=1e-5, err_msg=name)
        for axes in figure.axes[1:]:  # grey: the trend of the unscaled scores
            np.testing.assert_array_equal(line(axes, 0), line(figure.axes[0], 1))

    def test_a_trend_averages_the_near_distances(self):
        np.testing.assert_allclose(plot.trend(np.array([1, 10, 11, 20]), np.array([1.0, 2, 4, 8])), [1, 3, 3, 8])

    def test_what_has_no_picture_is_refused(self):
        for words, why in [(("--dim", 7), "--dim must be even and at least 4. Got 7"), (("--factor", 1), "--factor must be above 1"),
                           (("--length", 64), "at most --length / 16. Got 8"), (("--base", 1), "--base must be above 1. Got 1")]:  # fmt: skip
            self.refused(why, "rotary", "--out", self.folder / "r.png", *words)
        self.assertEqual(list(self.folder.iterdir()), [])


def buckets(distance: np.ndarray) -> np.ndarray:
    """T5's 32, half of them for keys after the query: exact to 8, then at equal ratios up to 128."""
    apart = np.abs(distance)
    far = 8 + (np.log(np.maximum(apart, 1) / 8) / np.log(128 / 8) * 8).astype(int)
    return 16 * (distance > 0) + np.where(apart < 8, apart, np.minimum(far, 15))


class Relative(PlotTest):
    def test_biases_are_those_of_their_buckets_and_slopes(self):
        figure = self.figures("relative", "--out", "b.png")["b"]
        t5, alibi = figure.axes
        self.assertIn("an untrained table", t5.get_title())
        for head in range(3):
            distance, bias = line(t5, head)
            bucket = buckets(distance.astype(int))
            for value in np.unique(bucket):
                self.assertEqual(len(np.unique(bias[bucket == value])), 1)
        self.assertEqual(len(np.unique(bias)), 31, "no key after the query has distance 0")
        for head in range(8):
            distance, bias = line(alibi, head)
            np.testing.assert_allclose(bias, distance * 2.0 ** -(head + 1))

    def test_the_table_of_a_model_is_drawn(self):
        table = np.arange(32, dtype=np.float32)[:, None] * [1, -1]
        save_file({"encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight": table.astype(np.float32)}, self.folder / "model.safetensors")
        axes = self.figures("relative", "--model", self.folder, "--out", "b.png")["b"].axes[0]
        distance, bias = line(axes, 1)
        np.testing.assert_array_equal(bias, -buckets(distance.astype(int)))
        save_file({"other": table.astype(np.float32)}, self.folder / "model.safetensors")
        self.refused("a name must end with relative_attention_bias.weight", "relative", "--model", self.folder, "--out", "b.png")
        self.refused("model.safetensors", "relative", "--model", self.folder / "none", "--out", "b.png")

    def test_a_window_takes_its_part_of_the_table(self):
        index, table, first, middle = images(self.figures("window", "--out", "w.png")["w"])
        row, column = np.divmod(np.arange(49), 7)
        np.testing.assert_array_equal(index, (row[:, None] - row + 6) * 13 + column[:, None] - column + 6)
        np.testing.assert_allclose(first, table[6::-1, 6::-1], atol=1e-6)
        np.testing.assert_allclose(middle, table[9:2:-1, 9:2:-1], atol=1e-6)


class Others(PlotTest):
    def test_the_error_grows_with_the_position(self):
        figure = self.figures("error", "--out", "e.png")["e"]
        (place, single), (_, double) = line(figure.axes[0], 0), line(figure.axes[0], 1)
        self.assertEqual((place[0], place[-1]), (1, 2_000_000))
        angle = np.float64(np.float32(2e6)) * 2.0**-24  # of an angle rounded to float32, half a unit in the last place
        self.assertTrue(0.1 * angle < single[-1] < 2 * angle, single[-1])
        self.assertLess(double.max(), 1.01 * 2**-24)

    def test_a_place_is_shown_by_its_near_neighbours_alone(self):
        places, positions, starts = plot.sampled()
        for place, begin, end in zip(places, starts, [*starts[1:], len(positions)]):
            group = positions[begin:end]
            self.assertEqual(group[0], place)
            self.assertLessEqual(group[-1], 1.02 * place)

    def test_trained_positions_beside_a_sinusoid(self):
        rows = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
        save_file({"bert.embeddings.position_embeddings.weight": rows}, self.folder / "model.safetensors")
        figure = self.figures("positions", "--model", self.folder, "--out", "p.png")["p"]
        self.assertEqual(titles(figure), [f"Trained: {self.folder.resolve().name}", "Sinusoid of the same width"])
        for drawn, table in zip(images(figure), (rows.astype(np.float64), sinusoid(np.arange(40), 8))):
            length = np.sqrt((table**2).sum(1))
            np.testing.assert_allclose(drawn, table @ table.T / np.outer(length, length), atol=1e-5)
        save_file({"other": rows}, self.folder / "model.safetensors")
        self.refused("one name must end with position_embeddings.weight. Got 0", "positions", "--model", self.folder, "--out", "p.png")
        self.refused("model.safetensors", "positions", "--model", self.folder / "none", "--out", "p.png")

    def test_a_tone_is_a_line_of_its_filter(self):
        path = self.folder / "tone.npy"
        np.save(path, np.sin(2 * np.pi * 1000 / 16000 * np.arange(8000)))
        figure = self.figures("speech", path, "--out", "s.png")["s"]
        [drawn] = images(figure)
        self.assertEqual(drawn.shape, (80, 50))
        step = (15 + 27 * np.log(8) / np.log(6.4)) / 81  # mel from one filter to the next; 1,000 Hz is 15
        self.assertTrue((drawn[:, 2:-2].argmax(0) == round(15 / step) - 1).all())
        self.assertEqual(len(self.figures("speech", "--out", "s.png")["s"].axes), 3)
        words = [{"text": f" {number}", "start": 0.1 * number, "end": 0.1 * number + 0.05} for number in range(3)]
        axes = plot.figure(300, 200).subplots()
        plot.draw_words(axes, words)
        self.assertEqual([(text.get_text(), round(text.get_position()[0], 3)) for text in axes.texts], [("0", 0.025), ("1", 0.125), ("2", 0.225)])
        self.refused("--model must come with a sound", "speech", "--model", self.folder, "--out", "s.png")
        np.save(path, np.zeros(0))
        self.refused("must have samples. Got 0", "speech", path, "--out", "s.png")

    def test_the_learning_curves(self):
        path = self.folder / "curve.jsonl"
        points = [{"seconds": 60.0 * i, "phoneme_error_rate": 1 / i, "words_right": 1 - 1 / i} for i in (1, 2, 4)]
        for some in (points, points[:1]):  # a run of one step has one point
            path.write_text("".join(json.dumps(point) + "\n" for point in some))
            [axes] = self.figures("pronounce", path, "--out", "c.png")["c"].axes
            for which, percent in [(0, [100, 50, 25]), (1, [100, 50, 25])]:
                np.testing.assert_allclose(line(axes, which), ([1, 2, 4][: len(some)], percent[: len(some)]))
        runs = json.loads((ROOT / "docs/pronounce.json").read_text())
        [axes] = self.figures("pronounce", ROOT / "docs/pronounce.json", "--out", "c.png")["c"].axes
        self.assertEqual(len(axes.get_lines()), len(runs))
        for text in ("", "{}\n", "[]", '{"seconds": 1}\n', "no"):
            path.write_text(text)
            self.refused("must have the points of a learning curve", "pronounce", path, "--out", self.folder / "c.png")
        empty = self.folder / "empty.json"
        empty.write_text("[]")
        self.refused("must have the points of a learning curve", "pronounce", empty, "--out", self.folder / "c.png")
        self.refused("none.jsonl: No such file or directory", "pronounce", self.folder / "none.jsonl", "--out", "c.png")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--posenc", required=True)
    options, rest = parser.parse_known_args()
    unittest.main(argv=[sys.argv[0], *rest])
