//===- ElementwiseOps.td - Elementwise, casts and sums -----*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_ELEMENTWISE_OPS_TD
#define BOA_ELEMENTWISE_OPS_TD

include "dialect/ComputeOps.td"

class Boa_BinaryOp<string mnemonic>
    : Boa_DifferentiableOp<mnemonic, "elements(getResult())",
                           [AllTypesMatch<["lhs", "result"]>, Boa_RowByRow]> {
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

def Boa_ScaleOp : Boa_DifferentiableOp<"scale", "elements(getResult())",
                                       [SameOperandsAndResultType, Boa_RowByRow]> {
  let summary = "x times a constant";
  let arguments = (ins Boa_Tensor:$x, Boa_NumberAttr:$factor);
  let results = (outs Boa_Tensor:$result);
  let assemblyFormat = "$x `by` $factor attr-dict `:` type($x)";
}

def Boa_DropoutOp : Boa_DifferentiableOp<"dropout", "20 * elements(getY())",
                                         [AllTypesMatch<["x", "y"]>, Boa_RowByRow]> {
  let summary = "x with a random share of its elements set to 0";
  let description = [{
    An element is kept with probability 1 - p, and then divided by 1 - p. The choice is a hash of
    the row's key, the site and the column, so it has no state, and the backward pass makes it
    again. The keys are one number for each row. Where it is 0, and without keys, y is x.
    `boa.dropout %x keys %k : tensor<8x256xi32> by 0.1 site 2 : tensor<8x256x384xf32>`
  }];
  let arguments = (ins Boa_Tensor:$x, Optional<Boa_Indices>:$keys, Boa_NumberAttr:$probability,
                       I64Attr:$site);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = [{
    $x (`keys` $keys^ `:` type($keys))? `by` $probability `site` $site attr-dict `:` type($x)
  }];
  let hasVerifier = 1;
}

/// An activation y = f(x), and the op of its gradient. `name` is that of their classes, of which
/// Boa_NAMEOp and Boa_NAMEGradOp follow; `flops` and `gradFlops` are operations on one element.
/// passes/kernels/ConvertBoaToLinalg.cpp has the formulas.
multiclass Boa_Activation<string name, string mnemonic, string what, int flops, int gradFlops> {
  defvar cost = flops # " * elements(getY())";
  def Op : Boa_DifferentiableOp<mnemonic, cost, [SameOperandsAndResultType, Boa_RowByRow]> {
    let summary = what;
    let arguments = (ins Boa_Tensor:$x);
    let results = (outs Boa_Tensor:$y);
    let assemblyFormat = "$x attr-dict `:` type($x)";
    let extraClassDefinition = [{
      void $cppClass::buildVJP(OpBuilder &builder, ArrayRef<Value> results, Grads &operands) {
        operands.push_back(}] # name # [{GradOp::create(builder, getLoc(), getX(), results[0]));
      }
      double $cppClass::getFlops() { return }] # cost # "; }";
  }
  def GradOp : Boa_ComputeOp<mnemonic # "_grad", gradFlops # " * elements(getDx())",
                             [SameOperandsAndResultType]> {
    let summary = "dy times the derivative of boa." # mnemonic # " at x";
    let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$dy);
    let results = (outs Boa_Tensor:$dx);
    let assemblyFormat = "$x `,` $dy attr-dict `:` type($x)";
  }
}
def Boa_GeluOp : Boa_DifferentiableOp<"gelu", "(getExact() ? 48 : 16) * elements(getY())",
                                      [SameOperandsAndResultType, Boa_RowByRow]> {
  let summary = "GELU, tanh form (GPT-2): x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))";
  let description = [{
    With `exact`, x/2 (1 + erf(x / sqrt(2))), as BERT has it.
    `boa.gelu %x exact : tensor<8x256x1536xf32>`
  }];
  let arguments = (ins Boa_Tensor:$x, UnitAttr:$exact);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x (`exact` $exact^)? attr-dict `:` type($x)";
}
def Boa_GeluGradOp : Boa_ComputeOp<"gelu_grad", "(getExact() ? 52 : 24) * elements(getDx())",
                                   [SameOperandsAndResultType]> {
  let summary = "dy times the derivative of boa.gelu at x";
  let arguments = (ins Boa_Tensor:$x, Boa_Tensor:$dy, UnitAttr:$exact);
  let results = (outs Boa_Tensor:$dx);
  let assemblyFormat = "$x `,` $dy (`exact` $exact^)? attr-dict `:` type($x)";
}
defm Boa_Silu : Boa_Activation<"Silu", "silu", "x * sigmoid(x)", /*flops=*/12, /*gradFlops=*/16>;

def Boa_CastOp : Boa_PureOp<"cast", "isExact() ? 0 : elements(getY())", [
    Boa_RowByRow, Boa_WidensItself, DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
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

def Boa_SumLeadingOp : Boa_SumOp<"sum_leading", "elements(getX())"> {
  let summary = "the sum over leading dimensions: the adjoint of a broadcast";
  let description = [{
    The result's shape is a suffix of the operand's.
    `boa.sum_leading %dy : tensor<8x256x384xf32> to tensor<384xf32>`
  }];
  let arguments = (ins Boa_Tensor:$x);
  let results = (outs Boa_Tensor:$y);
  let assemblyFormat = "$x attr-dict `:` type($x) `to` type($y)";
}

#endif // BOA_ELEMENTWISE_OPS_TD
