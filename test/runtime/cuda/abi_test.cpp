//===- abi_test.cpp - Our declarations against the toolkit's --------------===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Compiled where there is a toolkit; that it compiles is the test. Functions agree where
// the toolkit's type, with its enumerations as the integers that they are passed as, is
// ours.
//
//===----------------------------------------------------------------------===//
#include "runtime/device/cuda/blas.h"
#include "runtime/device/cuda/dnn_abi.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/files.h"

#include <cublasLt.h>
#include <cuda.h>
#if __has_include(<cufile.h>)
#include <cufile.h>
#define BOA_HAS_FILE
#endif
#if __has_include(<cudnn_graph.h>)
#include <cudnn_graph.h>
#define BOA_HAS_DNN
#endif

#include <type_traits>

namespace boa::cuda {
namespace {

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

/// The toolkit's type as ours: enumerations are int; what has no name in ours has one here.
template <typename T, typename = void> struct Ours {
  using type = T;
};
template <typename T> struct Ours<T, std::enable_if_t<std::is_enum_v<T>>> {
  static_assert(sizeof(T) == sizeof(int));
  using type = int;
};
template <typename T> struct Ours<const T, std::enable_if_t<!std::is_same_v<T, void>>> {
  using type = const typename Ours<T>::type;
};
template <typename T> struct Ours<T *, std::enable_if_t<std::is_object_v<T> || std::is_void_v<T>>> {
  using type = typename Ours<T>::type *;
};
template <typename R, typename... P> struct Ours<R(P...)> {
  using type = typename Ours<R>::type(typename Ours<P>::type...);
};
template <> struct Ours<cublasLtContext> {
  using type = BlasContext;
};
template <> struct Ours<cublasLtMatmulDescOpaque_t> {
  using type = MatmulDescData;
};
template <> struct Ours<cublasLtMatrixLayoutOpaque_t> {
  using type = MatrixLayoutData;
};
template <> struct Ours<cublasLtMatmulPreferenceOpaque_t> {
  using type = MatmulPreferenceData;
};
template <> struct Ours<cublasLtMatmulAlgo_t> {
  using type = MatmulAlgo;
};
template <> struct Ours<cublasLtMatmulHeuristicResult_t> {
  using type = MatmulHeuristic;
};

#ifdef BOA_HAS_FILE
template <> struct Ours<CUfileError> {
  using type = FileError;
};
template <> struct Ours<CUfileDescr_t> {
  using type = FileDescr;
};
#endif

static_assert(std::is_same_v<CUdevice, Ordinal> && std::is_same_v<CUdeviceptr, Pointer>);
static_assert(std::is_same_v<CUcontext, Context> && std::is_same_v<CUmodule, Module>);
static_assert(std::is_same_v<CUfunction, Function> && std::is_same_v<CUstream, Stream>);
static_assert(std::is_same_v<CUevent, Event> && std::is_same_v<cudaStream_t, Stream>);
static_assert(std::is_same_v<CUgraph, CapturedGraph> && std::is_same_v<CUgraphExec, GraphExec>);

static_assert(sizeof(cublasLtMatmulAlgo_t) == sizeof(MatmulAlgo));
static_assert(sizeof(cublasLtMatmulHeuristicResult_t) == sizeof(MatmulHeuristic));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize) ==
              offsetof(MatmulHeuristic, workspace_bytes));
static_assert(offsetof(cublasLtMatmulHeuristicResult_t, state) == offsetof(MatmulHeuristic, state));

//===----------------------------------------------------------------------===//
// Functions
//===----------------------------------------------------------------------===//

// The version that the header declares under that name is of the same type.
#define BOA_AGREES(name, symbol, arguments)                                                        \
  static_assert(std::is_same_v<Ours<decltype(::symbol)>::type, Result arguments>, #symbol);
BOA_CUDA_DRIVER_FUNCTIONS(BOA_AGREES)

#define BOA_AGREES_TOO(name, symbol, result, arguments)                                            \
  static_assert(std::is_same_v<Ours<decltype(::symbol)>::type, result arguments>, #symbol);
BOA_CUDA_BLAS_FUNCTIONS(BOA_AGREES_TOO)

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static_assert(CUDA_SUCCESS == kSuccess && CUDA_ERROR_OUT_OF_MEMORY == kOutOfMemory);
static_assert(CUDA_ERROR_STUB_LIBRARY == kStubLibrary && CUDA_ERROR_NO_DEVICE == kNoDevice);
static_assert(CUDA_ERROR_INVALID_IMAGE == kInvalidImage);
static_assert(CUDA_ERROR_NO_BINARY_FOR_GPU == kNoBinaryForGpu);
static_assert(CUDA_ERROR_ECC_UNCORRECTABLE == kEccUncorrectable);
static_assert(CUDA_ERROR_INVALID_PTX == kInvalidPtx);
static_assert(CUDA_ERROR_UNSUPPORTED_PTX_VERSION == kUnsupportedPtxVersion);
static_assert(CUDA_ERROR_ILLEGAL_ADDRESS == kIllegalAddress);
static_assert(CUDA_ERROR_LAUNCH_FAILED == kLaunchFailed);
static_assert(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH == kSystemDriverMismatch);
static_assert(CUDA_ERROR_SYSTEM_NOT_READY == kSystemNotReady);
static_assert(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE == kCompatNotSupported);
static_assert(CUDA_ERROR_DEVICE_UNAVAILABLE == kDeviceUnavailable);
static_assert(CUDA_ERROR_NVLINK_UNCORRECTABLE == kNvlinkUncorrectable);
static_assert(CUDA_ERROR_JIT_COMPILER_NOT_FOUND == kJitCompilerNotFound);
static_assert(CUDA_ERROR_JIT_COMPILATION_DISABLED == kJitCompilationDisabled);
static_assert(CUDA_ERROR_LAUNCH_TIMEOUT == kLaunchTimeout);
static_assert(CUDA_ERROR_HARDWARE_STACK_ERROR == kHardwareStackError);
static_assert(CUDA_ERROR_ILLEGAL_INSTRUCTION == kIllegalInstruction);
static_assert(CUDA_ERROR_MISALIGNED_ADDRESS == kMisalignedAddress);
static_assert(CUDA_ERROR_INVALID_ADDRESS_SPACE == kInvalidAddressSpace);
static_assert(CUDA_ERROR_INVALID_PC == kInvalidPc);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == kCapabilityMajor);
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == kCapabilityMinor);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X == kMaxBlock);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z == kMaxBlock + 2);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X == kMaxGrid);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z == kMaxGrid + 2);
static_assert(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN == kMaxSharedBytesOptin);
static_assert(CU_STREAM_NON_BLOCKING == kNonBlocking && CU_EVENT_BLOCKING_SYNC == kBlockingSync);
static_assert(CU_STREAM_CAPTURE_MODE_THREAD_LOCAL == kThreadLocalCapture);
static_assert(CU_JIT_ERROR_LOG_BUFFER == kErrorLogBuffer);
static_assert(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES == kErrorLogBufferBytes);
static_assert(CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK == kMaxThreads);
static_assert(CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES == kOwnSharedBytes);
static_assert(CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES == kLocalBytes);
static_assert(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES == kMaxDynamicSharedBytes);
static_assert(CU_LIMIT_STACK_SIZE == kStackSize);

static_assert(CUBLAS_STATUS_NOT_INITIALIZED == kBlasNotInitialized);
static_assert(CUBLAS_STATUS_ALLOC_FAILED == kBlasAllocFailed);
static_assert(CUBLAS_STATUS_INVALID_VALUE == kBlasInvalidValue);
static_assert(CUBLAS_STATUS_ARCH_MISMATCH == kBlasArchMismatch);
static_assert(CUBLAS_STATUS_NOT_SUPPORTED == kBlasNotSupported);
static_assert(CUBLAS_COMPUTE_32F == kCompute32F && CUDA_R_32F == kReal32F);
static_assert(CUBLAS_COMPUTE_32F_FAST_TF32 == kComputeTf32);
static_assert(CUDA_R_16BF == kReal16BF);
static_assert(CUBLASLT_MATMUL_DESC_TRANSA == kDescTransA);
static_assert(CUBLASLT_MATMUL_DESC_TRANSB == kDescTransB);
static_assert(CUBLASLT_MATMUL_DESC_EPILOGUE == kDescEpilogue);
static_assert(CUBLASLT_MATMUL_DESC_BIAS_POINTER == kDescBiasPointer);
static_assert(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE == kDescBiasType);
static_assert(CUBLAS_OP_N == kOpN && CUBLAS_OP_T == kOpT);
static_assert(CUBLASLT_EPILOGUE_DEFAULT == kEpilogueDefault);
static_assert(CUBLASLT_EPILOGUE_BIAS == kEpilogueBias);
static_assert(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES == kPrefWorkspaceBytes);
static_assert(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK == kPrefReductions);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES == kPrefAlignmentA);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES == kPrefAlignmentB);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES == kPrefAlignmentC);
static_assert(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES == kPrefAlignmentD);
static_assert(CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE == kReductionInComputeType);

//===----------------------------------------------------------------------===//
// cuDNN, which is a package of its own
//===----------------------------------------------------------------------===//

#ifdef BOA_HAS_DNN
static_assert(std::is_same_v<cudnnHandle_t, DnnHandle>);
static_assert(std::is_same_v<cudnnBackendDescriptor_t, DnnDescriptor>);
BOA_CUDA_DNN_FUNCTIONS(BOA_AGREES_TOO)

static_assert(CUDNN_BACKEND_POINTWISE_DESCRIPTOR == dnn_descriptor::kPointwise);
static_assert(CUDNN_BACKEND_ENGINE_DESCRIPTOR == dnn_descriptor::kEngine);
static_assert(CUDNN_BACKEND_ENGINECFG_DESCRIPTOR == dnn_descriptor::kEngineConfig);
static_assert(CUDNN_BACKEND_ENGINEHEUR_DESCRIPTOR == dnn_descriptor::kHeuristic);
static_assert(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR == dnn_descriptor::kPlan);
static_assert(CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR == dnn_descriptor::kPointwiseOp);
static_assert(CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR == dnn_descriptor::kGraph);
static_assert(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR == dnn_descriptor::kVariantPack);
static_assert(CUDNN_BACKEND_TENSOR_DESCRIPTOR == dnn_descriptor::kTensor);
static_assert(CUDNN_BACKEND_MATMUL_DESCRIPTOR == dnn_descriptor::kMatmul);
static_assert(CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR == dnn_descriptor::kMatmulOp);
static_assert(CUDNN_BACKEND_REDUCTION_DESCRIPTOR == dnn_descriptor::kReduction);
static_assert(CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR == dnn_descriptor::kReductionOp);
static_assert(CUDNN_BACKEND_OPERATION_RESHAPE_DESCRIPTOR == dnn_descriptor::kReshapeOp);

static_assert(CUDNN_ATTR_POINTWISE_MODE == dnn_attribute::kPointwiseMode);
static_assert(CUDNN_ATTR_POINTWISE_MATH_PREC == dnn_attribute::kPointwiseType);
static_assert(CUDNN_ATTR_POINTWISE_AXIS == dnn_attribute::kPointwiseAxis);
static_assert(CUDNN_ATTR_ENGINEHEUR_MODE == dnn_attribute::kHeuristicMode);
static_assert(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH == dnn_attribute::kHeuristicGraph);
static_assert(CUDNN_ATTR_ENGINEHEUR_RESULTS == dnn_attribute::kHeuristicResults);
static_assert(CUDNN_ATTR_ENGINECFG_ENGINE == dnn_attribute::kConfigEngine);
static_assert(CUDNN_ATTR_EXECUTION_PLAN_HANDLE == dnn_attribute::kPlanHandle);
static_assert(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG == dnn_attribute::kPlanConfig);
static_assert(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE == dnn_attribute::kPlanWorkspace);
static_assert(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR == dnn_attribute::kPointwiseOpDesc);
static_assert(CUDNN_ATTR_OPERATION_POINTWISE_XDESC == dnn_attribute::kPointwiseOpX);
static_assert(CUDNN_ATTR_OPERATION_POINTWISE_BDESC == dnn_attribute::kPointwiseOpB);
static_assert(CUDNN_ATTR_OPERATION_POINTWISE_YDESC == dnn_attribute::kPointwiseOpY);
static_assert(CUDNN_ATTR_OPERATION_POINTWISE_TDESC == dnn_attribute::kPointwiseOpT);
static_assert(CUDNN_ATTR_OPERATIONGRAPH_HANDLE == dnn_attribute::kGraphHandle);
static_assert(CUDNN_ATTR_OPERATIONGRAPH_OPS == dnn_attribute::kGraphOps);
static_assert(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT == dnn_attribute::kTensorAlignment);
static_assert(CUDNN_ATTR_TENSOR_DATA_TYPE == dnn_attribute::kTensorType);
static_assert(CUDNN_ATTR_TENSOR_DIMENSIONS == dnn_attribute::kTensorDims);
static_assert(CUDNN_ATTR_TENSOR_STRIDES == dnn_attribute::kTensorStrides);
static_assert(CUDNN_ATTR_TENSOR_UNIQUE_ID == dnn_attribute::kTensorId);
static_assert(CUDNN_ATTR_TENSOR_IS_VIRTUAL == dnn_attribute::kTensorIsVirtual);
static_assert(CUDNN_ATTR_TENSOR_IS_BY_VALUE == dnn_attribute::kTensorIsByValue);
static_assert(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS == dnn_attribute::kPackIds);
static_assert(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS == dnn_attribute::kPackPointers);
static_assert(CUDNN_ATTR_VARIANT_PACK_WORKSPACE == dnn_attribute::kPackWorkspace);
static_assert(CUDNN_ATTR_ENGINE_NUMERICAL_NOTE == dnn_attribute::kEngineNotes);
static_assert(CUDNN_ATTR_MATMUL_COMP_TYPE == dnn_attribute::kMatmulType);
static_assert(CUDNN_ATTR_OPERATION_MATMUL_ADESC == dnn_attribute::kMatmulOpA);
static_assert(CUDNN_ATTR_OPERATION_MATMUL_BDESC == dnn_attribute::kMatmulOpB);
static_assert(CUDNN_ATTR_OPERATION_MATMUL_CDESC == dnn_attribute::kMatmulOpC);
static_assert(CUDNN_ATTR_OPERATION_MATMUL_DESC == dnn_attribute::kMatmulOpDesc);
static_assert(CUDNN_ATTR_REDUCTION_OPERATOR == dnn_attribute::kReductionOperator);
static_assert(CUDNN_ATTR_REDUCTION_COMP_TYPE == dnn_attribute::kReductionType);
static_assert(CUDNN_ATTR_OPERATION_REDUCTION_XDESC == dnn_attribute::kReductionOpX);
static_assert(CUDNN_ATTR_OPERATION_REDUCTION_YDESC == dnn_attribute::kReductionOpY);
static_assert(CUDNN_ATTR_OPERATION_REDUCTION_DESC == dnn_attribute::kReductionOpDesc);
static_assert(CUDNN_ATTR_OPERATION_RESHAPE_XDESC == dnn_attribute::kReshapeOpX);
static_assert(CUDNN_ATTR_OPERATION_RESHAPE_YDESC == dnn_attribute::kReshapeOpY);

static_assert(CUDNN_TYPE_HANDLE == dnn_type::kHandle &&
              CUDNN_TYPE_DATA_TYPE == dnn_type::kDataType);
static_assert(CUDNN_TYPE_BOOLEAN == dnn_type::kBoolean && CUDNN_TYPE_INT64 == dnn_type::kInt64);
static_assert(CUDNN_TYPE_VOID_PTR == dnn_type::kPointer);
static_assert(CUDNN_TYPE_HEUR_MODE == dnn_type::kHeurMode);
static_assert(CUDNN_TYPE_NUMERICAL_NOTE == dnn_type::kNumericalNote);
static_assert(CUDNN_TYPE_POINTWISE_MODE == dnn_type::kPointwiseMode);
static_assert(CUDNN_TYPE_BACKEND_DESCRIPTOR == dnn_type::kDescriptor);
static_assert(CUDNN_TYPE_REDUCTION_OPERATOR_TYPE == dnn_type::kReduction);
static_assert(CUDNN_TYPE_CHAR == dnn_type::kChar);

static_assert(CUDNN_DATA_FLOAT == kDnnFloat && CUDNN_DATA_INT32 == kDnnInt32);
static_assert(CUDNN_DATA_BFLOAT16 == kDnnBfloat16 && CUDNN_DATA_BOOLEAN == kDnnBoolean);
static_assert(CUDNN_POINTWISE_ADD == kDnnAdd && CUDNN_POINTWISE_MUL == kDnnMul);
static_assert(CUDNN_POINTWISE_DIV == kDnnDiv && CUDNN_POINTWISE_SUB == kDnnSub);
static_assert(CUDNN_POINTWISE_EXP == kDnnExp && CUDNN_POINTWISE_LOG == kDnnLog);
static_assert(CUDNN_POINTWISE_CMP_GE == kDnnAtLeast && CUDNN_POINTWISE_GEN_INDEX == kDnnIndex);
static_assert(CUDNN_POINTWISE_BINARY_SELECT == kDnnSelect);
static_assert(CUDNN_REDUCE_TENSOR_ADD == kDnnReduceAdd && CUDNN_REDUCE_TENSOR_MAX == kDnnReduceMax);
static_assert(CUDNN_HEUR_MODE_A == kDnnHeurBest && CUDNN_HEUR_MODE_FALLBACK == kDnnHeurFallback);
static_assert(CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC == kDnnNondeterministic);
static_assert(CUDNN_NUMERICAL_NOTE_TYPE_COUNT <= kDnnNotes);
static_assert(sizeof(bool) == 1 && sizeof(cudnnBackendNumericalNote_t) == sizeof(int));
#if CUDNN_VERSION >= 90800 // describes devices
static_assert(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR == dnn_descriptor::kDevice);
static_assert(CUDNN_ATTR_ENGINEHEUR_DEVICEPROP == dnn_attribute::kHeuristicDevice);
static_assert(CUDNN_ATTR_EXECUTION_PLAN_DEVICEPROP == dnn_attribute::kPlanDevice);
static_assert(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION == dnn_attribute::kDeviceJson);
#endif
#endif

//===----------------------------------------------------------------------===//
// GPUDirect Storage, which is a package of its own
//===----------------------------------------------------------------------===//

#ifdef BOA_HAS_FILE
static_assert(std::is_same_v<CUfileHandle_t, FileHandle>);
BOA_CUDA_FILE_FUNCTIONS(BOA_AGREES_TOO)
static_assert(sizeof(CUfileError) == sizeof(FileError));
static_assert(offsetof(CUfileError, cu_err) == offsetof(FileError, cuda));
static_assert(sizeof(CUfileDescr_t) == sizeof(FileDescr));
static_assert(offsetof(CUfileDescr_t, handle) == offsetof(FileDescr, fd));
static_assert(offsetof(CUfileDescr_t, fs_ops) == offsetof(FileDescr, operations));
static_assert(CU_FILE_HANDLE_TYPE_OPAQUE_FD == kFileDescriptor);
static_assert(CUFILEOP_BASE_ERR == kFileErrors && CU_FILE_SUCCESS == 0);
static_assert(CU_FILE_DRIVER_NOT_INITIALIZED == kFileDriverMissing);
static_assert(CU_FILE_DRIVER_VERSION_MISMATCH == kFileVersionMismatch);
static_assert(CU_FILE_DRIVER_VERSION_READ_ERROR == kFileVersionUnknown);
static_assert(CU_FILE_PLATFORM_NOT_SUPPORTED == kFilePlatform);
static_assert(CU_FILE_IO_NOT_SUPPORTED == kFileUnsupported);
static_assert(CU_FILE_DEVICE_NOT_SUPPORTED == kFileGpuUnsupported);
static_assert(CU_FILE_CUDA_DRIVER_ERROR == kFileDriverFailed);
static_assert(CU_FILE_INVALID_MAPPING_SIZE == kFileTooMuchPinned);
static_assert(CU_FILE_INVALID_FILE_OPEN_FLAG == kFileOpenFlags);
static_assert(CU_FILE_DIO_NOT_SET == kFileNotDirect);
static_assert(CU_FILE_PERMISSION_DENIED == kFileDenied);
static_assert(CU_FILE_NVFS_SETUP_ERROR == kFileSetup && CU_FILE_IO_DISABLED == kFileDisabled);
static_assert(CU_FILE_GPU_MEMORY_PINNING_FAILED == kFilePinning);
#if CUDA_VERSION >= 13000 // CUDA 12's header lacks it
static_assert(CU_FILE_NOMEM_ERROR == kFileNoMemory);
#endif
#endif

} // namespace
} // namespace boa::cuda
