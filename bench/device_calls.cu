// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Rows of everything that is one call.

#include <array>
#include <vector>

#include "calls.hpp"
#include "device_call.cuh"
#include "device_rows.hpp"
#include "device_timing.cuh"

namespace furl::bench {
namespace {

using calls = std::vector<call<device_call>>;

void run(benchmark::State& state, const row& r, const calls& all) {
  const call<device_call>& timed = find_call(all, r.what());
  const call<device_call>& made_by = find_call(all, timed.made_by);
  const task t(r);
  std::vector<u64> sizes = sizes_of(timed, made_by, t);
  sizes[std::size_t(operand::workspace)] = device_call::workspace_bytes(t);
  const rotating_arrays arrays(sizes, r.axes->timed == timing::hot);
  const auto arguments_of = [&](i64 index, cudaStream_t stream) {
    device_call c;
    c.of = &t;
    c.index = index;
    c.stream = stream;
    for (std::size_t i = 0; i < num_operands; ++i)
      if (sizes[i] > 0) c.at[i] = arrays.at(i, index);
    return c;
  };
  for (std::size_t i = 0; i < num_operands; ++i)
    if (const std::vector<u8> content = t.content(operand(i)); sizes[i] > 0 && !content.empty())
      arrays.fill(i, content);
  const device_call first = arguments_of(0, nullptr);
  if (sizes[std::size_t(operand::tile_index)] > 0)
    require(index_tiles(t.plan, first.tile_bits(), first.all_of(operand::tile_index), nullptr));
  require(made_by.function(first));
  arrays.replicate();
  measure(state, r, bytes_moved(timed, t), [&](i64 index, cudaStream_t stream) {
    require(timed.function(arguments_of(index, stream)));
  });
}

}  // namespace

void register_call_rows(bool all) {
  static const calls known = with_library_calls(part_calls());
  for (const call<device_call>& each : known)
    register_device_rows(each.what, all,
                         [](benchmark::State& state, const row& r) { run(state, r, known); });
}

}  // namespace furl::bench
