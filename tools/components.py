"""The components of posenc, as cmake/posenc_components.cmake and the READMEs of their folders describe them."""

import re

TABLE = "cmake/posenc_components.cmake"
INNER = ("base", "kernels", "core")  # users get them with the others, so they have no umbrella header
PROGRAMS = ("cli",)  # a folder of src/ that is no library: it may include every component


class Components:
    """The table. `needs` has for each component those that it includes directly; `plain` are those without LibTorch."""

    def __init__(self, table):
        lists = {name: words.replace('""', "").split() for name, words in re.findall(r"^set\((\w+) ([^)$]*)\)", table, re.M)}
        self.names = lists.get("POSENC_ALL", [])
        self.needs = {name: lists.get(f"posenc_needs_{name}", []) for name in self.names}
        self.plain = lists.get("POSENC_PLAIN", [])

    def folders(self):
        return [*self.names, *PROGRAMS]

    def reached(self, name):
        """The component and all that it needs, directly or not."""
        if name in PROGRAMS:
            return {name, *self.names}
        return {name}.union(*(self.reached(need) for need in self.needs[name]))


class Readme:
    """What a component's README states in a form that is read by scripts:

        Needs: core, kernels.
        Rooms: sinusoid < rotary, relative < functional < nn.
        Budget: 15,500 lines.

    `rooms` has the level of each room, from 0 below. What is not stated is None, and `rooms` is empty. `folders` are those of the
    component, in src/ and include/, which the reader of the tree fills in."""

    def __init__(self, text):
        def stated(name, form):
            found = re.search(rf"^{name}: {form}\.", text, re.M)
            return found and found.group(1).replace("`", "")

        needs, rooms, budget = stated("Needs", "([^.]+)"), stated("Rooms", "([^.]+)"), stated("Budget", r"([\d,]+) lines")
        self.title = text.split("\n")[0]
        self.needs = None if needs is None else set(re.findall(r"\w+", needs)) - {"nothing"}
        self.rooms = {room: level for level, names in enumerate((rooms or "").split("<")) for room in re.findall(r"\w+", names)}
        self.folders = set()
        self.budget = budget and int(budget.replace(",", ""))
