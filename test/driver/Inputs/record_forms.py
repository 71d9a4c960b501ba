"""The same conversation of one question and one answer, in several forms of records."""


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


def parts(text):
    return [{"type": "text", "text": text}]


FORMS = {
    "messages": lambda q, a: {"messages": [user(q), assistant(a)]},
    "parts": lambda q, a: {"messages": [user(parts(q)), assistant(parts(a))]},
    "share_gpt": lambda q, a: {"conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}]},
    "alpaca": lambda q, a: dict(zip(("instruction", "input", "output"), (*q.split("\n"), a))),
    "pairs": lambda q, a: {"prompt": [user(q)], "completion": [assistant(a)]},
    "columns": lambda q, a: {"id": 1, "tools": None, "messages": [user(q), assistant(a) | {"weight": 1, "train": True}]},
}
