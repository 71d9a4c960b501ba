"""make-chain.py COUNT sums|one|placed|gradient|total: a kernel of as many ops, each of the one before.

sums: scales, of each of which the sum is a result, too. one: silus, of which the last is the result. placed: the same
with places for argument and result. gradient: sums that are added to one accumulator. total: the same
without an accumulator.
"""
import sys

count, form = int(sys.argv[1]), sys.argv[2]


def at(buffer, more=""):
    return f" {{boa.buffer = {buffer} : i32, boa.offset = 0 : i64{more}}}" if form in ("placed", "gradient", "total") else ""


arguments = "%y0: tensor<8x4xf32>" + at(0)
if form == "gradient":
    arguments += ", %g0: tensor<4xf32>" + at(1, ", boa.result = 0 : i32")
results = {"sums": [f"%s{i + 1}" for i in range(count)], "gradient": [f"%g{count}"], "total": [f"%g{count}"]}
results = results.get(form, [f"%y{count}"])
types = ["tensor<8x4xf32>" if form in ("one", "placed") else "tensor<4xf32>"] * len(results)
placed = ", ".join(type + at(1) for type in types)
buffers = f" reads [tensor<8x4xf32>] {'updates' if form == 'gradient' else 'writes'} [{types[0]}]" if at(0) else ""
print(f"boa.kernel @chain({arguments}) -> ({placed}){buffers} {{")
for i in range(count):
    if form in ("gradient", "total"):
        name = "g" if form == "total" and i == 0 else "s"
        print(f"  %{name}{i + 1} = boa.sum_leading %y0 : tensor<8x4xf32> to tensor<4xf32>")
        if name == "s":
            print(f"  %g{i + 1} = boa.add %g{i}, %s{i + 1} : tensor<4xf32>, tensor<4xf32>")
        continue
    op = "scale %y{} by 1.5" if form == "sums" else "silu %y{}"
    print(f"  %y{i + 1} = boa.{op.format(i)} : tensor<8x4xf32>")
    if form == "sums":
        print(f"  %s{i + 1} = boa.sum_leading %y{i + 1} : tensor<8x4xf32> to tensor<4xf32>")
print(f"  boa.return {', '.join(results)} : {', '.join(types)}\n}}")
