//===- EmbeddingOps.td - Rows of a table -------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_EMBEDDING_OPS_TD
#define BOA_EMBEDDING_OPS_TD

include "dialect/ComputeOps.td"

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

#endif // BOA_EMBEDDING_OPS_TD
