"""Values that are written as elements: an object as a child for each member, an array as `item` children.

Each tag stands behind a mark that no text holds by chance, so that what is between two marks is text, verbatim:

    MARK<filters> MARK<tags> MARK<item>a MARK</item> MARK</tags> MARK<lang>fr MARK</lang> MARK</filters>

Nothing in the text says of which type a leaf is, or whether nothing at all is an empty string, object or array; the
schema does. Where it is silent, a leaf is read as JSON if it is JSON, and children that are all called `item` are an
array.
"""

import re
from typing import Any, NamedTuple

from dialects.engine.coercion import Coerced, coerce, plain_text
from dialects.engine.json_text import MAX_DEPTH, dump
from dialects.engine.schema import ANY, kinds_of, member_schema

__all__ = ["element_value"]

ITEM = "item"


class _Element(NamedTuple):
    name: str
    text: list[str]
    children: "list[_Element]"


def element_value(text: str, schema: object, root: object, *, mark: str) -> Coerced:
    """The value that the inside of an element means under a schema."""
    repairs: list[str] = []
    tree = _tree(text, mark, repairs)
    if tree is None:
        return plain_text(text)._replace(repairs=("too-deep",))
    if not tree.children:
        return _leaf(text, schema, root)
    value = _value(tree, schema, root, repairs)
    return Coerced(value, dump(value), tuple(dict.fromkeys(repairs)))


def _tree(text: str, mark: str, repairs: list[str]) -> _Element | None:
    """The elements in a text; None if they nest too deep."""
    top = _Element("", [], [])
    open_elements = [top]
    at = 0
    for tag in re.finditer(rf"{re.escape(mark)}<(/?)([^<>\s/]+)[^<>]*>", text):
        open_elements[-1].text.append(text[at : tag.start()])
        at = tag.end()
        if not tag[1]:
            element = _Element(tag[2], [], [])
            open_elements[-1].children.append(element)
            open_elements.append(element)
            if len(open_elements) >= MAX_DEPTH:
                return None
        elif any(element.name == tag[2] for element in open_elements[1:]):
            while open_elements.pop().name != tag[2]:
                repairs.append("missing-value-end")
        else:
            repairs.append("stray-closer")
    repairs.extend(["missing-value-end"] * (len(open_elements) - 1))
    open_elements[-1].text.append(text[at:])
    return top


def _value(element: _Element, schema: object, root: object, repairs: list[str]) -> Any:
    if not element.children:
        found = _leaf("".join(element.text), schema, root)
        repairs.extend(found.repairs)
        return found.value
    if "".join(element.text).strip():
        repairs.append("surrounding-text")
    kinds = kinds_of(schema, root)
    is_list = all(child.name == ITEM for child in element.children) if "object" in kinds else True
    if is_list and "array" in kinds:
        items = member_schema(schema, root, None)
        return [_value(child, items, root, repairs) for child in element.children]
    members: dict[str, Any] = {}
    for child in element.children:
        if child.name in members:
            repairs.append("duplicate-key")
        members[child.name] = _value(child, member_schema(schema, root, child.name), root, repairs)
    return members


def _leaf(text: str, schema: object, root: object) -> Coerced:
    """A text without elements."""
    kinds = kinds_of(schema, root)
    if not text and kinds != ANY and "string" not in kinds:
        for kind, value in (("array", []), ("object", {}), ("null", None)):
            if kind in kinds:
                return Coerced(value, dump(value))
    return coerce(text, schema, root)
