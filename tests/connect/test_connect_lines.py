"""`--protocol lines`, cancels, and answers that are more than text; new hubs take them, older ones do not."""

import asyncio
import json
import sys
import textwrap

import pytest

from clawbridge.connect import Artifact, AuthRequired, Failed, InputRequired, Rejected, Status, Usage
from clawbridge.connect.frames import Question
from clawbridge.connect.lines import Lines, read_line
from clawbridge.connect.replies import ProgramReply
from tests.connect.command_lines import FEATURES


@pytest.fixture
def program(tmp_path):
    """A Python program that speaks lines, from its body; `say` prints an object, `question` is the first line."""

    def program(body):
        path = tmp_path / "program.py"
        head = """\
            import json, os, sys, time
            def say(**line): print(json.dumps(line), flush=True)
            question = json.loads(sys.stdin.readline())
        """
        path.write_text(textwrap.dedent(head) + textwrap.dedent(body))
        return "--protocol", "lines", "--exec", "--", sys.executable, str(path)

    return program


async def told(visit, count, chat_id="c1"):
    """The next chat events, so many: their types and payloads without chat ids."""
    events = [await visit.receive() for _ in range(count)]
    assert {event["payload"].pop("chatId") for event in events} == {chat_id}
    return [(event["eventType"], event["payload"]) for event in events]


async def test_a_program_says_all_there_is_to_say(online, program):
    visit = await online(
        *program("""
            if question["text"] != "hi":
                print("begun")
                say(type="usage", costUsd=1)
                say(type=question["text"], text="words")
                sys.exit(3)
            say(type="status", text="reading", metadata={"step": 1})
            say(type="text", text="one ")
            print("two")
            say(type="artifact", artifactId="a1", parts=[{"data": {"n": [1, None]}}], name="n", lastChunk=True)
            say(type="artifact", artifactId="a1", parts=[{"text": "more"}], append=True)
            say(type="input_required", text="which one?")
            say(type="text", text="no caller gets this")
        """),
        features=FEATURES,
    )
    await visit.ask("hi")
    artifact = {"artifactId": "a1", "parts": [{"data": {"n": [1, None]}}], "name": "n", "lastChunk": True}
    assert await told(visit, 5) == [
        ("task_status", {"state": "working", "text": "reading", "metadata": {"step": 1}}),
        ("reply_chunk", {"text": "one two\n", "done": False}),
        ("task_artifact", artifact),
        ("task_artifact", {"artifactId": "a1", "parts": [{"text": "more"}], "append": True}),
        ("task_status", {"state": "input_required", "text": "which one?"}),
    ]
    for state in ("auth_required", "failed", "rejected", "input_required"):
        await visit.ask(state, state)
        assert await told(visit, 2, state) == [
            ("reply_chunk", {"text": "begun\n", "done": False}),
            ("task_status", {"state": state, "text": "words", "usage": {"costUsd": 1}}),
        ]


async def test_the_question_is_a_line_and_the_environment(online, program):
    visit = await online(
        *program("""
            names = ("CHAT_ID", "ASKER", "TASK_ID", "CONTEXT_ID", "MESSAGE_ID", "TOKEN")
            env = [os.environ.get("CLAWBRIDGE_" + name) for name in names]
            say(type="text", text=json.dumps([question, env, os.environ.get("TRACEPARENT")]))
        """),
        features=FEATURES,
    )
    parts = [{"text": "ü?"}, {"url": "https://files.example/x"}]
    more = {"taskId": "T", "contextId": "C", "messageId": "M", "parts": parts}
    more |= {"askerUser": "alice", "traceparent": "00-ab-cd-01"}
    line, env, trace = json.loads(await visit.answer("ü?", **more))
    assert line == {"type": "question", "text": "ü?", "chatId": "c1", "taskId": "T"} | {
        "contextId": "C",
        "messageId": "M",
        "parts": parts,
        "asker": "alice",
    }
    assert env == ["c1", "alice", "T", "C", "M", None]
    assert trace == "00-ab-cd-01"
    line, env, trace = json.loads(await visit.answer("plain"))
    assert (line["parts"], line["taskId"], env[2], trace) == ([{"text": "plain"}], "", "", None)


async def test_an_unknown_line_is_left_out_and_other_text_is_text(online, program):
    visit = await online(
        *program("""
            say(type="dance")
            say(type="status")
            say(type="status", text=" ")
            say(type="artifact", artifactId="a", parts="x")
            print("[1]")
            print('{"a": 1}')
            print('{"type": "text", ')
            print("")
            sys.stdout.write("no newline")
        """),
        features=FEATURES,
    )
    assert await visit.answer("hi") == '[1]\n{"a": 1}\n{"type": "text", \n\nno newline'


async def test_a_cancel_is_a_line_and_then_time_to_end(online, program, tmp_path):
    visit = await online(
        *program(f"""
            sys.stdout.write("begun")
            sys.stdout.flush()
            line = sys.stdin.readline()
            say(type="text", text="too late to say anything")
            open({str(tmp_path / "left")!r}, "w").write(line)
        """),
        features=FEATURES,
    )
    await visit.ask("hi")
    assert await told(visit, 1) == [("reply_chunk", {"text": "begun", "done": False})]  # before its line ends
    await visit.send(type="cancel", chatId="c1")
    assert await told(visit, 1) == [("task_status", {"state": "failed", "text": "canceled"})]
    assert json.loads((tmp_path / "left").read_text()) == {"type": "cancel"}


async def test_a_cancel_ends_a_program_that_speaks_text(online, lifeline):
    visit = await online(
        "--exec", "sh", "-c", f"exec 9> {lifeline.path}; echo on; sleep 60 & sleep 60", features=FEATURES
    )
    await visit.ask("hi")
    await told(visit, 1)
    await visit.send(type="cancel", chatId="c1")
    await lifeline.all_gone()
    assert await told(visit, 1) == [("task_status", {"state": "failed", "text": "canceled"})]


async def test_a_cancel_of_something_else_changes_nothing(online):
    visit = await online("--exec", "sh", "-c", "read line; echo $line", features=FEATURES)
    await visit.send(type="cancel", chatId="other")
    assert await visit.answer("hi\n") == "hi\n"
    await visit.send(type="cancel", chatId="c1")
    await visit.send(type="cancel", chatId=7)
    assert await visit.answer("again\n") == "again\n"


async def test_a_question_in_line_is_canceled_before_it_begins(library):
    begun, go_on = [], asyncio.Event()

    async def answer(question):
        begun.append(question.chat_id)
        await go_on.wait()
        yield "ok"

    visit = await library(answer, features=FEATURES, streams=False)
    for number in range(21):
        await visit.ask("hi", f"c{number}")
    await visit.send(type="cancel", chatId="c20")
    payload = (await visit.receive())["payload"]
    assert (payload["chatId"], payload["state"]) == ("c20", "failed")
    go_on.set()
    assert {(await visit.receive())["payload"]["chatId"] for _ in range(20)} == set(begun)


async def test_a_failing_command_fails_its_task(online):
    visit = await online("--exec", "sh", "-c", "printf partial; echo why >&2; exit 3", features=FEATURES)
    await visit.ask("hi")
    assert await told(visit, 2) == [
        ("reply_chunk", {"text": "partial", "done": False}),
        ("task_status", {"state": "failed", "text": "command failed with exit status 3\nwhy"}),
    ]


async def test_the_caller_learns_that_a_program_of_text_gets_no_file(online):
    parts = [{"text": "see"}, {"raw": "YQ==", "mediaType": "image/png"}, {"url": "https://files.example/x"}]
    visit = await online("--exec", "cat", features=FEATURES)
    await visit.ask("see\n\nfile (part 2)", parts=parts)
    left_out = ["message.parts[1]"]
    text = "Left out, the agent reads text alone: message.parts[1]"
    assert await told(visit, 3) == [
        ("task_status", {"state": "working", "text": text, "metadata": {"leftOut": left_out}}),
        ("reply_chunk", {"text": "see\n\nfile (part 2)", "done": False}),
        ("reply_chunk", {"text": "", "done": True}),
    ]


@pytest.mark.parametrize("features", [[], ["task_status"], None, "task_status", [7]])
async def test_an_older_hub_gets_text(library, features):
    async def answer(question):
        yield Status(text="left out")
        yield "so far"
        yield Artifact(artifact_id="a", parts=[{"text": "result"}, {"data": 1}])
        yield Artifact(artifact_id="b", parts=[{"raw": "YQ==", "filename": "b.png"}, {"url": "https://c"}])
        yield InputRequired("which one?")

    visit = await library(answer, features=features)
    await visit.ask("hi")
    expected = "so far\nresult\n1\n[left out: a file, b.png]\nhttps://c\nwhich one?"
    assert "".join(await visit.chunks()) == expected


@pytest.mark.parametrize("end", [InputRequired("x"), AuthRequired("x"), Failed("x"), Rejected("x")])
async def test_a_whole_answer_with_another_end_comes_in_pieces(library, end):
    async def answer(question):
        yield "one "
        yield Status(text="note")
        yield Artifact(artifact_id="a", parts=[{"text": "t\0"}])
        yield "two"
        yield end
        raise AssertionError("asked for more after the end")

    visit = await library(answer, features=FEATURES, streams=False)
    await visit.ask("hi")
    assert await told(visit, 4) == [
        ("task_status", {"state": "working", "text": "note"}),
        ("task_artifact", {"artifactId": "a", "parts": [{"text": "t\ufffd"}]}),
        ("reply_chunk", {"text": "one two", "done": False}),
        ("task_status", {"state": end.state, "text": "x"}),
    ]


async def test_words_are_made_to_fit(library):
    async def answer(question):
        yield Status(text="é" * 20_000, metadata={"a\0": ["\ud800"]})
        yield InputRequired(" ")

    visit = await library(answer, features=FEATURES)
    await visit.ask("hi")
    [(_, note), (_, asked)] = await told(visit, 2)
    assert note["text"] == "é" * 8_000
    assert note["metadata"] == {"a\ufffd": ["?"]}
    assert asked == {"state": "input_required", "text": "input required"}


async def test_a_flood_of_notes_leaves_room_for_the_reply(library):
    async def answer(question):
        for number in range(3000):
            yield f"{number} "
            yield Status(text=str(number))
        yield Artifact(artifact_id="a", parts=[{"text": "t"}])

    visit = await library(answer, features=FEATURES)
    await visit.ask("hi")
    pieces = []
    while not pieces or not pieces[-1][1].get("done"):
        pieces += await told(visit, 1)
    assert len(pieces) < 1000
    texts = [payload["text"] for type_, payload in pieces if type_ == "reply_chunk"]
    assert "".join(texts) == "".join(f"{number} " for number in range(3000))
    assert [type_ for type_, _ in pieces].count("task_artifact") == 1


@pytest.mark.parametrize("streams", [True, False])
async def test_too_many_artifacts_fail_before_the_hub_says_so(library, streams):
    async def answer(question):
        for number in range(3000):
            yield Artifact(artifact_id=f"a{number}", parts=[{"text": "t"}])

    visit = await library(answer, features=FEATURES, streams=streams)
    await visit.ask("hi")
    count = 0
    while (event := await visit.receive())["eventType"] == "task_artifact":
        count += 1
    assert count < 1000
    assert event["payload"]["text"] == "the reply was cut: it has too many artifacts"


async def test_artifacts_count_toward_the_size_of_a_reply(library):
    async def answer(question):
        yield Artifact(artifact_id="a", parts=[{"raw": "QUFB" * 150_000}])
        yield Artifact(artifact_id="b", parts=[{"raw": "QUFB" * 150_000}])

    visit = await library(answer, features=FEATURES)
    await visit.ask("hi")
    [(first, _), (_, failed)] = await told(visit, 2)
    assert first == "task_artifact"
    assert failed == {"state": "failed", "text": "the reply was cut: it is longer than 1000000 bytes"}


def test_output_may_be_cut_anywhere():
    line = '  {"type":"status","text":"é"}\n'
    whole = f"text\n{line}more"
    for at in range(len(whole)):
        lines = Lines()
        said = [*lines.feed(whole[:at]), *lines.feed(whole[at:]), *lines.finish()]
        assert [one for one in said if not isinstance(one, str)] == [Status(text="é")]
        assert "".join(one for one in said if isinstance(one, str)) == "text\nmore"


def test_what_is_no_line_is_text():
    for line in ("", "[" * 100_000, "{" * 100_000, '{"type":7}', "null", "NaN"):
        assert read_line(line) == (line or None)


async def test_what_an_answer_used_goes_with_its_end(online, program):
    body = """
            say(type="usage", inputTokens=1)
            print("one")
            say(type="usage", inputTokens=1200, costUsd=0.042)
            say(type="usage", costUsd=-1)
        """
    visit = await online(*program(body), features=FEATURES)
    await visit.ask("go")
    events = [await visit.receive()]
    while events[-1]["eventType"] == "reply_chunk" and not events[-1]["payload"]["done"]:
        events.append(await visit.receive())
    assert events[-1]["payload"]["usage"] == {"inputTokens": 1200, "costUsd": 0.042}
    assert not any("usage" in event["payload"] for event in events[:-1])


async def test_a_whole_reply_has_what_it_used():
    sent = []

    async def send(text):
        sent.append(json.loads(text)["payload"])

    async def answer(question):
        yield Usage(cost_usd=0.5)
        yield question.text

    await ProgramReply(Question(chat_id="c1", text="so"), send, takes_more=True).send_whole(answer)
    assert sent == [{"chatId": "c1", "text": "so", "usage": {"costUsd": 0.5}}]


def test_usage_that_the_hub_would_refuse_is_an_error_at_once(subtests):
    for wrong in ({"cost_usd": -1}, {"cost_usd": 10_001}, {"input_tokens": 1.5}, {"cost_usd": True}):
        with subtests.test(usage=wrong), pytest.raises(ValueError, match="want a number from 0"):
            Usage(**wrong)
    assert read_line('{"type":"usage","costUsd":"free"}') is None
