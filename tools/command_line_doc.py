#!/usr/bin/env python3
"""The man page, the bash and zsh completions and the table of subcommands in docs/cli.md, from `posenc --describe`.

    tools/command_line_doc.py --posenc build/release/posenc --write      write src/cli/share/ and the table
    tools/command_line_doc.py --posenc build/release/posenc --check      exit 1 if a file is out of date

The files are kept in the tree, so that installing them requires neither running the program nor another tool.
"""

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SHARE = ROOT / "src/cli/share"
PAGE = ROOT / "docs/cli.md"
BEGIN, END = "<!-- subcommands: written by tools/command_line_doc.py -->\n", "<!-- end -->\n"
PATHS = ("file", "output", "folder")  # kinds of values that are completed by names of files


def description(program: str) -> dict:
    """The command line as its own objects describe it (src/cli/describe.cpp)."""
    run = subprocess.run([program, "--describe"], capture_output=True, text=True, check=True)
    return json.loads(run.stdout)


def subject(option: dict) -> str:
    return option["name"] if "name" in option else option["names"][-1]


def usage(sub: dict) -> str:
    words = [item["name"] + ("..." if item["repeatable"] else "") for item in sub["positionals"]]
    words = [word if item["required"] else f"[{word}]" for word, item in zip(words, sub["positionals"])]
    return " ".join(["posenc", sub["name"], "[OPTIONS]", *words])


def rules(option: dict, sub: dict) -> str:
    """What CLI11 checks beyond a single value, as a sentence; empty if there is nothing."""
    texts = ["required"] if option["required"] else []
    if option["group"]:
        group = next(group for group in sub["groups"] if group["name"] == option["group"])
        names = " and ".join(other["names"][-1] for other in sub["options"] if other["group"] == option["group"])
        texts.append(("exactly" if group["least"] == group["most"] else "at most") + f" {group['most']} of {names}")
    texts += [f"only with {name}" for name in option["needs"]]
    if option["excludes"]:
        texts.append("not with " + ", ".join(option["excludes"]))
    return f" ({'; '.join(texts)})" if texts else ""


# --- the man page ---------------------------------------------------------------------------------


def roff(text: str) -> str:
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    return re.sub(r"^\.", "\\\\&.", text, flags=re.MULTILINE)


def man_entries(items: "list[dict]", sub: dict) -> "list[str]":
    lines = []
    for item in items:
        names = ", ".join(f"\\fB{roff(name)}\\fR" for name in item.get("names", [item.get("name")]))
        few = item["choices"] if not item["choices_from"] else []
        value = "|".join(few) or item["value"]
        lines += [".TP", f"{names} \\fI{roff(value)}\\fR" if value else names, roff(item["description"] + rules(item, sub))]
    return lines


def man_page(top: dict, version: str) -> str:
    lines = ['.\\" Written by tools/command_line_doc.py', f'.TH POSENC 1 "" "posenc {version}" "User Commands"', ".SH NAME",
             "posenc \\- token embeddings, positional encodings and Transformers for C++ on LibTorch", ".SH SYNOPSIS",
             ".B posenc", "\\fISUBCOMMAND\\fR [\\fIOPTIONS\\fR] ...", ".SH DESCRIPTION", roff(top["description"]), ".SH OPTIONS"]  # fmt: skip
    lines += man_entries(top["options"], top)
    lines.append(".SH SUBCOMMANDS")
    for sub in top["subcommands"]:
        lines += [f".SS {roff(usage(sub))}", roff(sub["description"])]
        lines += man_entries(sub["positionals"], sub)
        lines += man_entries([option for option in sub["options"] if "--help" not in option["names"]], sub)
        lines += [".PP", ".nf", *(roff(line) for line in [*sub["notes"].splitlines(), "Example:", *sub["examples"]]), ".fi"]
    lines += [".SH EXIT STATUS", *(roff(line.removeprefix("Exit status: ")) for line in top["notes"].splitlines())]
    lines += [".SH FILES", "Files of weights are recognised by their content: TorchScript, torch.save, safetensors, an index of",
              "shards (\\fI*.index.json\\fR) or \\fI.pt2\\fR."]  # fmt: skip
    return "\n".join(lines) + "\n"


# --- completions ----------------------------------------------------------------------------------


def bash(top: dict) -> str:
    subs = top["subcommands"]
    cases, values = [], []
    for sub in subs:
        names = " ".join(name for option in sub["options"] for name in option["names"])
        cases.append(f"    {sub['name']}) options='{names}' ;;")
        for option in sub["options"]:
            patterns = "|".join(f"'{sub['name']} {name}'" for name in option["names"])
            if option["choices"]:
                values.append(f"    {patterns}) words='{' '.join(option['choices'])}' ;;")
            elif option["value"] and option["kind"] not in PATHS:
                values.append(f"    {patterns}) return ;;")
    names = " ".join(sub["name"] for sub in subs)
    top_words = names + " " + " ".join(name for option in top["options"] for name in option["names"])
    return "\n".join([
        "# Completion of posenc for bash; written by tools/command_line_doc.py", "_posenc() {",
        '  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} options= words=',
        "  COMPREPLY=()", '  if [ "$current" = = ]; then current=; fi',  # --name=value comes as three words
        '  if [ "$previous" = = ]; then previous=${COMP_WORDS[COMP_CWORD - 2]}; fi',
        "  if [ \"$COMP_CWORD\" -eq 1 ]; then", f"    COMPREPLY=($(compgen -W '{top_words}' -- \"$current\"))", "    return", "  fi",
        '  case "${COMP_WORDS[1]} $previous" in', *values, "  esac",
        '  case ${COMP_WORDS[1]} in', *cases, "  esac",
        '  if [ "${COMP_WORDS[1]}" = help ] && [[ $current != -* ]]; then', f"    words='{names}'", "  fi",
        '  if [ -n "$words" ]; then', '    COMPREPLY=($(compgen -W "$words" -- "$current"))',
        '  elif [[ $current == -* ]]; then', '    COMPREPLY=($(compgen -W "$options" -- "$current"))',
        "  else", "    compopt -o filenames 2>/dev/null", '    mapfile -t COMPREPLY < <(compgen -f -- "$current")', "  fi", "}",
        "complete -F _posenc posenc", ""])  # fmt: skip


def sentence(text: str) -> str:
    """The first sentence, without its full stop."""
    return re.split(r"(?<!\.)\.(?:\s(?=[A-Z])|$)", text)[0]


def zsh_text(text: str) -> str:
    return sentence(text).replace("'", "'\\''").replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")


def zsh(top: dict) -> str:
    subs = top["subcommands"]
    lines = ["#compdef posenc", "# Completion of posenc for zsh; written by tools/command_line_doc.py", "_posenc() {",
             "  local -a subcommands=("]  # fmt: skip
    lines += [f"    '{sub['name']}:{zsh_text(sub['description'])}'" for sub in subs]
    flags = " ".join(f"'{name}[{zsh_text(option['description'])}]'" for option in top["options"] for name in option["names"])
    lines += ["  )", "  if (( CURRENT == 2 )); then", "    _describe 'subcommand' subcommands", f"    _arguments {flags}",
              "    return", "  fi", "  local subcommand=$words[2]", "  shift words", "  (( CURRENT-- ))",
              "  case $subcommand in"]  # fmt: skip
    for sub in subs:
        specs = []
        for option in sub["options"]:
            action = f"({' '.join(option['choices'])})" if option["choices"] else "_files" if option["kind"] in PATHS else ""
            value = f":{option['value']}:{action}'" if option["value"] else "'"
            specs += [f"'*{name}[{zsh_text(option['description'])}]{value}" for name in option["names"]]
        if sub["name"] == "help":
            specs.append(f"'1:subcommand:({' '.join(other['name'] for other in subs)})'")
        elif sub["positionals"]:
            specs.append("'*:file:_files'")
        lines += [f"    {sub['name']})", "      _arguments \\", *(f"        {spec} \\" for spec in specs[:-1]), f"        {specs[-1]} ;;"]
    lines += ["  esac", "}", '_posenc "$@"', ""]
    return "\n".join(lines)


# --- the table in docs/cli.md ---------------------------------------------------------------------


def page(top: dict, text: str) -> str:
    """docs/cli.md with its table of subcommands."""
    rows = [f"| `{sub['name']}` | {sentence(sub['description'])} |" for sub in top["subcommands"]]
    before, _, rest = text.partition(BEGIN)
    return before + BEGIN + "\n".join(["| subcommand | what it does |", "|---|---|", *rows, ""]) + END + rest.partition(END)[2]


def files(program: str) -> "dict[Path, str]":
    top = description(program)
    version = re.search(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()).group(1)
    return {SHARE / "posenc.1": man_page(top, version), SHARE / "posenc.bash": bash(top), SHARE / "_posenc": zsh(top),
            PAGE: page(top, PAGE.read_text())}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--posenc", required=True)
    mode = parser.add_mutually_exclusive_group(required=True)
    mode.add_argument("--write", action="store_true")
    mode.add_argument("--check", action="store_true")
    args = parser.parse_args()
    stale = []
    for path, text in files(args.posenc).items():
        if args.write:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            stale.append(str(path.relative_to(ROOT)))
    if stale:
        print(f"{', '.join(stale)} not up to date; run tools/command_line_doc.py --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
