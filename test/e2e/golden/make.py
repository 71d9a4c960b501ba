#!/usr/bin/env python3
"""Writes losses.json: how the three examples train in PyTorch, for run-golden.

The models, the sampling of the text, the masking, the course of the learning rate and
the optimizer's settings are written here again, from the descriptions of the language
and of the trainer. Nothing is read from Boa. The file keeps the losses, the settings
that make the examples as small as they are here, and the shapes of all parameters.
Initial weights come from weights.py.

Each example trains in three types:
  f32           in f64, the most exact that f32 can come near to
  bf16 weights  weights rounded to bf16 from an f32 master, everything else in f32
  bf16          the same, and each op's result and each op's gradient rounded to bf16

    python3 make.py        (needs torch)
"""
import json
import math
import os
import sys

sys.dont_write_bytecode = True

import torch
import torch.nn.functional as F

import weights

HERE = os.path.dirname(os.path.abspath(__file__))
TEXT = os.path.join(HERE, "..", "..", "..", "examples", "data", "kjv.txt")
STEPS, EVERY, EVALUATED = 20, 10, 4  # EVALUATED: sequences of validation
WARMUP, SEED = 5, 7
BATCH, MICRO_BATCH = 4, 2
CONTEXT, WIDTH, HEADS, DEPTH = 32, 64, 4, 2
KV_HEADS, HIDDEN = 2, 96
SETTINGS = [f"model.context={CONTEXT}", f"model.width={WIDTH}", f"model.heads={HEADS}",
            f"model.depth={DEPTH}", f"train.batch={BATCH}", f"plan.micro_batch={MICRO_BATCH}",
            f"train.steps={STEPS}", f"train.seed={SEED}", f"train.optimizer.lr.warmup={WARMUP}",
            f"train.evaluate=every({EVERY}, batches = {EVALUATED // BATCH})"]

# --- The text: which bytes a step sees ------------------------------------------------

MASK64 = (1 << 64) - 1
TRAINING_START, TRAINING_MASK, VALIDATION_MASK = 1, 2, 3


def hash64(*key):
    """SplitMix64's finaliser, once for each word of the key."""
    x = 0
    for word in key:
        x = (x ^ word) + 0x9e3779b97f4a7c15 & MASK64
        x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & MASK64
        x = (x ^ x >> 27) * 0x94d049bb133111eb & MASK64
        x ^= x >> 31
    return x


def below(x, count):
    return x * count >> 64


class Text:
    """Sequences of tokens and targets; the last tenth of the text is for validation."""

    def __init__(self, mask):
        with open(TEXT, "rb") as file:
            self.bytes = file.read()
        self.training = len(self.bytes) - len(self.bytes) // 10
        self.mask = mask  # (probability, token), or None: predict the next byte

    def training_batch(self, step):
        """`step` counts from 1."""
        rows = []
        for i in range(BATCH):
            start = below(hash64(TRAINING_START, SEED, step, i), self.training - CONTEXT)
            rows.append(self.sequence(start, hash64(TRAINING_MASK, SEED, step, i)))
        return self.stack(rows)

    def validation_batch(self):
        starts = len(self.bytes) - self.training - CONTEXT
        return self.stack([self.sequence(self.training + i * starts // EVALUATED,
                                         hash64(VALIDATION_MASK, i)) for i in range(EVALUATED)])

    def sequence(self, start, key):
        tokens = list(self.bytes[start:start + CONTEXT])
        if not self.mask:
            return tokens, list(self.bytes[start + 1:start + CONTEXT + 1])
        probability, token = self.mask
        order = list(range(CONTEXT))
        targets = [-1] * CONTEXT
        for i in range(max(1, round(probability * CONTEXT))):
            other = i + below(hash64(key, i, 0), CONTEXT - i)
            order[i], order[other] = order[other], order[i]
            targets[order[i]] = tokens[order[i]]
        for i in range(CONTEXT):
            kind = (hash64(key, i, 1) >> 11) / 2.0**53
            if targets[i] >= 0 and kind < 0.8:
                tokens[i] = token
            elif targets[i] >= 0 and kind < 0.9:
                tokens[i] = below(hash64(key, i, 2), 256)
        return tokens, targets

    @staticmethod
    def stack(rows):
        return tuple(torch.tensor(column) for column in zip(*rows))


# --- Types: what is rounded, and when -------------------------------------------------


class Round(torch.autograd.Function):
    """Rounds a tensor to bf16, and so its gradient."""

    @staticmethod
    def forward(ctx, x):
        return x.bfloat16().to(x.dtype)

    @staticmethod
    def backward(ctx, dy):
        return dy.bfloat16().to(dy.dtype)


class RoundGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, dy):
        return dy.bfloat16().to(dy.dtype)


class RoundWeight(torch.autograd.Function):
    """The upper half of an f32 master, halves away from zero. Its gradient stays f32."""

    @staticmethod
    def forward(ctx, x):
        return (x.view(torch.int32) + 0x8000 & ~0xffff).view(torch.float32)

    @staticmethod
    def backward(ctx, dy):
        return dy


class Ops:
    """The ops of the language. `narrow`: activations and their gradients are bf16."""

    def __init__(self, narrow):
        self.narrow = narrow

    def op(self, function, *activations):
        if not self.narrow:
            return function(*activations)
        return Round.apply(function(*(RoundGradient.apply(x) for x in activations)))

    def add(self, a, b):
        return self.op(torch.add, a, b)

    def mul(self, a, b):
        return self.op(torch.mul, a, b)

    def gelu(self, x):
        return self.op(lambda x: F.gelu(x, approximate="tanh"), x)

    def silu(self, x):
        return self.op(F.silu, x)

    def embedding(self, table, tokens):
        return self.op(lambda: F.embedding(tokens, table))

    def linear(self, x, w, b=None):  # w [in, out]
        return self.op(lambda x: F.linear(x, w.t(), b), x)

    def layer_norm(self, x, w, b, eps=1e-5):
        return self.op(lambda x: F.layer_norm(x, x.shape[-1:], w, b, eps), x)

    def rms_norm(self, x, w):
        return self.op(lambda x: F.rms_norm(x, x.shape[-1:], w, 1e-5), x)

    def rotary(self, x, heads):
        """Turns the pair (i, i + d/2) of each head by t * 10000^(-2i/d): complex numbers."""

        def turn(x):
            batch, time, width = x.shape
            d = width // heads
            real, imaginary = x.view(batch, time, heads, 2, d // 2).unbind(3)
            speed = 10000.0 ** (-torch.arange(0, d, 2, dtype=torch.float64) / d)
            angle = torch.arange(time, dtype=torch.float64)[:, None] * speed  # [time, d/2]
            angle = torch.polar(torch.ones_like(angle), angle)[:, None, :]
            y = torch.complex(real, imaginary) * angle.to(torch.complex(real, imaginary).dtype)
            return torch.stack((y.real, y.imag), 3).reshape(x.shape)

        return self.op(turn, x)

    def attention(self, q, k, v, heads, kv_heads, causal):
        def split(x, heads):  # [batch, heads, time, d]
            return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

        def attend(q, k, v):
            y = F.scaled_dot_product_attention(split(q, heads), split(k, kv_heads),
                                               split(v, kv_heads), is_causal=causal,
                                               enable_gqa=kv_heads != heads)
            return y.transpose(1, 2).reshape(q.shape)

        return self.op(attend, q, k, v)

    def cross_entropy(self, logits, targets):
        if self.narrow:
            logits = RoundGradient.apply(logits)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=-1)


# --- The three models: p holds parameters by name -------------------------------------


def block_names(names):
    return {f"block.{layer}.{name}": shape for layer in range(DEPTH)
            for name, shape in names.items()}


class Gpt:
    betas, eps, decay = (0.9, 0.99), 1e-8, 0.1
    peak, floor, course = 2e-3, 2e-4, "cosine"
    mask, settings = None, []
    shapes = {
        "embed.wte": [256, WIDTH], "embed.wpe": [CONTEXT, WIDTH],
        **block_names({
            "ln1_w": [WIDTH], "ln1_b": [WIDTH],
            "qkv_w": [WIDTH, 3 * WIDTH], "qkv_b": [3 * WIDTH],
            "out_w": [WIDTH, WIDTH], "out_b": [WIDTH],
            "ln2_w": [WIDTH], "ln2_b": [WIDTH],
            "up_w": [WIDTH, 4 * WIDTH], "up_b": [4 * WIDTH],
            "down_w": [4 * WIDTH, WIDTH], "down_b": [WIDTH]}),
        "head.lnf_w": [WIDTH], "head.lnf_b": [WIDTH]}

    @staticmethod
    def loss(o, p, tokens, targets):
        x = o.add(o.embedding(p["embed.wte"], tokens), p["embed.wpe"])
        for layer in range(DEPTH):
            b = {name: p[f"block.{layer}.{name}"] for name in (
                "ln1_w", "ln1_b", "qkv_w", "qkv_b", "out_w", "out_b",
                "ln2_w", "ln2_b", "up_w", "up_b", "down_w", "down_b")}
            n = o.layer_norm(x, b["ln1_w"], b["ln1_b"])
            q, k, v = o.linear(n, b["qkv_w"], b["qkv_b"]).split(WIDTH, -1)
            a = o.attention(q, k, v, HEADS, HEADS, True)
            x = o.add(x, o.linear(a, b["out_w"], b["out_b"]))
            n = o.layer_norm(x, b["ln2_w"], b["ln2_b"])
            m = o.gelu(o.linear(n, b["up_w"], b["up_b"]))
            x = o.add(x, o.linear(m, b["down_w"], b["down_b"]))
        n = o.layer_norm(x, p["head.lnf_w"], p["head.lnf_b"])
        return o.cross_entropy(o.linear(n, p["embed.wte"].t()), targets)


class Llama:
    betas, eps, decay = (0.9, 0.95), 1e-8, 0.1
    peak, floor, course = 3e-3, 3e-4, "cosine"
    mask, settings = None, [f"model.kv_heads={KV_HEADS}", f"model.hidden={HIDDEN}"]
    shapes = {
        "embed.table": [256, WIDTH],
        **block_names({
            "norm1": [WIDTH], "q_w": [WIDTH, WIDTH],
            "k_w": [WIDTH, WIDTH // HEADS * KV_HEADS], "v_w": [WIDTH, WIDTH // HEADS * KV_HEADS],
            "o_w": [WIDTH, WIDTH], "norm2": [WIDTH],
            "gate_w": [WIDTH, HIDDEN], "up_w": [WIDTH, HIDDEN], "down_w": [HIDDEN, WIDTH]}),
        "head.norm": [WIDTH], "head.w": [WIDTH, 256]}

    @staticmethod
    def loss(o, p, tokens, targets):
        x = o.embedding(p["embed.table"], tokens)
        for layer in range(DEPTH):
            b = {name: p[f"block.{layer}.{name}"] for name in (
                "norm1", "q_w", "k_w", "v_w", "o_w", "norm2", "gate_w", "up_w", "down_w")}
            n = o.rms_norm(x, b["norm1"])
            q = o.rotary(o.linear(n, b["q_w"]), HEADS)
            k = o.rotary(o.linear(n, b["k_w"]), KV_HEADS)
            a = o.attention(q, k, o.linear(n, b["v_w"]), HEADS, KV_HEADS, True)
            x = o.add(x, o.linear(a, b["o_w"]))
            n = o.rms_norm(x, b["norm2"])
            m = o.mul(o.silu(o.linear(n, b["gate_w"])), o.linear(n, b["up_w"]))
            x = o.add(x, o.linear(m, b["down_w"]))
        return o.cross_entropy(o.linear(o.rms_norm(x, p["head.norm"]), p["head.w"]), targets)


class Bert:
    betas, eps, decay = (0.9, 0.999), 1e-8, 0.01
    peak, floor, course = 1e-3, 1e-4, "linear"
    mask, settings = (0.15, 256), []
    shapes = {
        "embed.wte": [257, WIDTH], "embed.wpe": [CONTEXT, WIDTH],
        "embed.ln_w": [WIDTH], "embed.ln_b": [WIDTH],
        **block_names({
            "qkv_w": [WIDTH, 3 * WIDTH], "qkv_b": [3 * WIDTH],
            "out_w": [WIDTH, WIDTH], "out_b": [WIDTH],
            "ln1_w": [WIDTH], "ln1_b": [WIDTH],
            "up_w": [WIDTH, 4 * WIDTH], "up_b": [4 * WIDTH],
            "down_w": [4 * WIDTH, WIDTH], "down_b": [WIDTH],
            "ln2_w": [WIDTH], "ln2_b": [WIDTH]}),
        "head.w": [WIDTH, WIDTH], "head.b": [WIDTH],
        "head.ln_w": [WIDTH], "head.ln_b": [WIDTH], "head.bias": [257]}

    @staticmethod
    def loss(o, p, tokens, targets):
        def norm(x, name):
            return o.layer_norm(x, p[name + "_w"], p[name + "_b"], 1e-12)

        x = norm(o.add(o.embedding(p["embed.wte"], tokens), p["embed.wpe"]), "embed.ln")
        for layer in range(DEPTH):
            block = f"block.{layer}."

            def linear(x, name):
                return o.linear(x, p[block + name + "_w"], p[block + name + "_b"])

            q, k, v = linear(x, "qkv").split(WIDTH, -1)
            h = norm(o.add(x, linear(o.attention(q, k, v, HEADS, HEADS, False), "out")),
                     block + "ln1")
            x = norm(o.add(h, linear(o.gelu(linear(h, "up")), "down")), block + "ln2")
        t = norm(o.gelu(o.linear(x, p["head.w"], p["head.b"])), "head.ln")
        return o.cross_entropy(o.linear(t, p["embed.wte"].t(), p["head.bias"]), targets)


# --- Training -------------------------------------------------------------------------


def rate(model, step):
    """`step` counts from 1. A straight rise, then a way down that ends at the last step."""
    if step <= WARMUP:
        return model.peak * step / WARMUP
    left = 1 - (step - WARMUP) / (STEPS - WARMUP)
    if model.course == "cosine":
        left = (1 - math.cos(math.pi * left)) / 2
    return model.floor + (model.peak - model.floor) * left


def train(model, narrow_weights, narrow, dtype):
    """The loss of every step, and that of validation every EVERY steps."""
    ops, text = Ops(narrow), Text(model.mask)
    masters = {name: torch.tensor(weights.values(name, math.prod(shape)), dtype=dtype)
               .view(shape).requires_grad_() for name, shape in model.shapes.items()}
    optimizer = torch.optim.AdamW(
        [{"params": [w for w in masters.values() if w.dim() > 1], "weight_decay": model.decay},
         {"params": [w for w in masters.values() if w.dim() == 1], "weight_decay": 0}],
        betas=model.betas, eps=model.eps)

    def loss(batch):
        used = {name: RoundWeight.apply(w) if narrow_weights else w for name, w in masters.items()}
        return model.loss(ops, used, *batch)

    losses, validation = [], []
    for step in range(1, STEPS + 1):
        for group in optimizer.param_groups:
            group["lr"] = rate(model, step)
        optimizer.zero_grad()
        value = loss(text.training_batch(step))
        value.backward()
        optimizer.step()
        losses.append(value.item())
        if step % EVERY == 0:
            with torch.no_grad():
                validation.append(loss(text.validation_batch()).item())
    return {"loss": losses, "validation": validation}


def apart(a, b):
    return max(abs(x - y) / y for key in a for x, y in zip(a[key], b[key]))


def main():
    examples = {}
    for name, model in (("gpt", Gpt), ("llama", Llama), ("bert", Bert)):
        types = {"f32": train(model, False, False, torch.float64),
                 "bf16 weights": train(model, True, False, torch.float32),
                 "bf16": train(model, True, True, torch.float32)}
        f32 = train(model, False, False, torch.float32)
        print(f"{name}: loss {types['f32']['loss'][0]:.4f} to {types['f32']['loss'][-1]:.4f}; "
              f"from f32 in f64: PyTorch's f32 {apart(f32, types['f32']):.1e}, "
              f"bf16 weights {apart(types['bf16 weights'], types['f32']):.1e}, "
              f"bf16 {apart(types['bf16'], types['f32']):.1e}")
        examples[name] = {"settings": SETTINGS + model.settings, "shapes": model.shapes,
                          "trainings": types}
    with open(os.path.join(HERE, "losses.json"), "w") as file:
        json.dump(examples, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
