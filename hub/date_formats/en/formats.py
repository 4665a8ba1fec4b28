"""The formats in which Django writes dates and times where a template names none: in the admin."""

DATE_FORMAT = SHORT_DATE_FORMAT = "j M Y"
TIME_FORMAT = "H:i:s"
DATETIME_FORMAT = SHORT_DATETIME_FORMAT = "j M Y, H:i:s T"  # T: the time zone, which is UTC
YEAR_MONTH_FORMAT = "M Y"
MONTH_DAY_FORMAT = "j M"
