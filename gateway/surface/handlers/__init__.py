"""The handlers, one for each type of frames. A handler gets the client and the checked envelope."""
