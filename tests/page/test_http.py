"""The page by its HTTP interface: what it answers, what it refuses, and how it stays within its bounds."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import sys
import time
from collections.abc import Iterator, MutableMapping
from multiprocessing.connection import Connection
from random import Random
from typing import Any, cast

import anyio
import pytest
from starlette.testclient import TestClient

from combdiff.page import Limits, Question, answer, application, workers
from combdiff.page.application import HEADERS, STATIC
from combdiff.page.questions import MOST_CHARACTERS, QuestionError, question
from combdiff.page.workers import Worker

HOST = "http://127.0.0.1:8000"
LIMITS = Limits(seconds=20.0, request=1 << 15)
FORM = "A symmetric (n, n), x (n)\nx'*A*x"
EXAMPLES = json.loads((STATIC / "examples.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def page() -> Iterator[TestClient]:
    with TestClient(application(8000, LIMITS), base_url=HOST) as client:
        yield client


def asked(page: TestClient, part: str, text: str, *wrt: str, **sizes: int) -> dict[str, Any]:
    """What the page answers to a question, which it takes as one."""
    response = page.post("/answer", json={"part": part, "text": text, "wrt": wrt, "sizes": sizes})
    assert response.status_code == 200
    return dict(response.json())


def parts(text: str, *wrt: str, **sizes: int) -> dict[str, Any]:
    """All parts of an answer, without HTTP and processes."""
    questions = [Question(part, text, wrt, tuple(sizes.items())) for part in ("source", "explanation", "plan", "check")]
    return {key: value for each in questions for key, value in answer(each).items()}


def test_a_derivative_comes_in_both_notations_with_its_tensors(page: TestClient) -> None:
    found = asked(page, "derivative", FORM, "x", "x")
    assert [form["title"] for form in found["forms"]] == ["Expression", "Derivative by x", "Derivative by x, then by x"]
    assert [form["matrix"] for form in found["forms"]] == ["xᵀ·A·x", "2·A·x", "2·A"]
    assert found["forms"][1]["text"] == "(A, x) ↦ d ↦ 2 Σ_j A[d,j] x[j]"
    assert found["forms"][1]["matrix_latex"] == "2 A x"
    assert found["parameters"] == [
        {"name": "A", "axes": ["n", "n"], "kind": "symmetric", "complex": False},
        {"name": "x", "axes": ["n"], "kind": "", "complex": False},
    ]
    start, end = found["declared"]
    assert FORM[start:end] == "A symmetric (n, n), x (n)"


def test_the_other_parts() -> None:
    found = parts(FORM, "x", n=1000, q=3)
    for backend, module in (("numpy", "numpy"), ("jax", "jax.numpy"), ("torch", "torch")):
        assert f"import {module}" in found["sources"][backend]
    assert found["steps"][0]["law"] == "δ meets Σ"
    assert r"\delta" in found["steps"][0]["before"]
    assert found["last"] == r"(A, x) \mapsto d \mapsto 2 \sum_{j} A_{d,j} x_{j}"
    assert (found["flops"], found["flops_formula"], found["open"]) == (1_001_000, "n² + n", [])
    assert found["passed"]
    assert found["largest"] < 1e-8
    assert parts(FORM, "x")["open"] == ["n"]
    assert parts("log(-norm2(x)^2)", "x")["largest"] is None
    for text in ("x[20]^2 + x[0]", "x (0)\nx'*x"):  # an axis is as long as it is read; one without entries
        assert answer(Question("check", text, ("x",)))["passed"]


def test_a_mistake_comes_with_its_place_and_field(page: TestClient) -> None:
    error = asked(page, "derivative", "A (n, n), x (n)\nx'*A*)x", "x")["error"]
    assert (error["field"], error["line"], error["column"], error["position"]) == ("text", 2, 6, 21)
    assert error["excerpt"].splitlines()[1] == "  " + " " * 5 + "^"
    error = asked(page, "derivative", FORM, "x", "x, y")["error"]
    assert (error["field"], error["column"], error["hint"]) == ("wrt1", 4, "its tensors are A, x")
    error = asked(page, "derivative", "declare x 1 expression x + \x1b[2J", "x")["error"]
    assert "\x1b" not in json.dumps(error, ensure_ascii=False)
    assert error["column"] == 28


HOSTILE = [
    "__import__('os').system('true')",
    "<script>alert(1)</script>",
    "{{7*7}}",
    "(" * 5000,
    "x" * MOST_CHARACTERS,
    "Σ" * 3000,
    "9^9^9^9^9*x",
    "A symmetric (n, n), x (n)\n" * 50,
    "\x00\ud7ff\u202e",
    "",
    "1" * 5000 + "*x",
    "x" + "¹" * 5000,
    "a" + " " * 9000 + "\nx",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_gets_a_message_or_a_formula(text: str) -> None:
    started = time.process_time()
    found = answer(Question("derivative", text, ("x",)))
    assert found.get("error", {}).get("message") or found["forms"]
    assert time.process_time() - started < 2


@pytest.mark.thorough
def test_what_takes_too_long_is_stopped_and_the_next_question_answered() -> None:
    product = "*".join(f"inv(A{k} + B{k}*A{k + 1})" for k in range(25))
    before = children()
    with TestClient(application(8000, Limits(seconds=0.5)), base_url=HOST) as page:
        found = asked(page, "derivative", product, "A1")
        assert found["error"]["message"] == "this takes more than 0.5 seconds and was stopped"
        assert asked(page, "derivative", "x'*x", "x")["forms"][1]["matrix"] == "2·x"
        assert children() - before
    assert not children() - before


def test_a_process_has_no_more_memory_than_it_may() -> None:
    with TestClient(application(8000, Limits(memory=1 << 26)), base_url=HOST) as page:
        text = " + ".join(f"norm2(A{k}*x - b{k})^2" for k in range(80))
        assert "memory" in asked(page, "derivative", text, "x")["error"]["message"]


@pytest.mark.parametrize("error", [MemoryError, SystemError])
def test_where_memory_ends_the_process_says_so(error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    """CPython raises SystemError where it has no memory to make a MemoryError."""

    class Pipe:
        def send(self, _: object) -> None: ...
        def recv(self) -> None:
            raise error

    def ended(code: int) -> None:
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", ended)
    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    with pytest.raises(SystemExit, match=str(workers.FULL)):
        workers.answering(cast("Connection", Pipe()), 1 << 26)


def raising_without_end(connection: Connection, memory: int) -> None:
    """CPython's own loop: to go to a handler it makes an integer of the place in the function, and cannot."""
    function = "def fill(cells):\n try:\n" + "  a = 1; b = a + a; c = b\n" * 60
    function += "  for n in range(len(cells)): cells[n] = n + 1000000\n"
    function += " except ValueError: pass\n except Exception: raise"
    names: dict[str, Any] = {}
    exec(function, names)
    cells = [None] * 5_000_000
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    connection.send(None)
    names["fill"](cells)


@pytest.mark.skipif(sys.platform != "linux", reason="the memory of another process is read from Linux's /proc")
def test_a_process_that_has_no_memory_left_to_end_is_ended() -> None:
    worker = Worker(Limits(memory=1 << 26), raising_without_end)

    async def gone() -> bool:
        return False

    with pytest.raises(MemoryError):
        anyio.run(worker.ask, Question("derivative", ""), 20.0, gone)
    worker.end()


def failing(connection: Connection, memory: int) -> None:
    connection.send(None)
    raise IndexError(connection.recv())


@pytest.mark.thorough
def test_a_failure_is_told_from_a_lack_of_memory() -> None:
    async def gone() -> bool:
        return False

    worker = Worker(LIMITS, failing)
    with pytest.raises(EOFError):
        anyio.run(worker.ask, Question("derivative", ""), 20.0, gone)
    assert worker.has_failed()
    worker.end()


def test_what_is_no_question_is_refused(page: TestClient) -> None:
    for given, named in (
        ({"part": "derivative"}, "text is None"),
        ({"part": "shell", "text": "x"}, "part is 'shell'"),
        ({"part": "plan", "text": "x", "wrt": "x"}, "wrt is 'x'"),
        ({"part": "plan", "text": "x", "wrt": ["x"] * 9}, "at most 4 lists"),
        ({"part": "plan", "text": "x", "sizes": {"n": 0}}, "sizes is {'n': 0}"),
        ({"part": "plan", "text": "x", "sizes": {"n; import os": 3}}, "sizes is"),
        ([], "a JSON object"),
    ):
        response = page.post("/answer", json=given)
        assert response.status_code == 400
        assert named in response.json()["error"]["message"]
        with pytest.raises(QuestionError, match=named.split("{")[0]):
            question(given)
    json_ = {"content-type": "application/json"}
    assert page.post("/answer", content=b"{" * 1000, headers=json_).status_code == 400
    assert page.post("/answer", content=b'"' + b"x" * LIMITS.request + b'"', headers=json_).status_code == 413
    assert page.post("/answer", content=b"{}", headers={"content-type": "text/plain"}).status_code == 415
    assert page.get("/answer").status_code == 405


VALUES: list[Any] = [
    None,
    True,
    -1,
    1e308,
    float("inf"),
    10**400,
    "x",
    "\x00\u202e",
    "\ud800",
    "x'*x",
    "A" * 3000,
    [],
    {},
]


def drawn(random: Random, depth: int) -> Any:
    """A JSON value, perhaps a question in which some entries are what they should be."""
    if not depth or random.random() < 0.3:
        return random.choice(VALUES)
    if random.random() < 0.4:
        return [drawn(random, depth - 1) for _ in range(random.randrange(4))]
    given = {"part": "derivative", "text": "x'*x", "wrt": ["x"], "sizes": {"n": 3}}
    return given | {random.choice([*given, "\ud800", ""]): drawn(random, depth - 1) for _ in range(3)}


def test_whatever_json_is_asked_is_answered_or_refused(page: TestClient) -> None:
    random, refused = Random(0), 0
    for _ in range(150):
        content = json.dumps(drawn(random, 3)).encode()[: random.choice([None, None, 40])]
        response = page.post("/answer", content=content, headers={"content-type": "application/json"})
        assert response.status_code in (200, 400), content
        found = response.json()
        assert found.get("forms") or found["error"]["message"], content
        refused += response.status_code == 400
    assert 50 < refused < 150


def test_an_asker_that_goes_leaves_no_traceback() -> None:
    messages: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        messages.append(message)

    headers = [(b"host", b"127.0.0.1:8000"), (b"content-type", b"application/json")]
    scope = {"type": "http", "method": "POST", "path": "/answer", "headers": headers, "query_string": b""}
    anyio.run(application(8000, LIMITS), scope, receive, send)
    assert messages[0]["status"] == 400


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:9", "localhost:8000.example.org", ""])
def test_another_host_is_refused(page: TestClient, host: str) -> None:
    for response in (page.get("/", headers={"host": host}), page.post("/answer", json={}, headers={"host": host})):
        assert response.status_code == 421
        assert response.headers["content-security-policy"]


def test_every_response_forbids_foreign_scripts(page: TestClient) -> None:
    paths = ["/", "/static/page.js", "/static/page.css", "/static/katex/katex.min.js", "/static/none", "/../cli.py"]
    for path in paths:
        response = page.get(path)
        assert response.status_code == (404 if path in paths[-2:] else 200)
        assert {name: response.headers[name] for name in HEADERS} == HEADERS
    assert "script-src 'self';" in HEADERS["content-security-policy"]
    assert page.get("/static/..%2fapplication.py").status_code == 404


def test_the_page_holds_nothing_from_elsewhere() -> None:
    for name in ("index.html", "page.css", "page.js"):
        text = (STATIC / name).read_text(encoding="utf-8")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text
        assert " style=" not in text
        assert "eval(" not in text
    assert (STATIC / "katex" / "LICENSE").read_text(encoding="utf-8").startswith("The MIT License")


@pytest.mark.thorough
@pytest.mark.parametrize("language", EXAMPLES)
def test_the_examples_have_derivatives(language: str) -> None:
    for example in EXAMPLES[language]:
        found = answer(Question("derivative", example["text"], tuple(example["wrt"])))
        assert "error" not in found, example["title"]
        assert len(found["forms"]) > 1
        assert not found["notes"]


def children() -> set[int | None]:
    """The processes that this one has started."""
    return {process.pid for process in multiprocessing.active_children()}
