"""The chat templates of models' vendors, byte for byte, without Jinja: one file a family, one table over them.

`FAMILIES` is the table. A family belongs to a dialect, and its pattern finds the ids of the dialect's models. Another
template of a family is another entry in the family's own `TEMPLATES`. A family's file is imported when it is needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pkgutil import resolve_name

from dialects.templates.conversation import write
from dialects.templates.template import OptionError, Template, TemplateError

__all__ = [
    "FAMILIES",
    "Family",
    "OptionError",
    "Template",
    "TemplateError",
    "dialect_of_template",
    "find_template",
    "templates_of",
    "tokens_of",
    "write",
]


@dataclass(frozen=True)
class Family:
    """The templates of the models that speak one dialect."""

    dialect: str
    models: str
    """A regular expression found (whatever the case) in the ids of the family's models, with a template or without."""
    where: str
    """Where its templates are, in the notation of an entry point."""
    rank: int = 0
    """Where several families find an id, those of the lowest rank answer. Below zero: models of other families were
    trained to speak this one's dialect, and keep their family's name in their ids."""

    @property
    def templates(self) -> tuple[Template, ...]:
        """Its templates, imported when they are first asked for."""
        templates: tuple[Template, ...] = resolve_name(self.where)
        return templates


FAMILIES = (
    Family("hermes", r"hermes", "dialects.templates.hermes:TEMPLATES", rank=-3),
    Family("deepseek", r"deepseek", "dialects.templates.deepseek:TEMPLATES", rank=-2),
    Family("qwen3", r"qwen[-_ ]?(?:2\.5|3(?![-_ ]?coder)(?!\.\d))|qwq", "dialects.templates.qwen3:TEMPLATES", rank=-1),
    Family("qwen3-coder", r"qwen[-_ ]?(?:3[-_ ]?coder|3\.[5-9])", "dialects.templates.qwen3_coder:TEMPLATES", rank=-1),
    Family("kimi", r"kimi[-_ ]?k2", "dialects.templates.kimi:TEMPLATES"),
    Family("glm", r"glm[-_ ]?[45]", "dialects.templates.glm:TEMPLATES"),
    Family("harmony", r"gpt[-_ ]?oss", "dialects.templates.harmony:TEMPLATES"),
    Family("minimax", r"minimax[-_ ]?m[23]", "dialects.templates.minimax:TEMPLATES"),
    Family("gemma", r"gemma[-_ ]?4", "dialects.templates.gemma:TEMPLATES"),
    Family(
        "mistral",
        r"mistral|ministral|magistral|devstral|mixtral|codestral|pixtral",
        "dialects.templates.mistral:TEMPLATES",
    ),
    Family("llama", r"llama[-_ ]?[34]", "dialects.templates.llama:TEMPLATES"),
    Family("kimi-k3", r"kimi[-_ ]?k3", "dialects.templates.kimi_k3:TEMPLATES"),
)

_BY_DIALECT: Mapping[str, Family] = {family.dialect: family for family in FAMILIES}


def templates_of(dialect: str) -> tuple[str, ...]:
    """The names of a dialect's templates; a dialect that this package has none for has none."""
    family = _BY_DIALECT.get(dialect)
    return tuple(template.name for template in family.templates) if family else ()


def tokens_of(dialect: str) -> tuple[str, ...]:
    """The control tokens that the templates of a dialect add to its own."""
    family = _BY_DIALECT.get(dialect)
    return tuple(token for template in family.templates for token in template.control_tokens) if family else ()


def dialect_of_template(name: str) -> str:
    """The dialect that has the template of that name. Raises `TemplateError`, which lists all that there are."""
    for family in FAMILIES:
        if name in templates_of(family.dialect):
            return family.dialect
    known = ", ".join(template.name for family in FAMILIES for template in family.templates)
    raise TemplateError(f"there is no template {name!r}; there are: {known}")


def find_template(dialect: str, name: str) -> Template:
    """A dialect's template of that name. Raises `TemplateError`, which lists those that exist."""
    family = _BY_DIALECT.get(dialect)
    for template in family.templates if family else ():
        if template.name == name:
            return template
    known = ", ".join(templates_of(dialect)) or "none"
    elsewhere = [other.dialect for other in FAMILIES if name in templates_of(other.dialect)]
    hint = f" (the dialect {elsewhere[0]!r} has it)" if elsewhere else ""
    raise TemplateError(f"the dialect {dialect!r} has no template {name!r}; it has: {known}{hint}")
