//===- StorageOp.cpp - boa.storage: syntax, verifier, homes, names --------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "dialect/Boa.h"
#include "runtime/abi/abi.h"

#include "llvm/Support/MathExtras.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;

namespace boa {

//===----------------------------------------------------------------------===//
// Syntax
//===----------------------------------------------------------------------===//

static ParseResult parseHome(OpAsmParser &parser, SmallVectorImpl<HomeAttr> &homes) {
  FailureOr<Tier> tier = FieldParser<Tier>::parse(parser);
  int64_t chunks = 0;
  if (failed(tier))
    return failure();
  OptionalParseResult counted = parser.parseOptionalInteger(chunks);
  if (counted.has_value() && failed(*counted))
    return failure();
  homes.push_back(HomeAttr::get(parser.getContext(), *tier, chunks));
  return success();
}
static void printHomes(OpAsmPrinter &printer, ArrayRef<HomeAttr> homes) {
  llvm::interleaveComma(homes, printer, [&](HomeAttr home) {
    printer << stringifyTier(home.getTier());
    if (home.getChunks())
      printer << ' ' << home.getChunks();
  });
}

// 0 to 8: host, 8 to 24: host 4, ssd
static ParseResult parseEntryHomes(OpAsmParser &parser, SmallVectorImpl<Attribute> &ranges) {
  SmallVector<HomeAttr> homes;
  int64_t begin = 0, end = 0;
  auto close = [&] {
    ranges.push_back(EntryHomesAttr::get(parser.getContext(), end, homes));
    homes.clear();
  };
  auto parse = [&]() -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    OptionalParseResult range = parser.parseOptionalInteger(begin);
    if (!range.has_value() && homes.empty())
      return parser.emitError(loc, "expected a range of entries: 0 to 8: host");
    if (range.has_value()) {
      if (failed(*range))
        return failure();
      if (!homes.empty())
        close();
      if (begin != end)
        return parser.emitError(loc) << "expected the entries from " << end << " on";
      if (parser.parseKeyword("to") || parser.parseInteger(end) || parser.parseColon())
        return failure();
    }
    return parseHome(parser, homes);
  };
  if (parser.parseCommaSeparatedList(parse) || parser.parseRSquare())
    return failure();
  close();
  return success();
}

// on host 8, ssd
static ParseResult parseHomes(OpAsmParser &parser, ArrayAttr &homes) {
  SmallVector<Attribute> ranges;
  SmallVector<HomeAttr> all;
  if (succeeded(parser.parseOptionalLSquare())) {
    if (parseEntryHomes(parser, ranges))
      return failure();
  } else {
    if (parser.parseCommaSeparatedList([&] { return parseHome(parser, all); }))
      return failure();
    ranges.push_back(EntryHomesAttr::get(parser.getContext(), 0, all));
  }
  homes = parser.getBuilder().getArrayAttr(ranges);
  return success();
}
static void printHomes(OpAsmPrinter &printer, Operation *op, ArrayAttr homes) {
  auto ranges = homes.getAsRange<EntryHomesAttr>();
  if (homes.size() == 1 && (*ranges.begin()).getEnd() == 0)
    return printHomes(printer, (*ranges.begin()).getHomes());
  int64_t begin = 0;
  printer << '[';
  llvm::interleaveComma(ranges, printer, [&](EntryHomesAttr range) {
    int64_t end = range.getEnd() ? range.getEnd() : cast<StorageOp>(op).getEntryCount();
    printer << begin << " to " << end << ": ";
    printHomes(printer, range.getHomes());
    begin = end;
  });
  printer << ']';
}

// slots device 3 x 20, host 4 x 1
static ParseResult parsePools(OpAsmParser &parser, ArrayAttr &pools) {
  SmallVector<Attribute> list;
  if (parser.parseCommaSeparatedList([&] {
        list.push_back(PoolAttr::parse(parser, Type()));
        return ParseResult(success(bool(list.back())));
      }))
    return failure();
  pools = parser.getBuilder().getArrayAttr(list);
  return success();
}
static void printPools(OpAsmPrinter &printer, Operation *, ArrayAttr pools) {
  llvm::interleave(
      pools.getAsRange<PoolAttr>(), [&](PoolAttr pool) { pool.print(printer); },
      [&] { printer << ','; });
}

//===----------------------------------------------------------------------===//
// Verifier
//===----------------------------------------------------------------------===//

/// Checks that the homes have the chunks of an entry, each once.
static LogicalResult verifyHomes(StorageOp op, ArrayRef<HomeAttr> homes) {
  int64_t chunks = op.getChunks();
  Checked housed = 0;
  for (auto [i, home] : llvm::enumerate(homes)) {
    bool last = i + 1 == homes.size();
    if (home.getChunks() < 0 || (home.getChunks() == 0 && !last))
      return op.emitOpError("expected a number of chunks for every home but the last");
    const int64_t before = housed.value_or(chunks);
    housed += home.getChunks() ? home.getChunks() : std::max<int64_t>(chunks - before, 1);
  }
  if (const int64_t found = housed.value_or(INT64_MAX); found != chunks)
    return op.emitOpError("expected homes for ") << chunks << " chunks but found " << found;
  return success();
}

/// Checks that the homes have the entries, each once.
static LogicalResult verifyHomes(StorageOp op) {
  int64_t entries = op.getEntryCount(), end = 0;
  for (auto [i, range] : llvm::enumerate(op.getHomes().getAsRange<EntryHomesAttr>())) {
    bool last = i + 1 == op.getHomes().size();
    int64_t next = last && range.getEnd() == 0 ? entries : range.getEnd();
    if (next <= end)
      return op.emitOpError("expected entry ranges in order: one ends at ")
             << next << ", behind one that ends at " << end;
    if (failed(verifyHomes(op, range.getHomes())))
      return failure();
    end = next;
  }
  if (end != entries)
    return op.emitOpError("expected homes for ") << entries << " entries but found " << end;
  return success();
}

/// The bytes of chunks in whole blocks, as the runtime stores them.
static Checked bytesOf(StorageOp op, Checked chunks) { return chunks * op.getChunkBytes(); }

static LogicalResult verifyPools(StorageOp op, ArrayAttr pools) {
  const int64_t chunks = op.getChunks();
  for (PoolAttr pool : pools.getAsRange<PoolAttr>()) {
    if (pool.getSlots() < 0 || pool.getChunks() < 1 || pool.getChunks() > chunks)
      return op.emitOpError("expected pools of slots of 1 to ") << chunks << " chunks";
    if (pool.getShared() < 0)
      return op.emitOpError("expected a shared pool to have a number above 0 but found ")
             << pool.getShared();
    if (!bytesOf(op, Checked(pool.getSlots()) * pool.getChunks()).AtMost(kMostBytes))
      return op.emitOpError("expected slots of at most 2^56 bytes together but found ")
             << pool.getSlots() << " of " << pool.getChunks() << " chunks";
  }
  return success();
}

LogicalResult StorageOp::verify() {
  auto type = dyn_cast<RankedTensorType>(getType());
  if (!type || !type.hasStaticShape())
    return emitOpError("expected entries of a static tensor type but found ") << getType();
  if (!hasByteSize(type))
    return emitOpError("expected entries of 1 to 2^40 elements of whole bytes but found ") << type;
  if (getDims().empty())
    return emitOpError("expected a number of entries");
  for (int64_t dim : getDims())
    if (dim <= 0)
      return emitOpError("expected positive dimensions");
  const Checked entries = CheckedProduct(getDims());
  if (!entries.AtMost(kMostEntries))
    return emitOpError("expected at most ") << kMostEntries << " entries";
  int64_t chunks = getChunks();
  if (chunks < 1 || chunks > kMostExtent || type.getNumElements() % chunks != 0)
    return emitOpError("expected a number of chunks that divides ")
           << type.getNumElements() << " elements but found " << chunks;
  if (!bytesOf(*this, entries * chunks).AtMost(kMostBytes))
    return emitOpError("expected at most 2^56 bytes but found ")
           << getEntryCount() << " entries of " << type;
  if (failed(verifyHomes(*this)))
    return failure();
  return getPoolsAttr() ? verifyPools(*this, getPoolsAttr()) : success();
}

int64_t StorageOp::getChunkBytes() {
  RankedTensorType type = getEntryType();
  int64_t bytes = type.getNumElements() * (type.getElementTypeBitWidth() / 8);
  return llvm::alignTo(bytes / getChunks(), BOA_BLOCK_BYTES);
}

//===----------------------------------------------------------------------===//
// Homes
//===----------------------------------------------------------------------===//

SmallVector<StorageOp::HomeRange, 2> StorageOp::getHomeRanges(int64_t entry) {
  return getHomeRanges(entry, 0, getChunks());
}

SmallVector<StorageOp::HomeRange, 2> StorageOp::getHomeRanges(int64_t entry, int64_t first,
                                                              int64_t count) {
  SmallVector<HomeRange, 2> ranges;
  int64_t begin = 0;
  // Ends rise, and the last may be written as 0.
  ArrayRef<Attribute> all = getHomes().getValue();
  const Attribute *of = llvm::partition_point(all.drop_back(), [&](Attribute range) {
    return cast<EntryHomesAttr>(range).getEnd() <= entry;
  });
  for (HomeAttr home : cast<EntryHomesAttr>(*of).getHomes()) {
    int64_t end = home.getChunks() ? begin + home.getChunks() : int64_t(getChunks());
    int64_t from = std::max(begin, first), to = std::min(end, first + count);
    begin = end;
    if (from >= to)
      continue;
    if (!ranges.empty() && ranges.back().tier == home.getTier())
      ranges.back().count += to - from;
    else
      ranges.push_back({home.getTier(), from, to - from});
  }
  return ranges;
}

SmallVector<StorageOp::EntryRange, 2> StorageOp::getEntryRanges() {
  SmallVector<EntryRange, 2> ranges;
  int64_t begin = 0;
  for (EntryHomesAttr range : getHomes().getAsRange<EntryHomesAttr>()) {
    int64_t end = range.getEnd() ? range.getEnd() : getEntryCount();
    ranges.push_back({begin, end - begin});
    begin = end;
  }
  return ranges;
}

bool StorageOp::livesOn(Tier tier) {
  return llvm::any_of(getHomes().getAsRange<EntryHomesAttr>(), [&](EntryHomesAttr range) {
    return llvm::any_of(range.getHomes(), [&](HomeAttr home) { return home.getTier() == tier; });
  });
}

ArrayAttr StorageOp::makeHomes(ArrayRef<HomeAttr> homes) {
  MLIRContext *context = homes.front().getContext();
  return ArrayAttr::get(context, EntryHomesAttr::get(context, 0, homes));
}

//===----------------------------------------------------------------------===//
// Roles and names
//===----------------------------------------------------------------------===//

bool StorageOp::isLiveIn() {
  switch (getRole()) {
  case Role::input:
  case Role::loss_gradients:
  case Role::cache:
    return true;
  default:
    return getPersistent();
  }
}
bool StorageOp::isLiveOut() {
  return getPersistent() || getRole() == Role::loss || getRole() == Role::logits ||
         getRole() == Role::cache;
}

std::string getStorageName(Role role, StringRef of) {
  // Weights of two bytes are the upper halves of their masters.
  StringRef name = role == Role::master ? "low" : stringifyRole(role);
  return of.empty() ? name.str() : (name + "." + getGroupName(of)).str();
}

StorageOp findStorage(ModuleOp module, Role role, StringRef of) {
  return module.lookupSymbol<StorageOp>(getStorageName(role, of));
}

StringRef StorageOp::getLabel() {
  auto [first, rest] = getSymName().split('.');
  if (getRole() == Role::input && !rest.empty())
    return rest.split('.').first; // @input.tokens.prefill
  return getRole() == Role::state ? first : stringifyRole(getRole());
}

std::string getStateName(StringRef state, StringRef group) {
  return (state + "." + getGroupName(group)).str();
}

SmallVector<StorageOp, 4> getTrainedStorages(ModuleOp module, StringRef group) {
  SmallVector<StorageOp, 4> trained, states;
  for (Role role : {Role::weights, Role::master})
    if (StorageOp storage = findStorage(module, role, group))
      trained.push_back(storage);
  for (auto storage : module.getOps<StorageOp>())
    if (storage.getRole() == Role::state &&
        storage.getSymName() == getStateName(storage.getLabel(), group))
      states.push_back(storage);
  llvm::sort(states, [](StorageOp a, StorageOp b) { return a.getSymName() < b.getSymName(); });
  trained.append(states);
  return trained;
}

} // namespace boa

#define GET_OP_CLASSES
#include "dialect/StorageOp.cpp.inc"
