//===- LinearOps.td - Matrix products ----------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_LINEAR_OPS_TD
#define BOA_LINEAR_OPS_TD

include "dialect/ComputeOps.td"

def Boa_LinearOp : Boa_DifferentiableOp<"linear", "2 * elements(getY()) * double(lastDim(getX()))",
                                        [Boa_MatrixProduct, Boa_RowByRow]> {
  let summary = "x w + b";
  let description = [{
    y[rows, out] = x[rows, in] w[in, out] + bias[out]; with `transpose`,
    w is [out, in]. VJP: dx = dy w^T, dw = x^T dy, db = the sum of dy over rows.
    ```mlir
    %y = boa.linear %x, %w bias %b
        : (tensor<8x256x384xf32>, tensor<384x1152xf32>, tensor<1152xf32>) -> tensor<8x256x1152xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Optional<Boa_Tensor>:$bias,
                       UnitAttr:$transpose);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = [{
    $x `,` $weight (`bias` $bias^)? (`transpose` $transpose^)? attr-dict
    `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Boa_LinearWeightGradOp : Boa_SumOp<"linear_weight_grad", "2 * elements(getDw()) * rows(getX())",
                                       [Boa_MatrixProduct]> {
  let summary = "x^T dy, the gradient of a linear's weight";
  let description = [{
    dw[in, out] = x[rows, in]^T dy[rows, out]; with `transpose`, dw is [out, in].
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$dy, UnitAttr:$transpose);
  let results = (outs Boa_Tensor:$dw);
  let assemblyFormat = [{
    $x `,` $dy (`transpose` $transpose^)? attr-dict `:` functional-type(operands, results)
  }];
}

#endif // BOA_LINEAR_OPS_TD
