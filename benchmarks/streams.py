"""The streams that are measured: prose, many small calls, one large call, and a large call that is damaged or tricky.

Every stream is written by the dialect's own renderer and then damaged as text, so that any dialect can be measured.
Sizes are in characters of the large argument as the program would read it, before it is escaped.
"""

import json
import re
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any, NamedTuple

from dialects import get_dialect

__all__ = [
    "TOOLS",
    "Stream",
    "answer_with_code",
    "damaged_calls",
    "large_call",
    "plain_prose",
    "prose_with_tags",
    "small_calls",
    "source_code",
]

TOOLS = [
    {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "content": {"type": "string"},
                "overwrite": {"type": "boolean"},
                "mode": {"type": ["integer", "null"]},
            },
        },
    },
    {
        "name": "read_file",
        "parameters": {"type": "object", "properties": {"path": {"type": "string"}, "limit": {"type": "integer"}}},
    },
]
"""What the calls call. Dialects that write values as plain text need it to type them."""


class Stream(NamedTuple):
    """A text to scan, and the value of its large argument where it has one."""

    name: str
    text: str
    argument: str = ""


def plain_prose(size: int) -> Stream:
    """An answer in plain words."""
    paragraph = (
        "The water level rises for about six hours and falls for six. Where the bay is narrow, the range is larger: "
        "a height of three to five metres is common, and boats lie dry for half of the day.\n\n"
        "Nothing here calls a tool.\n"
    )
    return Stream("plain prose", _fill(paragraph, size))


def prose_with_tags(size: int) -> Stream:
    """An answer about code: every fifty characters a `<` or more."""
    paragraph = (
        "A height of 3 m < h < 5 m is common, and List<int> or a <b>bold</b> word, `<tool>` or a[i] may well stand in "
        "a text like this. Nothing here calls a tool.\n\n"
    )
    return Stream("prose with tags", _fill(paragraph, size))


def answer_with_code(size: int) -> Stream:
    """What a coding assistant writes: Markdown, with code in spans and fences."""
    return Stream("answer with code", _fill(_ANSWER, size))


_ANSWER = """## Why the list is empty

`loadItems()` runs before the `<ItemList>` is mounted, so `ref.current` is still `null`. There are **two** ways out:

1. Load them in `useEffect`, which runs after the first render.
2. Keep a `Map<string, Item[]>` outside, and render from that.

I would take the first one:

```tsx
export function ItemList({ url, limit = 20 }: Props) {
  const [items, setItems] = useState<Item[]>([]);

  useEffect(() => {
    fetch(`${url}?limit=${limit}`)
      .then((response) => response.json())
      .then((found) => setItems(found.filter((item) => item.size > 0 && item.size < limit)));
  }, [url, limit]);

  return (
    <ul className="items">
      {items.map((item) => (
        <li key={item.id}><a href={item.href}>{item.name}</a></li>
      ))}
    </ul>
  );
}
```

The server needs no change. It answers with what `GET /items` has always given:

```json
{
  "items": [{"id": 1, "name": "tide table", "size": 12, "tags": ["sea", "time"]}],
  "next": null
}
```

If you render on the server, too, put the first page into the document:

```html
<script type="application/json" id="first-page">{"items": []}</script>
<div id="root"><p class="hint">Loading &hellip;</p></div>
```

To try it, run `npm test -- --watch` and open <http://localhost:3000/>. In Python the same check is one line:

```python
def shown(items: list[dict[str, int]], limit: int = 20) -> list[dict[str, int]]:
    '''Those of the items that are neither empty nor too large.'''
    return [item for item in items if 0 < item["size"] < limit]  # `limit` itself is too large
```

Let me know if the list still stays empty after that.

"""


def small_calls(dialect: str, size: int) -> Stream:
    """One batch of calls with two short arguments each, about 100 characters a call."""
    calls: list[Any] = []
    for number in range(size // 100):
        arguments = {"path": f"src/module_{number}.py", "limit": number}
        calls.append({"id": f"functions.read_file:{number}", "function": {"name": "read_file", "arguments": arguments}})
    return Stream("many small calls", get_dialect(dialect).render_assistant_tool_calls(calls, tools=TOOLS))


def source_code(size: int) -> str:
    """Python source with what JSON has to escape: quotes, backslashes, newlines, tabs."""
    lines = []
    length = 0
    for number in count():
        line = (
            f'    def step_{number}(self, text: str) -> "list[str]":\n'
            f'        """Split at blanks, \\t and \\n included; a <tag> stays whole."""\n'
            f'\treturn re.split(r"\\s+|\\d{{{number % 9}}}", text.replace("\\\\", "/"))'
            f"  # it's step {number}, see above\n\n"
        )
        lines.append(line)
        length += len(line)
        if length >= size:
            return "".join(lines)[:size]
    raise AssertionError


def large_call(dialect: str, size: int) -> Stream:
    """One call with a short argument and a large one of source code."""
    code = source_code(size)
    return Stream(f"one call, {_size(size)}", _render(dialect, _arguments(code)), code)


def damaged_calls(dialect: str, size: int) -> Iterator[Stream]:
    """The large call, its arguments' text made hard to read in one way after another.

    Gives nothing for a dialect that does not write its arguments as one JSON object.
    """
    code = source_code(size)
    clean = _compact(_arguments(code))
    call = _render(dialect, _arguments(code))
    before, found, after = call.partition(clean)
    if not found:
        return
    for name, damage in _FAULTS.items():
        text, meant = damage(code, clean, after)
        yield Stream(f"{name}, {_size(size)}", before + text + after, meant)


def _arguments(code: str) -> dict[str, Any]:
    return {"path": "src/a.py", "content": code, "overwrite": True, "mode": None}


class Damaged(NamedTuple):
    """The arguments' text, damaged, and the value that the large argument is plainly meant to have."""

    text: str
    meant: str


_Damage = Callable[[str, str, str], Damaged]
"""From the source code, the clean arguments' text and the markup that follows it."""


def _as_damaged(damage: Callable[[str], str]) -> _Damage:
    """Damage to the arguments' text that leaves its meaning."""
    return lambda code, clean, after: Damaged(damage(clean), code)


def _raw_newlines(code: str, clean: str, after: str) -> Damaged:
    raw = "\n".join("\t".join(_inside_a_string(part) for part in line.split("\t")) for line in code.split("\n"))
    return Damaged(clean.replace(_inside_a_string(code), raw), code)


def _single_quotes(code: str, clean: str, after: str) -> Damaged:
    quoted = _inside_a_string(code).replace('\\"', '"').replace("'", "\\'")
    return Damaged(f"{{'path':'src/a.py','content':'{quoted}','overwrite':true,'mode':null}}", code)


def _end_markers(code: str, clean: str, after: str) -> Damaged:
    markup = after.strip()
    return Damaged(clean.replace("see above", _inside_a_string(markup)), code.replace("see above", markup))


def _end_markers_then_cut(code: str, clean: str, after: str) -> Damaged:
    return Damaged(_two_thirds(_end_markers(code, clean, after).text), code)


def _two_thirds(text: str) -> str:
    return text[: len(text) * 2 // 3]


def _nothing_but(unit: str, opening: str = "", closing: str = "") -> _Damage:
    return lambda code, clean, after: Damaged(opening + _fill(unit, len(clean)) + closing, code)


_FAULTS: dict[str, _Damage] = {
    "raw newlines": _raw_newlines,
    "unescaped quotes": _as_damaged(lambda clean: clean.replace('\\"', '"')),
    "invalid escapes": _as_damaged(lambda clean: re.sub(r"\\\\(?=[ds])", r"\\", clean)),
    "Python literals": lambda code, clean, after: Damaged(repr(_arguments(code)), code),
    "single quotes": _single_quotes,
    "bare keys": _as_damaged(lambda clean: clean.replace('"path":', "path:").replace('"content":', "content:")),
    "trailing comma": _as_damaged(lambda clean: clean[:-1] + ",}"),
    "no closing brace": _as_damaged(lambda clean: clean[:-1]),
    "prose around it": _as_damaged(lambda clean: f"Here you are:\n```json\n{clean}\n```\nI hope it helps."),
    "a string of JSON": _as_damaged(json.dumps),
    "end markers in it": _end_markers,
    "end markers, then cut": _end_markers_then_cut,
    "cut in the string": _as_damaged(_two_thirds),
    'nothing but {"a" ': _nothing_but('{"a" '),
    'nothing but {"a":': _nothing_but('{"a":'),
    "nothing but [": _nothing_but("["),
    'nothing but "': _nothing_but('"'),
    "nothing but '": _nothing_but("'", "{'a':"),
    "nothing but \\": _nothing_but("\\"),
    'nothing but a", "': _nothing_but('a", "', '{"a":"'),
    "nothing but digits": _nothing_but("1234567890", '{"a":', "}"),
    "nothing but words": _nothing_but("word "),
    "nothing but commas": _nothing_but(",", "{"),
}


def _render(dialect: str, arguments: dict[str, Any]) -> str:
    call = {"id": "functions.write_file:0", "function": {"name": "write_file", "arguments": arguments}}
    return get_dialect(dialect).render_assistant_tool_calls([call], tools=TOOLS)


def _inside_a_string(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _fill(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def _size(chars: int) -> str:
    return f"{chars // 1_000_000} MB" if chars >= 1_000_000 else f"{chars // 1000} KB"
