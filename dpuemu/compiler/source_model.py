"""Rewrite preprocessed C so that gcc compiles it as the SDK's compiler does.

`long` has 64 bits on a DPU but 32 in x32; pointers, size_t and int have 32 bits in both. gcc cannot
change the width of long. So `long` becomes `long long`, except in `long long` and `long double`.
Constants that end in L get LL, and builtins for long become builtins for long long.

An integer variable is undefined if its initialiser uses its own value (SimplePIM has such a
variable). The SDK's compiler usually drops the code that depends on it; gcc uses the current
content of a register. Here the variable is 0.

In C++, a cast such as `long(x)` needs one word, so `long` becomes `decltype(0LL)`.

Clang's unroll pragmas become gcc's. The attribute address_space(255) becomes gcc's name of that
memory, __seg_gs.
"""

from __future__ import annotations

import re

# Options for the preprocessor, which runs before this rewriting.
MACROS = [
    *(
        "-U__LONG_MAX__",
        "-D__LONG_MAX__=0x7fffffffffffffffLL",
        "-U__SIZEOF_LONG__",
        "-D__SIZEOF_LONG__=8",
        "-U__LONG_WIDTH__",
    ),
    *("-D__LONG_WIDTH__=64", "-U__ILP32__", "-U_ILP32"),
    # On a DPU too, `aligned` without a number means 16 bytes, despite this macro.
    *("-U__BIGGEST_ALIGNMENT__", "-D__BIGGEST_ALIGNMENT__=4"),
]

# Strings, characters and line markers match first and are kept. The specifiers of a type may have
# any order:
# `long unsigned int long`.
_TOKEN = re.compile(
    r"""(?P<keep>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*\#.*$)
    |(?P<kept_type>\bdouble\s+long\b)
    |(?P<type>\blong\b(?:\s+(?:long|int|unsigned|signed|const|volatile|double)\b)*)
    |(?P<number>(?<![\w.])(?<![eEpP][+-])(?:0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)
      (?:[uU][lL]|[lL][uU]?)(?![\w.]))
    |(?P<builtin>\b__builtin_(?:clz|ctz|popcount|ffs|parity|clrsb)l\b)
    """,
    re.VERBOSE | re.MULTILINE,
)


def _replace(token: re.Match[str]) -> str:
    text = token[0]
    if token["type"]:
        words = re.findall(r"\w+", text)
        return text if words.count("long") > 1 or "double" in words else text + " long"
    if token["number"]:
        return text[:-2] + "LLU" if text[-1] in "uU" else text[:-1] + "LL"
    if token["builtin"]:
        return text + "l"
    return text


_CXX_CAST = re.compile(r"\s*[({]")


def _replace_in_cxx(token: re.Match[str]) -> str:
    if token["type"] == "long" and _CXX_CAST.match(token.string, token.end()):
        return "decltype(0LL)"
    return _replace(token)


_UNROLL = re.compile(
    r"^[ \t]*#[ \t]*pragma[ \t]+(?:clang[ \t]+loop[ \t]+)?(?:unroll|unroll_count)\b[ \t]*\(?["
    r" \t]*(\w*)[ \t]*\)?.*$",
    re.MULTILINE,
)
_NO_UNROLL = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+nounroll\b.*$", re.MULTILINE)
# Without a number, clang unrolls loops of known length completely and chooses a number for other
# loops. gcc needs a number, and a large number would make loops too long for IRAM.
_UNROLL_DEFAULT = 8


def _unroll(pragma: re.Match[str]) -> str:
    if pragma[1] == "disable":
        return "#pragma GCC unroll 1"
    return f"#pragma GCC unroll {pragma[1] if pragma[1].isdigit() else _UNROLL_DEFAULT}"


# Matches one scalar integer variable that is initialised by arithmetic on names and numbers only,
# without call, comma, member, string, sizeof or address. So its name in the initialiser can only
# mean its value.
_SELF_INITIALISED = re.compile(
    r"""(?P<head>[;{}]\s*
      (?:(?:const|volatile|unsigned|signed|char|short|int|long|u?int(?:8|16|32|64)_t|size_t)\b\s*)+
      (?P<name>[A-Za-z_]\w*)\s*=)
    (?P<value>(?:\s|\d\w*\b|[A-Za-z_]\w*\b(?!\s*\()|[-+*/%()|^~<]|(?<!-)>)*)(?=;)""",
    re.VERBOSE,
)


def _without_itself(declaration: re.Match[str]) -> str:
    names = set(re.findall(r"[A-Za-z_]\w*", declaration["value"]))
    unevaluated = {"sizeof", "_Alignof", "__alignof__", "typeof", "__typeof__"}
    return (
        declaration["head"] + " 0"
        if declaration["name"] in names and not names & unevaluated
        else declaration[0]
    )


_SPACE = re.compile(
    r"(__attribute(?:__)?\s*\(\s*\((?:[^()]|\([^()]*\))*?)\baddress_space\s*\(\s*255\s*\)"
    r"((?:[^()]|\([^()]*\))*\)\s*\))"
)


def adapt(preprocessed: str, is_cxx: bool = False) -> str | None:
    """Return the source for gcc, or None if it needs no change."""
    changed = _SELF_INITIALISED.sub(_without_itself, preprocessed)
    if "address_space" in changed:
        changed = _SPACE.sub(r"\1no_reorder\2" + ("" if is_cxx else " __seg_gs"), changed)
    if "unroll" in changed:
        changed = _NO_UNROLL.sub("#pragma GCC unroll 1", _UNROLL.sub(_unroll, changed))
    if "long" in changed or "__builtin_" in changed or re.search(r"\d[uU]?[lL]", changed):
        changed = _TOKEN.sub(_replace_in_cxx if is_cxx else _replace, changed)
    return None if changed == preprocessed else changed
