#!/usr/bin/env python3
"""PyTorch eager on the shape of the comparison: what `compare` measures Boa against.

A GPT-2 written the usual way: one matrix for q, k and v, fused attention, tied
head, AdamW. Same tokens a step, same arithmetic type (f32), byte data. Prints the
seconds of each step, one a line. Needs PyTorch 2; nothing else of Boa does.
"""
import argparse
import time

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
        batch, time_, width = x.shape
        q, k, v = (part.view(batch, time_, self.heads, -1).transpose(1, 2)
                   for part in self.qkv(self.ln1(x)).split(width, dim=2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(batch, time_, width))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self, options):
        super().__init__()
        self.wte = nn.Embedding(options.vocab, options.width)
        self.wpe = nn.Embedding(options.context, options.width)
        self.blocks = nn.ModuleList(Block(options.width, options.heads)
                                    for _ in range(options.depth))
        self.ln = nn.LayerNorm(options.width)

    def forward(self, tokens, targets):
        x = self.wte(tokens) + self.wpe.weight
        for block in self.blocks:
            x = block(x)
        logits = F.linear(self.ln(x), self.wte.weight)
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def main():
    parser = argparse.ArgumentParser()
    for name, value in (("vocab", 512), ("context", 256), ("width", 768), ("heads", 12),
                        ("depth", 12), ("batch", 2), ("steps", 4), ("threads", 2)):
        parser.add_argument("--" + name, type=int, default=value)
    parser.add_argument("--gemm", action="store_true", help="print GFLOP/s of a 1024^3 product")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.gemm:
        a, b = torch.rand(1024, 1024), torch.rand(1024, 1024)
        rates = []
        for _ in range(12):
            begin = time.perf_counter()
            a @ b
            rates.append(2 * 1024**3 / (time.perf_counter() - begin) / 1e9)
        print(sorted(rates)[len(rates) // 2])
        return
    torch.manual_seed(1)
    model = Model(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.1, fused=True)
    for _ in range(options.steps):
        text = torch.randint(0, 256, (options.batch, options.context + 1))
        begin = time.perf_counter()
        loss = model(text[:, :-1], text[:, 1:])
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()
        print(time.perf_counter() - begin, flush=True)


if __name__ == "__main__":
    main()
