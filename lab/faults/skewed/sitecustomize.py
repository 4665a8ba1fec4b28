"""A wrong clock for one process: on its PYTHONPATH this runs before anything else, and adds the seconds in
CLOCK_OFFSET_FILE, a native double, to what `time.time` and `datetime.now` say. Writing the file steps the clock.
`time.monotonic`, and what C code asks of the kernel, stay as they are.
"""

import copyreg
import datetime
import mmap
import os
import time
from typing import Any

with open(os.environ["CLOCK_OFFSET_FILE"], "rb") as _file:
    OFFSET_S = memoryview(mmap.mmap(_file.fileno(), 8, access=mmap.ACCESS_READ)).cast("d")
TRUE_TIME, TRUE_TIME_NS, TrueDatetime, TrueDate = time.time, time.time_ns, datetime.datetime, datetime.date


class _IsTrue(type):
    """Counts the datetimes that C code makes, which are no subclasses of ours, as instances."""

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, cls.__bases__[0])

    def __subclasscheck__(cls, kind: type) -> bool:
        return issubclass(kind, cls.__bases__[0])


class _Skewed(TrueDatetime, metaclass=_IsTrue):
    def __new__(cls, *parts: Any, **named: Any) -> TrueDatetime:  # type: ignore[misc]
        return TrueDatetime(*parts, **named)  # C code takes no others

    @classmethod
    def now(cls, tz: datetime.tzinfo | None = None) -> TrueDatetime:
        return TrueDatetime.fromtimestamp(time.time(), tz)

    @classmethod
    def utcnow(cls) -> TrueDatetime:
        return TrueDatetime.fromtimestamp(time.time(), datetime.UTC).replace(tzinfo=None)

    @classmethod
    def today(cls) -> TrueDatetime:
        return TrueDatetime.fromtimestamp(time.time())


class _SkewedDate(TrueDate, metaclass=_IsTrue):
    def __new__(cls, *parts: Any, **named: Any) -> TrueDate:  # type: ignore[misc]
        return TrueDate(*parts, **named)

    @classmethod
    def today(cls) -> TrueDate:
        return TrueDate.fromtimestamp(time.time())


for skewed, true in ((_Skewed, TrueDatetime), (_SkewedDate, TrueDate)):
    skewed.__name__, skewed.__qualname__, skewed.__module__ = true.__name__, true.__qualname__, true.__module__
    copyreg.pickle(true, lambda moment, skewed=skewed: (skewed, moment.__reduce__()[1]))  # its name is ours now
time.time = lambda: TRUE_TIME() + OFFSET_S[0]
time.time_ns = lambda: TRUE_TIME_NS() + int(OFFSET_S[0] * 1e9)
datetime.datetime, datetime.date = _Skewed, _SkewedDate  # type: ignore[misc]
