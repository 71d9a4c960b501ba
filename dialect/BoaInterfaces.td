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
      where a result has none). Leaves null in `operands` where an operand has
      no gradient (token indices). Gradients are of the types of what they are
      gradients of; one that was summed over rows is of getSumType, and a cast takes
      it as it is: a weight's gradient is not rounded on its way there. May use the op's operands and results: what
      it uses is what must be kept or recomputed for the backward pass.
    }], "void", "buildVJP",
    (ins "::mlir::OpBuilder &":$builder, "::llvm::ArrayRef<::mlir::Value>":$results,
         "::llvm::SmallVectorImpl<::mlir::Value> &":$operands)>
  ];
}

def Boa_CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{ What a compute op costs, for planning and for the bound. }];
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
    An op of the step or storage phase that touches entries of storages by name. All
    that passes know of dependences they know from here: order, legality, liveness,
    traffic. What an op does to a buffer is said by its operands.
  }];
  let methods = [
    InterfaceMethod<"What it touches of storages, in no order.",
      "::llvm::SmallVector<::boa::StorageAccess>", "getAccesses", (ins)>
  ];
}

#endif // BOA_INTERFACES_TD
