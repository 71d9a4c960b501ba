"""Renders templates by jinja2 with the settings of transformers, for make-golden.py and check-templates."""

import datetime
import json

import jinja2
import jinja2.ext
import jinja2.sandbox

NOW = datetime.datetime(2024, 7, 26, 13, 5, 9)


class Refusal(jinja2.exceptions.TemplateError):
    """What raise_exception raises."""


class Generation(jinja2.ext.Extension):
    """{% generation %}, which notes the places of its text. Those of transformers forget a block that is the first
    output of all; here it counts."""

    tags = {"generation"}

    def __init__(self, environment):
        super().__init__(environment)
        environment.extend(generation=self)
        self.blocks, self.ranges = None, None

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_note"), [], [], body).set_lineno(line)

    def _note(self, caller):
        text = caller()
        begin = len("".join(self.blocks).encode())
        self.ranges.append([begin, begin + len(text.encode())])
        return text


def environment():
    env = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])

    def tojson(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                          sort_keys=sort_keys)

    def raise_exception(message):
        raise Refusal(message)

    env.filters["tojson"] = tojson
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = NOW.strftime
    return env


def render(text, inputs):
    """For each input {"text", "ranges"}, {"refusal": message} or {"error": kind}."""
    env = environment()
    try:
        template = env.from_string(text)
    except (jinja2.exceptions.TemplateSyntaxError, SyntaxError):  # Python refuses some of its code
        return [{"error": "syntax"}] * len(inputs)
    results = []
    for values in inputs:
        env.generation.blocks, env.generation.ranges = [], []
        try:
            for block in template.generate(**values):
                env.generation.blocks.append(block)
            results.append({"text": "".join(env.generation.blocks), "ranges": env.generation.ranges})
        except Refusal as refusal:
            results.append({"refusal": str(refusal)})
        except Exception:  # whatever Python raises within a template
            results.append({"error": "fault"})
    return results
