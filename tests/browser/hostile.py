"""Questions and answers that try to run script in whoever reads them."""

from __future__ import annotations

from askalike.types import Answer, Markup, Question

__all__ = ["PAYLOADS", "hostile_answers", "hostile_questions"]

PAYLOADS = (
    "<script>window.ran = 1</script>",
    "<img src=x onerror=window.ran=1>",
    "<svg onload=window.ran=1><animate onbegin=window.ran=1 attributeName=x>",
    "<iframe srcdoc='<script>parent.ran=1</script>'></iframe>",
    "<a href='javascript:window.ran=1' onmouseover=window.ran=1>go</a>",
    '"><details open ontoggle=window.ran=1>',
    "<math><mtext><table><mglyph><style><!--</style><img title='--&gt;&lt;img src=1 onerror=window.ran=1&gt;'>",
    "<form action=javascript:window.ran=1><button>x</button><input autofocus onfocus=window.ran=1></form>",
    "<style>*{display:none}</style><link rel=stylesheet href=//evil.invalid/x.css><base href=//evil.invalid/>",
    '[click](javascript:window.ran=1) ![x](x"onerror=window.ran=1) <javascript:window.ran=1>',
    "{{constructor.constructor('window.ran=1')()}} ${window.ran=1}",
    "<template><script>window.ran=1</script></template>",
    "<noscript><p title='</noscript><img src=x onerror=window.ran=1>'>",
    "<object data=javascript:window.ran=1></object><embed src=javascript:window.ran=1>",
    "<video><source onerror=window.ran=1></video><audio src=x onerror=window.ran=1>",
    "<a href=' java\tscript:window.ran=1'>a</a><a href='data:text/html,<script>opener.ran=1</script>'>b</a>",
)
MARKUPS: tuple[Markup, ...] = ("plain", "markdown", "html")


def hostile_questions() -> list[Question]:
    return [
        Question(
            id=f"evil/{number}?<b>&\"'",
            title=f"zyzzyva {number} {payload}",
            body=f"zyzzyva {payload}",
            markup=MARKUPS[number % 3],
            tags=(payload[:30],),
            url="javascript:window.ran=1",
            author=payload,
        )
        for number, payload in enumerate(PAYLOADS)
    ]


def hostile_answers() -> list[Answer]:
    return [
        Answer(
            id=f"evil-answer-{number}",
            question_id=question.id,
            body=f"zyzzyva {PAYLOADS[number]}",
            markup=MARKUPS[(number + 1) % 3],
            author=PAYLOADS[number],
            is_accepted=True,
        )
        for number, question in enumerate(hostile_questions())
    ]
