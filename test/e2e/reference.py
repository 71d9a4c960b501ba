"""The loss of a model by plain loops, in f64: an interpreter of the canonical text.

The text, which every state and every exported file of weights has, is documented in
passes/model/CanonicalText.h. Tensors are lists of rows. Nothing here comes from the compiler but
that text.
"""
import math
import operator
import re


def parse(text):
    """Stages in order: {"name", "repeat", "arguments", "ops": [(result, op, operands, attributes)],
    "return"}."""
    stages = []
    for line in text.splitlines():
        words = line.split()
        if words[0] == "stage":
            stages.append({"name": words[1], "repeat": int(words[3]) if len(words) > 2 else 1,
                           "arguments": [], "ops": []})
        elif words[0] == "return":
            stages[-1]["return"] = line.split(maxsplit=1)[1].split(", ")
        elif words[0].startswith("%"):
            match = re.match(r"  (%\d+) = (\w+) ([^{:]*)(?:\{(.*)\} )?: (.*)", line)
            result, op, operands, attributes, shapes = match.groups()
            given = dict((pair + " = 1").split(" = ")[:2]
                         for pair in (attributes or "").split(", ") if pair)
            given["results"] = len(re.findall(r"\[", shapes))
            stages[-1]["ops"].append((result, op, operands.strip().split(", "), given))
        elif words[0] not in ("group", "param"):
            stages[-1]["arguments"].append(words[0])
    return stages


def matrix(values, shape):
    """Rows of a parameter; of a vector, one."""
    width = shape[-1]
    return [list(values[i:i + width]) for i in range(0, len(values), width)]


def transpose(rows):
    return [list(column) for column in zip(*rows)]


def dot(a, b):
    return sum(map(operator.mul, a, b))


def linear(x, w, bias=None, **given):
    columns = w if "transpose" in given else transpose(w)
    rows = [[dot(row, column) for column in columns] for row in x]
    return add(rows, bias) if bias else rows


def combine(a, b, of):
    """Element by element; one row stands for all."""
    return [[of(u, v) for u, v in zip(row, b[i % len(b)])] for i, row in enumerate(a)]


def add(a, b, **_):
    return combine(a, b, lambda u, v: u + v)


def mul(a, b, **_):
    return combine(a, b, lambda u, v: u * v)


def scale(x, factor, **_):
    return [[float(factor) * v for v in row] for row in x]


def gelu(x, **_):
    def of(v):
        return v / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v ** 3)))
    return [[of(v) for v in row] for row in x]


def silu(x, **_):
    return [[v / (1 + math.exp(-v)) for v in row] for row in x]


def rms_norm(x, w, eps, **_):
    def normal(row):
        root = math.sqrt(dot(row, row) / len(row) + float(eps))
        return [v / root for v in row]
    return mul([normal(row) for row in x], w)


def layer_norm(x, w, b, eps, **_):
    def normal(row):
        mean = sum(row) / len(row)
        root = math.sqrt(sum((v - mean) ** 2 for v in row) / len(row) + float(eps))
        return [(v - mean) / root for v in row]
    return add(mul([normal(row) for row in x], w), b)


def rotary(x, heads, base, **_):
    width = len(x[0]) // int(heads)
    half = width // 2
    rows = []
    for position, row in enumerate(x):
        rotated = list(row)
        for head in range(int(heads)):
            for i in range(half):
                angle = position * float(base) ** (-2 * i / width)
                at = head * width + i
                u, v = row[at], row[at + half]
                rotated[at] = u * math.cos(angle) - v * math.sin(angle)
                rotated[at + half] = v * math.cos(angle) + u * math.sin(angle)
        rows.append(rotated)
    return rows


def attention(q, k, v, heads, kv_heads, **given):
    width = len(q[0]) // int(heads)
    group = int(heads) // int(kv_heads)
    rows = []
    for time, row in enumerate(q):
        seen = time + 1 if "causal" in given else len(k)
        out = []
        for head in range(int(heads)):
            own = slice(head * width, (head + 1) * width)
            other = slice(head // group * width, (head // group + 1) * width)
            scores = [dot(row[own], k[t][other]) / math.sqrt(width) for t in range(seen)]
            most = max(scores)
            shares = [math.exp(score - most) for score in scores]
            total = sum(shares)
            out += [dot(shares, [v[t][i] for t in range(seen)]) / total
                    for i in range(other.start, other.stop)]
        rows.append(out)
    return rows


def split(x, results):
    width = len(x[0]) // results
    return [[row[i * width:(i + 1) * width] for row in x] for i in range(results)]


def cross_entropy(logits, targets):
    loss = 0
    for row, target in zip(logits, targets):
        most = max(row)
        loss += most + math.log(sum(math.exp(v - most) for v in row)) - row[target]
    return loss / len(targets)


OPS = {"linear": linear, "add": add, "mul": mul, "scale": scale, "gelu": gelu, "silu": silu,
       "rms_norm": rms_norm, "layer_norm": layer_norm, "rotary": rotary, "attention": attention}


def loss_of(stages, shapes, tensors, tokens, targets):
    """`stages`: of parse. `tensors`: values by name, `encoder.0.norm`, in row-major order."""
    values = {}  # results, "embed" and "embed#1"
    before = None

    def take(argument):
        """What an argument of the model takes. Tokens and targets are known."""
        if argument == "input":
            return values.get(before)
        return values[argument.partition("'")[0][7:-1]] if argument.startswith("result(") else None

    def run(stage, layer, carried):
        env = dict(zip(stage["arguments"], [*carried, *map(take, stage["arguments"][len(carried):])]))

        def value(name):
            if name.startswith("@"):
                group, _, parameter = name[1:].rpartition(".")
                group = group or stage["name"]
                name = f"{group}.{parameter}"
                if name not in tensors: # of one layer of several
                    name = f"{group}.{layer}.{parameter}"
                return matrix(tensors[name], shapes[name])
            return env[name]

        for result, op, operands, given in stage["ops"]:
            if op == "embedding":
                table = value(operands[0])
                env[result] = [table[token] for token in tokens]
            elif op == "cross_entropy":
                env[result] = cross_entropy(value(operands[0]), targets)
            elif op == "split":
                for i, part in enumerate(split(value(operands[0]), given["results"])):
                    env[f"{result}#{i}" if i else result] = part
            else:
                attributes = {key: item for key, item in given.items() if key != "results"}
                env[result] = OPS[op](*map(value, operands), **attributes)
        return [env[name] for name in stage["return"]]

    for stage in stages:
        results = []
        for layer in range(stage["repeat"]):
            results = run(stage, layer, results)
        before = stage["name"]
        for i, result in enumerate(results):
            values[f"{before}#{i}" if i else before] = result
    return results[0]
