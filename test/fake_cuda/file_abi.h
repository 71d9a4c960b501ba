//===- file_abi.h - libcufile's ABI, as far as it is faked ------*- C++ -*-===//
//
// Part of Boa, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Our own words for it, so that no header of the toolkit is needed.
//
//===----------------------------------------------------------------------===//
#ifndef BOA_TEST_FAKE_CUDA_FILE_ABI_H
#define BOA_TEST_FAKE_CUDA_FILE_ABI_H

#include "test/fake_cuda/cuda_abi.h"

#include <sys/types.h>

enum : int {
  CU_FILE_SUCCESS = 0,
  CU_FILE_DRIVER_NOT_INITIALIZED = 5001,
  CU_FILE_CUDA_DRIVER_ERROR = 5011,
  CU_FILE_INVALID_MAPPING_SIZE = 5016,
  CU_FILE_INVALID_FILE_OPEN_FLAG = 5019,
  CU_FILE_INVALID_VALUE = 5022,
  CU_FILE_MEMORY_ALREADY_REGISTERED = 5023,
  CU_FILE_MEMORY_NOT_REGISTERED = 5024,
  CU_FILE_HANDLE_NOT_REGISTERED = 5027,
  CU_FILE_HANDLE_ALREADY_REGISTERED = 5028,
  CU_FILE_HANDLE_TYPE_OPAQUE_FD = 1,
};

typedef struct CUfileError {
  int err;
  CUresult cu_err;
} CUfileError_t;

typedef struct CUfileDescr_t {
  int type;
  union {
    int fd;
    void *handle;
  } handle;
  const void *fs_ops;
} CUfileDescr_t;

typedef void *CUfileHandle_t;

#endif // BOA_TEST_FAKE_CUDA_FILE_ABI_H
