"""The page: combdiff in a browser, served to this machine alone, with nothing from the network.

In: an HTTP request with an expression, names to differentiate by, and what is asked of the derivative. Out: formulas,
source, steps, costs, errors with their place, as JSON that the page shows.

In the order in which data meets them: `questions` (what may be asked, and its bounds), `answers` (what a question
gives), `workers` (processes that answer within a time and a memory), `application` (HTTP; `serve`). `static/` holds
the page itself and KaTeX.

Invariant: no Python of a user runs, every answer comes within a time limit, and nothing but 127.0.0.1 is listened to.
"""

from combdiff.page.answers import answer
from combdiff.page.application import application, serve
from combdiff.page.questions import Limits, Question, QuestionError

__all__ = ["Limits", "Question", "QuestionError", "answer", "application", "serve"]
