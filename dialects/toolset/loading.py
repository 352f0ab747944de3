"""Tools by their import paths, `package.module:Class`, with what their constructors need.

Each positional parameter of a constructor is given the dependency that its annotation names: the one of exactly this
type, or the one whose type is a subclass of it. The first keyword-only parameter ends that: from there on the
constructor's defaults hold.
"""

import importlib
import inspect
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, TypeAlias, Union, get_args, get_origin, get_type_hints

from dialects.toolset.tools import CallableTool, tool

__all__ = ["Dependencies", "InvalidToolError", "SkipThisTool", "by_type", "load_tool"]

Dependencies: TypeAlias = Mapping[type[Any], object] | Iterable[object]
"""Objects by the types that constructors ask for; or only objects, each of which answers for its own type."""


class SkipThisTool(Exception):  # noqa: N818 (a wish, not an error)
    """Raised by a tool's constructor that does not want its tool here: the program it needs is not installed, say."""


class InvalidToolError(ValueError):
    """Some paths gave no tool; `failures` has the reason for each of them."""

    def __init__(self, failures: Mapping[str, str]) -> None:
        super().__init__(failures)
        self.failures = dict(failures)

    def __str__(self) -> str:
        return "\n".join(["not loaded:", *(f"  {path}: {reason}" for path, reason in self.failures.items())])


def by_type(dependencies: Dependencies) -> Mapping[type[Any], object]:
    """The dependencies by the types that they answer for. Raises ValueError for two objects of one type."""
    if isinstance(dependencies, Mapping):
        return dependencies
    typed: dict[type[Any], object] = {}
    for value in dependencies:
        if type(value) in typed:
            raise ValueError(f"two dependencies are of the type {type(value).__name__}; give them by their types")
        typed[type(value)] = value
    return typed


def load_tool(path: str, dependencies: Mapping[type[Any], object]) -> CallableTool:
    """The tool at `package.module:Class`; what stands there may also be a tool already, or a typed function.

    Raises what the import, the injection or the constructor raises.
    """
    found = _imported(path)
    if isinstance(found, CallableTool):
        return found
    if isinstance(found, types.FunctionType):
        return tool(found)
    if not (inspect.isclass(found) and issubclass(found, CallableTool)):
        raise TypeError(f"it is no tool but {_described(found)}")
    return found(*_injected(found, dependencies))


def _imported(path: str) -> object:
    module, colon, names = path.partition(":")
    if not (module and colon and names):
        raise ValueError("it does not have the form package.module:Class")
    found: object = importlib.import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    return found


def _injected(cls: type[CallableTool], dependencies: Mapping[type[Any], object]) -> Iterator[object]:
    """The positional arguments of the constructor."""
    for parameter in inspect.signature(cls).parameters.values():
        if parameter.kind not in (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD):
            return
        yield _dependency(cls, parameter, dependencies)


def _dependency(cls: type, parameter: inspect.Parameter, dependencies: Mapping[type[Any], object]) -> object:
    has_default = parameter.default is not inspect.Parameter.empty
    if parameter.annotation is inspect.Parameter.empty:
        if has_default:
            return parameter.default
        raise TypeError(f"the parameter {parameter.name!r} of its constructor has no type")
    try:
        wanted = _choices(_resolved(cls, parameter.annotation, dependencies))
    except NameError:  # a type that its module imports for type checkers only, and that is no dependency's
        if has_default:
            return parameter.default
        raise
    for choice in wanted:
        found = _provided(choice, dependencies)
        if len(found) == 1:
            return found[0]
        if found:
            raise LookupError(f"several dependencies are a {_name(choice)}, which its constructor takes")
    if has_default:
        return parameter.default
    if type(None) in wanted:
        return None
    names = " or ".join(map(_name, wanted))
    raise LookupError(f"there is no dependency of the type {names} for the parameter {parameter.name!r}")


def _resolved(cls: type, annotation: object, dependencies: Mapping[type[Any], object]) -> object:
    """The annotation as a type. A name that its module imports for type checkers only may be that of a dependency's
    type, or of a class that this comes from."""
    keys = [key for key in dependencies if inspect.isclass(key)]
    known = {base.__name__: base for key in keys for base in inspect.getmro(key)} | {key.__name__: key for key in keys}
    constructor = inspect.unwrap(cls.__init__)  # type: ignore[misc]
    module = getattr(constructor, "__globals__", None) or vars(sys.modules[cls.__module__])
    holder = types.SimpleNamespace(__annotations__={"it": annotation})
    return get_type_hints(holder, globalns={**known, **module})["it"]


def _choices(annotation: object) -> tuple[object, ...]:
    if get_origin(annotation) is Annotated:
        return _choices(get_args(annotation)[0])
    return get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else (annotation,)


def _provided(wanted: object, dependencies: Mapping[type[Any], object]) -> list[object]:
    """The dependency of exactly this type, or else those whose types are subclasses of it."""
    for key, value in dependencies.items():
        if key == wanted:
            return [value]
    if not inspect.isclass(wanted) or wanted in (object, type(None)) or getattr(wanted, "_is_protocol", False):
        return []
    fitting = (value for key, value in dependencies.items() if _is_a(key, wanted) or isinstance(value, wanted))
    return list({id(value): value for value in fitting}.values())


def _is_a(key: object, wanted: type) -> bool:
    return inspect.isclass(key) and issubclass(key, wanted)


def _name(wanted: object) -> str:
    return getattr(wanted, "__name__", None) or str(wanted)


def _described(found: object) -> str:
    return f"the class {found.__name__}" if inspect.isclass(found) else f"of the type {type(found).__name__}"
