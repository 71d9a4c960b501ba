//===- Buffers.cpp - Programs of the storage phase, written at random -----===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What --boa-insert-offload makes has one use of each buffer, and offloads all that is
// written. Here buffers are used twice, in loops within, and thrown away. They hold whole
// entries, which is what kernels take.
//
//===----------------------------------------------------------------------===//
#include "test/passes/random/Generator.h"

#include "dialect/Boa.h"

#include "mlir/Parser/Parser.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using llvm::formatv;

namespace boa::random {

namespace {

class BufferWriter {
public:
  explicit BufferWriter(Random &random) : random(random) {}

  std::string write() {
    std::string text =
        formatv("module {{\nboa.config @machine {{memory = {0}}\n",
                random.pick({"\"unified\"", "\"separate\"", "\"separate\", direct = true"}));
    int64_t count = random.between(1, 3);
    for (int64_t i = 0; i < count; ++i) {
      storages.push_back({formatv("s{0}", i), random.between(1, 2), random.between(1, 3)});
      const Storage &storage = storages.back();
      auto place = [&]() -> std::string {
        return storage.chunks > 1 && random.chance(0.2)
                   ? random.pick({"host 1, ssd", "device 1, host", "device 1, ssd"})
                   : random.pick({"ssd", "ssd", "ssd", "host", "device"});
      };
      std::string homes = place();
      if (storage.entries > 1 && random.chance(0.3))
        homes = formatv("[0 to 1: {0}, 1 to {1}: {2}]", homes, storage.entries, place());
      text += formatv("boa.storage @{0}[{1}] : {2} on {3} role {4} chunks {5}{6}\n", storage.name,
                      storage.entries, kType, homes, random.pick({"checkpoints", "loss"}),
                      storage.chunks, random.chance(0.9) ? " persistent" : "");
    }
    text += formatv("boa.step @step(%step, %pending) {{\n%c0 = arith.constant 0 : index\n"
                    "%c1 = arith.constant 1 : index\n%true = arith.constant true\n"
                    "%false = arith.constant false\n{0}}\n",
                    block());
    return text + "}\n";
  }

private:
  static constexpr const char *kType = "tensor<12xf32>";
  struct Storage {
    std::string name;
    int64_t entries, chunks;
  };
  struct Loop {
    std::string iv;
    int64_t upper;
  };
  struct Buffer {
    std::string value, type, place;
    char role; // r, u, w
  };

  std::string block() {
    std::string text;
    for (int64_t i = random.between(1, loops.empty() ? 3 : 2); i; --i)
      text += loops.size() < 2 && random.chance(0.45) ? loop() : uses();
    return text;
  }

  std::string loop() {
    const char *dimension = random.pick({"layer", "micro_batch", "chunk"});
    Loop loop{formatv("%i{0}", number++), random.between(1, 3)};
    std::string order = random.pick({"forward", "forward", "reverse", "snake"});
    if (order == "snake")
      order = formatv("snake({0})", loops.empty() ? "%step" : loops.back().iv);
    std::string guard = random.chance(0.1) ? " if %pending" : "";
    loops.push_back(loop);
    std::string body = block();
    loops.pop_back();
    return formatv("boa.loop {0} {1} = 0 to {2} {3}{4} {{\n{5}}\n", dimension, loop.iv, loop.upper,
                   order, guard, body);
  }

  /// An induction variable below `bound`, or a constant.
  std::string index(int64_t bound) {
    std::vector<std::string> possible{"%c0"};
    if (bound > 1)
      possible.push_back("%c1");
    for (const Loop &loop : loops)
      if (loop.upper <= bound)
        possible.insert(possible.end(), 2, loop.iv);
    return random.pick(possible);
  }

  std::string condition() {
    return loops.empty() || random.chance(0.5) ? random.pick({"%true", "%false"})
                                               : "%f" + loops.back().iv.substr(1);
  }

  Buffer open(std::string &text) {
    const Storage &storage = random.pick(storages);
    Buffer buffer;
    buffer.value = formatv("%b{0}", number++);
    buffer.place = formatv("@{0}[{1}]", storage.name, index(storage.entries));
    buffer.type = formatv("<{0}, {1}>", kType, "device");
    switch (random.below(10)) {
    case 0:
    case 1:
      text += formatv("{0} = boa.create {1} : {2}\n", buffer.value, buffer.place, buffer.type);
      buffer.role = 'w';
      break;
    case 2: {
      std::string zero = condition();
      if (StringRef(zero).starts_with("%f") && zero != "%false")
        text += formatv("{0}_{1} = boa.at_first {2}\n", zero, number, loops.back().iv);
      text += formatv("{0} = boa.prefetch {1} zero {2} : {3}\n", buffer.value, buffer.place,
                      StringRef(zero).starts_with("%f") && zero != "%false"
                          ? formatv("{0}_{1}", zero, number).str()
                          : zero,
                      buffer.type);
      buffer.role = 'u';
      break;
    }
    default:
      text += formatv("{0} = boa.prefetch {1} : {2}\n", buffer.value, buffer.place, buffer.type);
      buffer.role = random.pick({'r', 'r', 'r', 'u', 'u', 'w'});
    }
    return buffer;
  }

  std::string launch(ArrayRef<Buffer> buffers) {
    std::string text = formatv("boa.launch @k{0}", random.below(4));
    for (auto [role, word] : {std::pair('r', "reads"), {'u', "updates"}, {'w', "writes"}}) {
      std::string values, types;
      for (const Buffer &buffer : buffers)
        if (buffer.role == role) {
          values += (values.empty() ? "" : ", ") + buffer.value;
          types += (types.empty() ? "" : ", ") + buffer.type;
        }
      if (!values.empty())
        text += formatv(" {0}({1} : {2})", word, values, types);
    }
    return text + "\n";
  }

  std::string uses() {
    std::string text;
    std::vector<Buffer> buffers;
    for (int64_t i = random.between(1, 3); i; --i)
      buffers.push_back(open(text));
    bool inner = loops.size() < 2 && random.chance(0.2);
    if (inner && random.chance(0.5))
      text += loop();
    text += launch(buffers);
    if (random.chance(0.3)) {
      std::vector<Buffer> again = buffers;
      for (Buffer &buffer : again)
        buffer.role = random.pick({'r', 'r', 'u'});
      text += launch(again);
      for (size_t i = 0; i < buffers.size(); ++i)
        if (again[i].role != 'r')
          buffers[i].role = 'u';
    }
    if (inner && random.chance(0.5))
      text += loop();
    for (const Buffer &buffer : buffers)
      if (random.chance(buffer.role == 'r' ? 0.05 : 0.85))
        text += formatv("boa.offload {0}, {1} : {2}\n", buffer.value, buffer.place, buffer.type);
    for (const Buffer &buffer : buffers)
      text += formatv("boa.release {0} : {1}\n", buffer.value, buffer.type);
    return text;
  }

  Random &random;
  std::vector<Storage> storages;
  std::vector<Loop> loops;
  int64_t number = 0;
};

} // namespace

OwningOpRef<ModuleOp> generateBuffers(MLIRContext &context, Random &random) {
  std::string text = BufferWriter(random).write();
  auto module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    llvm::report_fatal_error(llvm::Twine("the generator wrote what does not parse:\n") + text);
  return module;
}

} // namespace boa::random
