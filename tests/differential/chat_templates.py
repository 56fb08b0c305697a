"""Chat templates beside apply_chat_template() of transformers, which has to be installed: published ones with random conversations, which
must render, and random ones of all that posenc knows of Jinja. Texts are equal to the byte, and what is an error there is one here.

A random template may be refused by an error that says what posenc does not know; never may it be rendered in another way.
"""

import json

import torch
from harness import Case, Draw, Failure, Programs
from published_templates import TEMPLATES

WORDS = ["", "cat", " a cat ", "x\ny", "\n\nWell,\n", "Straße", "\u3000東京\u00a0", "it's \"so\"\t", "<think>\nhm\n</think>\n\nYes.", "😀\u200b",
         "/no_think", "a.b.c", "[INST]", "{{ x }}", "\x1c\x85", "\\n"]  # fmt: skip
SCHEMAS = [{"type": "string", "enum": ["a", "b"]}, {"type": "integer", "default": 3}, {"type": ["string", "null"]}, {"type": "array", "items": {"type": "number"}},
           {"type": "object", "properties": {"é": {"type": "boolean"}}, "required": []}, {"type": "number", "minimum": 0.5, "maximum": 1e22}]  # fmt: skip


def value(draw: Draw, depth: int = 0):
    """A value of JSON."""
    if depth < 2 and draw.coin(0.3):
        return [value(draw, depth + 1) for _ in range(draw.randint(0, 3))]
    if depth < 2 and draw.coin(0.3):
        return {draw.choice(["b", "a", "items", "get", "é"]): value(draw, depth + 1) for _ in range(draw.randint(0, 3))}
    return draw.choice([*WORDS, 0, 1, -7, 2.5, -0.0, 1e16, 1e-5, 123456789.125, True, False, None])


def tool(draw: Draw) -> dict:
    properties = {name: draw.choice(SCHEMAS) | {"description": draw.choice(WORDS)} for name in draw.sample(["city", "n", "é"], draw.randint(0, 3))}
    parameters = {"type": "object", "properties": properties} | draw.choice([{}, {"required": list(properties)[:1]}])
    return {"type": "function", "function": {"name": "find", "description": "Finds.", "parameters": parameters}}


def conversation(draw: Draw) -> list[dict]:
    """Mostly in the order that templates want, with whatever a message may have."""
    messages = [{"role": "system", "content": draw.choice(WORDS)}] if draw.coin(0.4) else []
    for i in range(draw.randint(1, 5)):
        role = ["user", "assistant"][i % 2] if draw.coin(0.9) else draw.choice(["user", "assistant", "tool", "system", "developer", "query"])
        message = {"role": role, "content": draw.choice(WORDS)}
        if draw.coin(0.1):
            message["content"] = draw.choice([None, [{"type": "text", "text": draw.choice(WORDS)}, {"type": "image"}], [], value(draw)])
        if role == "assistant" and draw.coin(0.2):
            call = {"name": "find", "arguments": draw.choice([{"city": draw.choice(WORDS), "n": 2.0}, '{"n": 1}'])}
            message["tool_calls"] = [{"type": "function", "id": "a" * 9, "function": call}] * draw.choice([1, 1, 2])
            if draw.coin():
                messages.append(message)
                message = {"role": "tool", "content": draw.choice(WORDS), "tool_call_id": "a" * 9}
        if draw.coin(0.1):
            message[draw.choice(["reasoning_content", "thinking", "reasoning"])] = draw.choice([*WORDS, None])
        if draw.coin(0.05):
            del message[draw.choice(["role", "content"])]
        messages.append(message)
    return messages


# ---- random templates ----

NAMES = ["x", "y", "z", "w", "messages", "messages[0]", "messages[-1].content", "loop.index", "loop.last", "loop.previtem", "loop.nextitem.role", "ns.a", "bos_token", "tools", "nothing", "m", "k"]
CONSTANTS = ["none", "true", "3", "-1", "0", "2.5", "'a\\n'", "\"b'\"", "'cat'", "''", "' a '", "[]", "[1, 'b', none]", "('a', 'b')", "{'a': 1, 'b': x}", "'\\u00e4'", "'a' 'b'", "1e3", "range(3)", "(1,)", "{0: 1, 512: x, 'a': 2}", "{true: x, none: 'b', 2.5: 0}", "{x: 1, y: 2}", "{2: 'a', 1: 'b', 10: 'c'}"]
METHODS = ["strip()", "lstrip('a\\n')", "rstrip()", "split()", "split('a')", "split(none, 1)", "rsplit(' ', 1)", "rsplit(none, 1)", "splitlines()", "startswith('a')", "endswith(('t', 'y'))",
           "replace('a', 'bb')", "replace('a', '', 1)", "upper()", "lower()", "title()", "capitalize()", "find('t')", "count('a')", "items()", "keys()", "values()",
           "get('role')", "get('no', 1)", "get(512)", "get(1, 'd')", "index('a')", "join(['a', 'b'])", "removeprefix('c')", "removesuffix('t')", "isspace()", "nope", "nope()", "role", "content", "pop()", "format(1)"]  # fmt: skip
FILTERS = ["trim", "length", "first", "last", "list", "join(', ')", "join", "string", "lower", "upper", "capitalize", "tojson", "tojson(indent=2)", "tojson(sort_keys=true)", "tojson(true)",
           "tojson(separators=(',', ':'))", "default('d')", "default('e', true)", "d(boolean=true)", "map(attribute='role')", "map(attribute='content', default='n')", "map('trim')", "map('length')",
           "selectattr('role', 'eq', 'user')", "rejectattr('role', 'in', ['system', 'tool'])", "selectattr('tool_calls')", "selectattr('content', 'string')", "select", "select('defined')", "reject('none')", "select('equalto', 'a')",
           "reverse", "sort", "sort(reverse=true)", "sort(attribute='role')", "unique", "min", "max", "sum", "int", "int(7)", "abs", "items", "dictsort", "indent", "indent(2, true)", "indent('> ', blank=true)",
           "replace('a', 'b')", "safe", "count", "trim('ac')", "batch(2)", "title", "map(attribute='role') | list", "items | list", "reverse | list", "unique | list"]  # fmt: skip
TESTS = ["defined", "undefined", "none", "string", "mapping", "sequence", "iterable", "number", "integer", "float", "boolean", "true", "false", "odd", "even", "callable", "eq 1", "ne('a')", "in ['a', 1]",
         "divisibleby 2", "sameas none", "gt 0", "lower"]  # fmt: skip
OPERATORS = ["+", "+", "-", "*", "/", "//", "%", "**", "~", "~", "==", "!=", "<", ">=", "in", "not in", "and", "or"]
BLANKS = ["", "", " ", "\n", "\n\n", "  ", "\n  ", " \n", "\t", "word", " word\n", "\r\n", "\u3000", "\n\u00a0", "\x1c", "ä"]


def expression(draw: Draw, depth: int = 0) -> str:
    kind = draw.choice(["name", "constant"] if depth > 2 else ["name", "name", "constant", "method", "filter", "filter", "test", "operator", "operator", "item", "slice", "if", "not", "list", "dict", "compare", "call"])
    inner = lambda: expression(draw, depth + 1)  # noqa: E731
    if kind == "name":
        return draw.choice(NAMES)
    if kind == "constant":
        return draw.choice(CONSTANTS)
    if kind == "method":
        return f"({inner()}).{draw.choice(METHODS)}"
    if kind == "filter":
        return f"({inner()}) | {draw.choice(FILTERS)}" if draw.coin() else f"{draw.choice(NAMES)} | {draw.choice(FILTERS)} | {draw.choice(FILTERS)}"
    if kind == "test":
        return f"({inner()}) is {draw.choice(['', 'not '])}{draw.choice(TESTS)}"
    if kind == "operator":
        return draw.choice(["({}) {} ({})", "{} {} {}"]).format(inner(), draw.choice(OPERATORS), inner())
    if kind == "item":
        return f"({inner()})[{draw.choice(['0', '-1', '1', '5', 'x', repr('role'), repr('items'), inner()])}]"
    if kind == "slice":
        bounds = [draw.choice(["", "0", "1", "-1", "2", "-5", "9", "none"]) for _ in range(draw.choice([2, 2, 3]))]
        return f"({inner()})[{':'.join(bounds[:2])}{''.join(':' + str(b) for b in bounds[2:])}]"
    if kind == "if":
        return f"({inner()} if {inner()}{draw.choice([' else ' + inner(), ''])})"
    if kind == "not":
        return f"not {inner()}"
    if kind == "list":
        return f"[{inner()}, {inner()}]"
    if kind == "dict":
        return f"{{'k': {inner()}, 'j': {inner()}}}"
    if kind == "call":
        return draw.choice([f"f({inner()})", f"f({inner()}, b={inner()})", "f()", f"namespace(a={inner()}).a", "strftime_now('%d')", f"dict(a={inner()})", "loop.cycle('a', 'b')", "g(1)"])
    return f"{inner()} {draw.choice(['==', '<', '!='])} {inner()} {draw.choice(['==', '>'])} {inner()}"


def template(draw: Draw, depth: int = 0, in_loop: bool = False) -> str:
    """A random one of what posenc knows of Jinja, and of some that it does not."""

    def tag(inner: str, begin: str = "%", end: str = "%") -> str:
        blank = draw.choice([" ", " ", "", "\n ", "\u00a0"])
        signs = [draw.choice(["", "", "-", "+"]), draw.choice(["", "", "-", "+" if end == "%" else ""])]
        return f"{{{begin}{signs[0]}{blank} {inner} {blank}{signs[1]}{end}}}"

    def part() -> str:
        nested = ["if", "if", "for", "for", "block", "macro", "generation"] if depth < 3 else []
        kind = draw.choice(["output", "output", "output", "set", "set", "space", "comment", *nested, *(["break"] if in_loop else [])])
        if kind == "output":
            return tag(expression(draw), "{", "}")
        if kind == "set":
            return tag(draw.choice([f"set {draw.choice('xyzw')} = {expression(draw)}", f"set x, y = {expression(draw)}, {expression(draw)}", "set tools = x"]))
        if kind == "space":
            return tag(f"set ns = namespace(a={expression(draw)})") if depth == 0 and draw.coin() else tag(f"set ns.a = {expression(draw)}")
        if kind == "comment":
            return "{#" + draw.choice(["", "-", "+"]) + draw.choice([" a {{ comment }} ", "", "ä"]) + draw.choice(["", "-", "+"]) + "#}"
        if kind == "for":
            items = draw.choice(["messages", "messages", "messages | reverse", "range(3)", "nothing", "'aä'", "messages[0]", "messages[0].items()", expression(draw, 2)])
            test = f" if {expression(draw, 1)}" if draw.coin(0.2) else ""
            names = "k, m" if "items()" in items else draw.choice(["m", "m", "x"])
            other = tag("else") + template(draw, depth + 1, in_loop) if draw.coin(0.2) else ""
            return tag(f"for {names} in {items}{test}") + template(draw, depth + 1, True) + other + tag("endfor")
        if kind == "break":
            return tag(f"if {expression(draw, 2)}") + tag(draw.choice(["break", "continue"])) + tag("endif")
        if kind == "block":
            return tag(draw.choice(["set x", "set y | trim", "set z | upper | replace('A', x)"])) + template(draw, depth + 1) + tag("endset")
        if kind == "macro":
            return tag(f"macro {draw.choice('fg')}({draw.choice(['', 'x', 'a, b=x', 'a=1, b=a'])})") + template(draw, depth + 1) + tag("endmacro")
        if kind == "generation":
            return tag("generation") + template(draw, depth + 1) + tag("endgeneration")
        branches = "".join(tag(f"elif {expression(draw, 1)}") + template(draw, depth + 1, in_loop) for _ in range(draw.choice([0, 0, 1, 2])))
        other = tag("else") + template(draw, depth + 1, in_loop) if draw.coin() else ""
        return tag(f"if {expression(draw, 1)}") + template(draw, depth + 1, in_loop) + branches + other + tag("endif")

    return "".join(draw.choice(BLANKS) + part() for _ in range(draw.randint(1, 4))) + draw.choice(BLANKS)


# ---- both sides ----


class Now:
    """A date that is written as its format."""

    @staticmethod
    def now():
        return Now

    @staticmethod
    def strftime(format):
        return f"<{format}>"


def reference():
    import transformers.utils.chat_template_utils as utils
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from transformers import PreTrainedTokenizerFast

    utils.datetime = Now
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer(WordLevel({"a": 0}, unk_token="a")), bos_token="<s>", eos_token="</s>")


def case(tokenizer, source: str, messages: list, variables: dict, flags: dict) -> Case:
    tokens = {name: str(token) for name, token in tokenizer.special_tokens_map.items()}
    options = {"op": "chat_template", "template": source, "tokens": tokens, "messages": json.dumps(messages), "variables": json.dumps(variables), **flags}
    try:
        text = tokenizer.apply_chat_template(messages, chat_template=source, tokenize=False, **variables, **flags)
        return Case(options, {}, {"text": torch.tensor(list(text.encode()), dtype=torch.uint8)}, "bits")
    except AssertionError:  # in Jinja's own compiler, of a name that a filter of {% set %} has
        return Case(options | {"template": "{{ nothing() }}"}, {}, {}, refused="[")
    except Exception as error:
        return Case(options | {"error": repr(error)[:200]}, {}, {}, refused="[")


def batch(draw: Draw, programs: Programs) -> tuple[int, list[Failure]]:
    tokenizer, cases = reference(), []
    names = sorted(TEMPLATES) * 3
    for name in names:
        variables = {"tools": [tool(draw) for _ in range(draw.randint(1, 2))]} if draw.coin(0.3) else {}
        variables |= draw.choice([{}, {}, {"enable_thinking": False}, {"documents": [{"title": "T", "text": draw.choice(WORDS)}]}, {"tools_in_user_message": False}])
        flags = {"add_generation_prompt": draw.coin()}
        flags |= {"continue_final_message": True} if not flags["add_generation_prompt"] and draw.coin(0.2) else {}
        cases.append(case(tokenizer, TEMPLATES[name], conversation(draw), variables, flags))
    for _ in range(300):
        variables = {name: value(draw) for name in draw.sample(["x", "y", "k"], draw.randint(0, 3))}
        cases.append(case(tokenizer, template(draw), conversation(draw), variables, {"add_generation_prompt": draw.coin()}))
    failures = []
    for number, (one, got) in enumerate(zip(cases, programs.compute(cases))):
        if one.refused:
            why = "" if isinstance(got, str) else f"was not refused: {bytes(got['text'].tolist())}"
        elif isinstance(got, str):
            why = "" if number >= len(names) and "posenc" in got else got
        else:
            wanted, text = bytes(one.expected["text"].tolist()), bytes(got["text"].tolist())
            why = "" if wanted == text else f"{text!r} for {wanted!r}"
        if why:
            failures.append(Failure(f"case {number}, {names[number] if number < len(names) else ''}: {json.dumps(one.options)}", why))
    return len(cases), failures
