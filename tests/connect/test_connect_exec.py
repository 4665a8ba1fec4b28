"""`--exec`: a program's output as the reply."""

import sys


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


async def test_the_question_is_a_file_a_variable_and_no_secret(online):
    script = 'cat /dev/stdin; echo "|$CLAWBRIDGE_CHAT_ID|$CLAWBRIDGE_ASKER|$CLAWBRIDGE_TOKEN|"'
    visit = await online("--exec", "sh", "-c", script)
    assert await visit.answer("ü?", chat_id="c-9", askerUser="alice") == "ü?|c-9|alice||\n"
    assert await visit.answer("ü?", chat_id="c-9") == "ü?|c-9|||\n"


async def test_a_failing_command_says_so_at_the_end(online):
    script = "cat; head -c 900 /dev/zero | tr '\\0' x >&2; echo end >&2; exit 3"
    visit = await online("--exec", "sh", "-c", script)
    text = await visit.answer("partial")
    head, failure, complaint = text.split("\n")
    assert (head, failure) == ("partial", "command failed with exit status 3")
    assert complaint == "x" * 496 + "end"


async def test_a_failure_without_output_stands_alone(online):
    visit = await online("--exec", "sh", "-c", "kill -9 $$")
    assert await visit.answer("hi") == "command was killed by signal 9"


async def test_a_missing_command_is_a_reply(online):
    visit = await online("--exec", "no-such-program", "--flag")
    assert await visit.answer("hi") == "command not found: no-such-program"


async def test_a_command_may_ignore_its_input(online):
    visit = await online("--exec", "echo", "done")
    assert await visit.answer("x" * 700_000) == "done\n"


async def test_broken_utf8_and_nul_become_replacement_characters(online):
    visit = await online("--exec", "sh", "-c", r"printf 'a\377\000\303'; sleep 0.2; printf '\251'")
    assert await visit.answer("hi") == "a\ufffd\ufffdé"


async def test_a_megabyte_fits_the_hubs_caps(online):
    visit = await online("--exec", sys.executable, "-c", "print('é' * 500_000, end='')")
    await visit.ask("go")
    chunks = await visit.chunks()
    assert "".join(chunks) == "é" * 500_000
    assert len(chunks) < 1000
    assert max(len(chunk.encode()) for chunk in chunks) <= 64_000


async def test_more_than_a_megabyte_is_cut_and_the_command_ended(online):
    visit = await online("--exec", "yes")
    text = await visit.answer("go")
    assert len(text) < 1_000_100
    assert text.endswith("\nthe reply was cut: it is longer than 1000000 bytes")


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
