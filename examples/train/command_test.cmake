# Runs the train program as a user would: cmake -D train=PROGRAM -D case=NAME -D folder=SCRATCH -P
# command_test.cmake
set(data /usr/share/datasets/fashion-mnist)
set(short --batch 8 --steps 2 --test-images 8)
file(REMOVE_RECURSE ${folder})
file(MAKE_DIRECTORY ${folder})

# Runs the program; its exit status must be as given, and what it says on standard error one line
# that matches.
function(expect_failure status message)
  execute_process(COMMAND ${train} ${ARGN} RESULT_VARIABLE result ERROR_VARIABLE error
    OUTPUT_VARIABLE output)
  if(NOT result EQUAL status OR NOT error MATCHES "^train: [^\n]*\n$" OR NOT error MATCHES
      "${message}" OR NOT output STREQUAL "")
    message(FATAL_ERROR "train ${ARGN}\n  exit status ${result}\n  ${error}${output}")
  endif()
endfunction()

# Trains for a few steps; sets `name` to the rows of its table, without
# seeds and times. The last loss among them tells any two runs apart.
function(train_to name num_rows)
  execute_process(COMMAND ${train} ${short} --csv ${folder}/${name}.csv ${ARGN}
    COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET ERROR_QUIET)
  file(STRINGS ${folder}/${name}.csv rows)
  list(LENGTH rows count)
  if(NOT count EQUAL num_rows)
    message(FATAL_ERROR "${num_rows} rows expected, title included:\n${rows}")
  endif()
  list(TRANSFORM rows REPLACE "^([^,]*,[^,]*,[^,]*),[^,]*,(.*),[^,]*$" "\\1,\\2")
  set(${name} "${rows}" PARENT_SCOPE)
endfunction()

function(expect_equal a b)
  if(NOT a STREQUAL b)
    message(FATAL_ERROR "not equal:\n${a}\n${b}")
  endif()
endfunction()

if(case STREQUAL same_result_with_any_number_of_threads)
  train_to(one 6 --seed 5 --threads 1)
  train_to(three 6 --seed 5 --threads 3)
  expect_equal("${one}" "${three}")
elseif(case STREQUAL same_seed_same_result)
  train_to(first 2 --seed 5 --codec lfc2)
  train_to(second 2 --seed 5 --codec lfc2)
  train_to(other 2 --seed 6 --codec lfc2)
  expect_equal("${first}" "${second}")
  if(first STREQUAL other)
    message(FATAL_ERROR "the seed does not matter:\n${first}")
  endif()
elseif(case STREQUAL missing_data)
  expect_failure(1 "${folder}/train-images.*dataset-fashion-mnist" --data ${folder})
  expect_failure(1 "no/such.*dataset-fashion-mnist" --data /no/such)
elseif(case STREQUAL truncated_data)
  file(COPY ${data}/ DESTINATION ${folder})
  execute_process(COMMAND head -c 1000000 ${data}/train-images-idx3-ubyte.gz
    OUTPUT_FILE ${folder}/train-images-idx3-ubyte.gz COMMAND_ERROR_IS_FATAL ANY)
  expect_failure(1 "train-images-idx3-ubyte.gz: is cut short.*dataset-fashion-mnist" --data
    ${folder})
  file(REMOVE_RECURSE ${folder})
elseif(case STREQUAL bad_options)
  expect_failure(2 "--bogus" --bogus 1)
  expect_failure(2 "--codec is \"zip\".*flat2" --codec zip)
  expect_failure(2 "--epochs is \"0\"" --epochs 0)
  expect_failure(2 "--epochs is \"2x\"" --epochs=2x)
  expect_failure(2 "--batch is \"-1\"" --batch -1)
  expect_failure(2 "--seed" --seed)
  expect_failure(2 "--threads is \"\"" --threads=)
  expect_failure(2 "surplus" surplus)
elseif(case STREQUAL csv_whole_or_not_at_all)
  expect_failure(1 "no folder" ${short} --csv ${folder}/no/table.csv)
  expect_failure(1 "no regular file" ${short} --csv ${folder})
  expect_failure(1 "no regular file" ${short} --csv /dev/null)
  train_to(table 2 --codec none)
  file(GLOB files ${folder}/*)
  expect_equal("${files}" "${folder}/table.csv")
else()
  message(FATAL_ERROR "no such case: ${case}")
endif()
