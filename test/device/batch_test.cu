// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Batches on the device: their launches, graphs, and what only a device refuses.

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

constexpr u64 batch_seed = 21;

/// Copies of the input of a few tests as tensors of one plan, each with a blob.
class device_batch {
 public:
  device_batch(const plan& p, int count) : p_(p) { add(p_, dtype::f32, count); }

  /// More tensors of another kind, whose bytes mean nothing. The plan must stay.
  void add(const plan& p, dtype type, int count) {
    for (int i = 0; i < count; ++i) {
      const floats& x = xs_.emplace_back(make_input(i));
      const device_buffer& blob = blobs_.emplace_back(p.size_bytes());
      const u64 offset = in.size();
      in.push_back({&p, {x.data(), type, p.num_elements()}, view(blob), offset});
      out.push_back({&p, const_view(blob), {x.data(), type, p.num_elements()}, offset});
    }
  }
  /// That tensor `i` of the plan has the blob of a key with this offset for the whole batch.
  void expect_blob(int i, u64 offset) const {
    EXPECT_EQ(blobs_[std::size_t(i)].bytes(),
              host_blob(p_, make_input(i), {batch_seed, offset + u64(i)}));
  }

  std::vector<compress_entry> in;
  std::vector<decompress_entry> out;

 private:
  const plan p_;
  std::deque<floats> xs_;
  std::deque<device_buffer> blobs_;
};

plan flat_plan(const codec& c = {}) {
  return *plan::make(c, {num_elements});
}

TEST(device_batch, ACapturedBatchKeepsItsEntriesAndDrawsFreshBits) {
  const scoped_stream stream;
  const int count = 130;  // two launches
  device_batch tensors(flat_plan(), count);
  const device_array<random_key> key({{batch_seed, 100}});
  options o;
  o.device_key = key.as<random_key>();
  const captured graph(stream, [&] {
    std::vector<compress_entry> short_lived = tensors.in;
    EXPECT_TRUE(compress_batch(short_lived, {1, 1}, stream, o));
    for (compress_entry& e : short_lived) e = {};
  });
  EXPECT_EQ(graph.num_nodes(), 2u);
  for (const u64 offset : {u64(100), u64(900)}) {
    const random_key fresh{batch_seed, offset};
    key.write(&fresh);
    graph.replay(stream);
    for (const int i : {0, 1, 125, 126, 129}) tensors.expect_blob(i, offset);
  }
}

TEST(device_batch, EachKindHasALaunchOfItsOwn) {
  const scoped_stream stream;
  codec rotated;
  rotated.coding = coding::rotated;
  codec dithered;
  dithered.rounding = rounding::dithered;
  const plan one_more = flat_plan();
  const plan with_dither = flat_plan(dithered);
  const plan with_rotation = flat_plan(rotated);
  const plan empty = *plan::make({}, {0});
  const auto count_launches = [&](const device_batch& tensors) {
    const captured compressing(stream, [&] {
      EXPECT_TRUE(compress_batch(tensors.in, {1, 2}, stream));
    });
    const captured restoring(stream, [&] {
      EXPECT_TRUE(decompress_batch(tensors.out, {1, 2}, stream));
    });
    return std::pair(compressing.num_nodes(), restoring.num_nodes());
  };
  using pair = std::pair<std::size_t, std::size_t>;
  device_batch tensors(flat_plan(), 126);
  EXPECT_EQ(count_launches(tensors), pair(1, 1));
  tensors.add(empty, dtype::f32, 3);
  EXPECT_EQ(count_launches(tensors), pair(1, 1));
  tensors.add(one_more, dtype::f32, 1);
  EXPECT_EQ(count_launches(tensors), pair(2, 2));
  tensors.add(with_dither, dtype::f32, 1);
  EXPECT_EQ(count_launches(tensors), pair(2, 3));
  tensors.add(with_rotation, dtype::f32, 1);
  EXPECT_EQ(count_launches(tensors), pair(3, 4));
  tensors.add(with_rotation, dtype::bf16, 1);
  EXPECT_EQ(count_launches(tensors), pair(4, 5));
}

TEST(device_batch, AWarpGoesOnToTilesOfOtherTensors) {
  const scoped_stream stream;
  const plan p = flat_plan();
  const int count = 7;
  const device_batch tensors(p, count);
  kernel::tensor_batch batch;
  for (const compress_entry& e : tensors.in) batch.add(p, e.x.data, e.blob.data, e.key_offset);
  const kernel::key_argument key{{batch_seed, 5}};
  ASSERT_TRUE(kernel::launch(kernel::compress_batch<float, false, kernel::architectures>, {1},
                             stream, batch, key));
  stream.wait();
  for (int i = 0; i < count; ++i) tensors.expect_blob(i, 5);
}

TEST(device_batch, NamesTheEntryThatADeviceRefuses) {
  const scoped_stream stream;
  const auto host_memory = make_input();
  const auto refuse = [&](error code, const char* argument, i64 entry, const auto& spoil) {
    device_batch tensors(flat_plan(), 3);
    options o;
    spoil(tensors.in[2], o);
    const captured graph(stream, [&] {
      const batch_status s = compress_batch(tensors.in, {1, 2}, stream, o);
      EXPECT_EQ(s.code, code) << to_string(s);
      EXPECT_STREQ(s.argument, argument);
      EXPECT_EQ(s.entry, entry);
    });
    EXPECT_EQ(graph.num_nodes(), 0u);
  };
  using entry = compress_entry;
  refuse(error::misaligned, "x", 2,
         [](entry& e, options&) { e.x.data = static_cast<const u8*>(e.x.data) + 2; });
  refuse(error::misaligned, "blob", 2,
         [](entry& e, options&) { e.blob.data = static_cast<u8*>(e.blob.data) + 8; });
  refuse(error::wrong_memory, "x", 2, [&](entry& e, options&) { e.x.data = host_memory.data(); });
  refuse(error::overlap, "x", 2,
         [](entry& e, options&) { e.blob.data = const_cast<void*>(e.x.data); });
  refuse(error::overlap, "options.device_key", 2,
         [](entry& e, options& o) { o.device_key = static_cast<const random_key*>(e.blob.data); });
  refuse(error::misaligned, "options.device_key", -1, [](entry& e, options& o) {
    o.device_key = reinterpret_cast<const random_key*>(static_cast<u8*>(e.blob.data) + 4);
  });
  refuse(error::wrong_memory, "options.device_key", -1, [&](entry&, options& o) {
    o.device_key = reinterpret_cast<const random_key*>(host_memory.data());
  });
  refuse(error::wrong_plan, "options.tile_bits", -1, [](entry& e, options& o) {
    o.tile_bits = {e.x.data, 5};
  });
}

TEST(device_batch, AnotherDeviceMayBeCurrent) {
  if (!has_device(2)) GTEST_SKIP() << "needs two devices";
  require(cudaSetDevice(1));
  const scoped_stream stream;
  const device_batch tensors(flat_plan(), 2);
  require(cudaSetDevice(0));
  for (const bool check_pointers : {true, false}) {
    options o;
    o.check_pointers = check_pointers;
    const u64 offset = check_pointers ? 7 : 8;
    const batch_status s = compress_batch(tensors.in, {batch_seed, offset}, stream, o);
    EXPECT_TRUE(s) << to_string(s);
    EXPECT_EQ(s.entry, -1);
    stream.wait();
    for (const int i : {0, 1}) tensors.expect_blob(i, offset);
  }
}

}  // namespace
}  // namespace furl::test
