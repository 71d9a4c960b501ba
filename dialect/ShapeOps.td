//===- ShapeOps.td - Parts of rows -------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_SHAPE_OPS_TD
#define BOA_SHAPE_OPS_TD

include "dialect/ComputeOps.td"

def Boa_SplitOp : Boa_DifferentiableOp<"split", "0", [Boa_RowByRow]> {
  let summary = "consecutive parts of the last dimension";
  let description = [{ The sizes are those of the result types. }];
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Variadic<Boa_Tensor>:$parts);
  let assemblyFormat = "$x attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Takes the gradients of all parts: those that nothing uses have zeros.
    bool usesGradientOf(unsigned result) { return true; }
  }];
}
def Boa_ConcatOp : Boa_DifferentiableOp<"concat", "0", [Boa_RowByRow]> {
  let summary = "joins tensors along the last dimension";
  let arguments = (ins Variadic<Boa_Tensor>:$parts);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$parts attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

#endif // BOA_SHAPE_OPS_TD
