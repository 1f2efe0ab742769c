"""The command line: an expression in one of three languages in, its derivative out; and the page (`serve`).

    $ combdiff 'declare x 1 expression x *(i,i->) x derivative wrt x'
    x ↦ i ↦ 2 x[i]

Exit status 0; 1 when a check finds something wrong or cannot tell; 2 for bad input, with one message.

Invariant: what is printed to a pipe or file is plain; nothing that a user gives ends in a traceback.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NoReturn

from combdiff.errors import CombdiffError, RuleError

if TYPE_CHECKING:
    from combdiff.api import Derivation, Program
    from combdiff.ir import Space
    from combdiff.testing import Verdict

EXAMPLES = """an expression is written in one of three languages:
  combdiff 'declare A 2 x 1 expression A *(ij,j->i) x derivative wrt x'
  combdiff --wrt x "A symmetric (n, n), x (n); x'*A*x"
  combdiff --wrt x --wrt x '(A, x) -> sum_{i,j} x[i] A[i,j] x[j]'

examples:
  combdiff --check 'declare x 1 expression sin(x) *(i,i->) exp(x) derivative wrt x'
  combdiff --latex --wrt X "tr(X'*X)"
  combdiff --matrix --wrt X,w "X (m, n), w (n), y (m); norm2(X*w - y)^2"
  combdiff --source numpy --cost n=1000,m=10 --file objective.txt
  echo 'declare x 1 expression sum(i->) x^3 derivative wrt x wrt x' | combdiff
  combdiff check-rules my.egg        test the laws of a rule file on numbers
  combdiff serve                     a page in the browser, on this machine alone

In the text calculus a product carries its indices, A *(ij,j->i) x; those that are not behind the arrow are summed
over. The axes of the derivative are those of the expression, then those of the tensor after wrt.

exit status: 0; 1 if a check fails; 2 for bad input, with one message that shows the place"""

BACKENDS = ("numpy", "jax", "torch", "cupy", "dask")
CHECK_RULES, SERVE = "check-rules", "serve"
PORT = 8000
TOLERANCE = 1e-6
MOST_BYTES = 1 << 23
GOOD, WRONG, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line with the given arguments (by default the process's) and return its exit status."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    given = list(sys.argv[1:] if arguments is None else arguments)
    run, parser = COMMANDS.get(given[0] if given else "", (_run, _parser))
    if sys.stdout is None or sys.stderr is None:  # closed by the caller
        return BAD_INPUT
    try:
        status = run(parser().parse_args(given if run is _run else given[1:]))
        sys.stdout.flush()
    except CombdiffError as error:
        return _complain(_message(error), BAD_INPUT)
    except OSError as error:
        if error.filename is not None:
            return _complain(f"{error.filename}: {error.strerror}", BAD_INPUT)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or Python complains again when it leaves
        enough = isinstance(error, BrokenPipeError)  # the reader has seen what it wanted
        return GOOD if enough else _complain(f"standard output: {error.strerror}", BAD_INPUT)
    except UnicodeDecodeError as error:
        return _complain(f"the text is not UTF-8: {error.reason} at byte {error.start}", BAD_INPUT)
    except KeyboardInterrupt:
        return INTERRUPTED
    return status


class Parser(argparse.ArgumentParser):
    """A command line whose mistakes are errors like all others."""

    def error(self, message: str) -> NoReturn:
        """Raises CombdiffError for a wrong use, which `message` tells, with the way to use it."""
        usage = " ".join(self.format_usage().removeprefix("usage: ").split())
        raise CombdiffError(message, hint=f"{usage}; --help says more")


def _parser() -> Parser:
    parser = Parser(
        prog="combdiff",
        description="Symbolic derivatives of tensor expressions.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    given = parser.add_mutually_exclusive_group()
    given.add_argument("text", nargs="?", metavar="TEXT", help="the expression; - or none: from standard input")
    given.add_argument("--file", metavar="FILE", help="read the text from a file")
    again = "differentiate by these; once more for a second derivative"
    parser.add_argument("--wrt", action="append", default=[], metavar="A,x", help=again)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--explain", action="store_true", help="print the laws that led to the derivative")
    form.add_argument("--latex", action="store_true", help="print LaTeX")
    form.add_argument("--matrix", action="store_true", help="print matrix notation, where there is one")
    form.add_argument("--source", choices=BACKENDS, help="print standalone Python")
    parser.add_argument(
        "--cost", type=_cost_sizes, metavar="n=100,m=10", help="print the cost of each step at these sizes"
    )
    parser.add_argument("--check", action="store_true", help="compare with central differences at random values")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    version = import_module("combdiff").__version__
    parser.add_argument("--version", action="version", version=f"combdiff {version}")
    return parser


def _cost_sizes(given: str) -> dict[str, int]:
    """`n=100,m=10` as sizes by name."""
    sizes = {}
    for part in given.split(","):
        name, _, size = part.partition("=")
        if not name.strip().isidentifier() or not size.strip().isdecimal() or len(size) > 18:
            raise argparse.ArgumentTypeError(f"{part!r} is not a size such as n=100")
        if name.strip() in sizes:
            raise argparse.ArgumentTypeError(f"the size {name.strip()} is given twice")
        sizes[name.strip()] = int(size)
    return sizes


def _run(options: argparse.Namespace) -> int:
    from combdiff.api import derivation
    from combdiff.text import TextError

    text = _text(options)
    with warnings.catch_warnings(record=True) as noted:
        warnings.simplefilter("always")
        found = derivation(text, options.wrt)
    if not found.names:
        hint = "add: derivative wrt x; or give --wrt x"
        raise TextError("the text does not say what to differentiate by", text, len(text.rstrip()), hint)
    for note in {str(warning.message) for warning in noted}:
        print(f"combdiff: note: {note}", file=sys.stderr)
    error = _largest_error(found) if options.check else None
    print(_json(options, text, found.steps, error) if options.json else _plain(options, found.steps[-1], error))
    if error is None or error <= TOLERANCE:
        return GOOD
    problem = (
        "the expression or its derivative is not finite at the values tried"
        if error != error
        else f"the derivative differs from central differences by {error:.2g}"
    )
    return _complain(f"check failed: {problem}", WRONG)


def _rules_parser() -> Parser:
    parser = Parser(
        prog=f"combdiff {CHECK_RULES}",
        description="Test every law and primitive of rule files on numbers; the built-in files if none is given.",
        epilog="exit status: 0 if all hold; 1 if one is false or could not be tested; 2 for a file with a mistake",
        allow_abbrev=False,
    )
    parser.add_argument("files", nargs="*", metavar="FILE", help="a rule file")
    parser.add_argument("--seed", type=int, default=0, help="draws other instances (default: 0)")
    return parser


def _check_rules(options: argparse.Namespace) -> int:
    """Print a line for each law, with a counter-example where it is false."""
    from combdiff.testing import verdicts

    found = [v for file in options.files or [None] for v in _printed(verdicts(file, options.seed))]
    wrong = sum(verdict.status != "holds" for verdict in found)
    print(f"{len(found)} laws and derivatives, {wrong} wrong or untested" if wrong else f"all {len(found)} hold")
    return WRONG if wrong else GOOD


def _printed(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    for verdict in verdicts:
        print(verdict, flush=True)
        yield verdict


def _serve_parser() -> Parser:
    parser = Parser(
        prog=f"combdiff {SERVE}",
        description="A page in the browser, on this machine alone; Ctrl-C ends it.",
        allow_abbrev=False,
    )
    parser.add_argument("--port", type=_port, default=PORT, help=f"the port of 127.0.0.1 (default: {PORT})")
    return parser


def _port(given: str) -> int:
    if not given.isdecimal() or not 0 < int(given) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{given!r} is not a port such as {PORT}")
    return int(given)


def _serve(options: argparse.Namespace) -> int:
    from combdiff.page import serve

    serve(options.port)
    return GOOD


COMMANDS: dict[str, tuple[Callable[[argparse.Namespace], int], Callable[[], Parser]]] = {
    CHECK_RULES: (_check_rules, _rules_parser),
    SERVE: (_serve, _serve_parser),
}


def _text(options: argparse.Namespace) -> str:
    """The text from where the options say, at most `MOST_BYTES` of it."""
    if options.file is not None:
        with Path(options.file).open("rb") as file:
            return _decoded(file)
    if options.text is not None and options.text != "-":
        return str(options.text)
    if options.text is None and sys.stdin.isatty():
        raise CombdiffError("no expression is given", hint="combdiff --help shows examples; - reads what you type")
    return _decoded(sys.stdin.buffer)


def _decoded(file: IO[bytes]) -> str:
    data = file.read(MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise CombdiffError(f"the text has more than {MOST_BYTES} bytes")
    return data.decode("utf-8-sig")


def _plain(options: argparse.Namespace, program: Program, error: float | None) -> str:
    """The derivative, and below it, as comments of the language it is written in, what else is asked for."""
    notes = [str(program.cost(**options.cost))] if options.cost else []
    if error is not None and error == error:
        notes.append(f"largest error: {error:.2g}")
    sign = "# " if options.source else "% " if options.latex else ""
    lines = [sign + line for note in notes for line in note.splitlines()]
    return "\n".join([_written(options, program), *lines])


def _written(options: argparse.Namespace, program: Program) -> str:
    """The derivative in the form that is asked for."""
    if options.latex:
        return program.latex()
    if options.matrix:
        return program.matrix()
    if options.explain:
        return str(program.explain())
    return program.source(options.source) if options.source else str(program)


def _json(options: argparse.Namespace, text: str, steps: Sequence[Program], error: float | None) -> str:
    from combdiff.ir import Space

    expression, derivative = steps[0], steps[-1]
    found: dict[str, Any] = {
        "text": text,
        "parameters": [
            {"name": p.name, "axes": _sizes(p.type), "dtype": p.type.dtype.__name__}
            for p in expression.parameters
            if isinstance(p.type, Space)
        ],
        "expression": str(expression),
        "derivative": str(derivative),
        "latex": derivative.latex(),
        "matrix": derivative.matrix(),
    }
    if options.source:
        found["source"] = derivative.source(options.source)
    if options.explain:
        found["explanation"] = str(derivative.explain())
    if options.cost:
        cost = derivative.cost(**options.cost)
        found["cost"] = {"sizes": dict(cost.sizes), "flops": cost.flops, "peak_bytes": cost.peak_bytes}
    if error is not None:
        found["check"] = {"largest_error": None if error != error else error, "passed": error <= TOLERANCE}
    return json.dumps(found, indent=2)


def _sizes(space: Space) -> list[str]:
    from combdiff.ir import Range

    return [str(axis.size) for axis in space.axes if isinstance(axis, Range)]


def _largest_error(found: Derivation) -> float:
    from combdiff.testing import largest_errors

    return largest_errors(found)


def _message(error: CombdiffError) -> str:
    """The message, with the place in a text or a rule file but not in Python, which here would be one of ours."""
    from combdiff.text import TextError

    if isinstance(error, TextError):
        return str(error)
    place = f"{error.location}: " if isinstance(error, RuleError) and error.is_placed else ""
    return f"{place}{error.message}" + (f"\n  hint: {error.hint}" if error.hint else "")


def _complain(message: str, status: int) -> int:
    """Write one message to standard error, in colour on a terminal unless NO_COLOR is set."""
    label = "combdiff: error:"
    if sys.stderr.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb":
        label = f"\x1b[1;31m{label}\x1b[0m"
    print(label, message, file=sys.stderr)
    return status
