//===- kernel_bench_block.cpp - A transformer block's kernels ------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/bench/kernel_bench_block.h"

#include <cstdlib>

namespace bench {

Block::Block(Shape s, bool bf16) : s(s), bf16(bf16) {
  int64_t w = s.width;
  add("ln1_w", {w}), add("ln1_b", {w});
  add("qkv_w", {w, 3 * w}), add("qkv_b", {3 * w});
  add("out_w", {w, w}), add("out_b", {w});
  add("ln2_w", {w}), add("ln2_b", {w});
  add("fc_w", {w, 4 * w}), add("fc_b", {4 * w});
  add("proj_w", {4 * w, w}), add("proj_b", {w});
  x = tensor({s.batch, s.context, w});
  qkv = tensor({s.batch, s.context, 3 * w});
  hidden = tensor({s.batch, s.context, 4 * w});
  lse = tensor({s.batch, s.heads, s.context});
}

std::string Block::forward() {
  text = "boa.kernel @block_forward(%x: " + x + place(0, 0) + parameters() + ") -> (" + x +
         place(2, 0) + ") reads [" + x + ", " + packed(bf16) + "] writes [" + x + "] {\n";
  body();
  linear("p", "g", hidden, "proj", x);
  op("out = boa.add %h, %p : " + x + ", " + x);
  return text + "  boa.return %out : " + x + "\n}\n";
}

std::string Block::backward() {
  text = "boa.kernel @block_backward(%x: " + x + place(0, 0) + parameters() + ", %dy: " + x +
         place(2, 0);
  std::string results = x + place(4, 0), values = "%dx", types = x;
  for (size_t i = 0; i < all.size(); ++i) {
    const Parameter &p = all[i];
    text += ", %g_" + p.name + ": " + p.type +
            " {boa.buffer = 3 : i32, boa.offset = " + std::to_string(p.offset) +
            " : i64, boa.result = " + std::to_string(i + 1) + " : i32}";
    results += ", " + p.type + place(3, p.offset);
    values += ", %r_" + p.name;
    types += ", " + p.type;
  }
  text += ") -> (" + results + ") reads [" + x + ", " + packed(bf16) + ", " + x + "] updates [" +
          packed(/*narrow=*/false) + "] writes [" + x + "] {\n";
  body();
  linearGrad("dy", x, "proj", "g", hidden, "dg");
  op("df = boa.gelu_grad %f, %dg : " + hidden);
  linearGrad("df", hidden, "fc", "l2", x, "dl2");
  normGrad("dl2", "ln2", "h", "dh2");
  op("dh = boa.add %dy, %dh2 : " + x + ", " + x);
  linearGrad("dh", x, "out", "y", x, "dyy");
  op("dq, %dk, %dv = boa.attention_grad %q, %k, %v, %y, %lse, %dyy heads " + heads() + " : (" + x +
     ", " + x + ", " + x + ", " + x + ", " + lse + ", " + x + ") -> (" + x + ", " + x + ", " + x +
     ")");
  op("dqkv = boa.concat %dq, %dk, %dv : (" + x + ", " + x + ", " + x + ") -> " + qkv);
  linearGrad("dqkv", qkv, "qkv", "l1", x, "dl1");
  normGrad("dl1", "ln1", "x", "dx1");
  op("dx = boa.add %dh, %dx1 : " + x + ", " + x);
  for (const Parameter &p : all)
    op("r_" + p.name + " = boa.add %g_" + p.name + ", %d" + p.name + " : " + p.type + ", " +
       p.type);
  return text + "  boa.return " + values + " : " + types + "\n}\n";
}

void Block::add(const std::string &name, std::vector<int64_t> shape) {
  std::string type = tensor(shape), stored = type;
  if (bf16)
    stored.replace(stored.size() - 4, 3, "bf16");
  all.push_back({name, type, stored, bytes, storedBytes});
  int64_t count = 1;
  for (int64_t extent : shape)
    count *= extent;
  bytes += (count * 4 + 63) / 64 * 64;
  storedBytes += (count * (bf16 ? 2 : 4) + 63) / 64 * 64;
}

void Block::linear(const std::string &y, const std::string &in, const std::string &inType,
                   const std::string &name, const std::string &outType) {
  op(y + " = boa.linear %" + in + ", %" + name + "_w bias %" + name + "_b : (" + inType + ", " +
     type(name + "_w") + ", " + type(name + "_b") + ") -> " + outType);
}

void Block::linearGrad(const std::string &dy, const std::string &dyType, const std::string &name,
                       const std::string &in, const std::string &inType, const std::string &dx) {
  op(dx + " = boa.linear %" + dy + ", %" + name + "_w transpose : (" + dyType + ", " +
     type(name + "_w") + ") -> " + inType);
  op("d" + name + "_w = boa.linear_weight_grad %" + in + ", %" + dy + " : (" + inType + ", " +
     dyType + ") -> " + type(name + "_w"));
  op("d" + name + "_b = boa.sum_leading %" + dy + " : " + dyType + " to " + type(name + "_b"));
}

void Block::norm(const std::string &y, const std::string &in, const std::string &name) {
  op(y + " = boa.layer_norm %" + in + ", %" + name + "_w, %" + name + "_b : " + x + ", " +
     type(name + "_w") + ", " + type(name + "_b") + " -> " + x);
}

void Block::normGrad(const std::string &dy, const std::string &name, const std::string &in,
                     const std::string &dx) {
  op(dx + ", %d" + name + "_w, %d" + name + "_b = boa.layer_norm_grad %" + in + ", %" + name +
     "_w, %" + dy + " : (" + x + ", " + type(name + "_w") + ", " + x + ") -> (" + x + ", " +
     type(name + "_w") + ", " + type(name + "_b") + ")");
}

void Block::body() {
  if (bf16)
    for (const Parameter &p : all)
      op(p.name + " = boa.cast %" + p.name + "_bf16 : " + p.stored + " to " + p.type);
  norm("l1", "x", "ln1");
  linear("qkv", "l1", x, "qkv", qkv);
  op("q, %k, %v = boa.split %qkv : (" + qkv + ") -> (" + x + ", " + x + ", " + x + ")");
  op("y, %lse = boa.attention %q, %k, %v heads " + heads() + " : (" + x + ", " + x + ", " + x +
     ") -> (" + x + ", " + lse + ")");
  linear("o", "y", x, "out", x);
  op("h = boa.add %x, %o : " + x + ", " + x);
  norm("l2", "h", "ln2");
  linear("f", "l2", x, "fc", hidden);
  op("g = boa.gelu %f : " + hidden);
}

std::string Block::parameters() const {
  std::string result;
  for (const Parameter &p : all)
    result += ", %" + p.name + (bf16 ? "_bf16" : "") + ": " + p.stored + place(1, p.storedOffset);
  return result;
}

const std::string &Block::type(const std::string &name) const {
  for (const Parameter &p : all)
    if (p.name == name)
      return p.type;
  std::abort();
}

std::string Block::tensor(std::vector<int64_t> shape) {
  std::string result = "tensor<";
  for (int64_t extent : shape)
    result += std::to_string(extent) + "x";
  return result + "f32>";
}

std::string Block::place(int64_t buffer, int64_t offset) {
  return " {boa.buffer = " + std::to_string(buffer) +
         " : i32, boa.offset = " + std::to_string(offset) + " : i64}";
}

} // namespace bench
