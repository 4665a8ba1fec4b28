"""The size and shape of the code base stay bounded: `python -m lab.measure --names` says what each figure counts.

A bound is what was reached. Lower it when a figure falls; raise it only with a reason in the commit.
"""

from pathlib import Path

import pytest

from lab import measure
from lab.bench import targets
from lab.hub_storage import MakeStorage
from lab.measure import Figure, Module

STATIC = {
    "modules in agents/": 124,
    "thin modules (one importer, under 70 lines)": 25,
    "lines of a module, median": 130,
    "lines of a module, 95th percentile": 350,
    "unnamed people in code": 0,
    "unnamed people in docs": 0,
    "metaphors in docs": 0,
    "settings read outside hub": 0,
    "NotImplementedError raised": 0,
    "described* modules": 5,
    "request guards": 4,
    "modules with SQL by hand outside its rooms": 0,
}
RUNNING = {
    "modules of a REST PATCH": 12,
    "functions of a REST PATCH": 46,
    "modules of a webhook delivery": 9,
}


def check_bounds(figures: list[Figure], bounds: dict[str, float]) -> None:
    found = {one.name: one for one in figures}
    for name, bound in bounds.items():
        assert found[name].value <= bound, f"{name}: {found[name].value:g}, not at most {bound:g}"


def test_the_code_base_is_cut_no_finer_than_it_was() -> None:
    check_bounds(measure.static_figures(), STATIC)


@pytest.mark.deep
def test_a_patch_and_a_delivery_run_through_no_more_than_they_did(
    make_storage: MakeStorage, tmp_path: Path
) -> None:
    env = targets.environment(tmp_path) | make_storage("embedded").env
    check_bounds(measure.requests_run(env), RUNNING)


def test_a_thin_module_has_one_importer_and_few_lines() -> None:
    modules = [
        Module("kit/thin.py", "x = 1\n"),
        Module("kit/shared.py", "x = 1\n"),
        Module("kit/long.py", "x = 1\n" * measure.THIN_LINES),
        Module("hub/one.py", "from kit import long, shared, thin\n"),
        Module("hub/two.py", 'NAMED = "kit.shared.x"\n'),
    ]
    assert measure.thin_modules(modules) == ["kit.thin (1) <- hub.one"]


def test_settings_are_counted_by_the_name_they_were_imported_by() -> None:
    text = "from django.conf import settings as chosen\nchosen.DEBUG\ngetattr(chosen, name)\nsettings.DEBUG\n"
    assert measure.settings_reads(Module("kit/reads.py", text)) == 2
