"""Prints a model of COUNT equal layers: make-layers.py COUNT repeat|single|stages|chain.

As one layer that repeats, as layers of `repeat 1`, or, but for the first, as stages. Their initial
values are the same. A chain is one layer of COUNT gelus.
"""
import sys

count, form = int(sys.argv[1]), sys.argv[2]
LAYER = """
  %s %s(x: [context, width]) -> [context, width]%s {
    param up:   [width, 4 * width] = ones
    param down: [4 * width, width] = ones
    return x + 0.01 * linear(gelu(0.1 * linear(x, up)), down)
  }
"""
if form == "repeat":
    layers = LAYER % ("layer", "block", f" repeat {count}")
elif form == "chain":
    gelus = "\n".join(f"    let x{i + 1} = gelu(x{i})" for i in range(count))
    layers = f"""
  layer block(x0: [context, width]) -> [context, width] repeat 1 {{
{gelus}
    return x{count}
  }}"""
else:
    # A model has one layer at least.
    layer, stage = ("layer", " repeat 1"), ("stage", "")
    layers = "".join(LAYER % (kind, f"block{i}", repeat) for i in range(count)
                     for kind, repeat in [layer if form == "single" or i == 0 else stage])
print(f"""
model layers(vocab = 256, context = 8, width = 64) {{
  stage embed(tokens: [context] token) -> [context, width] {{
    param table: [vocab, width] = normal(0.02)
    return embedding(table, tokens)
  }}
{layers}
  stage head(x: [context, width], targets: [context] token) -> loss {{
    return cross_entropy(linear(x, transpose(embed.table)), targets)
  }}
}}
train layers {{
  data      = "kjv.txt"
  batch     = 4 sequences
  steps     = 3
  weights   = f32
  optimizer = adamw(lr = 1e-2)
}}
plan {{
  micro_batch = 2
  schedule    = vertical
  place       = ssd
}}
machine m {{
  device cpu  {{ }}
  ssd "state" {{ }}
}}
""")
