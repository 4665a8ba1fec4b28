"""What the hub makes of the words of a venue, without I/O."""

import pytest

from agnt.service.asks.replies import VenueFailed, read_confirmation


@pytest.mark.parametrize("name", ["slot_id", "slot_time", "note"])
@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_database_keeps_is_no_confirmation(name: str, text: str) -> None:
    with pytest.raises(VenueFailed) as failure:
        read_confirmation({"status": "confirmed", name: text})
    assert failure.value.counts
