//===- CrossEntropyOps.td - The loss -----------------------*- tablegen -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#ifndef BOA_CROSS_ENTROPY_OPS_TD
#define BOA_CROSS_ENTROPY_OPS_TD

include "dialect/ComputeOps.td"

def Boa_CrossEntropyOp : Boa_SumOp<"cross_entropy", "10 * elements(getLogits())", [
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
def Boa_CrossEntropyGradOp : Boa_SumOp<"cross_entropy_grad", "12 * elements(getLogits())"> {
  let summary = "(softmax(logits) - onehot(target)) * dloss / count; zero where left out";
  let arguments = (ins Boa_Tensor:$logits, Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dlogits);
  let assemblyFormat = "$logits `,` $targets `,` $dloss attr-dict `:` functional-type(operands, results)";
}

// Cross-entropy by blocks of the vocabulary. Values of each token go from block to block: the
// logarithm of the sum of exponentials so far, the logit of the target if it was in a block so far,
// and the target, numbered from the first token of the block (boa.rebase).

def Boa_CrossEntropyBlockOp : Boa_SumOp<"cross_entropy_block", "10 * elements(getLogits())", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "adds the logits of one block of a vocabulary";
  let description = [{
    logits [batch, time, tokens of the block], the others [batch, time]. The sum of no
    exponentials has the logarithm -1e30.
    ```mlir
    %next_log, %next_logit = boa.cross_entropy_block %log, %logit, %targets, %logits
        : (tensor<8x256xf32>, tensor<8x256xf32>, tensor<8x256xi32>, tensor<8x256x64xbf16>)
        -> (tensor<8x256xf32>, tensor<8x256xf32>)
    ```
  }];
  let arguments = (ins Boa_Tensor:$log, Boa_Tensor:$logit, Boa_Indices:$targets,
                       Boa_Tensor:$logits);
  let results = (outs Boa_Tensor:$next_log, Boa_Tensor:$next_logit);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let extraClassDeclaration = [{
    bool usesGradientOf(unsigned result) { return true; }
  }];
}
def Boa_CrossEntropyBlockGradOp : Boa_SumOp<"cross_entropy_block_grad",
                                            "20 * elements(getLogits())"> {
  let summary = "gradients of boa.cross_entropy_block; its results are computed again";
  let description = [{
    With the logarithm l before the block and m after it: dlogits = exp(logits - m) dm, and that
    of the target's logit at the target; dl = exp(l - m) dm.
  }];
  let arguments = (ins Boa_Tensor:$log, Boa_Indices:$targets, Boa_Tensor:$logits,
                       Boa_Tensor:$dnext_log, Boa_Tensor:$dnext_logit);
  let results = (outs Boa_Tensor:$dlog, Boa_Tensor:$dlogit, Boa_Tensor:$dlogits);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndOp : Boa_SumOp<"cross_entropy_end", "3 * elements(getTargets())", [
    DeclareOpInterfaceMethods<Boa_DifferentiableOpInterface>]> {
  let summary = "boa.cross_entropy, of the values behind the last block";
  let arguments = (ins Boa_Tensor:$log, Boa_Tensor:$logit, Boa_Indices:$targets);
  let results = (outs Boa_Tensor:$loss);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}
def Boa_CrossEntropyEndGradOp : Boa_SumOp<"cross_entropy_end_grad", "3 * elements(getTargets())"> {
  let summary = "the gradients of boa.cross_entropy_end";
  let arguments = (ins Boa_Indices:$targets, Boa_Tensor:$dloss);
  let results = (outs Boa_Tensor:$dlog, Boa_Tensor:$dlogit);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

#endif // BOA_CROSS_ENTROPY_OPS_TD
