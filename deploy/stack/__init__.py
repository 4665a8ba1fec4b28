"""`make run-stack`: runs the processes of a production hub on this machine, as children of one command."""
