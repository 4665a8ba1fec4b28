"""The hub sends no request to a forbidden address, whatever the URL, the name or the answer says."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kit.safe_http import NotSent, SafeHttp, TargetRules, Unanswered, join_url
from kit.safe_http.client import CHECK_WITHIN_S, TOTAL_S
from kit.safe_http.target import is_public
from lab.receivers import Canary, Received, receiving, talking
from tests.webhooks.certificates import make_tls

TRIES = 4  # of names that the system looks up, each a quarter of a second
OWN_NETWORK = TargetRules(allows_private=True)
HIDDEN_ADDRESSES = [
    *("127.0.0.1", "127.0.0.53", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255"),
    *("172.16.0.1", "172.31.255.254", "192.168.0.1", "192.168.255.255", "169.254.169.254", "169.254.170.2"),
    *("100.64.0.1", "100.100.100.200", "100.127.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1"),
    *("192.88.99.1", "198.18.0.1", "198.19.255.255", "198.51.100.7", "203.0.113.9", "224.0.0.1"),
    *("239.255.255.250", "240.0.0.1", "255.255.255.255", "168.63.129.16"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:8.8.8.8", "::127.0.0.1", "::ffff:0:127.0.0.1"),
    *("64:ff9b::7f00:1", "64:ff9b::8.8.8.8", "64:ff9b:1::1", "100::1", "2001::1", "2001:db8::1", "2001:10::1"),
    *("2002:7f00:1::", "2002:808:808::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1"),
    *("ff02::1", "fe80::1%1"),
]
PUBLIC_ADDRESSES = ["1.1.1.1", "8.8.8.8", "100.63.255.255", "100.128.0.0", "172.32.0.1", "2606:4700::1111"]
URLS = [  # each as it is, and the canary's port goes where {} stands
    *(f"https://{f'[{one}]' if ':' in one else one}:{{}}/" for one in HIDDEN_ADDRESSES if "%" not in one),
    *("https://localhost:{}/", "https://LOCALHOST:{}/", "https://localhost.:{}/", "https://127.0.0.1.:{}/"),
    *("https://2130706433:{}/", "https://0x7f000001:{}/", "https://0x7f.0.0.1:{}/", "https://0177.0.0.1:{}/"),
    *("https://017700000001:{}/", "https://127.1:{}/", "https://127.0.1:{}/", "https://0:{}/"),
    *("https://127。0。0。1:{}/", "https://127．0．0．1:{}/", "https://①②⑦.0.0.1:{}/", "https://[::1%25lo]:{}/"),
    *("https://[0:0:0:0:0:ffff:7f00:1]:{}/", "https://[::ffff:7f00:1]:{}/", "https://ip6-localhost:{}/"),
    *("http://127.0.0.1:{}/", "ftp://127.0.0.1:{}/", "file:///etc/passwd"),
    *("gopher://127.0.0.1:{}/", "//127.0.0.1:{}/", "https://user:word@127.0.0.1:{}/"),
    *("https://127.0.0.1:{}@hook.invalid/", "https://hook.invalid\\@127.0.0.1:{}/"),
    *("https://hook.invalid#@127.0.0.1:{}/", "https://127.0.0.1:{}\x00.hook.invalid/", "https:127.0.0.1:{}"),
    *("https://%31%32%37.0.0.1:{}/", "https://127.0.0.1%00:{}/", "https:///127.0.0.1:{}/"),
    *("HTTPS://127.0.0.1:{}/", "https://127.0.0.1:22/", "https://hook.invalid:6379/"),
    *("https://hook.invalid:0/", "https://hook.invalid:99999/"),
    *("", "https://", "https://[", "https://\ud800/", "https://" + "a" * 3000, "javascript:alert(1)"),
]

PIECES = st.sampled_from(
    [
        *("https://", "http://", "//", "[", "]", "::1", "::ffff:", "0x7f.1", "1.2.3.4"),
        *("a.example", ".", ":", ":443"),
        *("%", "%zone", "@", "\\", "/", "..", "?", "#", "xn--", "v1.x", "-", "_", "\t", "\n", "\0", " ", "a" * 64),
        *("\u2100", "\u3002", "\uff0e", "\udc80"),
    ]
)
ADDRESSES = st.lists(PIECES | st.text(max_size=4), max_size=8).map("".join) | st.text(max_size=40)


@pytest.fixture(scope="module")
def canary() -> Iterator[Canary]:
    canary = Canary()
    yield canary
    assert canary.close() == 0


def leads_to(*addresses: str) -> SafeHttp:
    """A client whose every name resolves to these, bound by the strict rules."""
    return SafeHttp(TargetRules(), resolve=lambda host, port: addresses)


def post(http: SafeHttp, url: str) -> int:
    return http.send("POST", url, headers={"Content-Type": "application/json"}, body=b"{}").status


@pytest.mark.parametrize("url", URLS, ids=ascii)
def test_no_byte_reaches_the_canary(canary: Canary, url: str) -> None:
    http = SafeHttp(TargetRules(ports=frozenset({443, canary.port})))
    for _ in range(TRIES):
        with pytest.raises(NotSent):
            post(http, url.replace("{}", str(canary.port)))
    with pytest.raises(NotSent):
        http.check(url.replace("{}", str(canary.port)))
    assert canary.visits == 0


def test_a_malformed_host_is_refused(subtests: pytest.Subtests) -> None:
    for rules in (TargetRules(), OWN_NETWORK):
        http = SafeHttp(rules, resolve=lambda host, port: PUBLIC_ADDRESSES)
        for url in ("[1.2.3.4]", "[::ffff:0x7f.1]", "[1.2.3.4x]", ".example.com"):
            with subtests.test(host=url), pytest.raises(NotSent):
                http.check(f"https://{url}/x")


@settings(max_examples=300)
@given(base=ADDRESSES, reference=ADDRESSES, start=st.sampled_from(["", "https://", "https://a.example/"]))
def test_any_text_as_an_address_is_accepted_or_refused(base: str, reference: str, start: str) -> None:
    """A URL that is accepted for one host is looked up as that host and joined to another without an error."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["8.8.8.8"]

    with contextlib.suppress(NotSent):
        SafeHttp(TargetRules(), resolve=resolve).check(start + base)
        assert len(asked[0]) <= 254
        assert asked[0] == asked[0].lower()
    with contextlib.suppress(NotSent):
        SafeHttp(OWN_NETWORK, resolve=resolve).check(join_url(start + base, reference))


def test_any_text_as_a_path_is_sent_or_refused() -> None:
    with receiving() as receiver:

        @settings(max_examples=40)
        @given(path=ADDRESSES)
        def send(path: str) -> None:
            with contextlib.suppress(NotSent):
                assert post(SafeHttp(OWN_NETWORK), f"http://127.0.0.1:{receiver.port}/{path}") == 204

        send()


def test_the_canary_would_notice() -> None:
    canary = Canary()
    with pytest.raises(Unanswered):
        post(SafeHttp(OWN_NETWORK), f"http://127.0.0.1:{canary.port}/")
    assert canary.close() == 1


def test_a_name_that_leads_inside_is_refused(subtests: pytest.Subtests) -> None:
    for address in HIDDEN_ADDRESSES:
        assert not is_public(address), address
        for addresses in ([address], [*PUBLIC_ADDRESSES, address]):  # one bad address among many is enough
            with (
                subtests.test(addresses=addresses),
                pytest.raises(NotSent, match="does not lead to public addresses alone"),
            ):
                leads_to(*addresses).check("https://hook.example/")
    for address in PUBLIC_ADDRESSES:
        leads_to(address).check("https://hook.example/")


def test_a_name_with_no_end_of_addresses_is_refused() -> None:
    with pytest.raises(NotSent):
        leads_to(*(f"8.8.{high}.{low}" for high in range(4) for low in range(100))).check("https://hook.example/")


def test_where_inner_names_are_allowed_the_first_of_many_addresses_are_tried() -> None:
    """As of a large identity provider, at which users sign in."""
    many = ["127.0.0.1", *(f"127.0.1.{number}" for number in range(1, 40))]
    with receiving() as receiver:
        assert post(SafeHttp(OWN_NETWORK, resolve=lambda host, port: many), receiver.url) == 204


def test_an_unknown_name_and_an_inner_one_read_the_same() -> None:
    said = []
    for http in (leads_to(), leads_to("10.0.0.7")):
        with pytest.raises(NotSent) as refused:
            http.check("https://intranet.example/")
        said.append(str(refused.value))
    assert said[0] == said[1] == "intranet.example cannot be found, or does not lead to public addresses alone"


def test_where_inner_names_are_allowed_an_unknown_one_is_said_to_be_that() -> None:
    with pytest.raises(NotSent) as refused:
        SafeHttp(OWN_NETWORK, resolve=lambda host, port: []).check("https://nowhere.example/")
    assert str(refused.value) == "nowhere.example cannot be found"


def test_a_name_that_changes_its_address_gains_nothing(canary: Canary) -> None:
    """Public when the webhook is made, private when it is sent."""
    answers = iter([["8.8.8.8"], ["127.0.0.1"]])
    http = SafeHttp(TargetRules(ports=frozenset({canary.port})), resolve=lambda host, port: next(answers))
    http.check(f"https://hook.example:{canary.port}/")
    with pytest.raises(NotSent):
        post(http, f"https://hook.example:{canary.port}/")
    assert canary.visits == 0


def test_a_name_is_looked_up_once_and_that_is_where_it_goes() -> None:
    asked: list[str] = []

    def resolve(host: str, port: int) -> Sequence[str]:
        asked.append(host)
        return ["127.0.0.1"]

    with receiving() as receiver:
        url = f"http://hook.example:{receiver.port}/there?x=1"
        assert post(SafeHttp(OWN_NETWORK, resolve=resolve), url) == 204
    assert asked == ["hook.example"]
    (one,) = receiver.received
    assert (one.path, one.headers["host"]) == ("/there?x=1", f"hook.example:{receiver.port}")
    assert one.body == b"{}"


def test_an_ipv6_host_is_written_in_brackets() -> None:
    with receiving() as receiver:
        http = SafeHttp(OWN_NETWORK, resolve=lambda host, port: ["127.0.0.1"])
        assert post(http, f"http://[::1]:{receiver.port}/") == 204
    assert receiver.received[0].headers["host"] == f"[::1]:{receiver.port}"


def test_the_certificate_must_be_for_the_name(tmp_path: Path) -> None:
    shown, trusted = make_tls(tmp_path, "hook.example")
    http = SafeHttp(OWN_NETWORK, resolve=lambda host, port: ["127.0.0.1"], tls=trusted)
    with receiving(tls=shown) as receiver:
        assert post(http, f"https://hook.example:{receiver.port}/") == 204
        with pytest.raises(Unanswered, match="certificate"):
            post(http, f"https://other.example:{receiver.port}/")
    assert len(receiver.received) == 1


def test_no_redirect_is_followed() -> None:
    statuses = [301, 302, 303, 307, 308]
    answers = iter(statuses)
    with receiving(lambda _: next(answers)) as receiver:
        assert [post(SafeHttp(OWN_NETWORK), receiver.url) for _ in statuses] == statuses
    assert len(receiver.received) == len(statuses)


def test_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    canary = Canary()
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "all_proxy"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{canary.port}")
    with receiving() as receiver:
        assert post(SafeHttp(OWN_NETWORK), receiver.url) == 204
    assert canary.close() == 0


def answer(connection: socket.socket, head: str, body: bytes = b"") -> None:
    connection.recv(65536)
    connection.sendall(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n".encode() + body)


def test_of_a_long_answer_only_the_beginning_is_read() -> None:
    sent = 0

    def flood(connection: socket.socket) -> None:
        nonlocal sent
        answer(connection, "Transfer-Encoding: chunked")
        for _ in range(10_000):
            connection.sendall(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
            sent += 0x4000

    with talking(flood) as port:
        got = SafeHttp(OWN_NETWORK).send("GET", f"http://127.0.0.1:{port}/", headers={})
    assert (got.status, len(got.body), got.is_cut) == (200, 65_536, True)
    assert sent < 16_000_000


def test_a_compressed_answer_stays_compressed() -> None:
    bomb = b"\x1f\x8b\x08" + b"\0" * 29
    with talking(lambda one: answer(one, "Content-Encoding: gzip\r\nContent-Length: 32", bomb)) as port:
        got = SafeHttp(OWN_NETWORK).send("GET", f"http://127.0.0.1:{port}/", headers={})
    assert (got.body, got.is_cut) == (bomb, False)


def drip(connection: socket.socket, start: bytes) -> None:
    """A byte at a time, far below any timeout of a single read."""
    connection.recv(65536)
    connection.sendall(start)
    while True:
        connection.sendall(b"a")
        time.sleep(0.02)


@pytest.mark.parametrize(
    "start", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\n"]
)
def test_an_answer_that_drips_ends_at_the_deadline(start: bytes) -> None:
    with talking(lambda one: drip(one, start)) as port:
        began = time.monotonic()
        with pytest.raises(Unanswered, match="within"):
            post(SafeHttp(OWN_NETWORK, total_s=0.5), f"http://127.0.0.1:{port}/")
    assert 0.4 < time.monotonic() - began < 5


def test_a_receiver_that_reads_nothing_ends_at_the_deadline() -> None:
    left = threading.Event()
    with talking(lambda one: left.wait(30) and None) as port:
        began = time.monotonic()
        with pytest.raises(Unanswered, match="within"):
            SafeHttp(OWN_NETWORK, total_s=0.5).send(
                "POST", f"http://127.0.0.1:{port}/", headers={}, body=b"x" * 50_000_000
            )
        left.set()
    assert time.monotonic() - began < 5


def test_a_name_that_is_never_answered_ends_at_the_deadline() -> None:
    late = threading.Event()

    def resolve(host: str, port: int) -> Sequence[str]:
        late.wait(30)
        return []

    began = time.monotonic()
    with pytest.raises(Unanswered):
        post(SafeHttp(TargetRules(), resolve=resolve, total_s=0.2), "https://hook.example/")
    for deadline in ({"total_s": 0.2}, {"check_within_s": 0.2}):
        with pytest.raises(NotSent, match="in time"):
            SafeHttp(TargetRules(), resolve=resolve, **deadline).check("https://hook.example/")
    assert time.monotonic() - began < 10
    late.set()
    assert CHECK_WITHIN_S < 5 < TOTAL_S  # clients in use give up after 5 s


def test_no_server_there_and_nonsense_are_failures() -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with pytest.raises(Unanswered, match="connection"):
        post(SafeHttp(OWN_NETWORK), f"http://127.0.0.1:{port}/")
    with (
        talking(lambda one: one.recv(65536) and one.sendall(b"SSH-2.0-hello\r\n\r\n")) as talker,
        pytest.raises(Unanswered, match="not HTTP"),
    ):
        post(SafeHttp(OWN_NETWORK), f"http://127.0.0.1:{talker}/")


def test_a_dead_address_leaves_time_for_the_next() -> None:
    with receiving() as receiver:
        http = SafeHttp(OWN_NETWORK, resolve=lambda host, port: ["127.0.0.2", "127.0.0.1"])
        assert post(http, receiver.url) == 204


def test_who_answers_before_reading_is_heard() -> None:
    def early(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
        connection.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while connection.recv(65536):
                pass

    with talking(early) as port:
        got = SafeHttp(OWN_NETWORK).send("POST", f"http://127.0.0.1:{port}/", headers={}, body=b"x" * 3_000_000)
    assert got.status == 413


def test_who_answers_and_leaves_without_reading_is_heard(tmp_path: Path) -> None:
    """The server resets the connection while the hub still sends; its answer came before that."""
    shown, trusted = make_tls(tmp_path, "hook.example")

    def leave(connection: socket.socket) -> None:
        connection.recv(10)
        connection.sendall(b"HTTP/1.1 202 Accepted\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")

    def leave_tls(connection: socket.socket) -> None:
        with shown.wrap_socket(connection, server_side=True) as encrypted:
            leave(encrypted)

    http = SafeHttp(OWN_NETWORK, resolve=lambda host, port: ["127.0.0.1"], tls=trusted)
    for talk, scheme in ((leave, "http"), (leave_tls, "https")):
        with talking(talk) as port:
            for _ in range(5):
                url = f"{scheme}://hook.example:{port}/"
                got = http.send("POST", url, headers={"Content-Length": "9000000"}, body=b"x" * 9_000_000)
                assert (got.status, got.body) == (202, b"done")


def test_a_receiver_sees_what_was_sent() -> None:
    seen: list[Received] = []
    with receiving(lambda one: seen.append(one) or 200) as receiver:
        SafeHttp(OWN_NETWORK).send("POST", receiver.url, headers={"X-Mine": "yes"}, body=b"\x00\xff")
    assert (seen[0].headers["x-mine"], seen[0].body) == ("yes", b"\x00\xff")
