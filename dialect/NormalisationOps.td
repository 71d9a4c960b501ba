//===- NormalisationOps.td - Layer norm and RMS norm -------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_NORMALISATION_OPS_TD
#define BOA_NORMALISATION_OPS_TD

include "dialect/ComputeOps.td"

def Boa_LayerNormOp : Boa_DifferentiableOp<"layer_norm", "8 * elements(getY())", [Boa_RowByRow]> {
  let summary = "(x - mean) / sqrt(var + eps) * weight + bias, over the last dimension";
  let description = [{
    With `heads`, the last dimension is as many heads. Each has statistics of its own,
    and all share weight and bias of one head's width.
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$bias,
                       DefaultValuedAttr<Boa_NumberAttr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x `,` $weight `,` $bias attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_LayerNormGradOp : Boa_SumOp<"layer_norm_grad", "16 * elements(getDx())"> {
  let summary = "gradients of boa.layer_norm; mean and variance are computed again";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$dy,
                       DefaultValuedAttr<Boa_NumberAttr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$dx, Boa_Tensor:$dweight, Boa_Tensor:$dbias);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` functional-type(operands, results)";
}
def Boa_RmsNormOp : Boa_DifferentiableOp<"rms_norm", "5 * elements(getY())", [Boa_RowByRow]> {
  let summary = "x / sqrt(mean(x^2) + eps) * weight, over the last dimension";
  let description = [{
    With `heads`, each head by itself, as in boa.layer_norm.
    ```mlir
    %n = boa.rms_norm %q, %w {heads = 4 : i64}
        : (tensor<8x256x384xf32>, tensor<96xf32>) -> tensor<8x256x384xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight,
                       DefaultValuedAttr<Boa_NumberAttr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x `,` $weight attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}
def Boa_RmsNormGradOp : Boa_SumOp<"rms_norm_grad", "11 * elements(getDx())"> {
  let summary = "gradients of boa.rms_norm";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$weight, Boa_Tensor:$dy,
                       DefaultValuedAttr<Boa_NumberAttr, "1e-5">:$eps,
                       OptionalAttr<I64Attr>:$heads);
  let results = (outs Boa_Tensor:$dx, Boa_Tensor:$dweight);
  let assemblyFormat = "$x `,` $weight `,` $dy attr-dict `:` functional-type(operands, results)";
}

#endif // BOA_NORMALISATION_OPS_TD
