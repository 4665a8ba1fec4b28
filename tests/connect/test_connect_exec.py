"""`--exec`: a program's output as the reply."""

import sys

PRINTS_A_MEGABYTE = f"exec {sys.executable} -c 'print(chr(233) * 500_000, end=str())'"
CASES = f"""
case "$CLAWBRIDGE_ASKER" in
fail) cat; head -c 900 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 3;;
die) kill -9 $$;;
ignore) echo done;;
broken) printf 'a\\377\\000\\303'; sleep 0.2; printf '\\251';;
megabyte) {PRINTS_A_MEGABYTE};;
endless) exec yes;;
*) cat /dev/stdin; echo "|$CLAWBRIDGE_CHAT_ID|$CLAWBRIDGE_ASKER|$CLAWBRIDGE_TOKEN|";;
esac
"""


async def test_what_a_command_reads_and_prints_and_how_it_ends(online):
    """The question is a file and a variable; the command gets no secret, and may ignore its input."""
    visit = await online("--exec", "--", "sh", "-c", CASES)
    assert await visit.answer("ü?", chat_id="c-9", askerUser="alice") == "ü?|c-9|alice||\n"
    assert await visit.answer("ü?", chat_id="c-9") == "ü?|c-9|||\n"
    failed = f"partial\ncommand failed with exit status 3\n{'x' * 496}end"
    assert await visit.answer("partial", askerUser="fail") == failed
    assert await visit.answer("hi", askerUser="die") == "command was killed by signal 9"
    assert await visit.answer("x" * 700_000, askerUser="ignore") == "done\n"
    assert await visit.answer("hi", askerUser="broken") == "a\ufffd\ufffdé"
    await visit.ask("go", askerUser="megabyte")
    chunks = await visit.chunks()
    assert "".join(chunks) == "é" * 500_000
    assert len(chunks) < 1000
    assert max(len(chunk.encode()) for chunk in chunks) <= 64_000
    text = await visit.answer("go", askerUser="endless")
    assert len(text) < 1_000_100
    assert text.endswith("\nthe reply was cut: it is longer than 1000000 bytes")


async def test_a_missing_command_is_a_reply(online):
    visit = await online("--exec", "no-such-program", "--flag")
    assert await visit.answer("hi") == "command not found: no-such-program"


async def test_output_arrives_in_pieces_before_the_end(online, tmp_path):
    go_on = tmp_path / "go-on"
    script = f"cat; until [ -e {go_on} ]; do sleep 0.05; done; echo ' second'"
    visit = await online("--exec", "--", "sh", "-c", script)
    await visit.ask("first")
    first = await visit.receive()
    assert first["eventType"] == "reply_chunk"
    assert first["payload"] == {"chatId": "c1", "text": "first", "done": False}
    go_on.touch()
    assert await visit.chunks() == [" second\n"]


async def test_two_questions_are_answered_at_once(online, tmp_path):
    script = f"cd {tmp_path}; touch $CLAWBRIDGE_CHAT_ID; until [ -e a -a -e b ]; do sleep 0.05; done; cat"
    visit = await online("--exec", "sh", "-c", script)
    await visit.ask("one", "a")
    await visit.ask("two", "b")
    payloads = [(await visit.receive())["payload"] for _ in range(4)]
    texts = {payload["chatId"]: payload["text"] for payload in payloads if not payload["done"]}
    assert texts == {"a": "one", "b": "two"}


async def test_a_lost_socket_ends_stubborn_commands_and_their_children(online, lifeline):
    script = f"exec 9> {lifeline.path}; trap '' TERM; echo on; sleep 60 & sleep 60"
    visit = await online("--exec", "sh", "-c", script)
    await visit.ask("go")
    await visit.receive()
    visit.socket.transport.abort()
    await lifeline.all_gone()
