"""What `lab.bench.completions` makes of its runs."""

from lab.bench.completions import report
from tests.bench.runs import run


def test_the_ratio_is_that_of_the_median_round() -> None:
    # A round in which all was slow counts as much as the others.
    rounds = [(run(1000), run(900)), (run(100), run(85)), (run(1000), run(100))]
    result = report({"embedded, unary": rounds, "embedded, stream": [(run(100), run(79))]}, 3)
    goals = {goal[0].partition(":")[0]: goal[-2:] for goal in result.goals}
    assert goals == {"embedded, unary": ["0.85", "met"], "embedded, stream": ["0.79", "NOT MET"]}
