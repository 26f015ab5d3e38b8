// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

// The calls of the library that both programs measure: one table.

#include <array>
#include <stdexcept>
#include <vector>

#include "axes.hpp"
#include "furl/extra/batch.hpp"
#include "furl/plan.hpp"
#include "operands.hpp"

namespace furl::bench {

/// What one call takes. Each program adds the library's calls as members, with what its memory
/// needs behind these arguments.
struct arguments {
  const task* of = nullptr;
  std::array<u8*, num_operands> at = {};  // null: the row has none
  i64 index = 0;                          // counts the calls

  const furl::plan& plan() const { return of->plan; }
  const_values input() const { return x(); }
  values x() const { return elements(operand::x, num_elements(of->r)); }
  values y() const {
    const i64 outputs = of->pooling.num_outputs();
    return elements(operand::y, outputs > 0 ? outputs : num_elements(of->r));
  }
  bytes codes() const { return all_of(operand::x); }  // one a byte
  bytes blob() const { return all_of(operand::blob); }
  const_bytes packed() const { return blob(); }
  span<double> squared() const { return array<double>(operand::result); }
  bytes tile_bits() const { return all_of(operand::tile_bits); }
  random_key key() const { return {key_of_blobs.seed, u64(index)}; }
  /// The rest of an array, as T.
  template <class T>
  span<T> array(operand which, u64 offset = 0) const {
    return {reinterpret_cast<T*>(at[std::size_t(which)] + offset),
            (of->size(which) - offset) / sizeof(T)};
  }
  bytes all_of(operand which) const { return {at[std::size_t(which)], of->size(which)}; }

  /// What the calls that code and decode are given.
  template <class Options>
  void give(Options& o) const {
    if (of->r.way == path::mixed) o.tile_bits = tile_bits();
    if (of->inputs.empty()) return;
    const float* const numbers = array<float>(operand::given).data;
    if (of->r.way == path::in_range) o.ranges = given_ranges::of_tensor(numbers);
    if (of->r.way != path::normalised) return;
    const i64 count = detail::num_statistics(of->r);
    o.statistics = {numbers, numbers + count, count, of->r.on.extent};
  }

 private:
  values elements(operand which, i64 count) const {
    return {at[std::size_t(which)], of->r.type, count};
  }
};

/// How a primitive is called.
template <class Arguments>
struct call {
  primitive what;
  primitive made_by;           // what is called once before, to write what this one reads
  std::vector<operand> moved;  // every array once for reading and once for writing it
  status (*function)(const Arguments&);
};

template <class Arguments>
const call<Arguments>& find_call(const std::vector<call<Arguments>>& calls, primitive what) {
  for (const call<Arguments>& each : calls)
    if (each.what == what) return each;
  throw std::logic_error("no call of this primitive");
}

/// Bytes that one call must move: everything it reads, once, and everything it writes, once.
template <class Arguments>
u64 bytes_moved(const call<Arguments>& c, const task& t) {
  u64 sum = 0;
  for (const operand each : c.moved) sum += t.size(each);
  return sum;
}

/// The bytes of every array that a call or what is called before needs; 0: not that one.
template <class Arguments>
std::vector<u64> sizes_of(const call<Arguments>& c, const call<Arguments>& made_by, const task& t) {
  std::vector<u64> sizes(num_operands);
  for (const operand each : c.moved) sizes[std::size_t(each)] = t.size(each);
  for (const operand each : made_by.moved) sizes[std::size_t(each)] = t.size(each);
  if (sizes[std::size_t(operand::tile_bits)] > 0)
    sizes[std::size_t(operand::tile_index)] = t.size(operand::tile_index);
  return sizes;
}

namespace detail {

/// The parts of a tensor as entries of a batch, whose members are made by
/// make(plan, array, blob, number).
template <class Entry, class Make>
std::vector<Entry> make_entries(const arguments& a, const Make& make) {
  const i64 parts = a.of->r.on.num_parts;
  const i64 elements = num_elements(a.of->r) / parts;
  const u64 blob_bytes = a.plan().size_bytes();
  std::vector<Entry> entries;
  entries.reserve(std::size_t(parts));
  for (i64 i = 0; i < parts; ++i) {
    u8* const array = a.at[std::size_t(operand::x)] + i * elements * size_bytes(a.of->r.type);
    u8* const blob = a.at[std::size_t(operand::blob)] + u64(i) * blob_bytes;
    entries.push_back(
        make(&a.plan(), values{array, a.of->r.type, elements}, bytes{blob, blob_bytes}, u64(i)));
  }
  return entries;
}

template <class A>
status compress(const A& a) {
  if (a.of->r.way != path::batch) return a.compress(a.plan(), a.x(), a.blob(), a.key());
  const auto entries = make_entries<compress_entry>(
      a, [](const plan* p, const values& x, const bytes& blob, u64 number) {
        return compress_entry{p, x, blob, number};
      });
  return a.compress_batch(span<const compress_entry>(entries.data(), entries.size()), a.key());
}

template <class A>
status decompress(const A& a) {
  if (a.of->r.way != path::batch) return a.decompress(a.plan(), a.blob(), a.x(), key_of_blobs);
  const auto entries = make_entries<decompress_entry>(
      a, [](const plan* p, const values& y, const bytes& blob, u64 number) {
        return decompress_entry{p, blob, y, number};
      });
  return a.decompress_batch(span<const decompress_entry>(entries.data(), entries.size()),
                            key_of_blobs);
}

template <class A>
status rectify(const A& a) {
  if (!a.plan().has_mask()) return a.relu(a.plan(), a.x(), a.y(), a.blob());
  return a.relu(a.plan(), a.x(), a.y(), a.blob(), a.key());
}

template <class A>
status multiply(const A& a) {
  return a.unpack_multiply(a.plan(), a.blob(), a.of->book, a.x(), a.y());
}

template <class A>
status measure_blob(const A& a) {
  const auto sums = a.template array<quality>(operand::result);
  const span<quality> groups(sums.data, sums.size - 1);
  return a.measure(a.plan(), a.x(), a.blob(), groups, sums.data + groups.size);
}

template <class A>
status allocate(const A& a) {
  const span<const double> squared(a.template array<double>(operand::given).data,
                                   a.plan().num_tiles());
  const auto sensitivity = a.template array<const float>(operand::given, squared.size_bytes());
  return a.allocate_bits(a.plan().sum_of_bits(), sensitivity, squared, a.tile_bits());
}

template <class A>
status expand(const A& a) {
  return a.expand_sensitivity(a.plan(), a.template array<const float>(operand::given),
                              a.template array<float>(operand::result));
}

}  // namespace detail

/// All calls of a program: its own, and then those of the library.
template <class A>
std::vector<call<A>> with_library_calls(std::vector<call<A>> calls) {
  using p = primitive;
  using o = operand;
  const std::vector<o> in_place = {o::x, o::blob};
  const std::vector<o> coded = {o::x, o::blob, o::given, o::tile_bits};
  const std::vector<o> added = {o::x, o::x, o::blob, o::given, o::tile_bits};
  const std::vector<o> passed = {o::x, o::y, o::blob};
  const std::vector<call<A>> library = {
      {p::pack, p::pack, in_place, [](auto& a) { return a.pack(a.plan(), a.codes(), a.blob()); }},
      {p::unpack, p::pack, in_place,
       [](auto& a) { return a.unpack(a.plan(), a.blob(), a.codes()); }},
      {p::compress, p::compress, coded, detail::compress<A>},
      {p::decompress, p::compress, coded, detail::decompress<A>},
      {p::decompress_add, p::compress, added,
       [](auto& a) { return a.decompress_add(a.plan(), a.blob(), a.x(), key_of_blobs); }},
      {p::stash,
       p::compress,
       {o::x, o::blob, o::blob, o::y},
       [](auto& a) { return a.keep_and_restore(); }},
      {p::relu, p::relu, passed, detail::rectify<A>},
      {p::relu_backward, p::relu, passed, detail::multiply<A>},
      {p::dropout,
       p::dropout,
       {o::x, o::y},
       [](auto& a) { return a.dropout(a.x(), dropped, a.y(), a.key()); }},
      {p::dropout_masked, p::dropout_masked, passed,
       [](auto& a) { return a.dropout(a.plan(), a.x(), dropped, a.y(), a.blob(), a.key()); }},
      {p::dropout_backward, p::dropout_masked, passed, detail::multiply<A>},
      {p::max_pool, p::max_pool, passed,
       [](auto& a) { return a.max_pool(a.of->pooling, a.x(), a.y(), a.blob()); }},
      {p::max_pool_backward, p::max_pool, passed,
       [](auto& a) { return a.max_pool_backward(a.of->pooling, a.blob(), a.y(), a.x()); }},
      {p::codebook_pack, p::codebook_pack, in_place,
       [](auto& a) { return a.pack(a.plan(), a.x(), a.of->book, a.blob(), a.key()); }},
      {p::codebook_unpack, p::codebook_pack, in_place,
       [](auto& a) { return a.unpack(a.plan(), a.blob(), a.of->book, a.x()); }},
      {p::unpack_multiply, p::codebook_pack, passed, detail::multiply<A>},
      {p::measure, p::compress, {o::x, o::blob, o::result}, detail::measure_blob<A>},
      {p::squared_ranges,
       p::squared_ranges,
       {o::x, o::result},
       [](auto& a) { return a.squared_ranges(a.plan(), a.input(), a.squared()); }},
      {p::squared_coded_ranges,
       p::compress,
       {o::blob, o::result},
       [](auto& a) { return a.squared_ranges(a.plan(), a.packed(), a.squared()); }},
      {p::expand_sensitivity, p::expand_sensitivity, {o::given, o::result}, detail::expand<A>},
      {p::allocate_bits, p::allocate_bits, {o::given, o::tile_bits}, detail::allocate<A>},
  };
  calls.insert(calls.end(), library.begin(), library.end());
  return calls;
}

}  // namespace furl::bench
