//===- no_gpu.cpp - A driver for those who only plan ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// In the place of libcuda.so.1: it has what cuDNN looks up, takes what is loaded, and fails
// at all else. cuDNN 9 says of no kernel that it has it without a driver to load it.
//
//===----------------------------------------------------------------------===//

#define BOA_EXPORT extern "C" __attribute__((visibility("default")))

// CUDA_SUCCESS, CUDA_ERROR_NOT_SUPPORTED
constexpr int kDone = 0, kRefused = 801;

/// Something that is no null.
static char something;

#define BOA_MAKES(name)                                                                            \
  BOA_EXPORT int name(void **made) {                                                               \
    *made = &something;                                                                            \
    return kDone;                                                                                  \
  }
#define BOA_DOES(name)                                                                             \
  BOA_EXPORT int name() { return kDone; }
#define BOA_FAILS(name)                                                                            \
  BOA_EXPORT int name() { return kRefused; }

BOA_MAKES(cuKernelGetFunction)
BOA_MAKES(cuLibraryGetKernel)
BOA_MAKES(cuLibraryLoadData)
BOA_MAKES(cuModuleGetFunction)
BOA_MAKES(cuModuleLoadData)
BOA_MAKES(cuModuleLoadDataEx)
BOA_DOES(cuFuncSetAttribute)
BOA_DOES(cuInit)
BOA_DOES(cuKernelSetAttribute)
BOA_DOES(cuLibraryUnload)
BOA_DOES(cuModuleUnload)
BOA_FAILS(cuCtxGetCurrent)
BOA_FAILS(cuCtxGetDevice)
BOA_FAILS(cuCtxGetLimit)
BOA_FAILS(cuCtxPopCurrent)
BOA_FAILS(cuCtxPushCurrent)
BOA_FAILS(cuDeviceGet)
BOA_FAILS(cuDeviceGetAttribute)
BOA_FAILS(cuDeviceGetCount)
BOA_FAILS(cuDevicePrimaryCtxRelease)
BOA_FAILS(cuDevicePrimaryCtxReset)
BOA_FAILS(cuDevicePrimaryCtxRetain)
BOA_FAILS(cuDriverGetVersion)
BOA_FAILS(cuFuncGetAttribute)
BOA_FAILS(cuGetErrorName)
BOA_FAILS(cuGetErrorString)
BOA_FAILS(cuGetExportTable)
BOA_FAILS(cuKernelGetAttribute)
BOA_FAILS(cuLaunchCooperativeKernel)
BOA_FAILS(cuLaunchKernel)
BOA_FAILS(cuLaunchKernelEx)
BOA_FAILS(cuLibraryLoadFromFile)
BOA_FAILS(cuLinkAddData)
BOA_FAILS(cuLinkAddData_v2)
BOA_FAILS(cuLinkAddFile_v2)
BOA_FAILS(cuLinkComplete)
BOA_FAILS(cuLinkCreate)
BOA_FAILS(cuLinkCreate_v2)
BOA_FAILS(cuLinkDestroy)
BOA_FAILS(cuMemcpyDtoH_v2)
BOA_FAILS(cuModuleGetGlobal_v2)
BOA_FAILS(cuModuleLoadFatBinary)
BOA_FAILS(cuOccupancyMaxActiveBlocksPerMultiprocessor)
BOA_FAILS(cuOccupancyMaxPotentialClusterSize)
BOA_FAILS(cuStreamGetCtx)
BOA_FAILS(cuStreamSynchronize)
BOA_FAILS(cuTensorMapEncodeIm2col)
BOA_FAILS(cuTensorMapEncodeTiled)
