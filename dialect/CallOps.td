//===- CallOps.td - Calls and launches ---------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_CALL_OPS_TD
#define BOA_CALL_OPS_TD

include "dialect/BoaDialect.td"
include "dialect/BoaInterfaces.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

//===----------------------------------------------------------------------===//
// Step phase
//===----------------------------------------------------------------------===//

def Boa_CallOp : Boa_Op<"call", [MemoryEffects<[]>, Boa_AccessOpInterface, Boa_NamesResults,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a stage's function on packed parameters";
  let description = [{
    Operands: the callee's activations in order, then one packed entry for each
    parameter group that it takes, in the order of their first appearance.
    Results: its activations, then one packed gradient for each group. A result marked
    `boa.sum` is one of several gradients of a result: `boa.accumulate` adds it up. A result marked
    `boa.cache` is added to a cache in the same way: other positions than before.
  }];
  let arguments = (ins FlatSymbolRefAttr:$callee, Variadic<AnyStaticShapeTensor>:$inputs);
  let results = (outs Variadic<AnyStaticShapeTensor>:$outputs);
  let assemblyFormat = "$callee `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)";
}

//===----------------------------------------------------------------------===//
// Storage phase
//===----------------------------------------------------------------------===//

def Boa_LaunchOp : Boa_QueueOp<"launch", "compute", [AttrSizedOperandSegments, Boa_AccessOpInterface,
    DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "runs a kernel on the compute queue";
  let description = [{
    `boa.launch @block_backward reads(%x, %w) updates(%g) writes(%dx)`: the buffers of
    `boa.kernel @block_backward`. Before --boa-outline-kernels it is a function: they hold its
    operands and its results; weights may be stored as bf16.

    `prepared(%p)` holds the form of some of `reads` that the kernel asks for. The results are the
    same without it.
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel,
                       Arg<Variadic<Boa_BufferType>, "", [MemRead]>:$reads,
                       Arg<Variadic<Boa_BufferType>, "", [MemRead, MemWrite]>:$updates,
                       Arg<Variadic<Boa_BufferType>, "", [MemWrite]>:$writes,
                       Arg<Optional<Boa_BufferType>, "", [MemRead]>:$prepared);
  let assemblyFormat = [{
    $kernel (`reads` `(` $reads^ `:` custom<BufferTypes>(type($reads)) `)`)?
    (`updates` `(` $updates^ `:` custom<BufferTypes>(type($updates)) `)`)?
    (`writes` `(` $writes^ `:` custom<BufferTypes>(type($writes)) `)`)?
    (`prepared` `(` $prepared^ `:` custom<BufferType>(type($prepared)) `)`)? attr-dict
  }];
}

#endif // BOA_CALL_OPS_TD
