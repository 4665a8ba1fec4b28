"""`make run-stack`: the production shape on this machine, all of it children of one command."""
