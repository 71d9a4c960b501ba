//===- dnn_test.cpp - Tests of the fake of cuDNN ----------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What it refuses: each mistake that the runtime might make is made once. What it computes
// is compared with attention in test/runtime/cuda/dnn_test.cpp.
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/dnn_abi.h"
#include "test/fake_cuda/fixture.h"

#include <array>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

namespace boa::fake {
namespace {

using testing::HasSubstr;
using Descriptor = cudnnBackendDescriptor_t;
using Extents = std::array<int64_t, 4>;

constexpr int kDescriptor = CUDNN_TYPE_BACKEND_DESCRIPTOR;
constexpr int64_t kSize = 8; // of all tensors: 8 x 8

struct Tensor {
  int64_t id = 1;
  int type = CUDNN_DATA_BFLOAT16;
  Extents dims = {1, 1, kSize, kSize}, strides = {kSize * kSize, kSize *kSize, kSize, 1};
  int64_t alignment = 16;
  bool is_virtual = false, by_value = false;
};

class FakeDnnTest : public FakeCudaTest {
protected:
  void SetUp() override { Begin(""); }
  void TearDown() override {
    End();
    FakeCudaTest::TearDown();
  }
  void Begin(const std::string &settings) {
    session = std::make_unique<Session>(settings);
    stream = NewStream();
    EXPECT_EQ(cudnnCreate(&handle), 0);
    EXPECT_EQ(cudnnSetStream(handle, stream), 0);
  }
  void End() {
    for (Descriptor descriptor : made)
      EXPECT_EQ(cudnnBackendDestroyDescriptor(descriptor), 0);
    made.clear();
    EXPECT_EQ(cudnnDestroy(handle), 0);
    EXPECT_EQ(cuStreamDestroy_v2(stream), CUDA_SUCCESS);
    session.reset();
  }

  static void Refused(cudnnStatus_t status, const std::string &words) {
    EXPECT_EQ(status, CUDNN_STATUS_BAD_PARAM) << words;
    EXPECT_THAT(Reports(), HasSubstr(words));
    char told[256] = "";
    cudnnGetLastErrorString(told, sizeof(told));
    EXPECT_THAT(told, HasSubstr(words));
  }
  Descriptor Create(int kind) {
    Descriptor descriptor = nullptr;
    EXPECT_EQ(cudnnBackendCreateDescriptor(kind, &descriptor), 0);
    made.push_back(descriptor);
    return descriptor;
  }
  template <typename T> static void Set(Descriptor to, int attribute, int type, const T &value) {
    EXPECT_EQ(cudnnBackendSetAttribute(to, attribute, type, 1, &value), 0);
  }
  template <typename T>
  static void SetAll(Descriptor to, int attribute, int type, const T &values) {
    EXPECT_EQ(cudnnBackendSetAttribute(to, attribute, type, int64_t(values.size()), values.data()),
              0);
  }
  static Descriptor Finalized(Descriptor descriptor) {
    EXPECT_EQ(cudnnBackendFinalize(descriptor), 0);
    return descriptor;
  }

  Descriptor Describe(const Tensor &t) {
    Descriptor tensor = Create(CUDNN_BACKEND_TENSOR_DESCRIPTOR);
    Set(tensor, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, t.type);
    SetAll(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, t.dims);
    SetAll(tensor, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, t.strides);
    Set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, t.id);
    Set(tensor, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, t.alignment);
    Set(tensor, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, t.is_virtual);
    Set(tensor, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, t.by_value);
    return tensor;
  }
  Descriptor Matmul(const Tensor &a, const Tensor &b, const Tensor &c) {
    Descriptor matmul = Create(CUDNN_BACKEND_MATMUL_DESCRIPTOR);
    Set(matmul, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, int(CUDNN_DATA_FLOAT));
    Descriptor op = Create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
    Set(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, Finalized(matmul));
    Set(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, Finalized(Describe(a)));
    Set(op, CUDNN_ATTR_OPERATION_MATMUL_BDESC, kDescriptor, Finalized(Describe(b)));
    Set(op, CUDNN_ATTR_OPERATION_MATMUL_CDESC, kDescriptor, Finalized(Describe(c)));
    return Finalized(op);
  }
  /// Of x and y, which has an axis.
  Descriptor Pointwise(int mode, const Tensor &x, const Tensor &y, int64_t axis) {
    Descriptor pointwise = Create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
    Set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, mode);
    Set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, int(CUDNN_DATA_FLOAT));
    Set(pointwise, CUDNN_ATTR_POINTWISE_AXIS, CUDNN_TYPE_INT64, axis);
    Descriptor op = Create(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
    Set(op, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, kDescriptor, Finalized(pointwise));
    Set(op, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, kDescriptor, Finalized(Describe(x)));
    Set(op, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, kDescriptor, Finalized(Describe(y)));
    return Finalized(op);
  }
  Descriptor Graph(const std::vector<Descriptor> &ops) {
    Descriptor graph = Create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
    SetAll(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, ops);
    return graph;
  }
  /// (1 x 2) x 3 = 4, with what is between in memory nowhere: as much as attention needs to be.
  Descriptor TwoProducts() {
    Tensor a, b, c, d, between;
    b.id = 2;
    c.id = 3;
    d.id = 4;
    between.id = 5;
    between.is_virtual = true;
    return Finalized(Graph({Matmul(a, b, between), Matmul(between, c, d)}));
  }
  /// The configuration that is proposed as the n-th.
  Descriptor Config(size_t n) {
    Descriptor heuristic = Create(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR);
    Set(heuristic, CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH, kDescriptor, TwoProducts());
    Set(heuristic, CUDNN_ATTR_ENGINEHEUR_MODE, CUDNN_TYPE_HEUR_MODE, int(CUDNN_HEUR_MODE_A));
    Finalized(heuristic);
    std::vector<Descriptor> configs;
    for (size_t i = 0; i <= n; ++i)
      configs.push_back(Create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR));
    int64_t count = 0;
    EXPECT_EQ(cudnnBackendGetAttribute(heuristic, CUDNN_ATTR_ENGINEHEUR_RESULTS, kDescriptor,
                                       int64_t(n) + 1, &count, configs.data()),
              0);
    return configs[n];
  }
  Descriptor Plan(size_t n) {
    Descriptor plan = Create(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
    Set(plan, CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, handle);
    Set(plan, CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG, kDescriptor, Config(n));
    return plan;
  }
  /// Not yet finalized.
  Descriptor Pack(const std::vector<int64_t> &ids, const std::vector<CUdeviceptr> &pointers,
                  CUdeviceptr workspace) {
    Descriptor pack = Create(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
    SetAll(pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, ids);
    SetAll(pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, pointers);
    Set(pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, workspace);
    return pack;
  }

  std::unique_ptr<Session> session;
  CUstream stream = nullptr;
  cudnnHandle_t handle = nullptr;
  std::vector<Descriptor> made;
};

TEST_F(FakeDnnTest, HandlesAreItsOwn) {
  EXPECT_EQ(cuCtxSetCurrent(nullptr), CUDA_SUCCESS);
  cudnnHandle_t other = nullptr;
  Refused(cudnnCreate(&other), "no context is current on this thread");
  EXPECT_EQ(cuCtxSetCurrent(session->context), CUDA_SUCCESS);
  Refused(cudnnDestroy(nullptr), "of what is no handle");
  Refused(cudnnSetStream(nullptr, stream), "of what is no handle");
  Describe({});
  Refused(cudnnDestroy(handle), "1 descriptors are left");
  EXPECT_EQ(cudnnCreate(&handle), 0);
}

TEST_F(FakeDnnTest, DescriptorsAreOfKinds) {
  Descriptor descriptor = nullptr;
  Refused(cudnnBackendCreateDescriptor(99, &descriptor), "the fake has no descriptor 99");
  Descriptor tensor = Describe({});
  EXPECT_EQ(cudnnBackendDestroyDescriptor(tensor), 0);
  made.pop_back();
  Refused(cudnnBackendDestroyDescriptor(tensor), "of what was destroyed, or never created");
}

TEST_F(FakeDnnTest, AttributesAreOfATable) {
  const int64_t one = 1;
  auto set = [&](Descriptor to, int attribute, int type, int64_t count, const void *values) {
    return cudnnBackendSetAttribute(to, attribute, type, count, values);
  };
  Descriptor tensor = Describe({});
  const char *const none = "the fake has no attribute ";
  Refused(set(tensor, 9999, CUDNN_TYPE_INT64, 1, &one), none);
  Refused(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_BOOLEAN, 1, &one), none);
  Refused(set(tensor, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 1, &one), none);
  Refused(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, nullptr), none);
  // Of descriptors: of the kind, and finalized.
  Descriptor op = Create(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
  const char *const not_one = "is no descriptor of its kind, or not finalized";
  Refused(set(op, CUDNN_ATTR_OPERATION_MATMUL_ADESC, kDescriptor, 1, &tensor), not_one);
  Finalized(tensor);
  Refused(set(op, CUDNN_ATTR_OPERATION_MATMUL_DESC, kDescriptor, 1, &tensor), not_one);
  Descriptor graph = Create(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
  Refused(set(graph, CUDNN_ATTR_OPERATIONGRAPH_OPS, kDescriptor, 1, &tensor), not_one);
  const char *const fixed = "of no descriptor, or of one that is finalized";
  Refused(set(tensor, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &one), fixed);
  Refused(set(nullptr, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &one), fixed);
  Refused(cudnnBackendFinalize(tensor), fixed);
  Refused(cudnnBackendFinalize(Create(CUDNN_BACKEND_TENSOR_DESCRIPTOR)),
          "no attribute 901 of descriptor 17");
}

TEST_F(FakeDnnTest, TensorsHaveLayouts) {
  auto refused = [&](const char *words, auto change) {
    Tensor tensor;
    change(tensor);
    Refused(cudnnBackendFinalize(Describe(tensor)), words);
  };
  refused("a tensor of type 3", [](Tensor &t) { t.type = 3; });
  // On the way alone.
  refused("a tensor of type 4", [](Tensor &t) { t.type = CUDNN_DATA_INT32; });
  refused("without an id", [](Tensor &t) { t.id = 0; });
  refused("virtual and a value", [](Tensor &t) { t.is_virtual = t.by_value = true; });
  refused("dimensions or strides below one", [](Tensor &t) { t.dims[0] = 0; });
  refused("dimensions or strides below one", [](Tensor &t) { t.strides[3] = 0; });
  refused("not as aligned as it says", [](Tensor &t) { t.strides[2] = 12; });
}

TEST_F(FakeDnnTest, OpsFit) {
  Tensor a, b, c, y, between;
  b.id = 2;
  c.id = 3;
  y.id = 4;
  between.id = 5;
  between.is_virtual = true;
  Tensor wide = b, number = y, index = y;
  wide.dims[2] = 2 * kSize;
  number.by_value = true;
  index.type = CUDNN_DATA_INT32;
  index.is_virtual = true;
  auto refused = [&](const char *words, const std::vector<Descriptor> &ops) {
    Refused(cudnnBackendFinalize(Graph(ops)), words);
  };
  refused("two tensors with the id 2", {Matmul(a, b, between), Matmul(between, wide, y)});
  refused("tensor 5 is virtual and read before it is written", {Matmul(between, b, y)});
  refused("tensor 4 is written twice, or a value", {Matmul(a, b, y), Matmul(a, c, y)});
  refused("tensor 4 is written twice, or a value", {Matmul(a, b, number)});
  refused("sizes that do not fit", {Matmul(a, wide, y)});
  refused("tensor 5 is virtual and never read", {Matmul(a, b, between)});
  // An axis that there is not; two operands, where the mode has one.
  refused("sizes that do not fit", {Pointwise(CUDNN_POINTWISE_GEN_INDEX, a, index, 4)});
  refused("operands that are not the mode's", {Pointwise(CUDNN_POINTWISE_ADD, a, y, 0)});
  Descriptor pointwise = Create(CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
  Set(pointwise, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 2);
  Set(pointwise, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, int(CUDNN_DATA_FLOAT));
  Refused(cudnnBackendFinalize(pointwise), "the fake has no mode 2");
}

TEST_F(FakeDnnTest, AnswersHaveAPlace) {
  Descriptor config = Config(0), engine = Create(CUDNN_BACKEND_ENGINE_DESCRIPTOR);
  int64_t count = 0;
  auto get = [&](Descriptor from, int attribute, int type, int64_t most, void *values) {
    return cudnnBackendGetAttribute(from, attribute, type, most, &count, values);
  };
  Refused(get(engine, CUDNN_ATTR_ENGINE_NUMERICAL_NOTE, CUDNN_TYPE_NUMERICAL_NOTE, 1, &count),
          "of no descriptor, or of one that is not finalized");
  Refused(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor, 0, nullptr),
          "without a place for it");
  Refused(get(config, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &count),
          "the fake gives no attribute 906 of descriptor 3");
  EXPECT_EQ(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor, 1, &engine), 0);
  Refused(get(config, CUDNN_ATTR_ENGINECFG_ENGINE, kDescriptor, 1, &engine),
          "into no fresh descriptor of the kind");
  // Nobody makes those but heuristics.
  Refused(cudnnBackendFinalize(Create(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR)),
          "the fake has those alone that its heuristics give");
}

TEST_F(FakeDnnTest, PlansAreExecutedWithTheirTensors) {
  End();
  Begin("dnn_best=nur");
  // Five times 8 x 8 in bf16, for the tensors and for what overlaps one; then the workspace.
  constexpr CUdeviceptr kBytes = kSize * kSize * 2;
  const CUdeviceptr memory = NewMemory<char>(8 * kBytes), workspace = memory + 6 * kBytes;
  const std::vector<int64_t> ids = {1, 2, 3, 4};
  const std::vector<CUdeviceptr> pointers = {memory, memory + kBytes, memory + 2 * kBytes,
                                             memory + 3 * kBytes};
  Descriptor unsupported = Plan(1);
  EXPECT_EQ(cudnnBackendFinalize(unsupported), CUDNN_STATUS_NOT_SUPPORTED);
  EXPECT_EQ(Reports(), "");
  Descriptor plan = Finalized(Plan(2)), pack = Finalized(Pack(ids, pointers, workspace));
  EXPECT_EQ(cudnnBackendExecute(handle, plan, pack), 0);

  const char *const no_pack = "no handle, no plan or no pack, or they are not finalized";
  Refused(cudnnBackendExecute(nullptr, plan, pack), no_pack);
  Refused(cudnnBackendExecute(handle, unsupported, pack), no_pack);
  Refused(cudnnBackendExecute(handle, plan, Pack(ids, pointers, workspace)), no_pack);
  Refused(cudnnBackendExecute(handle, pack, plan), no_pack);
  Refused(cudnnBackendExecute(handle, Finalized(Plan(0)), pack), "a plan that sums in no order");
  Refused(cudnnBackendFinalize(Pack({1, 2, 3}, pointers, workspace)),
          "not as many pointers as ids");
  auto refused = [&](const char *words, const std::vector<int64_t> &of, std::vector<CUdeviceptr> at,
                     CUdeviceptr work) {
    at.resize(of.size(), memory);
    Refused(cudnnBackendExecute(handle, plan, Finalized(Pack(of, at, work))), words);
  };
  refused("3 pointers, where the plan has 4 tensors", {1, 2, 3}, pointers, workspace);
  refused("5 pointers, where the plan has 4 tensors", {1, 2, 3, 4, 6}, pointers, workspace);
  refused("no pointer for tensor 4", {1, 2, 3, 6}, pointers, workspace);
  refused("no pointer for tensor 2", ids, {memory, 0, memory, memory}, workspace);
  refused("tensor 3 is not as aligned as it says", ids, {memory, memory, memory + 8, memory},
          workspace);
  refused("the workspace overlaps tensor 4", ids, pointers, memory + 4 * kBytes - 16);
  refused("the workspace is not aligned to 16 bytes", ids, pointers, workspace + 8);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_SUCCESS);
  EXPECT_EQ(cuMemFree_v2(memory), CUDA_SUCCESS);
}

} // namespace
} // namespace boa::fake
