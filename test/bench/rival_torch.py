#!/usr/bin/env python3
"""PyTorch on the shape of the comparison: what `compare` measures Boa against.

A GPT-2 written the usual way: one matrix for q, k and v, fused attention, AdamW.
Same tokens a step, same arithmetic type (f32, or bf16 by autocast), the same bytes.
Eager or compiled, whichever is faster here. Needs PyTorch 2; nothing else of Boa does.

Stays alive between its turns: prints a line about itself, then for each number
N read from stdin does N steps and prints a JSON object for each. `--steps N` does
N steps and ends.
"""
import argparse
import json
import os
import sys
import time


def arguments(text):
    parser = argparse.ArgumentParser(description=text,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, value in (("vocab", 512), ("context", 256), ("width", 768), ("heads", 12),
                        ("depth", 12), ("batch", 2), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--device", default="cpu", help="as PyTorch names it")
    parser.add_argument("--data", required=True, help="a file whose bytes are the tokens")
    return parser


def make_model(options):
    """As gpt86m.boa has it, the head untied."""
    import torch
    import torch.nn.functional as F
    from torch import nn

    class Block(nn.Module):
        def __init__(self, width, heads):
            super().__init__()
            self.heads = heads
            self.ln1, self.ln2 = nn.LayerNorm(width), nn.LayerNorm(width)
            self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
            self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

        def forward(self, x):
            batch, length, width = x.shape
            q, k, v = (part.view(batch, length, self.heads, -1).transpose(1, 2)
                       for part in self.qkv(self.ln1(x)).split(width, dim=2))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
            return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.wte = nn.Embedding(options.vocab, options.width)
            self.wpe = nn.Embedding(options.context, options.width)
            self.blocks = nn.ModuleList(Block(options.width, options.heads)
                                        for _ in range(options.depth))
            self.ln = nn.LayerNorm(options.width)
            self.head = nn.Linear(options.width, options.vocab, bias=False)
            self.register_buffer("positions", torch.arange(options.context))
            for module in self.modules():
                weight = getattr(module, "weight", None)
                # Under zero.Init a parameter may already have been handed over.
                if isinstance(module, (nn.Linear, nn.Embedding)) and weight.numel() > 0:
                    nn.init.normal_(weight, std=0.02)

        def forward(self, tokens, targets):
            x = self.wte(tokens) + self.wpe(self.positions)
            for block in self.blocks:
                x = block(x)
            logits = self.head(self.ln(x))
            return F.cross_entropy(logits.flatten(0, 1), targets.flatten())

    return Model()


class Batches:
    """Random windows of the data."""

    def __init__(self, options):
        import torch
        with open(options.data, "rb") as file:
            self.text = torch.frombuffer(bytearray(file.read()), dtype=torch.uint8)
        self.batch, self.context, self.device = options.batch, options.context, options.device

    def next(self):
        import torch
        begins = torch.randint(0, len(self.text) - self.context, (self.batch,))
        window = torch.stack([self.text[b:b + self.context + 1] for b in begins]).long()
        window = window.to(self.device)
        return window[:, :-1].contiguous(), window[:, 1:].contiguous()


def disk_bytes():
    with open("/proc/self/io") as file:
        fields = dict(line.split(": ") for line in file)
    return int(fields["read_bytes"]), int(fields["write_bytes"])


def serve(step, out, steps=None):
    for line in [str(steps)] if steps else iter(sys.stdin.readline, ""):
        for _ in range(int(line)):
            read, written = disk_bytes()
            begin = time.perf_counter()
            loss = step()
            seconds = time.perf_counter() - begin
            after = disk_bytes()
            print(json.dumps({"seconds": seconds, "loss": loss, "read": after[0] - read,
                              "written": after[1] - written}), file=out, flush=True)


def make_step(options, optimizer_flags, compiled=False):
    import torch
    torch.manual_seed(1)
    model = make_model(options).to(options.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95),
                                  weight_decay=0.1, **optimizer_flags)
    data = Batches(options)
    forward = torch.compile(model) if compiled else model

    def step():
        with torch.autocast(options.device, dtype=torch.bfloat16, enabled=options.bf16):
            loss = forward(*data.next())
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss.item()

    return step, optimizer


def best_optimizer(width):
    """The flags of the AdamW that is fastest here, over a few large parameters."""
    import torch
    times = {}
    for name in ("fused", "foreach"):
        parameters = [torch.nn.Parameter(torch.rand(4 * width, width)) for _ in range(4)]
        for parameter in parameters:
            parameter.grad = torch.rand_like(parameter)
        optimizer = torch.optim.AdamW(parameters, **{name: True})
        optimizer.step()
        begin = time.perf_counter()
        for _ in range(5):
            optimizer.step()
        times[name] = time.perf_counter() - begin
    return min(times, key=times.get)


def best_step(options, optimizer_flags):
    """Eager or compiled, whose fastest of three steps is the faster; and which it is."""
    best = None
    for name, compiled in (("eager", False), ("compiled", True)):
        step, _ = make_step(options, optimizer_flags, compiled)
        try:
            step()
        except Exception as reason:  # no C++ compiler, say
            print(f"rival_torch: {name}: {reason}", file=sys.stderr)
            continue
        times = []
        for _ in range(3):
            begin = time.perf_counter()
            step()
            times.append(time.perf_counter() - begin)
        if best is None or min(times) < best[0]:
            best = (min(times), step, name)
    return best[1:]


def main():
    parser = arguments(__doc__)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--bf16", action="store_true", help="autocast to bf16")
    parser.add_argument("--optimizer", choices=("fused", "foreach"), help="default: the faster")
    options = parser.parse_args()
    import torch
    torch.set_num_threads(options.threads)
    kind = options.optimizer or best_optimizer(options.width)
    step, how = best_step(options, {kind: True})
    print(f"torch {torch.__version__} {how}, AdamW {kind}", flush=True)
    serve(step, sys.stdout, options.steps)


if __name__ == "__main__":
    main()
