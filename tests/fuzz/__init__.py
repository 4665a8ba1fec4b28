"""Generated requests and frames for each wire of a running hub. Hypothesis draws them from the hub's descriptions.

Nothing may be answered with an undescribed 5xx, end the process, hang, or leave a line of level ERROR in the log.
"""
