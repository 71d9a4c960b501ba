//===- TracerStorage.cpp - What the ops of the storage phase do -----------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "passes/analysis/Tracer.h"
#include "passes/analysis/ValueNumber.h"

using namespace mlir;
using namespace boa::value_number;

namespace boa {

static std::string name(const Access &access) {
  return "@" + StorageOp(access.storage).getSymName().str();
}
static std::string nameEntry(const Access &access) {
  return name(access) + " entry " + std::to_string(access.entry);
}

void Tracer::openBuffer(Operation *op, const Position &at) {
  Value result = op->getResult(0);
  buffers[result] = nullptr;
  SmallVector<Access> accesses = accessesOf(op, at);
  if (accesses.empty())
    return;
  auto buffer = std::make_shared<Buffer>();
  buffer->origin = op;
  Access access = buffer->access = accesses.front();
  buffer->space = cast<BufferType>(result.getType()).getSpace();
  buffer->home = memory.isHome(access.chunks(), buffer->space);
  bool taken = false;
  if (buffer->home) {
    if (access.fresh)
      homeOf(access).set(access.first, access.count, kZeros);
  } else if (!access.reads) {
    dropRetained(access, op);
    buffer->own = Versions(access.first, access.count, access.fresh ? kZeros : kUndefined);
  } else {
    auto it = llvm::find_if(retained, [&](const BufferRef &other) {
      return other->access.key() == access.key() &&
             (other->space == buffer->space || !memory.isSeparate());
    });
    if ((taken = it != retained.end())) {
      buffer->own = (*it)->own; // which copies of this trace share
      retained.erase(it);
    } else {
      buffer->own = Versions(access.first, access.count, kUndefined);
      buffer->own.copy(homeOf(access), access.first, access.count);
      use(op, access, buffer->own);
    }
  }
  buffers[result] = buffer;
  open.push_back(buffer);
  opened(op, *buffer, at, taken);
}

Tracer::BufferRef Tracer::lookup(Operation *op, Value value) {
  BufferRef buffer = buffers.lookup(value);
  if (buffer && buffer->released)
    violation(op, "uses a buffer after its release");
  return buffer;
}

void Tracer::offload(OffloadOp op, const Position &at) {
  BufferRef buffer = lookup(op, op.getBuffer());
  SmallVector<Access> accesses = accessesOf(op, at);
  if (!buffer || accesses.empty())
    return;
  const Access &access = accesses.front(), &held = buffer->access;
  if (StorageOp(held.storage) != StorageOp(access.storage))
    return violation(op, "writes a buffer of " + name(held) + " to " + name(access));
  if (access.first < held.first || access.first + access.count > held.first + held.count)
    return violation(op, "writes chunks that its buffer does not hold");
  dropRetained(access, op);
  if (buffer->home) {
    offloaded(op, access, *buffer);
    if (held.entry != access.entry)
      violation(op, "writes " + nameEntry(held) + " to entry " + Twine(access.entry).str() +
                        ", but the buffer is a home in memory: nothing moves");
    return;
  }
  homeOf(access).copy(buffer->own, access.first, access.count);
  offloaded(op, access, *buffer);
}

void Tracer::copy(CopyOp op) {
  BufferRef from = lookup(op, op.getFrom()), to = lookup(op, op.getTo());
  if (!from || !to)
    return;
  const Access &source = from->access, &target = to->access;
  if (StorageOp(source.storage) != StorageOp(target.storage) || source.entry != target.entry)
    return violation(op, "copies " + nameEntry(source) + " to " + nameEntry(target));
  if (target.first < source.first || target.first + target.count > source.first + source.count)
    return violation(op, "copies chunks that its first buffer does not hold");
  use(op, target, contentsOf(*from));
  contentsOf(*to).copy(contentsOf(*from), target.first, target.count);
  copied(op, *from, *to);
}

void Tracer::release(ReleaseOp op, const Position &at) {
  BufferRef buffer = lookup(op, op.getBuffer());
  if (!buffer || buffer->released)
    return;
  bool retain = !buffer->home && at.test(op.getRetain(), false);
  buffer->released = true;
  llvm::erase(open, buffer);
  released(op, *buffer, at, retain);
  if (!retain)
    return;
  dropRetained(buffer->access, op, buffer->space);
  // Its own object: the name in the program is released.
  retained.push_back(std::make_shared<Buffer>(*buffer));
}

/// The results of `function` are what is written whole, then what is added to, as those of a call.
void Tracer::compute(Operation *op, StringRef function) {
  computes(op);
  const Touched &touched = touchedBy(op);
  SmallVector<BufferRef, 16> operands;
  for (Value operand : op->getOperands())
    operands.push_back(lookup(op, operand));
  // It may write one operand before it has read another.
  for (size_t i = 0; i < operands.size(); ++i)
    for (unsigned j : llvm::concat<const unsigned>(touched.updates, touched.writes)) {
      const BufferRef &a = operands[i], &b = operands[j];
      if (j == i || !a || !b || (a != b && !(a->home && b->home && a->access.overlaps(b->access))))
        continue;
      violation(op, "writes " + nameEntry(b->access) + " while another operand is the same memory");
      workDone += term(i * 64 + j + 1);
    }
  auto inputsOf = [&](StringRef function, auto reads) {
    uint64_t inputs = hashOf(function);
    for (auto i : reads)
      inputs =
          mix(inputs, operands[i] ? use(op, operands[i]->access, contentsOf(*operands[i])) : 0);
    return inputs;
  };
  const uint64_t inputs = inputsOf(function, ArrayRef(touched.reads));
  auto isForm = [&](unsigned i) {
    return operands[i] && StorageOp(operands[i]->access.storage).getRole() == Role::prepared;
  };
  // A form is no result of the program: it may be made once, or each time.
  if (!touched.updates.empty() || touched.writes.size() != 1 || !isForm(touched.writes[0]))
    workDone += term(inputs);
  // A launch computes the same without its prepared operand, which holds what is made of others.
  if (PreparedAttr prepared = touched.prepared; prepared && operands.back()) {
    Buffer &form = *operands.back();
    const uint64_t made = inputsOf(prepared.getKernel().getValue(), prepared.getReads());
    if (valueOf(contentsOf(form).from(form.access.first).value) != resultOf(made, 0)) {
      violation(op, "takes " + nameEntry(form.access) + ", which does not hold what @" +
                        prepared.getKernel().getValue() + " makes of what it reads");
      workDone += term(made);
    }
  }
  uint64_t result = touched.writes.size();
  for (unsigned i : touched.updates)
    if (const uint64_t value = resultOf(inputs, result++); Buffer *buffer = operands[i].get())
      addTo(op, buffer->access, contentsOf(*buffer), value);
  result = 0;
  for (unsigned i : touched.writes)
    if (const uint64_t value = resultOf(inputs, result++); Buffer *buffer = operands[i].get())
      contentsOf(*buffer).set(buffer->access.first, buffer->access.count, make(op, value));
}

void Tracer::update(UpdateOp op, const Position &at) {
  computes(op);
  // Buffers must be live also where nothing is pending.
  int64_t chunk = at.get(op.getChunk()), count = at.span(op.getChunk());
  int64_t step = at.get(op.getStep());
  SmallVector<Versions *> parts;
  const Buffer *trained = nullptr;
  SmallVector<Value> operands{op.getGradient(), op.getWeights()};
  if (op.getLow())
    operands.push_back(op.getLow());
  llvm::append_range(operands, op.getStates());
  for (Value value : operands) {
    BufferRef buffer = lookup(op, value);
    parts.push_back(nullptr);
    if (!buffer || step == 0)
      continue;
    const Access &held = buffer->access;
    if (chunk < held.first || chunk + count > held.first + held.count)
      return violation(op,
                       "updates a chunk that a buffer of " + nameEntry(held) + " does not hold");
    if (trained && held.entry != trained->access.entry)
      return violation(op, "updates " + nameEntry(held) + " with " + nameEntry(trained->access));
    parts.back() = &contentsOf(*buffer);
    if (!trained || value == op.getWeights())
      trained = buffer.get();
  }
  if (step != 0 && parts[0] && !updateChunks(op, op.getGroup(), step, chunk, count, parts))
    undefinedRead(op, trained->access);
}

void Tracer::norm(NormOp op) {
  computes(op);
  if (BufferRef gradient = lookup(op, op.getGradient()))
    gradientSum += term(use(op, gradient->access, contentsOf(*gradient)));
}

} // namespace boa
