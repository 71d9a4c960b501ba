//===- IRGen.cpp - A checked specification to model IR --------------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Translates a Spec one to one: a group for each stage with parameters (two
// if it trains some of them alone), a
// boa.stage and a function NAME_forward for each stage, one op for each
// operation. Here the implicit batch becomes a dimension: activations get the
// micro-batch in front. Every op carries the place in the source that it came
// from. Assumes what the checker ensures and checks nothing again; the verifiers
// would find what it missed.
//
//===----------------------------------------------------------------------===//
#include "frontend/IRGen.h"

#include "dialect/Boa.h"
#include "dialect/Config.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"

using namespace mlir;

namespace boa::frontend {

namespace {

boa::Init initOf(frontend::Init init) {
  switch (init) {
  case frontend::Init::Zeros:
    return boa::Init::zeros;
  case frontend::Init::Ones:
    return boa::Init::ones;
  case frontend::Init::Normal:
    return boa::Init::normal;
  case frontend::Init::Uniform:
    return boa::Init::uniform;
  }
  llvm_unreachable("not an initial value");
}

class IRGen {
public:
  IRGen(const Spec &spec, MLIRContext &context, const IRGenOptions &options)
      : spec(spec), builder(&context), batch(options.batch ? options.batch : spec.train.batch),
        microBatch(options.microBatch ? options.microBatch
                                      : SequencesOfMicroBatch(spec.train, spec.plan)) {}

  OwningOpRef<ModuleOp> run() {
    OwningOpRef<ModuleOp> module = ModuleOp::create(location(spec.model.position), spec.model.name);
    TrainSettings train = spec.train;
    train.batch = batch;
    PlanSettings plan = spec.plan;
    plan.micro_batch = microBatch;
    // Each goes before the one that was written before it.
    writeConfig(*module, kMachineConfig, spec.machine);
    writeConfig(*module, kPlanConfig, plan);
    writeConfig(*module, kTrainConfig, train);
    module->lookupSymbol<ConfigOp>(kTrainConfig)->setLoc(location(spec.dataPosition));
    writeConfig(*module, kModelConfig, spec.shape);
    builder.setInsertionPointToEnd(module->getBody());
    for (const StageSpec &stage : spec.model.stages)
      for (bool frozen : {false, true})
        generateGroup(stage, frozen);
    for (StringRef name : {kTokens, kTargets})
      InputOp::create(
          builder, location(spec.model.position), name, boa::InputSource::data,
          RankedTensorType::get({microBatch, spec.shape.context}, builder.getI32Type()));
    for (const StageSpec &stage : spec.model.stages)
      generateStage(stage);
    for (const StageSpec &stage : spec.model.stages)
      generateFunction(stage);
    return module;
  }

private:
  mlir::Location location(Position position) {
    if (position.file < 0)
      return builder.getUnknownLoc();
    return FileLineColLoc::get(builder.getContext(), spec.files[size_t(position.file)],
                               position.line, position.column);
  }

  //===--------------------------------------------------------------------===//
  //===--------------------------------------------------------------------===//
  // Parameters
  //===--------------------------------------------------------------------===//

  /// Of a parameter: trained in f32, whatever is computed with.
  RankedTensorType paramType(const Shape &shape) { return typeOf(shape, builder.getF32Type()); }
  /// Of what a function computes.
  RankedTensorType typeOf(const Shape &shape) {
    return typeOf(shape, spec.train.compute == ComputeType::bf16 && shape.kind != Shape::Kind::Loss
                             ? Type(builder.getBF16Type())
                             : Type(builder.getF32Type()));
  }
  RankedTensorType typeOf(const Shape &shape, Type element) {
    SmallVector<int64_t> dims;
    if (shape.batched && shape.kind != Shape::Kind::Loss)
      dims.push_back(microBatch);
    for (const Dim &dim : shape.dims)
      dims.push_back(dim.value);
    return RankedTensorType::get(
        dims, shape.kind == Shape::Kind::Tokens ? Type(builder.getI32Type()) : element);
  }

  static std::string groupOf(const StageSpec &stage, bool frozen) {
    return (frozen ? kFrozenPrefix : kGroupPrefix.str()) + stage.name;
  }
  static std::string forwardOf(const StageSpec &stage) {
    return getFunctionName(stage.name, StageFunction::forward);
  }

  void generateStage(const StageSpec &stage) {
    MLIRContext *context = builder.getContext();
    SmallVector<TakenAttr> takes;
    for (const TakenSpec &taken : stage.takes) {
      const std::string from = taken.kind == TakenSpec::Kind::Tokens ? kTokens.str()
                               : taken.kind == TakenSpec::Kind::Targets
                                   ? kTargets.str()
                                   : forwardOf(spec.model.stages[taken.stage]);
      takes.push_back(TakenAttr::get(FlatSymbolRefAttr::get(context, from), taken.result));
    }
    StageOp::create(builder, location(stage.position), forwardOf(stage), takes, stage.repeat);
  }

  /// Of those parameters of a stage that are frozen, or are not.
  void generateGroup(const StageSpec &stage, bool frozen) {
    if (llvm::none_of(stage.params, [&](const ParamSpec &param) { return param.frozen == frozen; }))
      return;
    auto group = GroupOp::create(builder, location(stage.position), groupOf(stage, frozen),
                                 stage.repeat, frozen);
    // Parameters of a layer are named with its index, which a count of 1 hides.
    if (stage.isLayer && stage.repeat == 1)
      group->setAttr(kLayerAttr, builder.getUnitAttr());
    OpBuilder::InsertionGuard guard(builder);
    builder.createBlock(&group.getBody());
    for (auto [number, param] : llvm::enumerate(stage.params))
      if (param.frozen == frozen)
        generateParam(stage, param, int64_t(number));
  }

  void generateParam(const StageSpec &stage, const ParamSpec &param, int64_t number) {
    auto op = ParamOp::create(builder, location(param.position), param.name, paramType(param.shape),
                              initOf(param.init), param.scale);
    if (op.getPlace() != number)
      op.setNumberAttr(builder.getI64IntegerAttr(number));
    if (param.lrScale)
      op.setLrScaleAttr(builder.getF64FloatAttr(*param.lrScale));
    if (param.weightDecay)
      op.setWeightDecayAttr(builder.getF64FloatAttr(*param.weightDecay));
    if (!param.external.empty())
      op.setExternalAttr(builder.getStringAttr(param.external));
    if (const auto &adapter = param.adapter)
      op.setAdapterAttr(AdapterAttr::get(
          builder.getContext(), builder.getStringAttr(stage.params[adapter->down].name),
          builder.getStringAttr(stage.params[adapter->up].name),
          builder.getF64FloatAttr(adapter->alpha), adapter->transposed, adapter->rslora));
  }

  //===--------------------------------------------------------------------===//
  // Functions
  //===--------------------------------------------------------------------===//

  void generateFunction(const StageSpec &stage) {
    SmallVector<Type> types;
    SmallVector<mlir::Location> locations;
    SmallVector<uint32_t> numbers;
    for (uint32_t i = 0; i < stage.takes.size(); ++i)
      numbers.push_back(i);
    for (const ParamUse &use : stage.uses)
      numbers.push_back(use.value);
    for (auto [i, number] : llvm::enumerate(numbers)) {
      const Shape &shape = stage.values[number];
      types.push_back(i < stage.takes.size() ? typeOf(shape) : paramType(shape));
      locations.push_back(location(stage.valuePositions[number]));
    }
    SmallVector<Type> results;
    for (uint32_t number : stage.results)
      results.push_back(typeOf(stage.values[number]));
    auto type = builder.getFunctionType(types, results);
    auto func = func::FuncOp::create(builder, location(stage.position), forwardOf(stage), type);
    for (size_t i = 0; i < stage.uses.size(); ++i) {
      const StageSpec &owner = spec.model.stages[stage.uses[i].stage];
      const ParamSpec &param = owner.params[stage.uses[i].param];
      func.setArgAttr(
          unsigned(stage.takes.size() + i), kParamAttr,
          SymbolRefAttr::get(builder.getContext(), groupOf(owner, param.frozen),
                             {FlatSymbolRefAttr::get(builder.getContext(), param.name)}));
    }
    OpBuilder::InsertionGuard guard(builder);
    Block *block = builder.createBlock(&func.getBody(), {}, types, locations);
    values.assign(stage.values.size(), Value());
    for (auto [i, number] : llvm::enumerate(numbers)) {
      Value value = block->getArgument(unsigned(i));
      Type type = typeOf(stage.values[number]);
      if (value.getType() != type)
        value = CastOp::create(builder, locations[i], type, value);
      values[number] = value;
    }
    for (const Operation &operation : stage.operations)
      generate(stage, operation);
    SmallVector<Value> returned;
    for (uint32_t number : stage.results)
      returned.push_back(values[number]);
    func::ReturnOp::create(builder, location(stage.resultPosition), returned);
  }

  void generate(const StageSpec &stage, const Operation &operation) {
    mlir::Location loc = location(operation.position);
    auto in = [&](size_t i) { return values[operation.operands[i]]; };
    Type type = typeOf(stage.values[operation.results[0]]);
    Value result;
    switch (operation.kind) {
    case OperationKind::Linear:
      result =
          LinearOp::create(builder, loc, type, in(0), in(1),
                           operation.operands.size() == 3 ? in(2) : Value(), operation.transpose)
              .getY();
      break;
    case OperationKind::Embedding:
      result = EmbeddingOp::create(builder, loc, type, in(0), in(1)).getY();
      break;
    case OperationKind::LayerNorm:
      result =
          LayerNormOp::create(builder, loc, type, in(0), in(1), in(2),
                              builder.getF64FloatAttr(operation.number), optional(operation.heads))
              .getY();
      break;
    case OperationKind::RmsNorm:
      result =
          RmsNormOp::create(builder, loc, type, in(0), in(1),
                            builder.getF64FloatAttr(operation.number), optional(operation.heads))
              .getY();
      break;
    case OperationKind::Activation: {
      OperationState state(loc, "boa." + operation.function, in(0), type);
      if (operation.exact)
        state.addAttribute("exact", builder.getUnitAttr());
      result = builder.create(state)->getResult(0);
      break;
    }
    case OperationKind::Rotary:
      result = generateRotary(operation, loc, type);
      break;
    case OperationKind::Attention:
      result = generateAttention(operation, loc, type);
      break;
    case OperationKind::CrossEntropy:
      result = CrossEntropyOp::create(builder, loc, type, in(0), in(1)).getLoss();
      break;
    case OperationKind::Add:
      result = AddOp::create(builder, loc, in(0), in(1)).getResult();
      break;
    case OperationKind::Mul:
      result = MulOp::create(builder, loc, in(0), in(1)).getResult();
      break;
    case OperationKind::Scale:
      result = ScaleOp::create(builder, loc, type, in(0), builder.getF64FloatAttr(operation.number))
                   .getResult();
      break;
    case OperationKind::Dropout:
      result = DropoutOp::create(builder, loc, type, in(0), /*keys=*/Value(),
                                 builder.getF64FloatAttr(operation.number),
                                 builder.getI64IntegerAttr(operation.site))
                   .getY();
      break;
    case OperationKind::Split: {
      SmallVector<Type> types;
      for (uint32_t number : operation.results)
        types.push_back(typeOf(stage.values[number]));
      auto split = SplitOp::create(builder, loc, types, in(0));
      for (size_t i = 0; i < operation.results.size(); ++i)
        values[operation.results[i]] = split.getParts()[i];
      return;
    }
    }
    values[operation.results[0]] = result;
    describe(operation, result.getDefiningOp());
  }

  /// What the plan says of the op's result.
  void describe(const Operation &operation, mlir::Operation *op) {
    if (op->getName().stripDialect() != operation.name)
      op->setDiscardableAttr(kNameAttr, builder.getStringAttr(operation.name));
    if (auto plan = getSettingsAttr(builder.getContext(), operation.plan); !plan.empty())
      op->setDiscardableAttr(kActivationAttr, plan);
  }

  /// No attribute for 0.
  IntegerAttr optional(int64_t number) {
    return number == 0 ? IntegerAttr() : builder.getI64IntegerAttr(number);
  }
  FloatAttr optional(double number) {
    return number == 0 ? FloatAttr() : builder.getF64FloatAttr(number);
  }

  Value generateRotary(const Operation &operation, mlir::Location loc, Type type) {
    const RotaryScaling &scaling = operation.scaling;
    return RotaryOp::create(builder, loc, type, values[operation.operands[0]],
                            /*positions=*/Value(), builder.getI64IntegerAttr(operation.heads),
                            builder.getF64FloatAttr(operation.number), UnitAttr(),
                            optional(scaling.factor), optional(scaling.low), optional(scaling.high),
                            optional(scaling.context), /*length=*/IntegerAttr())
        .getY();
  }

  /// lse is [micro_batch, heads, context].
  Value generateAttention(const Operation &operation, mlir::Location loc, Type type) {
    auto shape = cast<RankedTensorType>(type).getShape();
    auto lse = RankedTensorType::get({shape[0], operation.heads, shape[1]}, builder.getF32Type());
    auto attention = AttentionOp::create(
        builder, loc, TypeRange{type, lse}, values[operation.operands[0]],
        values[operation.operands[1]], values[operation.operands[2]],
        /*document_starts=*/Value(), builder.getI64IntegerAttr(operation.heads),
        builder.getI64IntegerAttr(operation.kvHeads),
        operation.causal ? builder.getUnitAttr() : UnitAttr(), optional(operation.window));
    return attention.getY();
  }

  const Spec &spec;
  OpBuilder builder;
  int64_t batch, microBatch;
  /// The values of the function being generated, by number.
  std::vector<Value> values;
};

} // namespace

OwningOpRef<ModuleOp> generateModel(const Spec &spec, MLIRContext &context,
                                    const IRGenOptions &options) {
  context.loadDialect<BoaDialect, func::FuncDialect>();
  return IRGen(spec, context, options).run();
}

} // namespace boa::frontend
