"""make-chain.py COUNT sums|one: a kernel of as many ops, each of the one before.

sums: scales, of each of which the sum is a result, too. one: silus, of which the last is the result.
"""
import sys

count, sums = int(sys.argv[1]), sys.argv[2] == "sums"
results = [f"%s{i + 1}" for i in range(count)] if sums else [f"%y{count}"]
types = ", ".join(["tensor<4xf32>" if sums else "tensor<8x4xf32>"] * len(results))
print(f"func.func @chain(%y0: tensor<8x4xf32>) -> ({types}) attributes {{boa.kernel}} {{")
for i in range(count):
    op = "scale %y{} by 1.5" if sums else "silu %y{}"
    print(f"  %y{i + 1} = boa.{op.format(i)} : tensor<8x4xf32>")
    if sums:
        print(f"  %s{i + 1} = boa.sum_leading %y{i + 1} : tensor<8x4xf32> to tensor<4xf32>")
print(f"  return {', '.join(results)} : {types}\n}}")
