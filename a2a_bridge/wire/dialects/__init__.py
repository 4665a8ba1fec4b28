"""The dialects, each a folder: the reading of its requests, the rendering of answers, and the description of
both.
"""
