"""What is done with each type of frames. A handler gets the client and the checked envelope."""
