// SPDX-FileCopyrightText: 2026 The furl authors
// SPDX-License-Identifier: Apache-2.0

// Max pooling with packed window indices, and its backward pass.

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "support/coded.hpp"
#include "support/inputs.hpp"

namespace furl::test {
namespace {

struct example {
  extents shape;
  pool_window window;
};

const example examples[] = {
    {{2, 3, 8, 8}, {{2, 2}, {2, 2}, {0, 0}}},         // VGG
    {{1, 2, 56, 57}, {{3, 3}, {2, 2}, {1, 1}}},       // ResNet
    {{5, 1, 7, 9}, {{3, 3}, {1, 1}, {1, 1}}},         // every element in up to nine windows
    {{3, 11, 13}, {{2, 3}, {3, 2}, {1, 0}}},          // sizes that differ, gaps between windows
    {{4, 6}, {{4, 6}, {7, 9}, {2, 3}}},               // one image, few windows
    {{3, 40, 33}, {{16, 16}, {5, 4}, {8, 8}}},        // 8 bits
    {{2, 2, 2, 5, 40}, {{1, 129}, {1, 3}, {0, 64}}},  // wider than the image
    {{7, 1, 1}, {{1, 1}, {1, 1}, {0, 0}}},
    {{0, 3, 8, 8}, {{2, 2}, {2, 2}, {0, 0}}},
};

struct pooled {
  std::vector<float> y;
  std::vector<u8> index;
  std::vector<std::size_t> source;  // of each output, in the input
};

/// One window after the other, from the definition.
pooled reference_pool(const example& e, const std::vector<float>& x) {
  const int rank = e.shape.rank;
  const i64 height = e.shape[rank - 2];
  const i64 width = e.shape[rank - 1];
  pooled out;
  for (std::size_t image = 0; image < x.size(); image += std::size_t(height * width)) {
    for (i64 top = -e.window.padding[0]; top + e.window.kernel[0] <= height + e.window.padding[0];
         top += e.window.stride[0]) {
      for (i64 left = -e.window.padding[1];
           left + e.window.kernel[1] <= width + e.window.padding[1]; left += e.window.stride[1]) {
        float best = -std::numeric_limits<float>::infinity();
        int index = -1;
        std::size_t source = 0;
        for (int i = 0; i < e.window.kernel[0] * e.window.kernel[1]; ++i) {
          const i64 row = top + i / e.window.kernel[1];
          const i64 column = left + i % e.window.kernel[1];
          if (row < 0 || row >= height || column < 0 || column >= width) continue;
          const std::size_t at = image + std::size_t(row * width + column);
          if (index >= 0 && !(x[at] > best) && !std::isnan(x[at])) continue;
          best = x[at];
          index = i;
          source = at;
        }
        out.y.push_back(best);
        out.index.push_back(static_cast<u8>(index));
        out.source.push_back(source);
      }
    }
  }
  return out;
}

std::vector<u8> written(const std::vector<float>& values, dtype type) {
  return map_elements(reference::from_floats(values, type), type,
                      [](float value, std::size_t) { return value; });
}

void expect_pooled_as_reference(const example& e, dtype type, u32 seed) {
  const auto made = max_pool_plan::make(e.shape, e.window);
  ASSERT_TRUE(made) << to_string(made.status());
  const i64 inputs = made->num_inputs();
  const i64 outputs = made->num_outputs();
  const auto x = awkward_elements(std::size_t(inputs), type, seed);
  const pooled expected = reference_pool(e, reference::to_floats(x, type));
  ASSERT_EQ(expected.y.size(), std::size_t(outputs));
  const auto g = reference::from_floats(normal_floats(std::size_t(outputs), seed + 1), type);
  const auto gradients = reference::to_floats(g, type);
  std::vector<float> sums(std::size_t(inputs), 0.0f);
  for (std::size_t i = 0; i < expected.source.size(); ++i) sums[expected.source[i]] += gradients[i];
  const auto blob_bytes = reference::pack(made->codes().codec().bits, expected.index);
  for (const auto& engine : backends()) {
    for (const std::size_t where : {std::size_t(0), std::size_t(size_bytes(type))}) {
      SCOPED_TRACE(std::string(engine->name()) + " " + name(type) + " seed " +
                   std::to_string(seed));
      const guarded_buffer input(x, where);
      const guarded_buffer gradient(g, where);
      guarded_buffer y(g.size(), where);
      guarded_buffer blob(made->codes().size_bytes());
      guarded_buffer out(x.size(), where);
      EXPECT_TRUE(engine->max_pool(*made, {input.data(), type, inputs}, {y.data(), type, outputs},
                                   {blob.data(), blob.size()}));
      EXPECT_EQ(y.bytes(), written(expected.y, type));
      EXPECT_EQ(blob.bytes(), blob_bytes);
      EXPECT_TRUE(engine->max_pool_backward(*made, {blob.data(), blob.size()},
                                            {gradient.data(), type, outputs},
                                            {out.data(), type, inputs}));
      EXPECT_EQ(out.bytes(), written(sums, type));
      EXPECT_TRUE(y.intact() && blob.intact() && out.intact());
      EXPECT_EQ(input.bytes(), x);
    }
  }
}

TEST(MaxPool, ForwardAndBackwardAsReference) {
  u32 seed = 1;
  for (const example& e : examples)
    for (const dtype type : all_types) expect_pooled_as_reference(e, type, seed++);
}

TEST(MaxPool, SizesOfPlans) {
  const auto bits_of = [](int height, int width) {
    return max_pool_plan::make({64, 64}, {{height, width}, {1, 1}, {0, 0}})->codes().codec().bits;
  };
  EXPECT_EQ(bits_of(1, 1), 1);
  EXPECT_EQ(bits_of(1, 2), 1);
  EXPECT_EQ(bits_of(2, 2), 2);
  EXPECT_EQ(bits_of(1, 5), 3);
  EXPECT_EQ(bits_of(3, 3), 4);
  EXPECT_EQ(bits_of(4, 4), 4);
  EXPECT_EQ(bits_of(1, 17), 5);
  EXPECT_EQ(bits_of(16, 16), 8);
  const auto resnet = max_pool_plan::make({32, 64, 112, 112}, {{3, 3}, {2, 2}, {1, 1}});
  EXPECT_EQ(resnet->output_shape(), (extents{32, 64, 56, 56}));
  EXPECT_EQ(resnet->num_inputs(), 32 * 64 * 112 * 112);
}

// -infinity is chosen where there is nothing else, zeros of either sign are equal, the last NaN
// wins.
TEST(MaxPool, SpecialValues) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::nanf("");
  const std::vector<float> x = {-infinity, -infinity, -0.0f, 0.0f, 0.0f, -0.0f,
                                nan,       infinity,  nan,   nan,  1.0f, infinity};
  const std::vector<u8> index = {0, 0, 0, 0, 1, 1};
  const auto p = *max_pool_plan::make({6, 1, 2}, {{1, 2}, {1, 2}, {0, 0}});
  for (const auto& engine : backends()) {
    std::vector<float> y(6);
    guarded_buffer blob(p.codes().size_bytes());
    ASSERT_TRUE(engine->max_pool(p, x, y, {blob.data(), blob.size()}));
    EXPECT_EQ(reference::unpack(1, blob.bytes(), 6), index);
    EXPECT_EQ(y[0], -infinity);
    EXPECT_TRUE(std::signbit(y[1]) && !std::signbit(y[2]));
    EXPECT_TRUE(std::isnan(y[3]) && std::isnan(y[4]));
    EXPECT_EQ(y[5], infinity);
  }
}

// Any bytes are a blob: an index beyond the window names no input.
TEST(MaxPool, BackwardOfAnyBlob) {
  const example e{{2, 30, 31}, {{3, 3}, {2, 2}, {1, 1}}};
  const auto p = *max_pool_plan::make(e.shape, e.window);
  const auto bytes_given = random_bytes(std::size_t(p.codes().size_bytes()), 3);
  const auto index = reference::unpack(4, bytes_given, p.num_outputs());
  const auto g = normal_floats(std::size_t(p.num_outputs()), 5);
  std::vector<float> expected(std::size_t(p.num_inputs()), 0.0f);
  const auto& rows = p.geometry().rows;
  const auto& columns = p.geometry().columns;
  for (std::size_t i = 0; i < g.size(); ++i) {
    const int output = int(i) % (rows.output * columns.output);
    const int row = output / columns.output * 2 - 1 + index[i] / 3;
    const int column = output % columns.output * 2 - 1 + index[i] % 3;
    if (index[i] >= 9 || row < 0 || row >= 30 || column < 0 || column >= 31) continue;
    const int image = int(i) / (rows.output * columns.output);
    expected[std::size_t(image * 930 + row * 31 + column)] += g[i];
  }
  for (const auto& engine : backends()) {
    std::vector<float> out(expected.size(), 7.0f);
    const guarded_buffer blob(bytes_given);
    ASSERT_TRUE(engine->max_pool_backward(p, {blob.data(), blob.size()}, g, out));
    EXPECT_EQ(out, expected);
  }
}

TEST(MaxPoolPlan, Refused) {
  const auto expect = [](const extents& shape, const pool_window& window, const char* argument,
                         i64 value) {
    const auto made = max_pool_plan::make(shape, window);
    ASSERT_FALSE(made);
    EXPECT_EQ(made.status().code, error::out_of_range);
    EXPECT_STREQ(made.status().argument, argument);
    EXPECT_EQ(made.status().value, value);
  };
  const extents shape{2, 8, 8};
  expect({8}, {}, "shape.rank", 1);
  expect({1, 1, 1, 1, 1, 1, 1, 8, 8}, {}, "shape.rank", 9);
  expect(shape, {{0, 2}, {2, 2}, {0, 0}}, "window.kernel", 0);
  expect(shape, {{2, 257}, {2, 2}, {0, 128}}, "window.kernel", 257);
  expect({2, 99, 99}, {{16, 17}, {2, 2}, {0, 0}}, "window.kernel", 272);
  expect(shape, {{2, 9}, {2, 2}, {0, 0}}, "window.kernel", 9);
  expect(shape, {{2, 2}, {0, 2}, {0, 0}}, "window.stride", 0);
  expect(shape, {{2, 2}, {2, -1}, {0, 0}}, "window.stride", -1);
  expect(shape, {{2, 2}, {2, 2}, {2, 0}}, "window.padding", 2);
  expect(shape, {{3, 3}, {2, 2}, {0, -1}}, "window.padding", -1);
  expect({2, 0, 8}, {}, "window.kernel", 2);
  expect({-2, 8, 8}, {}, "shape", -2);
  expect({2, -8, 8}, {}, "shape", -8);
  expect({1, i64(1) << 30, 2}, {}, "shape", i64(1) << 30);
  expect({1, 1 << 15, 1 << 15}, {}, "shape", 1 << 15);
  expect({i64(1) << 40, 4096, 4096}, {}, "shape", i64(1) << 40);
  EXPECT_TRUE(max_pool_plan::make({1, (1 << 15) - 1, 1 << 15}, {}));
}

TEST(MaxPoolArguments, Refused) {
  const auto p = *max_pool_plan::make({2, 10, 10}, {{3, 3}, {2, 2}, {1, 1}});
  const auto content = random_bytes(8192, 4);
  for (const auto& engine : backends()) {
    guarded_buffer memory(content);
    const values x{memory.data(), dtype::f32, p.num_inputs()};
    const values y{memory.data() + 1024, dtype::f32, p.num_outputs()};
    const bytes blob{memory.data() + 4096, p.codes().size_bytes()};
    const auto expect = [&](values inputs, values outputs, bytes codes, error code,
                            const char* forward_argument, const char* backward_argument) {
      const status forward =
          engine->max_pool(p, {inputs.data, inputs.type, inputs.num_elements}, outputs, codes);
      EXPECT_EQ(forward.code, code) << to_string(forward);
      EXPECT_STREQ(forward.argument, forward_argument);
      const status backward =
          engine->max_pool_backward(p, {codes.data, codes.size_bytes},
                                    {outputs.data, outputs.type, outputs.num_elements}, inputs);
      EXPECT_EQ(backward.code, code) << to_string(backward);
      EXPECT_STREQ(backward.argument, backward_argument);
    };
    expect({x.data, x.type, 199}, y, blob, error::wrong_size, "x", "out");
    expect({nullptr, x.type, 200}, y, blob, error::null_pointer, "x", "out");
    expect(x, {y.data, y.type, 51}, blob, error::wrong_size, "y", "g");
    expect(x, {nullptr, y.type, 50}, blob, error::null_pointer, "y", "g");
    expect(x, {y.data, dtype(5), 50}, blob, error::out_of_range, "y", "g");
    expect(x, {y.data, dtype::f16, 50}, blob, error::out_of_range, "x", "out");
    expect(x, y, {blob.data, 511}, error::wrong_size, "blob", "blob");
    expect(x, y, {nullptr, 512}, error::null_pointer, "blob", "blob");
    EXPECT_EQ(memory.bytes(), content);
  }
}

}  // namespace
}  // namespace furl::test
