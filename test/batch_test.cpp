// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Batches: each tensor gets what a call of its own gives.

#include <gtest/gtest.h>

#include <deque>
#include <string>
#include <vector>

#include "support/inputs.hpp"
#include "support/run.hpp"

namespace furl::test {
namespace {

constexpr random_key batch_key{11, ~u64(0) - 5};  // offsets wrap around

struct batch_tensor {
  plan p;
  dtype type;
  dtype restored;  // type of what it is decompressed to
  u64 key_offset;
  misalignment where;
};

std::size_t bytes_in(const batch_tensor& t, dtype type) {
  return std::size_t(t.p.num_elements()) * std::size_t(size_bytes(type));
}
random_key key_of(const batch_tensor& t) {
  return {batch_key.seed, batch_key.offset + t.key_offset};
}

/// A codec that batches take, by a number.
codec batched_codec(u32 number) {
  codec c = rotated_codec(1 + int(number / 4 % 4));
  if (number % 4 == 3) return c;
  c.coding = coding::min_max;
  c.bits = 1 + int(number % 8);
  c.group = 32 << number % 6;
  c.meta = number % 5 < 3 ? dtype::bf16 : dtype::f32;
  c.rounding = rounding(number % 3);
  return c;
}

/// Tensors of some sizes in turns, all else different.
std::vector<batch_tensor> make_tensors(int count, const std::vector<i64>& sizes) {
  std::vector<batch_tensor> tensors;
  for (int i = 0; i < count; ++i) {
    const auto number = u32(i * 7919 + 3);
    const i64 size = sizes[std::size_t(i) % sizes.size()];
    tensors.push_back({make_plan(batched_codec(number), {size}),
                       all_types[number / 2 % 3],
                       all_types[number / 3 % 3],
                       u64(i) * 3,
                       {number / 5 % 9 * 2}});
  }
  return tensors;
}

/// Compresses and decompresses tensors in batches and one by one: the same bytes.
void expect_as_single_calls(backend& engine, const std::vector<batch_tensor>& tensors) {
  SCOPED_TRACE(engine.name());
  std::deque<guarded_buffer> inputs;
  std::deque<guarded_buffer> blobs;
  std::deque<guarded_buffer> outputs;
  std::vector<compress_entry> in;
  std::vector<decompress_entry> out;
  for (const batch_tensor& t : tensors) {
    const i64 n = t.p.num_elements();
    const auto x = normal_input(n, t.type, u32(t.key_offset) + 1);
    guarded_buffer& from = inputs.emplace_back(x, t.where.bytes);
    guarded_buffer& blob = blobs.emplace_back(t.p.size_bytes());
    guarded_buffer& to = outputs.emplace_back(bytes_in(t, t.restored), t.where.bytes);
    in.push_back({&t.p, {from.data(), t.type, n}, {blob.data(), blob.size()}, t.key_offset});
    out.push_back({&t.p, {blob.data(), blob.size()}, {to.data(), t.restored, n}, t.key_offset});
  }
  const batch_status compressed = engine.compress_batch(in, batch_key);
  ASSERT_TRUE(compressed) << to_string(compressed);
  const batch_status restored = engine.decompress_batch(out, batch_key);
  ASSERT_TRUE(restored) << to_string(restored);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    SCOPED_TRACE("entry " + std::to_string(i));
    const batch_tensor& t = tensors[i];
    const auto x = normal_input(t.p.num_elements(), t.type, u32(t.key_offset) + 1);
    const auto blob = compress(engine, t.p, x, t.type, key_of(t), {}, t.where);
    ASSERT_EQ(blobs[i].bytes(), blob);
    ASSERT_EQ(outputs[i].bytes(),
              decompress(engine, t.p, blob, t.restored, {}, t.where, key_of(t)));
    EXPECT_EQ(inputs[i].bytes(), x);
    EXPECT_TRUE(inputs[i].intact() && blobs[i].intact() && outputs[i].intact());
  }
}

TEST(Batch, GivesWhatSingleCallsGive) {
  const auto tensors = make_tensors(96, {1024, 1, 0, 1023, 2049, 5000, 100, 1025});
  for (const auto& engine : backends()) expect_as_single_calls(*engine, tensors);
}

TEST(Batch, TakesLargeTensorsBesideSmallOnes) {
  const auto tensors = make_tensors(9, {0, 100000, 7, 1024, 65536});
  for (const auto& engine : backends()) expect_as_single_calls(*engine, tensors);
}

// More than fit in a launch, of one kind.
TEST(Batch, TakesManyTensors) {
  std::vector<batch_tensor> tensors;
  for (int i = 0; i < 300; ++i)
    tensors.push_back({make_plan({}, {1 + i * 37 % 1500}), dtype::f32, dtype::f32, u64(i), {}});
  for (const auto& engine : backends()) expect_as_single_calls(*engine, tensors);
}

TEST(Batch, MayBeEmpty) {
  const plan none = make_plan({}, {0, 8});
  const compress_entry in[2] = {{&none, {}, {}}, {&none, {}, {}}};
  const decompress_entry out[2] = {{&none, {}, {}}, {&none, {}, {}}};
  for (const auto& engine : backends()) {
    EXPECT_TRUE(engine->compress_batch({}, batch_key));
    EXPECT_TRUE(engine->decompress_batch({}, batch_key));
    EXPECT_TRUE(engine->compress_batch({in, 2}, batch_key));
    EXPECT_TRUE(engine->decompress_batch({out, 2}, batch_key));
  }
}

/// Three tensors, of which a test spoils one.
class BatchErrors : public testing::Test {
 protected:
  /// That both calls refuse the second entry for an argument, and write nothing.
  void expect_refused(error code, const char* argument) {
    SCOPED_TRACE(argument);
    for (const auto& engine : backends()) {
      std::vector<decompress_entry> out;
      for (const compress_entry& e : batch)
        out.push_back({e.plan,
                       {e.blob.data, e.blob.size_bytes},
                       {const_cast<void*>(e.x.data), e.x.type, e.x.num_elements}});
      const batch_status compressed = engine->compress_batch(batch, batch_key);
      const batch_status restored = engine->decompress_batch(out, batch_key);
      for (const batch_status& s : {compressed, restored}) {
        EXPECT_EQ(s.code, code) << to_string(s);
        EXPECT_EQ(s.entry, 1);
      }
      EXPECT_STREQ(compressed.argument, argument);
      EXPECT_STREQ(restored.argument, argument[0] == 'x' ? "y" : argument);
      EXPECT_EQ(to_string(compressed).rfind(std::string("entry 1: ") + argument, 0), 0u);
      for (const auto* buffers : {&xs, &blobs})
        for (const guarded_buffer& buffer : *buffers)
          EXPECT_EQ(buffer.bytes(), std::vector<u8>(buffer.size(), guarded_buffer::canary));
    }
    batch[1] = valid;
  }

  plan p = make_plan({}, {2000});
  std::deque<guarded_buffer> xs;
  std::deque<guarded_buffer> blobs;
  std::vector<compress_entry> batch = [this] {
    std::vector<compress_entry> entries;
    for (u64 i = 0; i < 3; ++i) {
      guarded_buffer& x = xs.emplace_back(8000);
      guarded_buffer& blob = blobs.emplace_back(p.size_bytes());
      entries.push_back({&p, {x.data(), dtype::f32, 2000}, {blob.data(), blob.size()}, i});
    }
    return entries;
  }();
  const compress_entry valid = batch[1];
};

TEST_F(BatchErrors, NameTheEntryAndTheArgument) {
  batch[1].plan = nullptr;
  expect_refused(error::null_pointer, "plan");
  batch[1].x.data = nullptr;
  expect_refused(error::null_pointer, "x");
  batch[1].x.num_elements = 1999;
  expect_refused(error::wrong_size, "x");
  batch[1].x.type = dtype(7);
  expect_refused(error::out_of_range, "x");
  batch[1].blob.data = nullptr;
  expect_refused(error::null_pointer, "blob");
  --batch[1].blob.size_bytes;
  expect_refused(error::wrong_size, "blob");
}

TEST_F(BatchErrors, RefusePlansThatNeedAKernelOfTheirOwn) {
  codec window;
  window.window = {8};
  codec lines;
  lines.by_lines = true;
  const plan refused[] = {make_plan(window, {2000}), make_plan(positives_codec(2), {2000}),
                          make_plan(lines, {20, 100}), *plan::make_mixed({}, {2000}, 4),
                          *plan::make_codes(2, {2000})};
  for (const plan& each : refused) {
    batch[1].plan = &each;
    expect_refused(error::wrong_plan, "plan");
  }
  const plan huge = make_plan({}, {i64(1) << 41});
  batch[1] = {&huge, {}, {}};
  expect_refused(error::out_of_range, "plan");
}

TEST_F(BatchErrors, OfTheBatchItselfNameNoEntry) {
  for (const auto& engine : backends())
    for (const batch_status& s :
         {engine->compress_batch({static_cast<const compress_entry*>(nullptr), 2}, batch_key),
          engine->decompress_batch({static_cast<const decompress_entry*>(nullptr), 2}, batch_key),
          engine->compress_batch({batch.data(), -1}, batch_key)}) {
      EXPECT_FALSE(s);
      EXPECT_STREQ(s.argument, "batch");
      EXPECT_EQ(s.entry, -1);
      EXPECT_EQ(to_string(s).rfind("batch", 0), 0u);
    }
}

// Lines that whole groups divide have no codes of their own.
TEST(Batch, TakesLinesOfWholeGroups) {
  codec c;
  c.by_lines = true;
  const std::vector<batch_tensor> tensors = {
      {make_plan(c, {5, 768}), dtype::bf16, dtype::f32, 0, {}}};
  for (const auto& engine : backends()) expect_as_single_calls(*engine, tensors);
}

}  // namespace
}  // namespace furl::test
