//===- EmbeddingOps.td - Rows of a table -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_EMBEDDING_OPS_TD
#define BOA_EMBEDDING_OPS_TD

include "dialect/ComputeOps.td"

def Boa_EmbeddingOp : Boa_DifferentiableOp<"embedding", "0", [Boa_RowByRow]> {
  let summary = "rows of a table: y[b, t] = table[tokens[b, t]]";
  let description = [{
    With `partial` the table is a block of another one. Tokens outside it have rows of zeros.
  }];
  let arguments = (ins Boa_Tensor:$table, Boa_Indices:$tokens, UnitAttr:$partial);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = [{
    $table `,` $tokens (`partial` $partial^)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}
def Boa_EmbeddingGradOp : Boa_SumOp<"embedding_grad", "elements(getDy())"> {
  let summary = "scatters dy into a table of zeros: dtable[tokens[b, t]] += dy[b, t], in order of (b, t)";
  let arguments = (ins Boa_Indices:$tokens, Boa_Tensor:$dy, UnitAttr:$partial);
  let results = (outs Boa_Tensor:$dtable);
  let assemblyFormat = [{
    $tokens `,` $dy (`partial` $partial^)? attr-dict `:` functional-type(operands, results)
  }];
}

def Boa_RebaseOp : Boa_PureOp<"rebase", "0", [SameOperandsAndResultType]> {
  let summary = "numbers tokens from another one on: y = tokens - by";
  let description = [{
    So tokens go from block to block of a vocabulary, each of which finds its own from 0 on.
    ```mlir
    %rest = boa.rebase %tokens by 64 : tensor<8x256xi32>
    ```
  }];
  let arguments = (ins Boa_Indices:$tokens, I64Attr:$by);
  let results = (outs Boa_Indices:$result);
  let assemblyFormat = "$tokens `by` $by attr-dict `:` type($result)";
  let hasVerifier = 1;
}

#endif // BOA_EMBEDDING_OPS_TD
