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
      where a result has none). An operand without a gradient (token indices) has null in
      `operands`, or nothing if it is behind all that have one. A gradient has the type of its value; a sum
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
    An op of the step or storage phase. Passes take all dependences from this interface and
    from upstream's memory effects: order, legality, liveness, traffic. Its accesses name
    entries of storages. Its effects say what it does to each buffer:

    | effects on a buffer | the op |
    |---|---|
    | read | reads it |
    | read, write | updates it: adds to what is there |
    | write | writes it whole |
    | allocate, write | opens it, as a result: boa.prefetch brings contents, boa.create does not |
    | free | ends it |

    A write on no buffer and no storage is one that no other op may pass: a sum of norms, a
    copy that a release retains.
  }];
  let methods = [
    InterfaceMethod<"The chunks that it touches.",
      "::llvm::SmallVector<::boa::StorageAccess>", "getAccesses", (ins), [{}],
      [{ return {}; }]>,
    InterfaceMethod<"The chunk on which it works, of buffers that may hold more. Null: it works on"
      " all that they hold.",
      "::mlir::Value", "getChunk", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"Where it runs in the storage phase: its buffers are in that memory.",
      "::boa::Queue", "getQueue", (ins), [{}], [{ return ::boa::Queue::none; }]>,
    InterfaceMethod<"The group that it updates or measures; empty: none.",
      "::llvm::StringRef", "getGroup", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<"The buffer of which it may leave a copy for a later prefetch. Null: none.",
      "::mlir::Value", "getRetained", (ins), [{}], [{ return {}; }]>
  ];
}

def Boa_IndexOpInterface : OpInterface<"IndexOpInterface"> {
  let cppNamespace = "::boa";
  let description = [{
    An op of a boa.step that computes an index or a condition, which passes compute, too.
    arith.constant and arith.andi have it as an external model.
  }];
  let methods = [
    InterfaceMethod<"Its result, given its operands. A condition is 0 or 1.",
      "int64_t", "compute", (ins "const ::boa::IndexValues &":$values)>
  ];
}

#endif // BOA_INTERFACES_TD
