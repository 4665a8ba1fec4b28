"""What `lab.bench.completions` makes of its runs."""

from lab.bench.completions import text
from tests.bench.runs import run


def test_the_ratio_is_that_of_the_median_round() -> None:
    # A round in which all was slow counts as much as the others.
    rounds = [(run(1000), run(900)), (run(100), run(85)), (run(1000), run(100))]
    shown = text({"embedded, unary": rounds, "embedded, stream": [(run(100), run(79))]}).splitlines()
    goals = {line.partition(":")[0]: line.split()[-2:] for line in shown if "at least" in line}
    assert goals == {"embedded, unary": ["0.85", "met"], "embedded, stream": ["NOT", "MET"]}
