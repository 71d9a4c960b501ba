//===- KernelOp.td - Kernels -------------------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_KERNEL_OP_TD
#define BOA_KERNEL_OP_TD

include "dialect/BoaDialect.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/FunctionInterfaces.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Boa_CostAttr : Boa_Attr<"Cost", "cost"> {
  let summary = "what a call of a kernel costs in one format";
  let description = [{
    All its operations, and all bytes that it moves. Of the operations, those of matrix products and
    of attention. Of the bytes, those of all other ops.
  }];
  let parameters = (ins "int64_t":$flops, "int64_t":$bytes,
                        DefaultValuedParameter<"int64_t", "0">:$product_flops,
                        DefaultValuedParameter<"int64_t", "0">:$attention_flops,
                        DefaultValuedParameter<"int64_t", "0">:$elementwise_bytes);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Boa_PreparedAttr : Boa_Attr<"Prepared", "prepared"> {
  let summary = "a form of what a kernel reads that is made once for several launches";
  let description = [{
    `#boa.prepared<tensor<1024xf32> by @pack of [1]>`: `kernel` makes a buffer of this type of the
    buffers with these numbers. A packed layout, say, or a wider type.
  }];
  let parameters = (ins "::mlir::RankedTensorType":$type, "::mlir::FlatSymbolRefAttr":$kernel,
                        ArrayRefParameter<"int64_t">:$reads);
  let assemblyFormat = "`<` $type `by` $kernel `of` ` ` `[` $reads `]` `>`";
}

/// A number of bytes that one program can have.
def Boa_BytesAttr : ConfinedAttr<I64Attr, [IntMinValue<0>, IntMaxValue<72057594037927936>]>;

def Boa_KernelOp : Boa_Op<"kernel", [AffineScope, AutomaticAllocationScope, FunctionOpInterface,
                                     IsolatedFromAbove,
                                     DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "a function on buffers, run by boa.launch";
  let description = [{
    The buffers come in the order of a launch: those that the kernel reads, those that it reads and
    writes, those that it writes whole. `reads`, `updates` and `writes` say what each holds.
    `costs` is what a call costs, by the format of numbers: of an op, its first operand's.

    The body is a function of tensors at first. Each argument and result is a place in a buffer:
    `boa.buffer` is its number, `boa.offset` is in bytes. An argument with `boa.result` lies where
    this result does, which is accumulated there. --kernel-bind-arguments gives the body the
    signature of the runtime, and `tables`: tables of angles, whose addresses follow those of the
    buffers. --kernel-assign-workspace sets the bytes of `workspace` that a call needs; `scratch` of
    them serve a library's attention only. At last the body is in the LLVM dialect.

    A kernel may ask for a `prepared` form of what it reads, whose buffer comes behind the others.
    --boa-prepare-operands makes it where that pays. Elsewhere its address is null, and the kernel
    computes the same bits without it.
    --convert-boa-to-runtime makes a function of it, and a part of the descriptor of the rest.
    ```mlir
    boa.kernel @block_forward(
        %x: tensor<2x16x512xf32> {boa.buffer = 0 : i32, boa.offset = 0 : i64},
        %w: tensor<512x512xbf16> {boa.buffer = 1 : i32, boa.offset = 0 : i64})
        -> (tensor<2x16x512xf32> {boa.buffer = 2 : i32, boa.offset = 0 : i64})
        reads [tensor<2x16x512xf32>, tensor<262144xbf16>] writes [tensor<2x16x512xf32>]
        costs {f32 = #boa.cost<flops = 16777216, bytes = 1179648, product_flops = 16777216>} {
      ...
      boa.return %y : tensor<2x16x512xf32>
    }
    ```
  }];
  let arguments = (ins SymbolNameAttr:$sym_name, TypeAttrOf<FunctionType>:$function_type,
                       OptionalAttr<DictArrayAttr>:$arg_attrs,
                       OptionalAttr<DictArrayAttr>:$res_attrs,
                       OptionalAttr<Boa_PreparedAttr>:$prepared,
                       DefaultValuedAttr<TypeArrayAttr, "{}">:$reads,
                       DefaultValuedAttr<TypeArrayAttr, "{}">:$updates,
                       DefaultValuedAttr<TypeArrayAttr, "{}">:$writes,
                       DefaultValuedAttr<DictionaryAttr, "{}">:$costs,
                       DefaultValuedAttr<Boa_BytesAttr, "0">:$workspace,
                       DefaultValuedAttr<Boa_BytesAttr, "0">:$scratch,
                       DefaultValuedAttr<ArrayAttr, "{}">:$tables);
  let regions = (region MinSizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Replaces a function whose arguments and results have their places.
    static KernelOp replace(::mlir::FunctionOpInterface func, ::mlir::TypeRange reads,
                            ::mlir::TypeRange updates, ::mlir::TypeRange writes);
    /// The contents of the buffers, in the order of a launch.
    ::llvm::SmallVector<::mlir::Type> getBuffers();

    ::llvm::ArrayRef<::mlir::Type> getArgumentTypes() { return getFunctionType().getInputs(); }
    ::llvm::ArrayRef<::mlir::Type> getResultTypes() { return getFunctionType().getResults(); }
    ::mlir::Region *getCallableRegion() { return &getBody(); }
  }];
}

def Boa_ReturnOp : Boa_Op<"return", [Pure, Terminator, ReturnLike, HasParent<"KernelOp">]> {
  let summary = "the results of a kernel";
  let arguments = (ins Variadic<AnyType>:$results);
  let assemblyFormat = "($results^ `:` type($results))? attr-dict";
  let hasVerifier = 1;
}

#endif // BOA_KERNEL_OP_TD
