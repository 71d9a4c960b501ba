//===- ComputeOps.td - What families of compute ops share --*- tablegen -*-===//
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
#ifndef BOA_COMPUTE_OPS_TD
#define BOA_COMPUTE_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"

class Boa_TensorOf<list<Type> elements, string what>
    : ConfinedType<StaticShapeTensorOf<elements>, [CPred<"::boa::hasSize($_self)">],
                   "tensor of " # what # " of static shape, of 1 to 2^40 elements">;
def Boa_Tensor : Boa_TensorOf<[F32, BF16, F64], "f32, bf16 or f64">;
def Boa_Indices : Boa_TensorOf<[I32], "i32 token indices">;

/// All floating-point tensors that the op takes and returns have one element type.
def Boa_OneFloatType : NativeOpTrait<"OneFloatType"> {
  let cppNamespace = "::boa";
}

/// It computes mostly products of matrices of the first operand's element type. Devices may
/// have another rate for each type, and for products inside attention.
def Boa_MatrixProduct : NativeOpTrait<"MatrixProduct"> {
  let cppNamespace = "::boa";
}
def Boa_AttentionProduct : NativeOpTrait<"AttentionProduct"> {
  let cppNamespace = "::boa";
}

/// A row of a result follows from the same row of each operand that has rows. So the op computes
/// any number of rows, whatever their positions.
def Boa_RowByRow : NativeOpTrait<"RowByRow"> {
  let cppNamespace = "::boa";
}

/// Its lowering takes bf16 and computes in f32, so --kernel-widen-arithmetic puts no casts around it.
def Boa_WidensItself : NativeOpTrait<"WidensItself"> {
  let cppNamespace = "::boa";
}

/// `flops` is an expression in C++ of its floating-point operations. Each multiply and each add is
/// one. A transcendental function counts as 8.
class Boa_PureOp<string mnemonic, string flops, list<Trait> traits = []>
    : Boa_Op<mnemonic, !listconcat(
        [Pure, DeclareOpInterfaceMethods<Boa_CostOpInterface, ["getFlops"]>], traits)> {
  let extraClassDefinition = "double $cppClass::getFlops() { return " # flops # "; }";
}
class Boa_ComputeOp<string mnemonic, string flops, list<Trait> traits = []>
    : Boa_PureOp<mnemonic, flops, !listconcat([Boa_OneFloatType], traits)>;
/// Some of the tensors are sums, which the verifier names: f32 where the rest is bf16.
class Boa_SumOp<string mnemonic, string flops, list<Trait> traits = []>
    : Boa_PureOp<mnemonic, flops, traits> {
  let hasVerifier = 1;
}
class Boa_DifferentiableOp<string mnemonic, string flops, list<Trait> traits = []>
    : Boa_ComputeOp<mnemonic, flops, !listconcat(
        [DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>], traits)>;

#endif // BOA_COMPUTE_OPS_TD
