"""The frames of the prototype's own client and gateway: records them, and compares them with those of a hub."""
