//===- AttentionOps.td - Attention, rotary embedding -------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_ATTENTION_OPS_TD
#define BOA_ATTENTION_OPS_TD

include "dialect/ComputeOps.td"

def Boa_RotaryOp : Boa_DifferentiableOp<"rotary", "3 * elements(getY())",
                                        [AllTypesMatch<["x", "y"]>, Boa_WidensItself]> {
  let summary = "rotary position embedding, rotate-half form";
  let description = [{
    x is [batch, time, heads * d]. Within each head, the pair (i, i + d/2) is
    rotated by the angle t * f, where f = base^(-2i/d); `inverse` rotates back (the VJP).

    With `factor`, f is divided by it. With `low`, `high` and `original_context`, too, this
    depends on the number of turns in that context, n = context * f / (2 pi), as Llama
    3.1 has it. From `high` turns on f stays as it is. Up to `low` it is divided. In
    between it is (1 - s) f / factor + s f, where s = (n - low) / (high - low).

    With positions [batch, time], t is the position of a row, below `length`:
    `boa.rotary %x heads 4 at %positions of 256 : tensor<1x1x384xf32>, tensor<1x1xi32>`.
    ```mlir
    %y = boa.rotary %x heads 4
        {base = 5.0e5 : f64, factor = 8.0 : f64, low = 1.0 : f64, high = 4.0 : f64,
         original_context = 8192 : i64}
        : tensor<8x256x384xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$x, Optional<Boa_Indices>:$positions, I64Attr:$heads,
                       DefaultValuedAttr<F64Attr, "1.0e4">:$base, UnitAttr:$inverse,
                       OptionalAttr<F64Attr>:$factor, OptionalAttr<F64Attr>:$low,
                       OptionalAttr<F64Attr>:$high, OptionalAttr<I64Attr>:$original_context,
                       OptionalAttr<I64Attr>:$length);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = [{
    $x `heads` $heads (`inverse` $inverse^)? (`at` $positions^ `of` $length)? attr-dict
    `:` type($x) (`,` type($positions)^)?
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// The angle of each pair of a head at position 1, in radians.
    ::llvm::SmallVector<double> getFrequencies();
  }];
}

def Boa_AttentionOp : Boa_SumOp<"attention", "2 * attentionProduct(*this)", [
    Boa_AttentionProduct, Boa_WidensItself, DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "softmax(q k^T / sqrt(d)) v, by head";
  let description = [{
    q is [batch, time, heads * d], k and v are [batch, time, kv_heads * d]; head h
    attends with key/value head h / (heads / kv_heads) (grouped queries). With
    `causal`, row t sees keys 0..t; with `window`, too, only the last of them,
    max(0, t - window + 1)..t. `lse` [batch, heads, time] is the logarithm
    of each row's sum of exponentials, kept for the gradient. No lowering may materialise
    [heads, time, time] for a whole micro-batch.
    With `document_starts` [batch, time], a row sees only keys of its own document: those of the
    same start. Starts do not decrease along a sequence. The first row of a document is its own start.
    ```mlir
    %y, %lse = boa.attention %q, %k, %v documents %document_starts heads 6, 2 causal
        : (tensor<8x256x384xf32>, tensor<8x256x128xf32>, tensor<8x256x128xf32>,
           tensor<8x256xi32>) -> (tensor<8x256x384xf32>, tensor<8x6x256xf32>)
    ```
  }];
  let arguments = (ins Boa_Tensor:$q, Boa_Tensor:$k, Boa_Tensor:$v,
                       Optional<Boa_Indices>:$document_starts,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs Boa_Tensor:$y, Boa_Tensor:$lse);
  let assemblyFormat = [{
    $q `,` $k `,` $v (`documents` $document_starts^)? `heads` $heads `,` $kv_heads
    (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
}
def Boa_CachedAttentionOp : Boa_ComputeOp<"cached_attention", "2 * cachedProduct(*this)",
                                           [Boa_AttentionProduct, Boa_WidensItself]> {
  let summary = "causal attention of some rows, after the keys and values of earlier ones";
  let description = [{
    q, k and v are rows [1, rows, ...] of the text, at `positions` [1, rows]. Their keys and
    values are put into the caches [1, context, kv_heads * d], each at its position, in the order
    of the rows. Then each row of q attends as in boa.attention, to the cache. What the cache
    holds behind a row's position does not matter. `next_keys` and `next_values` are the caches
    after that, in the same memory.
    ```mlir
    %y, %k1, %v1 = boa.cached_attention %q, %k, %v, %keys, %values at %positions heads 6, 2
        : (tensor<1x1x384xf32>, tensor<1x1x128xf32>, tensor<1x1x128xf32>,
           tensor<1x256x128xf32>, tensor<1x256x128xf32>, tensor<1x1xi32>)
        -> (tensor<1x1x384xf32>, tensor<1x256x128xf32>, tensor<1x256x128xf32>)
    ```
  }];
  let arguments = (ins Boa_Tensor:$q, Boa_Tensor:$k, Boa_Tensor:$v, Boa_Tensor:$keys,
                       Boa_Tensor:$values, Boa_Indices:$positions,
                       I64Attr:$heads, I64Attr:$kv_heads, OptionalAttr<I64Attr>:$window);
  let results = (outs Boa_Tensor:$y, Boa_Tensor:$next_keys, Boa_Tensor:$next_values);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $keys `,` $values `at` $positions `heads` $heads `,` $kv_heads attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Boa_AttentionGradOp : Boa_SumOp<"attention_grad", "5 * attentionProduct(*this)",
                                    [Boa_AttentionProduct, Boa_WidensItself]> {
  let summary = "gradients of boa.attention, from its results and dy";
  let arguments = (ins Boa_Tensor:$q, Boa_Tensor:$k, Boa_Tensor:$v, Boa_Tensor:$y,
                       Boa_Tensor:$lse, Boa_Tensor:$dy, Optional<Boa_Indices>:$document_starts,
                       I64Attr:$heads, I64Attr:$kv_heads, UnitAttr:$causal,
                       OptionalAttr<I64Attr>:$window);
  let results = (outs Boa_Tensor:$dq, Boa_Tensor:$dk, Boa_Tensor:$dv);
  let assemblyFormat = [{
    $q `,` $k `,` $v `,` $y `,` $lse `,` $dy (`documents` $document_starts^)?
    `heads` $heads `,` $kv_heads (`causal` $causal^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // BOA_ATTENTION_OPS_TD
