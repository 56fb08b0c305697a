#!/usr/bin/env python3
"""The man page and the bash and zsh completions, from the output of `posenc --help` and its subcommands.

    tools/command_line_doc.py --posenc build/release/posenc --write      write src/cli/share/
    tools/command_line_doc.py --posenc build/release/posenc --check      exit 1 if a file there is out of date

The files are kept in the tree, so that installing them requires neither running the program nor another tool.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
SHARE = ROOT / "src/cli/share"
COLUMN = 30  # where CLI11's descriptions start


class Entry(NamedTuple):
    """An option, a positional argument or a subcommand."""

    names: "list[str]"
    value: str  # such as `TEXT`; empty for a flag
    choices: "list[str]"
    text: str


class Command(NamedTuple):
    name: str  # empty for posenc itself
    usage: str
    text: str
    sections: "dict[str, list[Entry]]"
    footer: "list[str]"

    def options(self) -> "list[Entry]":
        return self.sections.get("Options", [])


def entry(left: str, text: str) -> Entry:
    left = re.sub(r" (Excludes|Needs):.*| REQUIRED", "", left)
    names, _, value = left.partition(" ")
    kind = re.match(r"(\w+)(?::([\w|]+\|\w+))?", value)
    choices = kind.group(2).split("|") if kind and kind.group(2) else []
    return Entry(names.split(","), kind.group(1) if kind else "", choices, text)


def parsed(name: str, lines: "list[str]") -> Command:
    """Parses the help of a command. A description that starts on its own line is indented to the column."""
    start = next(i for i, line in enumerate(lines) if line.startswith("Usage: "))
    sections: "dict[str, list[Entry]]" = {}
    section, shift = "", 0
    for number, line in enumerate(lines[start + 1 :], start + 1):
        heading = re.fullmatch(r" *(Positionals|Options|Subcommands):", line)
        indented = len(line) - len(line.lstrip())
        if heading:
            section = heading.group(1)
            shift = 2 * line.startswith(" ")  # in a group of options
        elif section and line.strip() and indented == 2 + shift and "[At most" not in line:
            left, text = line[shift:][:COLUMN].strip(), line[shift:][COLUMN:].strip()
            if len(line) > COLUMN + shift and line[COLUMN + shift - 1] != " ":
                left, text = line.strip(), ""
            sections.setdefault(section, []).append(entry(left, text))
        elif section and line.strip() and indented >= COLUMN:
            last = sections[section][-1]
            sections[section][-1] = last._replace(text=f"{last.text} {line.strip()}".strip())
        elif line and not line.startswith((" ", "[")):
            return Command(name, lines[start][7:], " ".join(lines[:start]), sections, lines[number:])
    return Command(name, lines[start][7:], " ".join(lines[:start]), sections, [])


def output(program: str, *words: str) -> str:
    return subprocess.run([program, *words], capture_output=True, text=True, check=True).stdout


def commands_of(program: str) -> "list[Command]":
    top = parsed("", output(program, "--help").splitlines())
    names = [sub.names[0] for sub in top.sections["Subcommands"]]
    return [top] + [parsed(name, output(program, name, "--help").splitlines()) for name in names]


def values_of(commands: "list[Command]", presets: "list[str]") -> "dict[str, list[str]]":
    """The possible values of each option, by its name, unless it takes a file or free text."""
    values = {"--preset": presets}
    for command in commands:
        for option in command.options():
            if option.choices:
                values[option.names[-1]] = option.choices
        if "--module" in (name for option in command.options() for name in option.names):
            rows = command.footer[command.footer.index("Names for --module:") + 2 :]
            values["--module"] = [row.split()[0] for row in rows[: rows.index("")]]
    return values


# --- the man page ---------------------------------------------------------------------------------


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^\.", "\\\\&.", text, flags=re.MULTILINE)


def man_entries(entries: "list[Entry]") -> "list[str]":
    lines = []
    for item in entries:
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in item.names)
        lines += [".TP", f"{names} \\fI{roff(item.value)}\\fR" if item.value else names, roff(item.text)]
    return lines


def man_page(commands: "list[Command]", version: str) -> str:
    top, *subs = commands
    lines = ['.\\" Written by tools/command_line_doc.py', f'.TH POSENC 1 "" "posenc {version}" "User Commands"', ".SH NAME",
             "posenc \\- token embeddings, positional encodings and Transformers for C++ on LibTorch", ".SH SYNOPSIS",
             ".B posenc", "\\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR] ...", ".SH DESCRIPTION", roff(top.text), ".SH OPTIONS"]  # fmt: skip
    lines += man_entries(top.options())
    lines.append(".SH SUBCOMMANDS")
    for sub in subs:
        lines += [f".SS {roff(sub.usage)}", roff(sub.text)]
        lines += man_entries(sub.sections.get("Positionals", []))
        lines += man_entries([option for option in sub.options() if "--help" not in option.names])
        if sub.footer:
            lines += [".PP", ".nf", *(roff(line) for line in sub.footer), ".fi"]
    lines += [".SH EXIT STATUS", *(roff(line.removeprefix("Exit status: ")) for line in top.footer[: top.footer.index("Example:")])]
    lines += [".SH FILES", "Files of weights are recognised by their content: TorchScript, torch.save, safetensors, an index of",
              "shards (\\fI*.index.json\\fR) or \\fI.pt2\\fR."]  # fmt: skip
    return "\n".join(lines) + "\n"


# --- completions ----------------------------------------------------------------------------------


def bash(commands: "list[Command]", values: "dict[str, list[str]]") -> str:
    top, *subs = commands
    cases = []
    for sub in subs:
        names = " ".join(name for option in sub.options() for name in option.names)
        cases.append(f"    {sub.name}) options='{names}' ;;")
    known = [f"    {name}) words='{' '.join(words)}' ;;" for name, words in sorted(values.items())]
    free = sorted({name for sub in subs for option in sub.options() if option.value in ("INT", "FLOAT") for name in option.names})
    top_words = " ".join([sub.name for sub in subs] + [name for option in top.options() for name in option.names])
    return "\n".join([
        "# Completion of posenc for bash; written by tools/command_line_doc.py", "_posenc() {",
        '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= words=',
        "  COMPREPLY=()", '  if [ "$current" = = ]; then current=; fi',  # --name=value comes as three words
        '  if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi',
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then", f"    COMPREPLY=($(compgen -W '{top_words}' -- \"$current\"))", "    return", "  fi",
        '  case $previous in', *known, f"    {'|'.join(free)}) return ;;", "  esac",
        '  case ${COMP_WORDS[1]} in', *cases, "  esac",
        '  if [ "${COMP_WORDS[1]}" = help ] && [[ $current != -* ]]; then', f"    words='{' '.join(sub.name for sub in subs)}'", "  fi",
        '  if [ -n "$words" ]; then', '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        '  elif [[ $current == -* ]]; then', '    COMPREPLY=($(compgen -W "$options" -- "$current"))',
        "  else", "    compopt -o filenames 2>/dev/null", '    COMPREPLY=($(compgen -f -- "$current"))', "  fi", "}",
        "complete -F _posenc posenc", ""])  # fmt: skip


def zsh_text(text: str) -> str:
    return re.split(r"\.(?: (?=[A-Z])|$)", text)[0].replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh(commands: "list[Command]", values: "dict[str, list[str]]") -> str:
    top, *subs = commands
    lines = ["#compdef posenc", "# Completion of posenc for zsh; written by tools/command_line_doc.py", "_posenc() {",
             "  local -a subcommands=("]  # fmt: skip
    lines += [f"    '{sub.name}:{zsh_text(sub.text)}'" for sub in subs]
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe 'subcommand' subcommands",
              "    _arguments " + " ".join(f"'{name}[{zsh_text(option.text)}]'" for option in top.options() for name in option.names),
              "    return", "  fi", "  local subcommand=$words[2]", "  shift words", "  (( CURRENT-- ))",
              "  case $subcommand in"]  # fmt: skip
    for sub in subs:
        specs = []
        for option in sub.options():
            for name in option.names:
                follow = values.get(name)
                action = f"({' '.join(follow)})" if follow else "" if option.value in ("INT", "FLOAT") else "_files"
                specs.append(f"'*{name}[{zsh_text(option.text)}]" + (f":{option.value}:{action}'" if option.value else "'"))
        if sub.name == "help":
            specs.append(f"'1:subcommand:({' '.join(other.name for other in subs)})'")
        elif "Positionals" in sub.sections:
            specs.append("'*:file:_files'")
        lines += [f"    {sub.name})", "      _arguments \\", *(f"        {spec} \\" for spec in specs[:-1]), f"        {specs[-1]} ;;"]
    lines += ["  esac", "}", '_posenc "$@"', ""]
    return "\n".join(lines)


def files(program: str) -> "dict[str, str]":
    commands = commands_of(program)
    names = [preset["name"] for preset in json.loads(output(program, "presets", "--json"))]
    version = re.search(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()).group(1)
    values = values_of(commands, names)
    return {"posenc.1": man_page(commands, version), "posenc.bash": bash(commands, values), "_posenc": zsh(commands, values)}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = []
    for name, text in files(args.posenc).items():
        path = SHARE / name
        if args.write:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(name)
    if stale:
        print(f"src/cli/share: {', '.join(stale)} not up to date; run tools/command_line_doc.py --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
