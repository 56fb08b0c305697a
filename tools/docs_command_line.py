"""The man page, the bash and zsh completions and the table of subcommands in docs/cli.md, from `posenc --describe`: the command
line as its own objects describe it (src/cli/describe.cpp). tools/docs.py writes them.

The files are kept in the tree, so that installing them requires neither running the program nor another tool.
"""

import re
from pathlib import Path

from page_tables import ROOT, table

SHARE = ROOT / "src/cli/share"
PATHS = ("file", "folder", "output")  # kinds of values that are completed by names of files


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
    lines = ['.\\" Written by tools/docs.py', f'.TH POSENC 1 "" "posenc {version}" "User Commands"', ".SH NAME",
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
        "# Completion of posenc for bash; written by tools/docs.py", "_posenc() {",
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
    lines = ["#compdef posenc", "# Completion of posenc for zsh; written by tools/docs.py", "_posenc() {",
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


# --- all of it -------------------------------------------------------------------------------------


def subcommands(top: dict) -> str:
    return table(["subcommand", "what it does"], ((f"`{sub['name']}`", sentence(sub["description"])) for sub in top["subcommands"]))


def files(top: dict) -> "dict[Path, str]":
    version = re.search(r'POSENC_VERSION "(.*)"', (ROOT / "include/posenc/version.h").read_text()).group(1)
    return {SHARE / "posenc.1": man_page(top, version), SHARE / "posenc.bash": bash(top), SHARE / "_posenc": zsh(top)}
