"""The grammar of calls that are function and parameter tags, with values that are plain text:

    SECTION ( <invoke name="N"> ( <parameter name="K"> VALUE </parameter> )* </invoke> )+ /SECTION

`InvokeTags` holds what differs between dialects, as data: the names of the three tags, what may stand before them
(`mark`: a namespace, or a token), what ends a turn. A name follows as an attribute, in quotes of either kind, other
attributes beside it, or behind `=`. `string="true"` or `"false"` on a parameter says what its value is, whatever the
schema does. A tag that closes itself (`<invoke name="N"/>`) is a call without arguments, or an empty value.

`InvokeScanner` reads the inside of a call, from its opening tag on; where calls count is its subclass's to say.
`PlainInvokeScanner` does that for tags that a person may write as well. Its sections are optional, and between their
tags and calls white space is layout.
"""

import re
from collections.abc import Iterable
from functools import cache
from typing import ClassVar, NamedTuple

import regex

from dialects.engine.arguments import Arguments, skipping
from dialects.engine.markers import NAMESPACE, Mark, TagSet
from dialects.engine.plain_tags import BLOCK_CHARS, PlainTagScanner, ThinkEnd
from dialects.engine.scanner import State
from dialects.engine.values import TextValueScanner, ThinkEndOutsideValues, ValueEnds

__all__ = ["InvokeScanner", "InvokeTags", "PlainInvokeScanner", "Tag", "attribute", "read_attributes"]

_skip_space = skipping(r"\s*+")
_skip_some_space = skipping(r"\s{0,64}+")
_BODY = r"""(?:\s{0,16}=[^<>\n]{0,4096}+|(?!\s{0,16}=)(?:[^<>"']|"[^"<]{0,4096}+"|'[^'<]{0,4096}+'){0,4096}+)"""
"""What stands between a tag's name and its `>`, which may also stand in quotes."""
_ATTRIBUTES = r"""(?:\s{1,16}+[^\s<>="']{1,64}+=(?:"[^"<>\n]{0,256}+"|'[^'<>\n]{0,256}+'))++"""
_MORE = r"""\s{0,64}[<\n]|\s{0,16}[\w.-]{0,64}+\s{0,16}+["'=]"""
"""What shows that they are not over, or that nothing follows them on the line."""
# No `\b` before the name: at the end of a text that goes on it would rule out what follows.
_NAMED = r"""\s(?:[^<>]{0,256}?[^\w<>])?name\s{0,16}=\s{0,16}["']?(?P<key>[^<>"']{0,256})[^<>]{0,256}"""
_ATTRIBUTE = re.compile(r"""([^\s"'=<>/]+)\s*=\s*(?:"([^"]*)"|'([^']*)'|["']?([^\s"'>]+))""")
_EQUALS = re.compile(r"\s*=(.*)", re.DOTALL)
_MAX_OPENERS = 4
"""How many tags that open nothing may stand between a section's opener and its first call."""
_section_rest = regex.compile(r"(?P<tag>(?:[^<>\n]{0,256}+>)?)(?P<line>[^\n]*+)")
"""What follows the name in a section's tag, and on its line."""
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}
_ENTITY = re.compile("|".join(_ENTITIES))
_IS_TEXT = {"true": True, "false": False}


def attribute(text: str) -> str:
    """A text as the value of an attribute in double quotes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace('"', "&quot;")


class Tag(NamedTuple):
    """An opening tag."""

    end: int
    """Where it ends in the text."""
    name: str | None
    is_text: bool | None
    """What its attribute `string` says."""
    is_empty: bool
    """Whether it closes itself."""
    is_cut: bool
    """Whether its `>` is missing."""


_NO_TAG = Tag(0, None, None, is_empty=False, is_cut=True)


class InvokeTags:
    """The tags of a dialect; see the module's description. `turn_ends` are literals that end a call whose closer is
    missing. `has_layout`: one newline on each inner side of a parameter's tags belongs to them. `slips` is a pattern of
    names that a parameter's closer may have by mistake, where the `mark` alone says that it is a tag."""

    def __init__(
        self,
        *,
        sections: tuple[str, ...],
        invoke: str = "invoke",
        parameter: str = "parameter",
        mark: Mark = NAMESPACE,
        turn_ends: tuple[str, ...] = (),
        has_layout: bool = False,
        slips: str = "",
    ) -> None:
        self._mark = mark
        before = mark.pattern
        self.sections = sections
        self.invoke = invoke
        self.parameter = parameter
        calls = (*sections, invoke)
        names = (*calls, parameter)
        slips = rf"(?!(?:{'|'.join(names)})[\s=/>])(?:{slips})" if slips else ""
        self.between = self.tag_set(turn_ends, opening=names, closing=names, closing_too=slips)
        """What may stand between two parameters."""
        self.calls = self.tag_set(opening=calls, closing=sections)
        """What opens a call, or begins or ends a section of them."""
        self.inner = self.tag_set(opening=(parameter,), closing=names)
        """What stands behind a call's opener only."""
        self.call_ends = self.tag_set(closing=calls)
        any_name = "|".join((*names, *filter(None, [slips])))
        self._kind = re.compile(rf"<(/?){before}({any_name})(?=[\s=/>]|\Z)")
        self._roles = {**dict.fromkeys(sections, "section"), invoke: "invoke", parameter: "parameter"}
        # A bare `>` at the end would be looked for in all of the text before the match is tried.
        self._opening = regex.compile(_BODY + "(?=>).")
        self._broken = regex.compile(rf"{_ATTRIBUTES}(?!{_MORE})|[^<>\n]{{0,256}}+(?:>|(?=[<\n]))")
        self.any = regex.compile(rf"</?{before}(?:{'|'.join(names)})(?=[\s=/>])[^<>]{{0,256}}+>")
        self.closer = regex.compile(self._closed(any_name))
        run = (self._closed(parameter), self._closed(invoke), self._closed(*sections))
        self.closer_run = regex.compile(r"(?:{0}\s{{0,16}}){{1,4}}{1}|{1}\s{{0,16}}{2}".format(*run))
        """Closers in the order in which they close a call."""
        self._call_end = re.compile(rf"\s*</{before}{invoke}(?=[\s>])")
        self._end = regex.compile(rf"(?:{self._closed(invoke)}\s{{0,64}})?{self._closed(*sections)}")
        following = rf"<{before}(?:{'|'.join(names)})(?=[\s=/>])|</{before}(?:{'|'.join(calls)})(?=[\s>])"
        ending = "|".join(map(re.escape, turn_ends)) or r"(?!)"
        closer = self._closed(parameter, *filter(None, [slips]))
        first = (
            rf"{_BODY}(?<=/)>|{_BODY}>\s{{0,64}}"
            rf"(?:<{before}{parameter}(?=[\s=/>])|</{before}(?:{'|'.join(calls)})(?=[\s>])|{ending})"
        )
        self.call_start = regex.compile(rf"(?:{first})")
        """What follows `<invoke` where it opens a call."""
        section = (
            rf"(?:\s[^<>\n]{{0,64}}+|\s{{0,16}})>(?:\s{{0,64}}<{before}(?:{'|'.join(sections)})>){{0,2}}\s{{0,64}}<{before}{invoke}"
            rf"(?:\s[^<>]{{0,64}}=|=|\s{{0,16}}>\s{{0,64}}<{before}{parameter}(?=[\s=/>]))"
        )
        self.section_start = regex.compile(section)
        """What follows `<SECTION` where it opens a section of calls."""
        self.value_ends = ValueEnds(
            self.tag_set(opening=names, closing=names, closing_too=slips),
            closer=closer,
            exact_closer=self._closed(parameter),
            continuation=rf"(?:\s{{0,16}}{closer}){{0,3}}\s{{0,64}}(?:{following})",
            opening=rf"<{before}{parameter}(?:{_NAMED}|\s*=\s*[\"']?(?P<key>[^<>\n\"']{{0,256}})[^<>\n]?)>",
            others=rf"</{before}(?:{'|'.join(calls)})\s{{0,16}}>|<{before}(?:{'|'.join(sections)})(?:{section})"
            rf"|<{before}{invoke}(?:{first})|{closer}\s{{0,64}}(?:{ending})",
            has_layout=has_layout,
        )

    def _closed(self, *names: str) -> str:
        return rf"</{self._mark.pattern}(?:{'|'.join(names)})\s{{0,16}}>"

    def tag_set(
        self,
        literals: Iterable[str] = (),
        *,
        opening: Iterable[str] = (),
        closing: Iterable[str] = (),
        closing_too: str = "",
    ) -> TagSet:
        """Literals, and tags of these names."""
        return TagSet(literals, opening=opening, closing=closing, closing_too=closing_too, mark=self._mark)

    def kind(self, marker: str) -> str:
        """What a marker is the beginning of: `section`, `invoke`, `parameter`, with a slash before it where that is a
        closer; empty: none of the tags."""
        found = self._kind.match(marker)
        return found[1] + self._roles.get(found[2], "parameter") if found else ""

    def opening_tag(self, text: str, behind: int, *, final: bool) -> Tag | None:
        """The tag whose name ends at `behind`. None: more input. Where its `>` is missing, it ends before the next tag
        or line, or behind its attributes."""
        found = self._opening.match(text, behind, partial=not final) or self._broken.match(
            text, behind, partial=not final
        )
        if found is None:
            return Tag(len(text) if final else behind, None, None, False, is_cut=True)
        if found.partial:
            return None
        is_cut = not found.group().endswith(">")
        body = found.group().removesuffix(">")
        is_empty = body.endswith("/")
        name, is_text = read_attributes(body.removesuffix("/"))
        return Tag(found.end(), name, is_text, is_empty, is_cut)

    def end_of_closer(self, text: str, start: int, *, final: bool) -> int | None:
        """Where the closing tag at `start` ends. None: more input. A `>` that is missing ends it behind its name."""
        found = self.closer.match(text, start, partial=not final)
        if found is not None:
            return None if found.partial else found.end()
        kind = self._kind.match(text, start)
        assert kind is not None
        return kind.end()

    def ends_at(self, text: str, start: int) -> bool:
        """Whether a call ends at `start`, or behind white space there."""
        return self._call_end.match(text, start) is not None

    def ends_cut(self, text: str) -> bool:
        """Whether a text is nothing but the beginning of a call's end."""
        return self._end.fullmatch(text, partial=True) is not None


def read_attributes(body: str) -> tuple[str | None, bool | None]:
    """The name that a tag gives behind its own, and what it says of whether its value is text."""
    if equals := _EQUALS.match(body):
        name = equals[1].strip()
        quoted = len(name) > 1 and name[0] == name[-1] and name[0] in "\"'"
        return name[1:-1] if quoted else name, None
    found = {key: next((value for value in values if value), "") for key, *values in _ATTRIBUTE.findall(body)}
    name = found.get("name")
    unescaped = None if name is None else _ENTITY.sub(lambda entity: _ENTITIES[entity.group()], name)
    return unescaped, _IS_TEXT.get(found.get("string", ""))


class InvokeScanner(TextValueScanner):
    """Reads the inside of a call in the states `invoke` (its opening tag), `pairs` (between its parameters),
    `parameter` (an opening tag) and `value`. It begins at `<invoke`, with `enter_invoke`."""

    tags: ClassVar[InvokeTags]

    def __init_subclass__(cls) -> None:
        """Take what the tags say."""
        super().__init_subclass__()
        if hasattr(cls, "tags"):
            cls.value_ends = cls.tags.value_ends
            cls.block_ends = cls.tags.call_ends

    def enter_invoke(self, marker: str) -> State:
        """The call whose opening tag begins with `marker`, at the cursor, was begun."""
        self.tape.i += len(marker)
        return self.invoke

    def invoke(self) -> State | None:
        """The opening tag of a call."""
        tape = self.tape
        tag = self.tags.opening_tag(tape.text, tape.i, final=self.final)
        if tag is None:
            return None
        tape.i = tag.end
        if self.final and tag.is_cut and tag.end == len(tape.text):
            return self.cut_off()
        self.begin_pairs((tag.name or "").strip())
        if tag.is_cut:
            self.arguments.note("missing-key-end")
        return self.finish_call() if tag.is_empty else self.pairs

    def pairs(self) -> State | None:
        """Before, between and behind the parameters."""
        tape = self.tape
        tape.i = _skip_space(tape.text, tape.i).end()
        index, marker = self.tags.between.find(tape.text, tape.i)
        if index > tape.i:
            self.arguments.note("surrounding-text")
            tape.i = index
        if marker is None:
            return self._ended_between() if self.final else None
        kind = self.tags.kind(marker)
        if kind == "parameter":
            self.key_start = tape.pos
            tape.i += len(marker)
            return self.parameter
        if kind in ("/invoke", "/parameter"):
            end = self.tags.end_of_closer(tape.text, tape.i, final=self.final)
            if end is None:
                return self._ended_between() if self.final else None
            tape.i = end
            if kind == "/invoke":
                return self.finish_call()
            self.arguments.note("stray-closer")
            return self.pairs
        tag = self.tags.opening_tag(tape.text, tape.i + len(marker), final=self.final) if kind == "invoke" else _NO_TAG
        if tag is None:
            return None
        if self.is_twice(tag.name) and not tag.is_empty:
            return self.pass_twice(tag.end)
        self.arguments.note("missing-call-end")
        return self.finish_call()

    def is_twice(self, name: str | None) -> bool:
        """Whether an opener of that name is the one of the open call once more."""
        return name is not None and name == self.open_call.name and not self.arguments.value

    def pass_twice(self, end: int) -> State:
        """Leave out that opener, which ends at `end`."""
        self.tape.i = end
        self.arguments.note("stray-marker")
        return self.pairs

    def parameter(self) -> State | None:
        """The opening tag of a parameter."""
        tape = self.tape
        tag = self.tags.opening_tag(tape.text, tape.i, final=self.final)
        if tag is None:
            return None
        tape.i = tag.end
        if self.final and tag.is_cut and tag.end == len(tape.text):
            return self.cut_off()
        if tag.is_cut:
            self.arguments.note("missing-key-end")
        if tag.name is None:
            self.arguments.note("missing-key")
            return self.pairs
        if not tag.is_empty:
            return self.begin_value(tag.name, is_text=tag.is_text)
        self.arguments.begin(tag.name, self.sink(), is_text=True)
        self.arguments.end("", self.sink())
        return self.pairs

    def _ended_between(self) -> State:
        """The stream ends between two parameters, or before the first, if the call's closer was not begun."""
        tape = self.tape
        rest = tape.text[tape.i :]
        begun = bool(self.arguments.value) or "/" in rest
        if self.truncated or not begun or not self.is_cut_end(rest):
            return self.cut_off()
        tape.i = len(tape.text)
        self.arguments.note("missing-call-end")
        return self.finish_call()

    def is_cut_end(self, text: str) -> bool:
        """Whether the end of the stream cut the call's end to this text."""
        return self.tags.ends_cut(text)

    def skip(self) -> State | None:
        """The rest of a call that was too large."""
        tape = self.tape
        tape.i, marker = self.block_ends.find(tape.text, tape.i, final=self.final)
        if marker is None:
            return None
        end = self.tags.end_of_closer(tape.text, tape.i, final=self.final)
        if end is None:
            return None
        if self.tags.kind(marker) == "/invoke":
            self.pass_markup(tape.text[tape.i : end])
        return self.after_call()

    def drop_call(self, reason: str) -> None:
        """The open call is none. If it is too large in the middle of an opening tag, that is part of it."""
        if reason == "too-large" and self.state in (self.invoke, self.parameter):
            self.tape.i = len(self.tape.text)
        super().drop_call(reason)

    @property
    def released(self) -> int:
        return self.open_call.start if self.call and self.state == self.invoke else super().released


class PlainInvokeScanner(InvokeScanner, PlainTagScanner):
    """Reads such calls between tags that are plain text. Beside the states of `InvokeScanner` and `PlainTagScanner` it
    has `section`: between the calls of a section, and behind every call.

    A subclass says which `tags` there are, which tokens are special, and how turns begin. In thinking, its
    `text_headers` are only mentioned.
    """

    result_ends: ClassVar[tuple[str, ...]] = ()
    namespaces: ClassVar[tuple[str, ...]] = ()
    """Those that the dialect's own tags have."""
    layout_tokens: ClassVar[tuple[str, ...]] = ()
    """Special tokens before which, behind a call, white space is layout as well."""
    closers = ()

    def __init_subclass__(cls) -> None:
        """Make the marker sets out of the tags."""
        super().__init_subclass__()
        tags = cls.tags
        calls = (*tags.sections, tags.invoke)
        literals = (*cls.thinking_tags, *cls.result_begins, *cls.result_ends, *cls.special_tokens, *cls.turn_openers)
        cls.text_markers = tags.tag_set(literals, opening=calls, closing=(*calls, tags.parameter))
        cls.call_begins = tuple(f"<{space}{name}" for space in ("", *cls.namespaces) for name in calls)
        every = (*calls, tags.parameter)
        cls.section_markers = tags.tag_set(cls.layout_tokens, opening=every, closing=every)

    section_markers: ClassVar[TagSet]

    def _reset(self) -> None:
        self._in_section = False
        self._skipped = ""
        """The section's tag and the layout that were left out since the last call."""
        self._said_tags = 0
        """How many tags of sections came out as text and are open."""
        self._is_text = False
        """Whether the last call was text, because there is no such tool."""
        super()._reset()

    # What opens a call.

    def opens_call(self, marker: str) -> bool:
        """Whether a call, or a section of them, may begin here."""
        return self.tags.kind(marker) in ("invoke", "section")

    def start_behind(self, marker: str) -> "regex.Pattern[str]":
        """What follows where it does."""
        return self.tags.section_start if self.tags.kind(marker) == "section" else self.tags.call_start

    def whole_opener(self, marker: str) -> str:
        """All of the tag."""
        tape = self.tape
        tag = self.tags.opening_tag(tape.text, tape.i + len(marker), final=True)
        return marker if tag is None else tape.text[tape.i : tag.end]

    def _stray_opener(self, marker: str, following: int) -> State:
        """A call that the next one follows at once has no arguments."""
        tape = self.tape
        tag = self.tags.opening_tag(tape.text, tape.i + len(marker), final=True)
        if tag is None or tag.is_cut or not tag.name or self._has_words(tape.text[tag.end : following - len(marker)]):
            return self._mention(marker)
        return self._begin_call_here(marker)

    def _no_call(self, marker: str) -> State | None:
        """A section's opener may stand before its first call with other words between: they are text, or a call whose
        own opener is missing. Words behind a blank on its line speak of it."""
        if self.tags.kind(marker) != "section" or not self.markdown.blank:
            return super()._no_call(marker)
        tape = self.tape
        behind = tape.i + len(marker)
        first = self._first_call(behind)
        if first is None:
            return None
        if first < 0:
            return super()._no_call(marker)
        between = _section_rest.match(tape.text, behind, first)
        assert between is not None
        if self.tags.inner.find(tape.text[behind:first], 0, final=True)[1] is not None:
            self.begin_call()
            tape.i = first
            self.drop_call("malformed")
            self._in_section = True
            return self.section
        if between["line"][:1].isspace() and between["line"].strip():
            return self._mention(marker)
        self._used = tape.base + first
        self.pass_markup(marker + between["tag"])
        return self.outside

    def _has_words(self, text: str) -> bool:
        """Whether it is more than white space and tags."""
        return bool(self.tags.any.sub("", text).strip())

    def _first_call(self, start: int) -> int | None:
        """Where the first call, or section of calls, opens near behind `start`; -1: none does before a section ends.
        None: more input."""
        text = self.tape.text
        near = text[start : start + BLOCK_CHARS]
        is_all = self.final or len(near) == BLOCK_CHARS
        at = 0
        for _ in range(_MAX_OPENERS):
            at, marker = self.tags.calls.find(near, at, final=is_all)
            if marker is None:
                return -1 if is_all else None
            if marker.startswith("</"):
                return -1
            call = self.start_behind(marker).match(text, start + at + len(marker), partial=not self.final)
            if call is not None:
                return None if call.partial else start + at
            at += len(marker)
        return -1

    def end_of_block(self, marker: str) -> str:
        """The closer of that tag."""
        return f"</{marker[1:]}>"

    def think_end(self, think_ends: tuple[str, ...]) -> ThinkEnd:
        """Finds the end of the thinking behind a call's opener in it."""
        return ThinkEndOutsideValues(self.value_ends, _draft_markers(self.tags, think_ends), think_ends)

    def _begin_call_here(self, marker: str) -> State:
        if self.tags.kind(marker) == "section":
            return self._enter_section(marker)
        return super()._begin_call_here(marker)

    def enter_call(self) -> State:
        """The state behind `<invoke`; a call is open."""
        return self.invoke

    # Sections.

    def after_call(self) -> State:
        """What may stand behind a call is another one, or the section's end."""
        return self.section

    def _enter_section(self, marker: str) -> State:
        tag = self.whole_opener(marker)
        self.pass_markup(tag)
        self._skipped += tag
        self._in_section = True
        return self.section

    def say_call(self, name: str, raw: str) -> None:
        """A call of a tool that is not there is text, and so are the tags of its section."""
        super().say_call(name, self._skipped + raw)
        self._said_tags += self._skipped.count("<")
        self._skipped = ""
        self._is_text = True

    def section(self) -> State | None:
        """Between calls: white space before a tag is layout, anything else is text."""
        tape = self.tape
        text = tape.text
        at = _skip_some_space(text, tape.i).end()
        index, marker = self.section_markers.find(text, at, final=self.final)
        if marker is None and index == at and not self.final:
            return None
        if marker is None or index != at or tape.pos < self._mention_until:
            return self._leave_section(at)
        kind = self.tags.kind(marker)
        if not kind:
            tape.i = at
            self._is_text, self._skipped, self._said_tags = False, "", 0
            return self.home()
        if kind.startswith("/"):
            closer = self.tags.closer.match(text, at, partial=not self.final)
            if closer is None:
                return self._leave_section(at)
            if closer.partial:
                return None
            if self._said_tags and kind == "/section":
                self._said_tags -= 1
                said = text[tape.i : closer.end()]
                tape.i = closer.end()
                self.say(said)
            else:
                tape.i = at
                self.pass_markup(closer.group())
            self._in_section = self._in_section and kind != "/section"
            return self.section
        if kind == "parameter":
            return self._nameless_call(at) if self._in_section else self._leave_section(at)
        if self._in_section and kind == "invoke":
            tag = self.tags.opening_tag(text, at + len(marker), final=self.final)
            if tag is None:
                return None
            begins = not tag.is_cut or bool(tag.name)
        else:
            start = self.start_behind(marker).match(text, at + len(marker), partial=not self.final)
            if start is not None and start.partial:
                return None
            begins = start is not None
        if not begins:
            return self._leave_section(at)
        self._skipped += text[tape.i : at]
        tape.i = at
        return self._begin_call_here(marker)

    def _nameless_call(self, at: int) -> State:
        """The parameters of a call whose own opener is missing begin here."""
        self.tape.i = at
        self._may_be_prose = False
        self.begin_call()
        return self.begin_pairs("")

    def end_call(self, arguments: Arguments) -> None:
        """The open call is over."""
        if self.open_call.shown:
            self._skipped, self._is_text = "", False
        super().end_call(arguments)

    def _leave_section(self, at: int) -> State:
        """Text follows; or a tag that the end of the stream cut off, which is none."""
        self._in_section = self._is_text = False
        self._skipped, self._said_tags = "", 0
        text = self.tape.text
        if self.final and at < len(text) and self.section_markers.held_suffix(text, at) == at:
            self.tape.i = len(text)
        return self.home()

    # Mentions.

    def _closer(self, marker: str) -> State | None:
        if not self.tags.kind(marker):
            return super()._closer(marker)
        tape, tags = self.tape, self.tags
        if self.markdown.blank and self.final and tags.ends_cut(tape.text[tape.i :]):
            self.pass_markup(tape.text[tape.i :])
            return self.outside
        pattern = tags.closer if self.markdown.blank else tags.closer_run
        found = pattern.match(tape.text, tape.i, partial=not self.final)
        if found is None:
            return self._mention(marker)
        if found.partial:
            return None
        self.pass_markup(found.group())
        return self.outside

    def _turn_header(self, marker: str) -> State | None:
        if self.thinking_open and marker in self.text_headers:
            return self._mention(marker)
        return super()._turn_header(marker)

    def invoke(self) -> State | None:
        """The opening tag of a call. In the middle of a line, one without arguments of a tool that is none is prose,
        but not behind another call."""
        if self._may_be_prose and not self._is_text and self.tools is not None:
            text = self.tape.text
            tag = self.tags.opening_tag(text, self.tape.i, final=True)
            if tag and tag.name not in self.tools and (tag.is_empty or self.tags.ends_at(text, tag.end)):
                self.take_back_opener()
                return self.outside
        return super().invoke()


@cache
def _draft_markers(tags: InvokeTags, think_ends: tuple[str, ...]) -> TagSet:
    """What opens a value in a call that may be a draft, and what ends the thinking."""
    return tags.tag_set(think_ends, opening=(tags.parameter,))
