"""The states of a scanner class as a diagram, read from the source of the class.

A state is a method that some code returns without calling it, `return self.section`. From a state edges lead to
all that it can return, also through the methods that it calls for their answer (`return self.after(marker)`), through
`super()`, and through attributes that hold a state (`self._return_to`). The source says what may happen, not when, so
the diagram may show an edge that no stream takes, but it lacks none.
"""

import ast
import inspect
import textwrap
from collections.abc import Iterator
from functools import cache

from dialects.engine.scanner import Scanner

__all__ = ["edges", "mermaid"]

_STATE_TYPES = {"State", "ScannerState"}


def edges(scanner: type[Scanner]) -> list[tuple[str, str]]:
    """All pairs of different states of which the first can return the second, from `outside` on, and from the state to
    which the driver goes when a call is too large."""
    states = ["outside"]
    found: list[tuple[str, str]] = []
    for state in states:
        targets = _answers(scanner, state)
        found += [(state, target) for target in targets if target != state]
        states += [target for target in targets if target not in states]
        if state == states[-1]:
            states += [target for target in _answers(scanner, "after_too_large") if target not in states]
    return found


def mermaid(scanner: type[Scanner]) -> str:
    """The diagram in Mermaid's language."""
    (skipping,) = _answers(scanner, "after_too_large")
    lines = ["stateDiagram-v2", "    direction LR", "    [*] --> outside"]
    lines += [f"    {_shown(start)} --> {_shown(end)}" for start, end in edges(scanner)]
    lines += [f"    note right of {_shown(skipping)} : the rest of a call that exceeds max_call_chars"]
    return "\n".join(lines)


def _shown(state: str) -> str:
    return state.lstrip("_")


def _answers(scanner: type[Scanner], method: str) -> list[str]:
    """The states that a method can return."""
    found: dict[str, None] = {}
    seen: set[tuple[type, str]] = set()
    attributes: set[str] = set()

    def read(after: type | None, name: str) -> None:
        owner = _owner(scanner, name, after)
        if owner is None or (owner, name) in seen:
            return
        seen.add((owner, name))
        for answer in _returned(_source(owner, name)):
            look_at(answer, owner)

    def look_at(answer: ast.expr, owner: type) -> None:
        called = isinstance(answer, ast.Call)
        node = answer.func if isinstance(answer, ast.Call) else answer
        if not isinstance(node, ast.Attribute):
            return
        if _is_super(node.value):
            read(owner, node.attr)
        elif not isinstance(node.value, ast.Name) or node.value.id != "self":
            return
        elif called:
            read(None, node.attr)
        elif _is_state(scanner, node.attr):
            found[node.attr] = None
        elif node.attr not in attributes:
            attributes.add(node.attr)
            for value, setter in _assigned(scanner, node.attr):
                look_at(value, setter)

    read(None, method)
    return list(found)


def _owner(scanner: type, name: str, after: type | None) -> type | None:
    """The class that defines a method which gives a state; with `after`, the next one behind that in the order."""
    order = inspect.getmro(scanner)
    behind = order if after is None else order[order.index(after) + 1 :]
    owner = next((each for each in behind if inspect.isfunction(vars(each).get(name))), None)
    return owner if owner is not None and _gives_state(_source(owner, name)) else None


def _is_state(scanner: type, name: str) -> bool:
    owner = _owner(scanner, name, None)
    return owner is not None and len(_source(owner, name).args.args) == 1


def _gives_state(method: ast.FunctionDef) -> bool:
    annotation = method.returns
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        annotation = ast.parse(annotation.value, mode="eval").body
    names = {node.id for node in ast.walk(annotation) if isinstance(node, ast.Name)} if annotation else set()
    return bool(names & _STATE_TYPES)


def _returned(method: ast.FunctionDef) -> Iterator[ast.expr]:
    """What a method returns; of a choice the two answers, not the question."""
    for node in ast.walk(method):
        if isinstance(node, ast.Return) and node.value is not None:
            yield from _choices(node.value)


def _choices(value: ast.expr) -> Iterator[ast.expr]:
    if isinstance(value, ast.IfExp):
        yield from _choices(value.body)
        yield from _choices(value.orelse)
    else:
        yield value


def _assigned(scanner: type, attribute: str) -> Iterator[tuple[ast.expr, type]]:
    """What is ever assigned to an attribute of the instance, and in which class."""
    for owner in inspect.getmro(scanner):
        if owner is object:
            continue
        for node in ast.walk(_class_source(owner)):
            if isinstance(node, ast.Assign):
                targets, assigned = node.targets, node.value
            elif isinstance(node, ast.AnnAssign) and node.value is not None:
                targets, assigned = [node.target], node.value
            else:
                continue
            if any(isinstance(target, ast.Attribute) and target.attr == attribute for target in targets):
                for value in _choices(assigned):
                    yield value, owner


def _is_super(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "super"


@cache
def _class_source(owner: type) -> ast.Module:
    return ast.parse(textwrap.dedent(inspect.getsource(owner)))


@cache
def _source(owner: type, name: str) -> ast.FunctionDef:
    (tree,) = ast.parse(textwrap.dedent(inspect.getsource(vars(owner)[name]))).body
    assert isinstance(tree, ast.FunctionDef)
    return tree
