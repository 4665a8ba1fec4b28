"""Skills as text: what is written is read again as it was."""

from agents.pages import card_fields

FULL = {
    "id": "sum",
    "name": "Sum: up",
    "description": "One.\n\n  Two.\nid: three",
    "tags": ["a", "b, c"],
    "examples": ["Sum up\nthis"],
    "inputModes": ["text/plain"],
    "outputModes": ["text/plain", "image/png"],
}


def test_what_is_written_is_read_as_it_was() -> None:
    for skills in [[], [{"id": "a", "name": "A"}], [FULL, {"id": "b", "name": "B"}]]:
        assert card_fields.read_skills(card_fields.write_skills(skills)) == skills, skills
        assert card_fields.read_skills(card_fields.write_skills(skills).replace("\n", "\r\n")) == skills, skills


def test_keys_are_of_any_case_and_spaces_around_them_do_not_count() -> None:
    assert card_fields.read_skills("\n ID : a\n\nName:A \n") == [{"id": "a", "name": "A"}]
