#!/usr/bin/env python3
"""Writes golden/*.txt: values and gradients of every op as PyTorch computes them.

The files are kept; tests read them and need no Python. A file has one tensor a
line: its role (argument, seed, result, gradient), then its values in row-major
order. Arguments are those of the case of the same name in Cases.cpp; seeds are the
gradients of the results; gradients are those of the floating-point arguments.

    python3 make_golden.py        (needs torch; any version with
                                   scaled_dot_product_attention)
"""
import os

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)
torch.manual_seed(20240607)
FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "golden")


def write(name, arguments, function):
    arguments = [a.requires_grad_() if a.is_floating_point() else a for a in arguments]
    result = function(*arguments)
    seed = torch.randn(result.shape)
    result.backward(seed)
    gradients = [a.grad for a in arguments if a.is_floating_point()]
    with open(os.path.join(FOLDER, name + ".txt"), "w") as file:
        for role, tensors in (("argument", arguments), ("seed", [seed]),
                              ("result", [result]), ("gradient", gradients)):
            for tensor in tensors:
                values = tensor.detach().reshape(-1).tolist()
                file.write(" ".join([role] + [f"{v:.17g}" for v in values]) + "\n")


def split_heads(x, heads):
    batch, time, width = x.shape
    return x.view(batch, time, heads, width // heads).transpose(1, 2)


def attention(heads, kv_heads, causal):
    def function(q, k, v):
        group = heads // kv_heads
        k, v = (split_heads(t, kv_heads).repeat_interleave(group, dim=1) for t in (k, v))
        y = F.scaled_dot_product_attention(split_heads(q, heads), k, v, is_causal=causal)
        return y.transpose(1, 2).reshape(q.shape)
    return function


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def rotary(heads, base):
    def function(x):
        x = split_heads(x, heads)
        time, d = x.shape[-2:]
        frequency = 1.0 / base ** (torch.arange(0, d, 2) / d)
        angle = torch.outer(torch.arange(time).double(), frequency)
        angle = torch.cat((angle, angle), dim=-1)
        y = x * angle.cos() + rotate_half(x) * angle.sin()
        return y.transpose(1, 2).reshape(x.shape[0], time, heads * d)
    return function


def rms_norm(x, weight):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * weight


def cross_entropy(logits, targets):
    return F.cross_entropy(logits.view(-1, logits.shape[-1]), targets.view(-1), ignore_index=-1)


os.makedirs(FOLDER, exist_ok=True)
randn = torch.randn
write("gelu_7", [randn(2, 3, 7) * 2], lambda x: F.gelu(x, approximate="tanh"))
write("silu_7", [randn(2, 3, 7) * 2], F.silu)
write("linear_7_bias", [randn(2, 3, 5), randn(5, 7), randn(7)],
      lambda x, w, b: F.linear(x, w.t(), b))
write("linear_7_bias_transpose", [randn(2, 3, 5), randn(7, 5), randn(7)], F.linear)
write("layer_norm_7", [randn(2, 5, 7), randn(7), randn(7)],
      lambda x, w, b: F.layer_norm(x, (7,), w, b, 1e-5))
write("rms_norm_7", [randn(2, 5, 7), randn(7)], rms_norm)
write("attention_5", [randn(2, 5, 12), randn(2, 5, 12), randn(2, 5, 12)], attention(3, 3, False))
write("attention_9_causal", [randn(1, 9, 32), randn(1, 9, 16), randn(1, 9, 16)],
      attention(4, 2, True))
write("rotary", [randn(2, 5, 24)], rotary(3, 100.0))
write("embedding_5", [randn(11, 5), torch.randint(0, 11, (2, 7))],
      lambda table, tokens: F.embedding(tokens, table))
write("cross_entropy_5", [randn(3, 4, 5), torch.randint(0, 5, (3, 4))], cross_entropy)
targets = torch.randint(0, 19, (3, 4))
targets[0, 1] = targets[2, 3] = -1
write("cross_entropy_19_ignored", [randn(3, 4, 19) * 3, targets], cross_entropy)
