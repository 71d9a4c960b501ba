//===- errors.cpp - What the driver calls its errors ------------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
#include "test/fake_cuda/cuda_abi.h"
#include "test/fake_cuda/fake.h"

extern "C" {

BOA_FAKE_API CUresult cuGetErrorName(CUresult error, const char **name) {
  switch (error) {
#define BOA_NAME(code)                                                                             \
  case code:                                                                                       \
    *name = #code;                                                                                 \
    return CUDA_SUCCESS;
    BOA_NAME(CUDA_SUCCESS)
    BOA_NAME(CUDA_ERROR_INVALID_VALUE)
    BOA_NAME(CUDA_ERROR_OUT_OF_MEMORY)
    BOA_NAME(CUDA_ERROR_NOT_INITIALIZED)
    BOA_NAME(CUDA_ERROR_NO_DEVICE)
    BOA_NAME(CUDA_ERROR_INVALID_DEVICE)
    BOA_NAME(CUDA_ERROR_INVALID_IMAGE)
    BOA_NAME(CUDA_ERROR_INVALID_CONTEXT)
    BOA_NAME(CUDA_ERROR_NO_BINARY_FOR_GPU)
    BOA_NAME(CUDA_ERROR_ECC_UNCORRECTABLE)
    BOA_NAME(CUDA_ERROR_INVALID_PTX)
    BOA_NAME(CUDA_ERROR_UNSUPPORTED_PTX_VERSION)
    BOA_NAME(CUDA_ERROR_INVALID_HANDLE)
    BOA_NAME(CUDA_ERROR_ILLEGAL_STATE)
    BOA_NAME(CUDA_ERROR_NOT_FOUND)
    BOA_NAME(CUDA_ERROR_NOT_READY)
    BOA_NAME(CUDA_ERROR_ILLEGAL_ADDRESS)
    BOA_NAME(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    BOA_NAME(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED)
    BOA_NAME(CUDA_ERROR_LAUNCH_FAILED)
    BOA_NAME(CUDA_ERROR_NOT_PERMITTED)
    BOA_NAME(CUDA_ERROR_NOT_SUPPORTED)
    BOA_NAME(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
    BOA_NAME(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)
    BOA_NAME(CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)
    BOA_NAME(CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)
    BOA_NAME(CUDA_ERROR_UNKNOWN)
#undef BOA_NAME
  }
  *name = nullptr;
  return CUDA_ERROR_INVALID_VALUE;
}

BOA_FAKE_API CUresult cuGetErrorString(CUresult error, const char **words) {
  switch (error) {
  case CUDA_SUCCESS:
    *words = "no error";
    break;
  case CUDA_ERROR_OUT_OF_MEMORY:
    *words = "out of memory";
    break;
  case CUDA_ERROR_ILLEGAL_ADDRESS:
    *words = "an illegal memory access was encountered";
    break;
  case CUDA_ERROR_LAUNCH_FAILED:
    *words = "unspecified launch failure";
    break;
  case CUDA_ERROR_NO_DEVICE:
    *words = "no CUDA-capable device is detected";
    break;
  default:
    if (cuGetErrorName(error, words))
      return CUDA_ERROR_INVALID_VALUE;
    *words = "an error of the fake driver";
  }
  return CUDA_SUCCESS;
}

} // extern "C"
