"""Writes golden/masks.json: the tokens and the assistant_tokens_mask of transformers for some conversations.

Where a block begins or ends within a token, transformers learns the whole token. Here the text is cut there.

    python3 make-golden.py

Needs the package transformers. The tokenizer is that of the tests, with the marks of chatml.
"""

import json
from pathlib import Path

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

HERE = Path(__file__).resolve().parent
LOOP = "{% for message in messages %}BODY{% endfor %}"
TEMPLATES = {
    "answers and their marks": (HERE.parent / "template/golden/templates/chatml_generation.jinja").read_text(),
    "whole messages": LOOP.replace("BODY", """{% set text = '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' %}
{% if message.role == 'assistant' %}{% generation %}{{ text }}{% endgeneration %}{% else %}{{ text }}{% endif %}
"""),
    "contents alone, several blocks": LOOP.replace("BODY", """{{ message.role + ':\n' }}{% if message.role == 'assistant' %}
{% generation %}{{ message.content[:2] }}{% endgeneration %}~{% generation %}{{ message.content[2:] }}{% endgeneration %}
{% else %}{{ message.content }}{% endif %}
{{ eos_token }}"""),
}


def turns(*contents, system=None):
    roles = ["user", "assistant"] * len(contents)
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents)]
    return ([{"role": "system", "content": system}] if system else []) + messages


CONVERSATIONS = [
    turns("Hi", "Yes"),
    turns("1 + 1?", " two ", "And 2 + 2?", "four, of course."),
    turns("Hi", "Yes", "Why?", system="Be brief."),
    turns("Héllo", "日本語 und ß", "", "x"),
    turns("a\n\nb", "line\n\nline\n", "c", "d\n"),
]


def main():
    text = json.loads((HERE.parent / "tokenizer/golden/gpt2.json").read_text())
    for id, content in ((420, "<|im_start|>"), (421, "<|im_end|>")):
        text["added_tokens"].append({"id": id, "content": content, "single_word": False, "lstrip": False,
                                     "rstrip": False, "normalized": False, "special": True})
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(text)), eos_token="<|end|>")
    cases = []
    for name, template in TEMPLATES.items():
        for messages in CONVERSATIONS:
            made = tokenizer.apply_chat_template(messages, chat_template=template, tokenize=True, return_dict=True,
                                                 return_assistant_tokens_mask=True)
            cases.append([name, messages, made["input_ids"], made["assistant_masks"]])
    (HERE / "golden").mkdir(exist_ok=True)
    lines = [json.dumps(entry, ensure_ascii=False, separators=(",", ":")) for entry in [TEMPLATES, *cases]]
    (HERE / "golden/masks.json").write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
