"""The words of the bridge: tasks, requests, errors, and the dialects that read and write them."""
