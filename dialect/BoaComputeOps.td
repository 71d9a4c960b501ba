//===- BoaComputeOps.td - Tensor ops in transformer terms ---*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Activations are [batch, time, width]; "rows" are all leading dimensions together.
// Tensors are f32 or bf16 (f64 in gradient tests). All tensors of an op have one element
// type, except in boa.cast and for sums: sums over rows and statistics of a row are f32
// if the rest is bf16. Arithmetic on bf16 is done in f32 and its result rounded. Ops
// that end in _grad are the parts of VJPs; they are not differentiable themselves.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_ALL_COMPUTE_OPS_TD
#define BOA_ALL_COMPUTE_OPS_TD

include "dialect/ComputeOps.td"

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class Boa_BinaryOp<string mnemonic>
    : Boa_DifferentiableOp<mnemonic, [AllTypesMatch<["lhs", "result"]>, Boa_RowByRow]> {
  let arguments = (ins Boa_Tensor:$lhs, Boa_Tensor:$rhs);
  let results = (outs Boa_Tensor:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict `:` type($lhs) `,` type($rhs)";
  let hasVerifier = 1;
  let builders = [OpBuilder<(ins "::mlir::Value":$lhs, "::mlir::Value":$rhs), [{
    build($_builder, $_state, lhs.getType(), lhs, rhs);
  }]>];
}

def Boa_AddOp : Boa_BinaryOp<"add"> {
  let summary = "lhs + rhs";
  let description = [{
    The result has the shape of `lhs`; `rhs` has the same shape or lacks leading
    dimensions, over which it is broadcast.
  }];
}
def Boa_MulOp : Boa_BinaryOp<"mul"> {
  let summary = "lhs * rhs, elementwise; broadcast as boa.add";
}

def Boa_ScaleOp : Boa_DifferentiableOp<"scale", [SameOperandsAndResultType, Boa_RowByRow]> {
  let summary = "x times a constant";
  let arguments = (ins Boa_Tensor:$x, F64Attr:$factor);
  let results = (outs Boa_Tensor:$result);
  let assemblyFormat = "$x `by` $factor attr-dict `:` type($x)";
}

class Boa_ActivationOp<string mnemonic>
    : Boa_DifferentiableOp<mnemonic, [SameOperandsAndResultType, Boa_RowByRow]> {
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}
class Boa_ActivationGradOp<string mnemonic>
    : Boa_ComputeOp<mnemonic, [SameOperandsAndResultType]> {
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$dy);
  let results = (outs Boa_Tensor:$dx);
  let assemblyFormat = "$x `,` $dy attr-dict `:` type($x)";
}
def Boa_GeluOp : Boa_DifferentiableOp<"gelu", [SameOperandsAndResultType, Boa_RowByRow]> {
  let summary = "GELU, tanh form (GPT-2): x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))";
  let description = [{
    With `exact`, x/2 (1 + erf(x / sqrt(2))), as BERT has it.
    `boa.gelu %x exact : tensor<8x256x1536xf32>`
  }];
  let arguments = (ins Boa_Tensor:$x, UnitAttr:$exact);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x (`exact` $exact^)? attr-dict `:` type($x)";
}
def Boa_GeluGradOp : Boa_ComputeOp<"gelu_grad", [SameOperandsAndResultType]> {
  let summary = "dy times the derivative of boa.gelu at x";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$dy, UnitAttr:$exact);
  let results = (outs Boa_Tensor:$dx);
  let assemblyFormat = "$x `,` $dy (`exact` $exact^)? attr-dict `:` type($x)";
}
def Boa_SiluOp : Boa_ActivationOp<"silu"> {
  let summary = "x * sigmoid(x)";
}
def Boa_SiluGradOp : Boa_ActivationGradOp<"silu_grad"> {
  let summary = "dy times the derivative of boa.silu at x";
}

def Boa_CastOp : Boa_Op<"cast", [Pure, Boa_RowByRow,
    DeclareOpInterfaceMethods<Boa_CostOpInterface, ["getFlops"]>,
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "to another floating-point type, same shape";
  let description = [{
    Rounds to nearest, ties to even. VJP: the gradient in the operand's type. A cast
    that is exact costs nothing: the narrow value is kept and widened again.
    `boa.cast %x : tensor<8x256x384xf32> to tensor<8x256x384xbf16>`
  }];
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($y)";
  let hasVerifier = 1;
  let hasFolder = 1;
  let extraClassDeclaration = [{
    /// Whether the result's type holds every value of the operand's.
    bool isExact();
  }];
}

def Boa_SumLeadingOp : Boa_SumOp<"sum_leading"> {
  let summary = "the sum over leading dimensions: the adjoint of a broadcast";
  let description = [{
    The result's shape is a suffix of the operand's.
    `boa.sum_leading %dy : tensor<8x256x384xf32> to tensor<384xf32>`
  }];
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($y)";
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

def Boa_SplitOp : Boa_DifferentiableOp<"split", [Boa_RowByRow]> {
  let summary = "consecutive parts of the last dimension";
  let description = [{ The sizes are those of the result types. }];
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Variadic<Boa_Tensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_ConcatOp : Boa_DifferentiableOp<"concat", [Boa_RowByRow]> {
  let summary = "joins tensors along the last dimension";
  let arguments = (ins Variadic<Boa_Tensor>:$parts);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

//===----------------------------------------------------------------------===//
// Normalisation
//===----------------------------------------------------------------------===//

def Boa_LayerNormOp : Boa_DifferentiableOp<"layer_norm", [Boa_RowByRow]> {
  let summary = "(x - mean) / sqrt(var + eps) * weight + bias, over the last dimension";
  let description = [{
    With `heads`, the last dimension is as many heads. Each has statistics of its own,
    and all share weight and bias of one head's width.
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$bias,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `,` $bias attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_LayerNormGradOp : Boa_SumOp<"layer_norm_grad"> {
  let summary = "gradients of boa.layer_norm; mean and variance are computed again";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$dy,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$dx, Boa_Tensor:$dweight, Boa_Tensor:$dbias);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` functional-type(operands, results)";
}
def Boa_RmsNormOp : Boa_DifferentiableOp<"rms_norm", [Boa_RowByRow]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight, over the last dimension";
  let description = [{
    With `heads`, each head by itself, as in boa.layer_norm.
    ```mlir
    %n = boa.rms_norm %q, %w {heads = 4 : i64}
        : (tensor<8x256x384xf32>, tensor<96xf32>) -> tensor<8x256x384xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x `,` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_RmsNormGradOp : Boa_SumOp<"rms_norm_grad"> {
  let summary = "gradients of boa.rms_norm";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$dy,
                       DefaultValuedAttr<F64Attr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$dx, Boa_Tensor:$dweight);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` functional-type(operands, results)";
}

//===----------------------------------------------------------------------===//
// Attention
//===----------------------------------------------------------------------===//

def Boa_RotaryOp : Boa_DifferentiableOp<"rotary", [AllTypesMatch<["x", "y"]>]> {
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

def Boa_AttentionOp : Boa_SumOp<"attention", [Boa_AttentionProduct,
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
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
def Boa_CachedAttentionOp : Boa_ComputeOp<"cached_attention", [Boa_AttentionProduct]> {
  let summary = "causal attention of some rows, after the keys and values of earlier ones";
  let description = [{
    q, k and v are rows [1, rows, ...] of the text, at `positions` [1, rows], which differ.
    Their keys and values are put into the caches [1, context, kv_heads * d], each at its
    position. Then each row of q attends as in boa.attention, to the cache. What the cache
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

def Boa_AttentionGradOp : Boa_SumOp<"attention_grad", [Boa_AttentionProduct]> {
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

//===----------------------------------------------------------------------===//
// Ends of the model
//===----------------------------------------------------------------------===//

def Boa_EmbeddingOp : Boa_DifferentiableOp<"embedding", [Boa_RowByRow]> {
  let summary = "rows of a table: y[b, t] = table[tokens[b, t]]";
  let arguments = (ins Boa_Tensor:$table, Boa_Indices:$tokens);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$table `,` $tokens attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_EmbeddingGradOp : Boa_SumOp<"embedding_grad"> {
  let summary = "scatters dy into a table of zeros: dtable[tokens[b, t]] += dy[b, t], in order of (b, t)";
  let arguments = (ins Boa_Indices:$tokens, Boa_Tensor:$dy);
  let results = (outs Boa_Tensor:$dtable);
  let assemblyFormat = "$tokens `,` $dy attr-dict `:` functional-type(operands, results)";
}

// A table by blocks of tokens. What goes from block to block is [batch, time, width + 3]: rows that
// were found so far, else zeros, and behind each row its token, counted from the first token of the
// next block, as three digits to the base 256. The last digit has the sign.

def Boa_EmbeddingBeginOp : Boa_SumOp<"embedding_begin"> {
  let summary = "what the first block of a table takes";
  let description = [{
    Zeros, and the tokens. Their digits are exact in bf16, too.
  }];
  let arguments = (ins Boa_Indices:$tokens);
  let results = (outs Boa_Tensor:$found);
  let assemblyFormat = "$tokens attr-dict `:` functional-type(operands, results)";
}
def Boa_EmbeddingBlockOp : Boa_SumOp<"embedding_block", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "the rows whose tokens are in one block of a table";
  let description = [{
    Other rows stay as they are.
    ```mlir
    %next = boa.embedding_block %found, %table
        : (tensor<8x256x387xf32>, tensor<64x384xf32>) -> tensor<8x256x387xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$found, Boa_Tensor:$table);
  let results = (outs Boa_Tensor:$next);
  let assemblyFormat = "$found `,` $table attr-dict `:` functional-type(operands, results)";
}
def Boa_EmbeddingBlockGradOp : Boa_SumOp<"embedding_block_grad"> {
  let summary = "scatters the rows of dnext whose tokens are in the block into a table of zeros";
  let description = [{
    In order of (b, t), as boa.embedding_grad. What the block takes has the gradient dnext: a row that
    this block finds was zero before, and no earlier block finds it.
  }];
  let arguments = (ins Boa_Tensor:$found, Boa_Tensor:$dnext);
  let results = (outs Boa_Tensor:$dtable);
  let assemblyFormat = "$found `,` $dnext attr-dict `:` functional-type(operands, results)";
}

def Boa_CrossEntropyOp : Boa_SumOp<"cross_entropy", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "the mean of -log softmax(logits)[target], in nats";
  let description = [{
    logits [batch, time, vocab], targets [batch, time] i32; a negative target is
    left out. The result is a scalar tensor: the mean over the targets counted.
  }];
  let arguments = (ins Boa_Tensor:$logits, Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$loss);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyGradOp : Boa_SumOp<"cross_entropy_grad"> {
  let summary = "(softmax(logits) - onehot(target)) * dloss / count; zero where left out";
  let arguments = (ins Boa_Tensor:$logits, Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $targets `,` $dloss attr-dict `:` functional-type(operands, results)";
}

// Cross-entropy by blocks of the vocabulary. What goes from block to block is [batch, 3, time]: the
// logarithm of the sum of exponentials so far, the logit of the target if it was in a block so far,
// and the target, counted from the first token of the next block.

def Boa_CrossEntropyBeginOp : Boa_SumOp<"cross_entropy_begin"> {
  let summary = "what the first block of a vocabulary takes";
  let description = [{
    The sum of no exponentials has the logarithm -1e30. Targets are exact in f32 up to 2^24.
  }];
  let arguments = (ins Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$sums);
  let assemblyFormat = "$targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyBlockOp : Boa_SumOp<"cross_entropy_block", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "adds the logits of one block of a vocabulary";
  let description = [{
    logits [batch, time, tokens of the block]; sums and result [batch, 3, time], as
    boa.cross_entropy_begin begins them.
    ```mlir
    %next = boa.cross_entropy_block %sums, %logits
        : (tensor<8x3x256xf32>, tensor<8x256x64xbf16>) -> tensor<8x3x256xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$sums, Boa_Tensor:$logits);
  let results = (outs Boa_Tensor:$next);
  let assemblyFormat = "$sums `,` $logits attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyBlockGradOp : Boa_SumOp<"cross_entropy_block_grad"> {
  let summary = "gradients of boa.cross_entropy_block; its result is computed again";
  let description = [{
    With the logarithm l before the block and m after it: dlogits = exp(logits - m) dm, and that
    of the target's logit at the target; dl = exp(l - m) dm.
  }];
  let arguments = (ins Boa_Tensor:$sums, Boa_Tensor:$logits, Boa_Tensor:$dnext);
  let results = (outs Boa_Tensor:$dsums, Boa_Tensor:$dlogits);
  let assemblyFormat = "$sums `,` $logits `,` $dnext attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndOp : Boa_SumOp<"cross_entropy_end", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "boa.cross_entropy, of the sums behind the last block";
  let arguments = (ins Boa_Tensor:$sums, Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$loss);
  let assemblyFormat = "$sums `,` $targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndGradOp : Boa_SumOp<"cross_entropy_end_grad"> {
  let summary = "the gradient of boa.cross_entropy_end";
  let arguments = (ins Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dsums);
  let assemblyFormat = "$targets `,` $dloss attr-dict `:` functional-type(operands, results)";
}

#endif // BOA_ALL_COMPUTE_OPS_TD
