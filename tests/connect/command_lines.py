"""Command lines of the connector that run in the process of the tests."""

from clawbridge.connect.__main__ import main

FEATURES = ["cancel", "task_artifact", "task_status"]  # of a hub that takes more than text


def refused(capsys, *arguments):
    """The one line of a command line that cannot begin."""
    try:
        status = main(arguments)
    except SystemExit as ended:
        status = ended.code
    errors = capsys.readouterr().err
    assert (status, errors.count("\n")) == (2, 1), errors
    return errors
