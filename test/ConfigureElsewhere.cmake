# cmake -DSOURCE=... -DBINARY=... -DMLIR_DIR=... -DLLVM_DIR=... -P ConfigureElsewhere.cmake: for a
# processor that the emulator's fibers are not written for, a build is configured that leaves out
# what is emulated and has the rest.
file(REMOVE_RECURSE ${BINARY})
execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${BINARY} -G Ninja
  -DCMAKE_SYSTEM_NAME=Linux -DCMAKE_SYSTEM_PROCESSOR=aarch64
  -DMLIR_DIR=${MLIR_DIR} -DLLVM_DIR=${LLVM_DIR}
  -DCMAKE_C_COMPILER=${C_COMPILER} -DCMAKE_CXX_COMPILER=${CXX_COMPILER}
  RESULT_VARIABLE failed OUTPUT_VARIABLE said ERROR_VARIABLE said)
if(failed)
  message(FATAL_ERROR "${said}")
endif()
file(READ ${BINARY}/build.ninja build)
foreach(absent boa_emulator boa_fake_cuda gradients_cuda)
  if(build MATCHES ${absent})
    message(FATAL_ERROR "${absent} is built for aarch64")
  endif()
endforeach()
foreach(present boa-gradient-test boa-trainer)
  if(NOT build MATCHES ${present})
    message(FATAL_ERROR "${present} is not built for aarch64")
  endif()
endforeach()
