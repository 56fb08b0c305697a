#!/usr/bin/env python3
"""Draws what posenc computes, with matplotlib.

    tools/plot.py table --out pictures --preset whisper --dim 384 --length 1500
    tools/plot.py rotary --out rotary_decay.png --factor 8
    tools/plot.py relative --out relative_bias.png [--model FOLDER]
    tools/plot.py window --out relative_window.png
    tools/plot.py error --out error_over_position.png
    tools/plot.py positions --model FOLDER --out learned_positions.png
    tools/plot.py speech [SOUND [--model FOLDER]] --out log_mel.png
    tools/plot.py pronounce build/pronounce/curve.jsonl --out curve.png

The numbers come from the program --posenc, from a model's file, or from the curves that posenc-pronounce wrote. The
ending of a picture's name is its format: .png, .svg or .pdf.
"""

import argparse
import io
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
try:
    import matplotlib
    from matplotlib.figure import Figure
    from matplotlib.ticker import LogLocator, MaxNLocator, MultipleLocator
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file
except ImportError as error:
    sys.exit(f"plot: {error.name} is not installed; `make setup` installs it into .venv")

SINE, COSINE, GREEN, PURPLE, GOLD, BLUE, GREY = "#31688e", "#d1662a", "#2a9d5c", "#8e3179", "#b8860b", "#1f4fbf", "#909090"
STYLE = {
    "figure.dpi": 100, "font.size": 11, "axes.titlesize": "medium", "axes.linewidth": 0.8, "image.cmap": "viridis",
    "axes.grid": True, "axes.grid.axis": "y", "grid.color": "#d0d0d0", "grid.linewidth": 0.6, "axes.axisbelow": True,
    "axes.spines.top": False, "axes.spines.right": False, "figure.constrained_layout.use": True,
    "figure.constrained_layout.h_pad": 0.09, "figure.constrained_layout.w_pad": 0.09, "image.interpolation": "none",
    "svg.fonttype": "none",
}  # fmt: skip

Pictures = "dict[Path, Figure]"


class Refused(Exception):
    """A picture that cannot be drawn, and why."""


def figure(width: int, height: int, title: str = "") -> Figure:
    """Of this size in pixels."""
    result = Figure(figsize=(width / 100, height / 100))
    if title:
        result.suptitle(title, fontsize=12)
    return result


def integer_ticks(axis) -> None:
    axis.set_major_locator(MaxNLocator(integer=True, steps=[1, 2, 5, 10]))


def image(axes, matrix: np.ndarray, **options):
    """A map of a matrix with row 0 on top, in which the centre of a cell is its index."""
    axes.grid(False)
    axes.spines[:].set_visible(True)
    integer_ticks(axes.xaxis)
    integer_ticks(axes.yaxis)
    return axes.imshow(matrix, **{"aspect": "auto", **options})


# --- what the program computes ---


class Program:
    """The command line, with a folder for the files between it and the pictures."""

    def __init__(self, binary: str, folder: str):
        self.binary, self.folder = binary, Path(folder)

    def call(self, *words: object) -> str:
        """What the command prints."""
        try:
            run = subprocess.run([self.binary, *map(str, words)], capture_output=True, text=True)
        except OSError as error:
            raise Refused(f"{self.binary}: cannot be run: {error.strerror}; `make build` builds it") from None
        if run.returncode != 0:
            raise Refused(run.stderr.strip())
        return run.stdout

    def run(self, *words: object, **tensors: np.ndarray) -> "tuple[dict[str, np.ndarray], dict[str, str]]":
        """The tensors and the metadata that the command writes; `tensors` is the file `in.safetensors` that it may read."""
        out = self.folder / "out.safetensors"
        if tensors:
            save_file(tensors, self.folder / "in.safetensors")
        self.call(*words, "--out", out)
        with safe_open(out, "numpy") as file:
            return load_file(out), file.metadata() or {}

    def relative(self, preset: str, settings: dict, tensors: "dict[str, np.ndarray]") -> "dict[str, np.ndarray]":
        """What a preset of relative positions returns."""
        config = self.folder / "settings.json"
        config.write_text(json.dumps({"preset": preset, "dtype": "float32"} | settings))
        given = ["--in", self.folder / "in.safetensors"] if tensors else []
        return self.run("relative", "--config", config, *given, **tensors)[0]

    def table(self, preset: str, dim: int, *words: object, **tensors: np.ndarray) -> np.ndarray:
        return self.run("table", "--preset", preset, "--dim", dim, *words, **tensors)[0]["table"]

    def rows(self, preset: str, dim: int, positions: np.ndarray, *words: object) -> np.ndarray:
        """The rows of single positions."""
        return self.table(preset, dim, "--positions", self.folder / "in.safetensors", *words, positions=positions)


def params(options: "list[str]") -> "list[str]":
    return [word for option in options for word in ("--param", option)]


# --- a table: heat map, waveforms, similarity of positions ---

LENGTH = 100  # rows, unless the table is a grid's
MOST_CELLS = 1 << 22  # more are illegible and take minutes
MOST_WAVES = 40  # in a panel 400 pixels wide, more of them merge into a solid block of colour
LEAST_RANGE = 0.02  # of the table's: a channel with less looks like a straight line
MOST_SLICES = 40  # of a grid, to draw lines between


class Table:
    """A preset's table as the program writes it, and what its rows and channels are."""

    def __init__(self, program: Program, preset: str, dim: int, length: "int | None", options: "list[str]"):
        is_grid = any(option.startswith(("height=", "depth=")) for option in options)
        length = LENGTH if length is None and not is_grid else length
        if length is not None and (length < 2 or length * max(length, dim) > MOST_CELLS):
            raise Refused(f"--length must be from 2 to {MOST_CELLS // max(dim, 2048)} for a picture of {dim} channels. Got {length}")
        words = params(options)
        tensors, about = program.run("table", "--preset", preset, "--dim", dim, *words,
                                     *([] if length is None else ["--length", length]))  # fmt: skip
        self.name, self.values = preset, tensors["table"]
        self.grid = [int(extent) for extent in about.get("grid", "").split("x") if extent]
        self.x, self.curves = np.arange(len(self.values), dtype=np.float64), self.values
        self.row_name, start = "Row", self.values[0]
        try:
            steps = 10 if len(self.values) <= 1000 else 1  # ten points to a position make a smooth curve
            x = np.arange((len(self.values) - 1) * steps + 1) / steps
            rows = program.rows(preset, dim, x, *words)
            start = rows[0]
            if np.allclose(rows[::steps], self.values, atol=1e-5):  # row p is that of position p
                self.x, self.curves, self.row_name = x, rows, "Position"
        except Refused:  # a row that depends on the table's length or grid
            pass
        # At position 0 all sines are 0, and all cosines are equal.
        is_sine, is_cosine = (np.isclose(start, value, atol=1e-5) for value in (0, start.max()))
        has_pairs = not self.grid and (is_sine ^ is_cosine).all() and abs(int(is_sine.sum()) - int(is_cosine.sum())) <= 1
        self.sines, self.cosines = (np.flatnonzero(kind) if has_pairs else np.array([], int) for kind in (is_sine, is_cosine))

    @property
    def size(self) -> str:
        return f"D = {self.values.shape[1]}"

    def limits(self) -> "dict[str, float]":
        """The range of colours: -1 to 1 unless the table is scaled or holds coordinates."""
        low, high = float(self.values.min()), float(self.values.max())
        unit = max(-low, high) <= 1 + 1e-6 and high > 0.5
        return {"vmin": -1, "vmax": 1} if unit else {"vmin": low, "vmax": high}

    def function(self, channel: int) -> str:
        return " (sin)" if channel in self.sines else " (cos)" if channel in self.cosines else ""

    def shown_channels(self) -> "list[int]":
        """Up to six, which are neither constant nor too fast to be visible: three sines, each beside its cosine."""
        values = self.values.astype(np.float64)
        span = np.ptp(values, 0)
        above = values >= values.mean(0)
        seen = (span > LEAST_RANGE * span.max()) & ((above[1:] != above[:-1]).sum(0) <= 2 * MOST_WAVES)
        all_pairs = list(zip(self.sines, self.cosines))
        pairs = [i for i, pair in enumerate(all_pairs) if seen[list(pair)].any()]
        if not pairs:
            return [int(k) for k in np.flatnonzero(seen)[:6]] or [0]  # a constant table still gets a picture
        # The slowest shown is half-way through the frequencies; beyond that, curves are straight lines.
        last = next((i for i, pair in enumerate(pairs) if pair >= len(all_pairs) // 2 - 1), len(pairs) - 1)
        chosen = dict.fromkeys([0, min(2, last) if pairs[0] == 0 else last // 2, last])
        return [int(k) for i in chosen for k in sorted(all_pairs[pairs[i]])]

    def heat_map(self) -> Figure:
        fig = figure(1000, 640)
        axes = fig.subplots()
        drawn = image(axes, self.values, **self.limits())
        axes.set(title=f"Positional encoding: {self.name}, {self.size}, L = {len(self.values)}", xlabel="Dimension", ylabel=self.row_name)
        fig.colorbar(drawn, label="Value", pad=0.01, format="%g", ticks=MaxNLocator(5, steps=[1, 5, 10]))
        return fig

    def similarity(self) -> Figure:
        fig = figure(800, 700)
        axes = fig.subplots()
        rows = self.values.astype(np.float64)
        drawn = image(axes, rows @ rows.T, aspect="equal")
        axes.set(title=f"Similarity of positions, PE(p) · PE(q): {self.name}, {self.size}",
                 xlabel=f"{self.row_name} q", ylabel=f"{self.row_name} p")  # fmt: skip
        fig.colorbar(drawn, label="Dot product", pad=0.02)
        return fig

    def waveforms(self) -> Figure:
        channels = self.shown_channels()
        rows = (len(channels) + 1) // 2
        fig = figure(1000, 60 + 210 * rows, f"Waveforms: {self.name}, {self.size}")
        panels = list(fig.subplots(rows, 2, squeeze=False, sharey=True).flat)
        for axes in panels[len(channels) :]:
            axes.remove()
        for i, (axes, k) in enumerate(zip(panels, channels)):
            function = self.function(k)
            colour = COSINE if function == " (cos)" else SINE
            axes.plot(self.x, self.curves[:, k], color=colour, linewidth=1.2)
            if len(self.values) <= 200:
                axes.plot(self.values[:, k], "o", color=colour, markersize=2)
            axes.set(title=f"Dimension {k}{function}", xlim=(-0.5, len(self.values) - 0.5),
                     xlabel=self.row_name if i + 2 >= len(channels) else "")  # fmt: skip
            axes.tick_params(labelleft=True)
            integer_ticks(axes.xaxis)
            if self.limits()["vmax"] == 1:
                axes.set(ylim=(-1.15, 1.15), yticks=[-1, 0, 1])
        return fig

    def grid_maps(self) -> Figure:
        """Maps of the grid for up to three channels that change along each axis. Of a grid with more than two axes, the slices
        are stacked. Cells are square unless a map would become too flat or too high."""
        columns, cells = self.grid[-1], self.values[-int(np.prod(self.grid)) :]  # after the row of a class token
        rows = len(cells) // columns
        map_height = np.clip(250 * rows / columns, 80, 360)
        fig = figure(1000, int(110 + len(self.grid) * (map_height + 55)),
                     f"Over the grid of {' x '.join(map(str, self.grid))} cells{', slice below slice' if len(self.grid) > 2 else ''}: "
                     f"{self.name}, {self.size}")  # fmt: skip
        panels = fig.subplots(len(self.grid), 3, squeeze=False)
        cube = cells.reshape(*self.grid, -1).astype(np.float64)
        for along, row in enumerate(panels):
            span = np.ptp(cube, along).reshape(-1, cube.shape[-1]).max(0)
            moving = np.flatnonzero((span > 0.25 * span.max()) & (span > 0))
            count = min(3, len(moving))
            for axes in row[count:]:
                axes.remove()
            for i, axes in enumerate(row[:count]):
                channel = moving[i * len(moving) // count]
                drawn = image(axes, cells[:, channel].reshape(rows, columns), **self.limits())
                axes.set_title(f"Dimension {channel}, along axis {along}")
                slices = range(self.grid[-2], rows, self.grid[-2])
                for edge in slices if len(slices) < MOST_SLICES else []:
                    axes.axhline(edge - 0.5, color="white", linewidth=2)
        fig.colorbar(drawn, ax=panels, pad=0.02, aspect=40, format="%g", ticks=MaxNLocator(5, steps=[1, 5, 10]))
        return fig


def table(program: Program, options: argparse.Namespace) -> Pictures:
    made = Table(program, options.preset, options.dim, options.length, options.param)
    waves = made.grid_maps if len(made.grid) > 1 else made.waveforms
    drawn = {"heat_map": made.heat_map(), "waveforms": waves(), "similarity": made.similarity()}
    return {options.out / f"{name}.{options.format}": fig for name, fig in drawn.items()}


# --- rotary embeddings: the score of a query with an equal key, by distance ---

POINTS = 1500  # of a curve, at equal ratios of the distance
SMOOTH = 1.15  # the ratio of distances whose scores a trend averages


def scalings(dim: int, length: int, factor: float) -> "dict[str, tuple[str, list[str]]]":
    """The colour of each scaling, and its parameters for a context `factor` times the original one."""
    original = round(length / factor)
    before, factors = f"original_max_position_embeddings={original}", [f"factor={factor}"]
    growing = ",".join(f"{value:.9g}" for value in np.geomspace(1, factor, dim // 2))
    return {
        "default": (SINE, []),
        "linear": (COSINE, factors),
        "dynamic": (GREEN, [*factors, f"max_position_embeddings={original}"]),
        "yarn": (PURPLE, [*factors, before, f"max_position_embeddings={length}"]),
        "llama3": (GOLD, [*factors, before, "low_freq_factor=1", "high_freq_factor=4"]),
        "longrope": (BLUE, [*factors, before, f"long_factor={growing}", f"short_factor={','.join(['1'] * (dim // 2))}"]),
    }


def scores(program: Program, distance: np.ndarray, dim: int, base: float, scaling: "list[str]") -> np.ndarray:
    """The mean over all unit vectors q = k, in which every pair of channels has the same share."""
    words = params([f"head_dim={dim}", f"rope_theta={base}", *scaling])
    tensors, _ = program.run("rotary", "--preset", "llama", "--precision", "exact", "--in", program.folder / "in.safetensors", *words,
                             position_ids=np.concatenate([[0], distance])[None])  # fmt: skip
    cos, sin = (tensors[name][0].astype(np.float64) for name in ("cos", "sin"))
    return (cos[1:] * cos[0] + sin[1:] * sin[0]).mean(1)


def trend(distance: np.ndarray, curve: np.ndarray) -> np.ndarray:
    """The mean over the distances within a ratio of SMOOTH."""
    total = np.concatenate([[0], np.cumsum(curve)])
    begin, end = np.searchsorted(distance, distance / SMOOTH), np.searchsorted(distance, distance * SMOOTH, "right")
    return (total[end] - total[begin]) / (end - begin)


def rotary(program: Program, options: argparse.Namespace) -> Pictures:
    dim, length, base, factor = options.dim, options.length, options.base, options.factor
    for name, good, rule, value in [("dim", dim >= 4 and dim % 2 == 0, "even and at least 4", dim),
                                    ("base", base > 1, "above 1", base),
                                    ("factor", 1 < factor <= length / 16, "above 1, and at most --length / 16", factor)]:  # fmt: skip
        if not good:
            raise Refused(f"--{name} must be {rule}. Got {value:g}")
    fig = figure(1000, 680, f"Score of a query with an equal key at a distance: {dim} channels, base {base:g}, "
                            f"original context {round(length / factor)}, factor {factor:g}")  # fmt: skip
    distance = np.unique(np.round(np.geomspace(1, length, POINTS)).astype(np.int64))
    panels = fig.subplots(2, 3, sharex=True, sharey=True).flat
    for axes, (name, (colour, scaling)) in zip(panels, scalings(dim, length, factor).items()):
        curve = scores(program, distance, dim, base, [f"rope_type={name}", *scaling])
        if name == "default":
            unscaled = trend(distance, curve)
        else:
            axes.plot(distance, unscaled, color=GREY, linewidth=1.4)
        axes.plot(distance, curve, color=colour, linewidth=0.7, alpha=0.4)
        axes.plot(distance, trend(distance, curve), color=colour, linewidth=2)
        axes.axvline(length / factor, color="#808080", linestyle="--", linewidth=1)
        axes.set_xscale("log", base=2)
        axes.set(title=name, xlim=(1, length), xticks=[16**i for i in range(9) if 16**i <= length])
        axes.xaxis.set_major_formatter("{x:g}")
        axes.yaxis.set_major_locator(MultipleLocator(0.5))
        axes.yaxis.set_major_formatter("{x:g}")
        axes.tick_params(labelbottom=True)
    for axes in fig.axes[3:]:
        axes.set_xlabel("Distance (tokens)")
    for axes in fig.axes[::3]:
        axes.set_ylabel("Score")
    return {options.out: fig}


# --- relative positions: the bias of a distance by head, and the table of a window ---

REACH = 160  # tokens on both sides
HEADS = 8
BIAS_TABLE = "relative_attention_bias.weight"


def t5_table(model: "Path | None") -> "tuple[np.ndarray, str]":
    """The first table of a model's folder, or an untrained one, and what to call it."""
    if model is None:
        return np.random.default_rng(3).standard_normal((32, 3)).astype(np.float32), "an untrained table"
    path = model / "model.safetensors"
    try:
        with safe_open(path, "numpy") as file:
            names = sorted(key for key in file.keys() if key.endswith(BIAS_TABLE))
            table = file.get_tensor(names[0]) if names else None
    except Exception as error:  # the reader's errors have no common type
        raise Refused(f"{path}: {error}") from None
    if table is None:
        raise Refused(f"{path}: a name must end with {BIAS_TABLE}")
    return table.astype(np.float32), model.resolve().name


def by_head(axes, distance: np.ndarray, bias: np.ndarray, title: str, **style) -> None:
    shades = matplotlib.colormaps["viridis"](np.linspace(0, 0.9, len(bias)))
    for head, (row, shade) in enumerate(zip(bias, shades)):
        axes.plot(distance, row, color=shade, linewidth=1.6, label=f"head {head}", **style)
    axes.set(title=title, xlabel="Position of the key minus that of the query", ylabel="Bias")
    axes.legend(loc="lower center", frameon=False, ncols=4, fontsize=9)


def relative_bias(program: Program, options: argparse.Namespace) -> Pictures:
    table, name = t5_table(options.model)
    distance = np.arange(-REACH, REACH + 1)
    settings = {"bidirectional": True, "num_buckets": len(table), "max_distance": 128, "heads": table.shape[1], "offset": REACH}
    t5 = program.relative("t5", settings | {"queries": 1, "keys": len(distance)}, {f"w.{BIAS_TABLE}": table})["bias"][0, :, 0]
    alibi = program.relative("mpt", {"bias_max": 8, "heads": HEADS, "keys": REACH + 1}, {})["bias"][0, :, 0]
    fig = figure(1100, 480)
    left, right = fig.subplots(1, 2)
    by_head(left, distance, t5[:HEADS], f"T5, {len(table)} buckets up to 128: {name}", drawstyle="steps-mid")
    low, high = float(t5[:HEADS].min()), float(t5[:HEADS].max())
    left.set_xscale("symlog", linthresh=16, linscale=1)  # as wide as the buckets are
    left.set(xlim=(-REACH, REACH), xticks=[-128, -32, -8, 0, 8, 32, 128])
    left.minorticks_off()
    left.xaxis.set_major_formatter("{x:g}")
    left.set(ylim=(low - 0.25 * (high - low), high + 0.05 * (high - low)))
    by_head(right, distance[: REACH + 1], alibi, f"ALiBi, {HEADS} heads: slopes 1/2, 1/4 ... 1/256")
    right.set(xlim=(-REACH, 0))
    return {options.out: fig}


WINDOW = 7


def window_table(program: Program, options: argparse.Namespace) -> Pictures:
    rows, settings = 2 * WINDOW - 1, {"window": WINDOW, "heads": 1}

    def bias(table: np.ndarray) -> np.ndarray:
        return program.relative("swin", settings, {"w.relative_position_bias_table": table.reshape(-1, 1).astype(np.float32)})["bias"][0, 0]

    offsets = np.arange(rows) - WINDOW + 1
    table = -np.hypot(offsets[:, None], offsets[None])
    seen = bias(table)
    fig = figure(1180, 420)
    panels = fig.subplots(1, 4, width_ratios=[1.25, 1, 1, 1])
    drawn = image(panels[0], bias(np.arange(rows * rows)), aspect="equal")
    panels[0].set(title=f"Row of the table, {WINDOW} x {WINDOW} patches", xlabel="Key", ylabel="Query")
    fig.colorbar(drawn, ax=panels[0], pad=0.02, shrink=0.75)
    shared = {"aspect": "equal", "vmin": table.min(), "vmax": 0}
    drawn = image(panels[1], table, extent=(-WINDOW + 0.5, WINDOW - 0.5, WINDOW - 0.5, -WINDOW + 0.5), **shared)
    panels[1].set(title=f"A table of {rows} x {rows}", xlabel="Column of the query - of the key", ylabel="Row of the query - of the key")
    middle = WINDOW * WINDOW // 2
    for axes, query, name in ((panels[2], 0, "first"), (panels[3], middle, "middle")):
        image(axes, seen[query].reshape(WINDOW, WINDOW), **shared)
        axes.plot(query % WINDOW, query // WINDOW, "o", color=COSINE, markersize=7)
        axes.set(title=f"Bias of the {name} patch", xlabel="Column of the key", ylabel="Row of the key")
    fig.colorbar(drawn, ax=panels[3], label="Bias", pad=0.03, shrink=0.75)
    return {options.out: fig}


# --- sound ---

RATE = 16000
FORMANTS = {"a": (730, 1090, 2440), "e": (530, 1840, 2480), "i": (270, 2290, 3010), "o": (570, 840, 2410), "u": (300, 870, 2240)}  # Hz (Peterson, Barney 1952)


def vowels() -> np.ndarray:
    """Five vowels of half a second: the harmonics of a voice that rises and falls, each as loud as the formants make it."""
    sounds = []
    time = np.arange(RATE // 2) / RATE
    for formants in FORMANTS.values():
        pitch = 110 + 50 * np.sin(np.pi * time / time[-1])
        phase = 2 * np.pi * np.cumsum(pitch) / RATE
        sound = np.zeros(len(time))
        for harmonic in range(1, 60):
            gain = sum(1 / (1 + ((harmonic * pitch - formant) / (40 + 20 * place)) ** 2) / (1 + place) for place, formant in enumerate(formants))
            sound += gain * np.sin(harmonic * phase) * (harmonic * pitch < RATE / 2) / harmonic**0.5
        sounds.append(sound * np.sin(np.pi * time / time[-1]) ** 0.5)
    noise = 1e-4 * np.random.default_rng(0).standard_normal(len(time) * len(sounds))
    return (np.concatenate(sounds) / np.abs(sounds).max() + noise).astype(np.float32)


def draw_words(axes, words: "list[dict[str, object]]") -> None:
    """Each below its part of the spectrogram, in two rows by turns, between lines where it begins and ends."""
    below = axes.get_xaxis_transform()
    for number, word in enumerate(words):
        for moment in (word["start"], word["end"]):
            axes.axvline(moment, color="white", linewidth=0.6, alpha=0.7)
        axes.text((word["start"] + word["end"]) / 2, -0.13 - 0.075 * (number % 2), word["text"].strip(), transform=below, ha="center", va="top", fontsize=10)


def speech(program: Program, options: argparse.Namespace) -> Pictures:
    (program.folder / "preprocessor_config.json").write_text("{}")
    if options.model and not options.sound:
        raise Refused("--model must come with a sound")
    path = options.sound or program.folder / "vowels.npy"
    if options.sound is None:
        np.save(path, vowels())
    features, _ = program.run("transcribe", options.model or program.folder, "--in", path, "--features")
    frames = int(features["attention_mask"].sum())
    if not frames:
        raise Refused(f"{path}: must have samples. Got 0")
    mel = features["input_features"][0, :, :frames]
    fig = figure(1000, 560 if options.sound is None else 420)
    if options.sound is None:
        top, bottom = fig.subplots(2, 1, height_ratios=[1, 2.2], sharex=True)
        sound = np.load(path)
        top.plot(np.arange(len(sound)) / RATE, sound, color=SINE, linewidth=0.6)
        top.set(ylabel="Sample", title="Vowels made of harmonics: " + ", ".join(FORMANTS))
    else:
        bottom = fig.subplots()
    drawn = image(bottom, mel, origin="lower", extent=(0, frames / 100, -0.5, len(mel) - 0.5))
    bottom.xaxis.set_major_locator(MaxNLocator())
    bottom.set(xlabel="Seconds", ylabel="Filter, equally far apart in mel", title="Log-mel spectrogram that Whisper reads")
    if options.model:
        found = json.loads(program.call("transcribe", options.model, "--in", path, "--timestamps", "word"))
        draw_words(bottom, [word for segment in found["segments"] for word in segment["words"]])
        bottom.xaxis.labelpad = 44
        bottom.set_title("What Whisper reads, and the words that it writes")
    fig.colorbar(drawn, ax=fig.axes, label="(log10 of the energy + 4) / 4", pad=0.02)
    return {options.out: fig}


# --- the error of float32 tables ---

WIDTH = 512
LEAST = 1e-9  # what is drawn for equal tables on an axis of logarithms
RECIPES = {"annotated_transformer": (COSINE, "float32 angles (Annotated Transformer, fairseq, Whisper ...)"),
           "hf_marian": (SINE, "float64 angles, rounded last (Marian, XLM, MAE ...)")}  # fmt: skip


def sampled() -> "tuple[np.ndarray, np.ndarray, np.ndarray]":
    """The curve's places, the positions evaluated, and the index of each place's first position among them. The curve shows
    at p the worst of at most 100 positions in p ... 1.02 p."""
    places = np.unique(np.geomspace(1, 2_000_000, 160).astype(np.int64))
    groups = [np.unique(np.linspace(place, 1.02 * place, 100).astype(np.int64)) for place in places]
    return places, np.concatenate(groups), np.cumsum([0, *map(len, groups[:-1])])


def error_over_position(program: Program, options: argparse.Namespace) -> Pictures:
    places, positions, starts = sampled()
    fig = figure(900, 520)
    axes = fig.subplots()
    for preset, (colour, label) in RECIPES.items():
        reference, exact = (program.rows(preset, WIDTH, positions, "--precision", kind).astype(np.float64)
                            for kind in ("reference", "exact"))  # fmt: skip
        worst = np.maximum.reduceat(np.abs(reference - exact).max(1), starts)
        axes.loglog(places, np.maximum(worst, LEAST), color=colour, linewidth=2, label=label)
    axes.axhline(2**-25, color="#555555", linestyle="--", linewidth=1, label="half a unit in the last place of 1")
    axes.grid(True, axis="both")
    axes.yaxis.set_major_locator(LogLocator(numticks=12))
    axes.set(title=f"float32 tables against the correctly rounded one, D = {WIDTH} (on the lower edge: equal)",
             xlabel="Position", ylabel="Largest difference from the formula", xlim=(1, 2e6), ylim=(LEAST, 1))  # fmt: skip
    axes.legend(loc="upper left", frameon=False)
    return {options.out: fig}


# --- trained positions ---

SHOWN = 128
POSITIONS = "position_embeddings.weight"


def cosines(rows: np.ndarray) -> np.ndarray:
    unit = rows.astype(np.float64) / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)
    return unit @ unit.T


def learned_positions(program: Program, options: argparse.Namespace) -> Pictures:
    path = options.model / "model.safetensors"
    try:
        tensors = load_file(path)
    except Exception as error:  # the reader's errors have no common type
        raise Refused(f"{path}: {error}") from None
    names = [key for key in tensors if key.endswith(POSITIONS)]
    if len(names) != 1:
        raise Refused(f"{path}: one name must end with {POSITIONS}. Got {len(names)}")
    learned = tensors[names[0]][:SHOWN]
    fixed = program.table("vaswani2017", learned.shape[1], "--length", len(learned))
    fig = figure(1120, 520)
    for axes, rows, title in zip(fig.subplots(1, 2), (learned, fixed), (f"Trained: {options.model.resolve().name}", "Sinusoid of the same width")):
        drawn = image(axes, cosines(rows), aspect="equal", vmin=-0.3, vmax=1)
        axes.set(title=title, xlabel="Position", ylabel="Position")
    fig.colorbar(drawn, ax=fig.axes, label="Cosine", pad=0.02, format="%g")
    return {options.out: fig}


# --- the learning curve of posenc-pronounce ---


def curves_of(path: Path) -> "list[tuple[str, list[dict[str, float]]]]":
    """Names and points of the runs in a curve.jsonl of one run, or in docs/pronounce.json."""
    try:
        text = path.read_text()
        if path.suffix == ".jsonl":
            runs = [("", [json.loads(line) for line in text.splitlines()])]
        else:
            runs = [(f"{run['minutes']} minutes: {run['parameters']:,} parameters", run["curve"]) for run in json.loads(text)]
        fields = ("seconds", "phoneme_error_rate", "words_right")
        is_curve = runs and all(points and all(isinstance(point[field], (int, float)) for point in points for field in fields) for _, points in runs)
    except OSError as error:
        raise Refused(f"{path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        is_curve = False
    if not is_curve:
        raise Refused(f"{path}: must have the points of a learning curve, as posenc-pronounce train writes them")
    return runs


def pronounce(program: Program, options: argparse.Namespace) -> Pictures:
    runs = curves_of(options.curve)
    fig = figure(900, 480)
    axes = fig.subplots()
    style = {"marker": "o", "markersize": 4, "linewidth": 2}
    for (name, points), colour in zip(runs, (SINE, COSINE, GREEN, PURPLE, GOLD, BLUE)):
        minutes = [point["seconds"] / 60 for point in points]
        axes.plot(minutes, [100 * point["phoneme_error_rate"] for point in points], color=colour, label=name or "phonemes", **style)
        if not name:
            axes.plot(minutes, [100 * (1 - point["words_right"]) for point in points], color=COSINE, label="words", **style)
    named = runs[0][0] != ""
    axes.set(title="Phoneme error rate on 1,000 held-out words" if named else "Errors on the held-out words",
             xlabel="Minutes of training", ylabel="%", xlim=(0, None), ylim=(0, 30 if named else None))  # fmt: skip
    axes.legend(loc="upper right", frameon=False)
    return {options.out: fig}


# --- the command line ---


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", default=str(ROOT / "build/release/posenc"), help="the program; default: %(default)s")
    subcommands = parser.add_subparsers(required=True, metavar="PICTURE")

    def add(name: str, draw, text: str) -> argparse.ArgumentParser:
        added = subcommands.add_parser(name, help=text, description=text)
        added.set_defaults(draw=draw)
        added.add_argument("--out", type=Path, required=True, help="the folder" if name == "table" else "the picture")
        return added

    sub = add("table", table, "a heat map, waveforms (of a grid: maps) and the similarity of positions of a preset's table")
    sub.add_argument("--preset", default="vaswani2017", help="`posenc presets` lists them; default: %(default)s")
    sub.add_argument("--dim", type=int, default=128, help="D, the number of channels; default: %(default)s")
    sub.add_argument("--length", type=int, help=f"number of positions; default: {LENGTH}, or the cells of a grid")
    sub.add_argument("--param", action="append", default=[], metavar="KEY=VALUE", help="a parameter of the preset")
    sub.add_argument("--format", choices=["png", "svg", "pdf"], default="png")
    sub = add("rotary", rotary, "the score of a query with an equal key over their distance, for each scaling of rotary frequencies")
    sub.add_argument("--dim", type=int, default=128, help="channels of a head; default: %(default)s")
    sub.add_argument("--length", type=int, default=32768, help="the largest distance; default: %(default)s")
    sub.add_argument("--base", type=float, default=10000.0, help="rope_theta; default: %(default)s")
    sub.add_argument("--factor", type=float, default=8.0, help="how many times longer than the original context; default: %(default)s")
    sub = add("relative", relative_bias, "the bias of T5 and of ALiBi over the distance, by head")
    sub.add_argument("--model", type=Path, help="a folder with the model.safetensors of a T5; default: an untrained table")
    add("window", window_table, "the table of a Swin window, and the bias of its patches")
    sub = add("speech", speech, "a sound and its log-mel spectrogram")
    sub.add_argument("sound", type=Path, nargs="?", help="a WAV file, or an array at 16,000 Hz; default: five vowels")
    sub.add_argument("--model", type=Path, help="the folder of a Whisper, whose words are below the spectrogram")
    add("error", error_over_position, "the error of float32 tables relative to the formula, by position")
    sub = add("positions", learned_positions, "cosines between the positions of a trained table, next to those of a sinusoid")
    sub.add_argument("--model", type=Path, required=True, help="a folder with the model.safetensors of a BERT")
    sub = add("pronounce", pronounce, "the errors of posenc-pronounce over the time of training")
    sub.add_argument("curve", type=Path, help="curve.jsonl, which it writes, or docs/pronounce.json")
    return parser


def main(words: "list[str] | None" = None) -> int:
    options = arguments().parse_args(words)
    try:
        with tempfile.TemporaryDirectory() as folder, matplotlib.rc_context(STYLE):
            # All are drawn before any is written, so that a failure does not leave an incomplete set.
            files = {}
            for path, fig in options.draw(Program(options.posenc, folder), options).items():
                content = io.BytesIO()
                if path.suffix not in (".png", ".svg", ".pdf"):
                    raise Refused(f"--out must end with .png, .svg or .pdf. Got {path}")
                fig.savefig(content, format=path.suffix[1:])
                files[path] = content.getvalue()
        for path, content in files.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            print(path)
    except (Refused, OSError) as error:
        print(f"plot: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
