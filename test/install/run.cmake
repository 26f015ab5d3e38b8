# Installs furl, moves the installation, and builds and runs a project that uses it; then again with
# furl as a part of the project's own tree.
# cmake -D BINARY=... -D SOURCE=... -D WORK=... -D CXX=... -P run.cmake
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BINARY} --prefix ${WORK}/first)
file(RENAME ${WORK}/first ${WORK}/prefix)
foreach(way -DCMAKE_PREFIX_PATH=${WORK}/prefix -DFURL_SOURCE=${SOURCE})
  string(MAKE_C_IDENTIFIER "${way}" name)
  run(${CMAKE_COMMAND} -S ${SOURCE}/test/install -B ${WORK}/${name} -G Ninja
    -DCMAKE_CXX_COMPILER=${CXX} ${way})
  run(${CMAKE_COMMAND} --build ${WORK}/${name})
  run(${WORK}/${name}/consumer)
endforeach()
