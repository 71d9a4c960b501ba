//===- CrossEntropyOps.td - The loss -----------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_CROSS_ENTROPY_OPS_TD
#define BOA_CROSS_ENTROPY_OPS_TD

include "dialect/ComputeOps.td"

def Boa_CrossEntropyOp : Boa_SumOp<"cross_entropy", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "the mean of -log softmax(logits)[target], in nats";
  let description = [{
    logits [batch, time, vocab], targets [batch, time] i32; a negative target is
    left out. The result is a scalar tensor: the mean over the targets counted.
  }];
  let arguments = (ins Boa_Tensor:$logits, Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$loss);
  let assemblyFormat = "$logits `,` $targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyGradOp : Boa_SumOp<"cross_entropy_grad"> {
  let summary = "(softmax(logits) - onehot(target)) * dloss / count; zero where left out";
  let arguments = (ins Boa_Tensor:$logits, Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $targets `,` $dloss attr-dict `:` functional-type(operands, results)";
}

// Cross-entropy by blocks of the vocabulary. What goes from block to block is [batch, 3, time]: the
// logarithm of the sum of exponentials so far, the logit of the target if it was in a block so far,
// and the target, counted from the first token of the next block.

def Boa_CrossEntropyBeginOp : Boa_SumOp<"cross_entropy_begin"> {
  let summary = "what the first block of a vocabulary takes";
  let description = [{
    The sum of no exponentials has the logarithm -1e30. Targets are exact in f32 up to 2^24.
  }];
  let arguments = (ins Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$sums);
  let assemblyFormat = "$targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyBlockOp : Boa_SumOp<"cross_entropy_block", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "adds the logits of one block of a vocabulary";
  let description = [{
    logits [batch, time, tokens of the block]; sums and result [batch, 3, time], as
    boa.cross_entropy_begin begins them.
    ```mlir
    %next = boa.cross_entropy_block %sums, %logits
        : (tensor<8x3x256xf32>, tensor<8x256x64xbf16>) -> tensor<8x3x256xf32>
    ```
  }];
  let arguments = (ins Boa_Tensor:$sums, Boa_Tensor:$logits);
  let results = (outs Boa_Tensor:$next);
  let assemblyFormat = "$sums `,` $logits attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyBlockGradOp : Boa_SumOp<"cross_entropy_block_grad"> {
  let summary = "gradients of boa.cross_entropy_block; its result is computed again";
  let description = [{
    With the logarithm l before the block and m after it: dlogits = exp(logits - m) dm, and that
    of the target's logit at the target; dl = exp(l - m) dm.
  }];
  let arguments = (ins Boa_Tensor:$sums, Boa_Tensor:$logits, Boa_Tensor:$dnext);
  let results = (outs Boa_Tensor:$dsums, Boa_Tensor:$dlogits);
  let assemblyFormat = "$sums `,` $logits `,` $dnext attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndOp : Boa_SumOp<"cross_entropy_end", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "boa.cross_entropy, of the sums behind the last block";
  let arguments = (ins Boa_Tensor:$sums, Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$loss);
  let assemblyFormat = "$sums `,` $targets attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndGradOp : Boa_SumOp<"cross_entropy_end_grad"> {
  let summary = "the gradient of boa.cross_entropy_end";
  let arguments = (ins Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dsums);
  let assemblyFormat = "$targets `,` $dloss attr-dict `:` functional-type(operands, results)";
}

#endif // BOA_CROSS_ENTROPY_OPS_TD
