//===- BoaInterfaces.td - What passes ask of compute ops ----*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_INTERFACES_TD
#define BOA_INTERFACES_TD

include "mlir/IR/OpBase.td"

def Boa_DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{
    A compute op that can build its vector-Jacobian product. No pass knows a
    compute op by name: a new op is one entry here, one VJP and one lowering.
  }];
  let methods = [
    InterfaceMethod<[{
      Builds the gradients of the operands, given those of the results (null
      where a result has none). Leaves null in `operands` for an operand
      without a gradient (token indices). A gradient has the type of its value; a sum
      over rows has getSumType, and a cast passes it on unchanged, so that a weight's
      gradient is never rounded on its way. The gradients may use the op's operands and
      results: these are then kept, or computed again, for the backward pass.
    }], "void", "buildVJP",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$results,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operands)>,
    InterfaceMethod<[{
      Whether buildVJP uses the gradient of this result. --boa-differentiate refuses a loss that
      depends on another one. An op of several results says which; unless it does, only the
      first one.
    }], "bool", "usesGradientOf", (ins "unsigned":$result), [{}], [{ return result == 0; }]>
  ];
}

def Boa_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{ The cost of a compute op, for planning and for bounds. }];
  let methods = [
    InterfaceMethod<"Floating-point operations of one execution.",
      "double", "getFlops", (ins), [{}], [{ return 0; }]>,
    InterfaceMethod<"Bytes that it must at least read and write.",
      "int64_t", "getBytes", (ins), [{}], [{
        int64_t bytes = 0;
        auto add = [&](::mlir::Type type) {
          if (auto tensor = ::mlir::dyn_cast<::mlir::RankedTensorType>(type))
            bytes += tensor.getNumElements() * (tensor.getElementTypeBitWidth() / 8);
        };
        for (::mlir::Type type : $_op->getOperandTypes()) add(type);
        for (::mlir::Type type : $_op->getResultTypes()) add(type);
        return bytes;
      }]>
  ];
}

def Boa_AccessOpInterface : OpInterface<"AccessOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{
    An op of the step or storage phase that touches entries of storages by name. Passes
    take all dependences from this interface: order, legality, liveness, traffic. The
    operands of an op say how it uses its buffers.
  }];
  let methods = [
    InterfaceMethod<"The chunks that it touches. The storages are those of `module`: an op may be"
      " outside of it, in a copy of a step.",
      "::llvm::SmallVector<::boa::StorageAccess>", "getAccesses", (ins "::mlir::ModuleOp":$module)>
  ];
}

def Boa_ChunkOpInterface : OpInterface<"ChunkOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{
    An op that may stand in a loop over chunks whose iterations run at once
    (dialect/ChunkLoops.h). Its results are buffers that its iteration opens.
  }];
  let methods = [
    InterfaceMethod<"Whether it touches `chunk` alone of an entry, and uses it for nothing else, or"
      " only buffers that its iteration has `opened`.",
      "bool", "staysInIteration",
      (ins "::mlir::Value":$chunk, "::llvm::ArrayRef<::mlir::Value>":$opened)>
  ];
}

#endif // BOA_INTERFACES_TD
