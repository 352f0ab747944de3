"""Every template writes what the vendor's own writes, byte for byte, nonsense included, and raises where it raises."""

import copy

import pytest

from dialects.templates import FAMILIES, TemplateError
from tests.template_cases import CASES, FOLDER, Case

WRITTEN = [case for case in CASES if case.text is not None]
RAISING = [case for case in CASES if case.text is None]


def name_of(case: Case) -> str:
    return f"{case.template}-{case.id}"


@pytest.mark.parametrize("case", WRITTEN, ids=name_of)
def test_a_conversation_is_written_byte_for_byte(case: Case) -> None:
    before = copy.deepcopy((case.messages, case.tools))
    assert case.render() == case.text
    assert (case.messages, case.tools) == before


@pytest.mark.parametrize("case", RAISING, ids=name_of)
def test_where_the_vendors_template_raises_ours_does_and_normalised_it_does_not(case: Case) -> None:
    with pytest.raises(TemplateError) as caught:
        case.render()
    assert caught.value.path is not None
    assert caught.value.path.startswith(("messages", "tools"))
    assert case.render(normalise=True)


def test_every_template_has_cases_and_every_case_a_template() -> None:
    """A template that nobody has recorded, or a record without its template, is a mistake."""
    named = {(family.dialect, template.name) for family in FAMILIES for template in family.templates}
    assert {(case.dialect, case.template) for case in CASES} == named
    files = {path.stem for path in FOLDER.glob("*.jsonl")} - {"conversations"}
    assert {family.dialect for family in FAMILIES} <= files
