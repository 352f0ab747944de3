"""The markers of a notation of literals, and where they count: see `literals.py`, which reads it.

A quote closes its string, and a key or a scalar ends, where a legal continuation follows. These are the patterns of all
that may follow; each is bounded, for it is matched again while the text arrives. A clean stream has no spaces; what
they may stand around is narrower, because it is looked for in the model's own text as well.
"""

import re

import regex

from dialects.engine.arguments import StringEnds
from dialects.engine.json_text import MAX_DEPTH, dump
from dialects.engine.markers import MarkerSet

__all__ = ["EQUALS", "PLAIN_MEMBER", "LiteralForm", "is_bare", "write_key"]

_NOT_IN_KEYS = r""":,{}\[\]<>"="""
_BARE_KEY = re.compile(rf"(?!')[^\s{_NOT_IN_KEYS}](?:[^{_NOT_IN_KEYS}]*[^\s{_NOT_IN_KEYS}])?")


def write_key(key: str) -> str:
    """A key as the notation has it."""
    return key if is_bare(key) else dump(key)


def is_bare(key: str) -> bool:
    """Whether a key can stand without quotes."""
    return len(key) <= 128 and key.isprintable() and _BARE_KEY.fullmatch(key) is not None


# What follows what.

_S = r"\s{0,64}+"
_VALUE = rf"{_S}[^\s/:=)]"
_CLEAN_MEMBER = rf"[^\s{_NOT_IN_KEYS}][^{_NOT_IN_KEYS}\n]{{0,127}}+:{_VALUE}"
_WORDS = rf"""[^\s{_NOT_IN_KEYS}()'\\;][^{_NOT_IN_KEYS}()'\\;\n]{{0,127}}+"""
_CHAR = r'(?:[^"\\]|\\.)'
_IN_DOUBLE_QUOTES = rf'"(?:{_CHAR}{{256}}|{_CHAR}{{0,255}}+"{_S}[:=])'
_IN_SINGLE_QUOTES = rf"'(?:[^'\\]|\\.){{0,256}}+'{_S}[:=]"
_MEMBER = rf"(?:{_WORDS}[:=]{_VALUE}|{_IN_DOUBLE_QUOTES}|{_IN_SINGLE_QUOTES})"
_PLAIN_MEMBER = r"""[^\W\d][\w.-]{0,63}+\s{0,4}+[:=]\s{0,4}+(?:<|["'\[{\d-]|true|false|null|None|True|False)"""

EQUALS = regex.compile(r"""=\s{0,16}+[<"'\[{]""")
"""An `=` that stands for a colon, whatever follows."""
PLAIN_MEMBER = regex.compile(_PLAIN_MEMBER)
"""The beginning of a member where nothing says that there is one."""

_NAME = r"""[^\s{}()<>\[\]"'`,;:][^\s{}()<>\[\]"'`,;]{0,255}"""


def _spaced(prefix: str) -> str:
    """The pattern of a word with its colon, between which space may stand."""
    word = prefix.removesuffix(":")
    return re.escape(word) + (r"\s{0,16}:" if prefix != word else "")


class LiteralForm:
    """The markers of one dialect, and where they count.

    A call is `call_begin`, `prefix`, a name, the arguments and `call_end`. `quote` stands at both ends of a string. A
    marker of `turn_ends`, or another call, may stand behind a call. All patterns are bounded.
    """

    def __init__(self, *, quote: str, call_begin: str, prefix: str, call_end: str, turn_ends: tuple[str, ...]) -> None:
        self.quote, self.call_begin, self.prefix, self.call_end = quote, call_begin, prefix, call_end
        self.ends = (call_end, call_begin, *turn_ends)
        """The markers that end the arguments where they stand outside of strings."""
        self.header_ends = MarkerSet(["{", "(", *self.ends])
        self.tail_ends = MarkerSet([prefix, *self.ends])
        self.call_ends = MarkerSet(self.ends)
        self.call_markers = MarkerSet([call_begin, call_end])
        call_start = rf"(?:{_spaced(prefix)}\s{{0,16}}+){{1,4}}+{_NAME}\s{{0,16}}+[{{(]"
        self.call_start = regex.compile(call_start)
        """How a call begins, behind its first marker or another call."""
        self.header = re.compile(
            rf"\s*(?P<prefix>(?:{_spaced(prefix)}\s*)*)(?P<name>(?P<quote>{re.escape(quote)})?{_NAME}(?(quote)(?P=quote)))\s*"
        )
        begin, end = map(regex.escape, (call_begin, call_end))
        stops = "|".join(map(regex.escape, (call_begin, *turn_ends)))
        self.string_ends = StringEnds(
            rf"{end}{_S}(?:{stops})|{begin}{_S}{call_start}", markers=(call_begin, call_end), closers=(call_end,)
        )
        self.scalar_ends = MarkerSet([",", "}", "]", quote, *self.ends])
        self.scalar_ends_in_parentheses = MarkerSet([*self.scalar_ends.literals, ")"])
        self.key_ends = MarkerSet([":", "=", *self.scalar_ends.literals])
        self.in_strings = {
            quote: MarkerSet([quote, call_begin, call_end]),
            '"': MarkerSet(['"', "\\\\", '\\"', quote, call_begin, call_end]),
            "'": MarkerSet(["'", "\\\\", "\\'", quote, call_begin, call_end]),
        }
        """By quote, what is looked for in a string. Of the markers that are none of its ends, each is passed."""
        over = rf"{_S}(?:{end}|{stops}|{call_start})"
        key_in_quotes = rf"{regex.escape(quote)}[^<\n]{{0,128}}+{regex.escape(quote)}{_S}[:=]"
        member = rf"(?:{_S}(?:,(?:{_CLEAN_MEMBER}|{key_in_quotes}|{_S}(?:{_MEMBER}|[}})])))|\s{{1,16}}+{_PLAIN_MEMBER})"
        inner = rf"{_S}[}}\]](?:{_S}[}}\])]){{0,{MAX_DEPTH}}}+(?:{_S},|{over})"
        self.after_string = {
            "top": regex.compile(rf"{member}|{_S}[}})](?:{_S}[}})]){{0,8}}+{over}|{over}"),
            "{": regex.compile(rf"{member}|{inner}|{over}"),
            "[": regex.compile(
                rf"""{_S},{_S}(?:{regex.escape(quote)}|["'\[{{\]\d-]|true|false|null|None)|{inner}|{over}"""
            ),
            "key": regex.compile(rf"{_S}[:=]"),
        }
        """By where a string stands, what may follow the quote that closes it."""
