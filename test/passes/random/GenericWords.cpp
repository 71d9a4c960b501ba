//===- GenericWords.cpp - What changes of generic text put there ----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/GenericWords.h"

#include "llvm/ADT/StringExtras.h"

using llvm::StringRef;

namespace boa::random {

/// `by`: characters that stand between words.
static std::vector<std::string> split(StringRef text, StringRef by = " \n") {
  llvm::SmallVector<StringRef> words;
  llvm::SplitString(text, words, by);
  return {words.begin(), words.end()};
}

const std::vector<std::string> &edgeNumbers() {
  static const auto all = split(
      R"(
0 1 2 3 5 8 -1 -7 16 4096 65536 1048576 2147483647 2147483648 4294967296 1099511627776
4611686018427387904 9223372036854775807 -2147483648 -9223372036854775808
)");
  return all;
}

const std::vector<std::string> &elementTypes() {
  static const auto all = split("f32 f64 bf16 f16 i1 i8 i32 i64 index");
  return all;
}

// All that dialect/Attributes.cpp knows, and one that it does not.
const std::vector<std::string> &attributeNames() {
  static const auto all = split(R"(
boa.param boa.saved boa.sum boa.cache boa.name boa.activation boa.shared boa.place boa.layer
boa.most_chunks boa.workspace boa.attention_scratch boa.constants boa.memory boa.shared_bytes boa.arguments
boa.buffer boa.offset boa.result traffic boa.arena
boa.arena_device boa.computes boa.computation boa.mark
)");
  return all;
}

const std::vector<std::string> &oddValues() {
  static const auto all = split(R"(
unit
true
false
0 : i64
1 : i64
-1 : i64
2 : i64
1 : i32
7 : i32
-1 : i32
1 : index
9223372036854775807 : i64
-9223372036854775808 : i64
4611686018427387904 : i64
2.0 : f64
-1.0 : f64
1.0 : f32
1.0e+300 : f64
0x7FF8000000000000 : f64
0x7FF0000000000000 : f64
"x"
""
"a.b"
"ssd"
[]
[1 : i64]
["host", 0.5, "ssd"]
[{}]
{}
{save = false}
{place = "host"}
{read = {}}
{read = {weights = -1 : i64}}
@x
@a::@b
@a::@b::@c
tensor<4xf32>
tensor<0xf32>
tensor<?xf32>
tensor<*xf32>
tensor<2x4xindex>
f32
si8
index
array<i32>
array<i32: 1>
array<i32: 1, 1, 1>
array<i32: -1, 2, 3>
array<i64>
array<i64: 0>
array<i64: -1, 3>
array<i64: 9223372036854775807, 3>
array<i64: 4294967296, 4294967296>
dense<0> : tensor<2xi32>
[#boa<pool device 9223372036854775807 x 1>]
[#boa<pool host -1 x 0>]
[#boa.entry_homes<0, []>]
[#boa.entry_homes<0, [<ssd, 0>]>]
[#boa.entry_homes<-5, [<host, 9223372036854775807>, <ssd, 0>]>]
)",
                                "\n");
  return all;
}

const std::vector<std::string> &oddOps() {
  static const auto all = split(R"(
"boa.step"() <{sym_name = "step"}> ({
^bb0:
}) : () -> ()
~
"boa.step"() <{sym_name = "drain"}> ({
}) : () -> ()
~
"boa.step"() <{sym_name = "evaluate"}> ({
^bb0(%u: f32, %v: f32):
}) : () -> ()
~
"boa.step"() <{sym_name = "predict"}> ({
^bb0(%u: index, %v: index):
  "boa.loop"() <{dimension = 0 : i32, lower = 0 : i64, operandSegmentSizes = array<i32: 0, 0>, order = 0 : i32, upper = 3 : i64}> ({
  ^bb0:
  }) : () -> ()
}) : () -> ()
~
"boa.step"() <{sym_name = "generate"}> ({
^bb0(%u: index, %v: index):
  "boa.loop"() <{dimension = 2 : i32, lower = 0 : i64, operandSegmentSizes = array<i32: 0, 0>, order = 0 : i32, upper = 4611686018427387904 : i64}> ({
  ^bb0(%w: index):
  }) : () -> ()
}) : () -> ()
~
"boa.storage"() <{dims = array<i64: 9223372036854775807, 3>, homes = [#boa.entry_homes<0, [<ssd, 0>]>], role = 7 : i32, sym_name = "checkpoints.x", type = tensor<4xf32>}> : () -> ()
~
"boa.storage"() <{dims = array<i64: 3>, homes = [#boa.entry_homes<0, [<ssd, 0>]>], role = 5 : i32, sym_name = "odd.embed", type = tensor<4xi1>}> : () -> ()
~
"boa.group"() <{repeat = 1 : i64, sym_name = "empty"}> ({
}) : () -> ()
~
"boa.stage"() <{callee = @x_forward, takes = [#boa.taken<@x>, #boa.taken<@x_forward, 1>]}> : () -> ()
~
"boa.optimizer"() <{hyperparameters = {}, states = {}, sym_name = "o"}> ({
}, {
}) : () -> ()
~
"boa.optimizer"() <{hyperparameters = {}, states = {a = ui8}, sym_name = "o"}> ({
^bb0:
}, {
^bb0:
}) : () -> ()
~
"boa.config"() <{settings = {}, sym_name = "model"}> : () -> ()
~
"builtin.module"() ({
^bb0:
}) : () -> ()
~
"func.func"() <{function_type = () -> (), sym_name = "embed_forward"}> ({
}) : () -> ()
~
"boa.kernel"() <{function_type = () -> (), sym_name = "embed_forward"}> ({
  "boa.return"() : () -> ()
}) : () -> ()
)",
                                "~");
  return all;
}

} // namespace boa::random
