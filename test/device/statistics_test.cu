// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Statistics to normalise by in device memory: what is refused, stashes, and the key that is read
// when the kernel runs.

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "device/api.cuh"

namespace furl::test {
namespace {

const std::vector<float> mean = {0.5f, -2.0f, 3.0f};
const std::vector<float> inverse_deviation = {2.0f, 0.25f, 1.5f};

host::options host_options() {
  host::options o;
  o.statistics = {mean.data(), inverse_deviation.data(), 3, 100};
  return o;
}

std::vector<plan> plans() {
  codec dithered;
  dithered.rounding = rounding::dithered;
  codec rotated;
  rotated.coding = coding::rotated;
  return {*plan::make({}, {num_elements}), *plan::make(dithered, {num_elements}),
          *plan::make(rotated, {num_elements})};
}

/// Arrays of the statistics and of one call.
struct setup {
  const device_array<float> means{mean};
  const device_array<float> inverses{inverse_deviation};
  const floats x{make_input()};
  const floats y{make_input()};
  scoped_stream stream;

  options given() const {
    options o;
    o.statistics = {means.as<const float>(), inverses.as<const float>(), 3, 100};
    return o;
  }
};

TEST(device_statistics, BadPointersAreNamedAndNothingIsWritten) {
  const setup s;
  for (const plan& p : plans()) {
    const std::vector<u8> untouched(p.size_bytes(), 0x5a);
    const device_buffer blob(untouched);
    const auto expect = [&](const statistics& given, error code, const char* argument) {
      options o;
      o.statistics = given;
      for (const status& got :
           {compress(p, s.x.const_view(), view(blob), {1, 2}, s.stream, o),
            decompress(p, const_view(blob), s.y.view(), {1, 2}, s.stream, o),
            decompress_add(p, const_view(blob), s.y.view(), {1, 2}, s.stream, o)}) {
        EXPECT_EQ(got.code, code) << to_string(got);
        EXPECT_STREQ(got.argument, argument) << to_string(got);
      }
    };
    const statistics good = s.given().statistics;
    statistics bad = good;
    bad.mean = mean.data();
    expect(bad, error::wrong_memory, "options.statistics.mean");
    bad = good;
    bad.inverse_deviation = inverse_deviation.data();
    expect(bad, error::wrong_memory, "options.statistics.inverse_deviation");
    const auto moved = [](const float* at) {
      return reinterpret_cast<const float*>(reinterpret_cast<std::uintptr_t>(at) + 2);
    };
    bad = good;
    bad.mean = moved(good.mean);
    expect(bad, error::misaligned, "options.statistics.mean");
    bad = good;
    bad.inverse_deviation = moved(good.inverse_deviation);
    expect(bad, error::misaligned, "options.statistics.inverse_deviation");
    bad = good;
    bad.inverse_deviation = nullptr;
    expect(bad, error::null_pointer, "options.statistics.inverse_deviation");
    s.stream.wait();
    EXPECT_EQ(blob.bytes(), untouched);
    EXPECT_EQ(s.y.read_back(), make_input());
  }
}

TEST(device_statistics, OverlapsWithWhatIsWritten) {
  const setup s;
  const plan p = plans()[0];
  const device_buffer blob(std::vector<u8>(p.size_bytes(), 0x5a));
  const auto expect = [](const status& got, const char* argument) {
    EXPECT_EQ(got.code, error::overlap) << to_string(got);
    EXPECT_STREQ(got.argument, argument);
  };
  const auto try_all = [&](const device_buffer& written, const auto& call) {
    options o = s.given();
    o.statistics.mean = reinterpret_cast<const float*>(written.data() + 16);
    expect(call(o), "options.statistics.mean");
    o = s.given();
    o.statistics.inverse_deviation = reinterpret_cast<const float*>(written.data() + 16);
    expect(call(o), "options.statistics.inverse_deviation");
  };
  try_all(blob, [&](const options& o) {
    return compress(p, s.x.const_view(), view(blob), {1, 2}, s.stream, o);
  });
  try_all(s.y, [&](const options& o) {
    return decompress(p, const_view(blob), s.y.view(), s.stream, o);
  });
  try_all(s.y, [&](const options& o) {
    return decompress_add(p, const_view(blob), s.y.view(), s.stream, o);
  });
  s.stream.wait();
  EXPECT_EQ(blob.bytes(), std::vector<u8>(p.size_bytes(), 0x5a));
  EXPECT_EQ(s.y.read_back(), make_input());
}

TEST(device_statistics, StashesRestoreWithThemAndWithout) {
  const setup s;
  for (const plan& p : plans()) {
    const auto kept = stash::compress(p, s.x.const_view(), {1, 2}, s.stream, s.given());
    const auto of_host = host::stash::compress(p, make_input(), {1, 2}, host_options());
    ASSERT_TRUE(kept && of_host);
    std::vector<float> expected(num_elements);
    ASSERT_TRUE(kept->restore(s.y.view(), s.stream, s.given()));
    ASSERT_TRUE(of_host->restore(expected, host_options()));
    s.stream.wait();
    EXPECT_EQ(s.y.read_back(), expected);
    ASSERT_TRUE(kept->restore_add(s.y.view(), s.stream, s.given()));
    ASSERT_TRUE(of_host->restore_add(expected, host_options()));
    s.stream.wait();
    EXPECT_EQ(s.y.read_back(), expected);
    ASSERT_TRUE(kept->restore(s.y.view(), s.stream));
    ASSERT_TRUE(of_host->restore(expected));
    s.stream.wait();
    EXPECT_EQ(s.y.read_back(), expected);
  }
}

TEST(device_statistics, AKeyInDeviceMemory) {
  const setup s;
  const device_array<random_key> device_key({random_key{1, 2}});
  options o = s.given();
  o.device_key = device_key.as<random_key>();
  for (const plan& p : plans()) {
    const device_buffer blob(p.size_bytes());
    ASSERT_TRUE(compress(p, s.x.const_view(), view(blob), {7, 8}, s.stream, o));
    ASSERT_TRUE(decompress(p, const_view(blob), s.y.view(), {7, 8}, s.stream, o));
    s.stream.wait();
    std::vector<u8> expected(p.size_bytes());
    std::vector<float> values(num_elements);
    ASSERT_TRUE(host::compress(p, make_input(), expected, {1, 2}, host_options()));
    ASSERT_TRUE(host::decompress(p, expected, values, {1, 2}, host_options()));
    EXPECT_EQ(blob.bytes(), expected);
    EXPECT_EQ(s.y.read_back(), values);
  }
}

}  // namespace
}  // namespace furl::test
